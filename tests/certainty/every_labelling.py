"""Every statement of certainty, compared with every labelling in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np

from certikmeans.certainty import Certainty
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def exact_mean(problem: Problem, members: list[int]) -> list[Fraction] | None:
    masses = [Fraction(float(problem.weights[i])) for i in members]
    total = sum(masses, Fraction(0))
    if total == 0:
        return None
    return [
        sum(
            (
                m * Fraction(float(problem.points[i, j]))
                for i, m in zip(members, masses, strict=True)
            ),
            Fraction(0),
        )
        / total
        for j in range(problem.n_features)
    ]


def good_labellings(problem: Problem, most: Fraction) -> list[tuple[int, ...]]:
    """All that cost at most ``most``; in floats first, which rules out nearly all the others."""
    points = problem.points - problem.points.mean(axis=0)
    scatter = float(problem.weights @ np.sum(points * points, axis=1))
    limit = float(most) * (1.0 + 1e-6) + 1e-6 * scatter
    every = list(feasible_labellings(problem))
    return [
        every[i]
        for i in np.flatnonzero(about_costs(problem, every) <= limit)
        if exact_cost(problem.points, problem.weights, every[i]) <= most
    ]


def costs_in_order(problem: Problem) -> list[float]:
    """What the feasible labellings cost, about, the cheapest first."""
    return sorted(about_costs(problem, list(feasible_labellings(problem))).tolist())


def about_costs(problem: Problem, labellings: list[tuple[int, ...]]) -> np.ndarray:
    """In floats, all at once."""
    points, table = problem.points - problem.points.mean(axis=0), np.array(labellings)
    total = np.zeros(len(table))
    for k in range(problem.n_clusters):
        mass = (table == k) * problem.weights
        held = mass.sum(axis=1, keepdims=True)
        means = mass @ points / np.where(held > 0.0, held, 1.0)
        away = points[None] - means[:, None]
        total += np.sum(mass * np.sum(away * away, axis=2), axis=1)
    return total


def holds(problem: Problem, sure: Certainty, ours, means, labels) -> bool:
    """Whether one numbering of the clusters makes all statements about them true."""
    return all(
        sure.possible[i, label] and (label == ours[i] or not sure.certain[i])
        for i, label in enumerate(labels)
    ) and all(
        mean is None
        or all(
            Fraction(low) <= v <= Fraction(high) for v, (low, high) in zip(mean, box, strict=True)
        )
        for mean, box in zip(means, sure.center_boxes.tolist(), strict=True)
    )


def check_every_statement(problem: Problem, result: Result, sure: Certainty) -> int:
    """Assert all of them; returns how many labellings they are about."""
    most = Fraction(result.cost) * (1 + Fraction(sure.slack))
    n, k, ours = problem.n_points, problem.n_clusters, result.labels
    good = good_labellings(problem, most)
    for labels in good:
        means = [exact_mean(problem, [i for i in range(n) if labels[i] == c]) for c in range(k)]
        numberings = list(permutations(range(k)))
        assert any(
            holds(
                problem,
                sure,
                ours,
                [means[numbering.index(c)] for c in range(k)],
                [numbering[label] for label in labels],
            )
            for numbering in numberings
        ), (labels, ours, sure)
        same = max(
            sum(numbering[label] == ours[i] for i, label in enumerate(labels))
            for numbering in numberings
        )
        assert n - same <= sure.most_elsewhere
        assert Fraction(same, n) >= Fraction(sure.agreement)
    for i, j, shared in sure.confusable:
        assert shared == int(np.sum(sure.possible[:, i] & sure.possible[:, j])) > 0
    assert np.array_equal(sure.certain, sure.possible.sum(axis=1) == 1)
    return len(good)
