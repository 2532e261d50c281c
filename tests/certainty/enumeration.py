"""Comparison of all claims of certainty with every labelling, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np

from certikmeans.certainty import Certainty
from certikmeans.certainty.compute import compute_certainty
from certikmeans.certainty.params import AggregationParams, AscentParams, CertaintyParams
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def certainty_with_aggregation(
    result: Result, slack: float, aggregation: AggregationParams
) -> Certainty:
    """Certainty with other parameters of the aggregation."""
    assert result.basis is not None
    assert result.labels is not None
    params = CertaintyParams(ascent=AscentParams(aggregation=aggregation))
    return compute_certainty(result.basis, result.labels, result.cost, slack, params=params)


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


def near_optimal_labellings(problem: Problem, most: Fraction) -> list[tuple[int, ...]]:
    """All labellings that cost at most ``most``; approximate costs exclude most others first."""
    points = problem.points - problem.points.mean(axis=0)
    scatter = float(problem.weights @ np.sum(points * points, axis=1))
    limit = float(most) * (1.0 + 1e-6) + 1e-6 * scatter
    every = list(feasible_labellings(problem))
    return [
        every[i]
        for i in np.flatnonzero(approximate_costs(problem, every) <= limit)
        if exact_cost(problem.points, problem.weights, every[i]) <= most
    ]


def sorted_costs(problem: Problem) -> list[float]:
    """Approximate costs of the feasible labellings, in ascending order."""
    return sorted(approximate_costs(problem, list(feasible_labellings(problem))).tolist())


def approximate_costs(problem: Problem, labellings: list[tuple[int, ...]]) -> np.ndarray:
    """Costs in floating point, all at once."""
    points, table = problem.points - problem.points.mean(axis=0), np.array(labellings)
    total = np.zeros(len(table))
    for k in range(problem.n_clusters):
        mass = (table == k) * problem.weights
        held = mass.sum(axis=1, keepdims=True)
        means = mass @ points / np.where(held > 0.0, held, 1.0)
        away = points[None] - means[:, None]
        total += np.sum(mass * np.sum(away * away, axis=2), axis=1)
    return total


def has_valid_relabelling(k: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether the clusters have a numbering with which every one fits."""
    table = [[fits(cluster, number) for number in range(k)] for cluster in range(k)]
    return bool(np.array(table)[np.arange(k), numberings(k)].all(axis=1).any())


@cache
def numberings(k: int) -> np.ndarray:
    return np.array(list(permutations(range(k))))


def check_all_claims(problem: Problem, result: Result, certainty: Certainty) -> int:
    """Assert all claims; return the number of labellings that they are about."""
    most = Fraction(result.cost) * (1 + Fraction(certainty.slack))
    n, k, ours = problem.n_points, problem.n_clusters, result.labels
    boxes = [
        [(Fraction(a), Fraction(b)) for a, b in box] for box in certainty.center_boxes.tolist()
    ]
    good = near_optimal_labellings(problem, most)
    for labels in good:
        members = [[i for i in range(n) if labels[i] == c] for c in range(k)]
        means = [exact_mean(problem, mine) for mine in members]

        def fits(cluster, number, members=members, means=means) -> bool:
            mean = means[cluster]
            return all(
                certainty.possible[i, number] and (number == ours[i] or not certainty.certain[i])
                for i in members[cluster]
            ) and (
                mean is None
                or all(a <= v <= b for v, (a, b) in zip(mean, boxes[number], strict=True))
            )

        assert has_valid_relabelling(k, fits), (labels, ours, certainty)
        table = np.zeros((k, k), dtype=np.int64)
        np.add.at(table, (np.array(labels), ours), 1)
        same = int(table[np.arange(k), numberings(k)].sum(axis=1).max())
        assert n - same <= certainty.most_elsewhere
        assert Fraction(same, n) >= Fraction(certainty.agreement)
    for i, j, shared in certainty.confusable:
        assert shared == int(np.sum(certainty.possible[:, i] & certainty.possible[:, j])) > 0
    assert np.array_equal(certainty.certain, certainty.possible.sum(axis=1) == 1)
    return len(good)
