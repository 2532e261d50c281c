"""Enumeration in exact arithmetic: slow, short and simple."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from certikmeans.problem import Problem


def exact_cost(points: Any, weights: Any, labels: Any) -> Fraction:
    """Cost of ``labels`` with every cluster at its exact mean.

    A float is a whole number times a power of two, so sums are taken over whole numbers: about
    the mean of mass m, the squares add up to ``sum w x^2 - (sum w x)^2 / m``.

    >>> exact_cost([[0.0], [2.0], [9.0]], [1.0, 1.0, 1.0], [0, 0, 1])
    Fraction(2, 1)
    """
    rows, step = _scaled_integers(points)
    masses, unit = _scaled_integers([weights])
    total = Fraction(0)
    for k in {int(label) for label in labels}:
        members = [i for i, label in enumerate(labels) if int(label) == k]
        mass = sum(masses[0][i] for i in members)
        if mass == 0:
            continue  # no cost without weight
        for j in range(len(rows[0])):
            first = sum(masses[0][i] * rows[i][j] for i in members)
            second = sum(masses[0][i] * rows[i][j] ** 2 for i in members)
            total += Fraction(second * mass - first**2, mass)
    return total * unit * step**2


def _scaled_integers(table: Any) -> tuple[list[list[int]], Fraction]:
    """Every number of a table as a multiple of one step."""
    ratios = [[float(value).as_integer_ratio() for value in row] for row in table]
    finest = max((below for row in ratios for _, below in row), default=1)  # powers of two
    return [[above * (finest // below) for above, below in row] for row in ratios], Fraction(
        1, finest
    )


def respects(labels: Any, must_link: Any, cannot_link: Any) -> bool:
    """Whether ``labels`` satisfies every pair.

    >>> respects([0, 0, 1], must_link=[(0, 1)], cannot_link=[(1, 2)])
    True
    """
    return all(labels[i] == labels[j] for i, j in must_link) and all(
        labels[i] != labels[j] for i, j in cannot_link
    )


def feasible_labellings(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every labelling that satisfies every pair, up to renaming clusters."""
    for labels in numbered_by_first_appearance(problem.n_points, problem.n_clusters):
        if respects(labels, problem.must_link, problem.cannot_link):
            yield labels


def numbered_by_first_appearance(n_points: int, n_clusters: int) -> Iterator[tuple[int, ...]]:
    """Every labelling once, up to renaming of clusters; some may be empty.

    >>> list(numbered_by_first_appearance(3, 2))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]
    """
    if n_points == 0:
        yield ()
        return
    for before in numbered_by_first_appearance(n_points - 1, n_clusters):
        for label in range(min(max(before, default=-1) + 2, n_clusters)):
            yield (*before, label)


def brute_force(problem: Problem) -> tuple[Fraction, tuple[int, ...]] | None:
    """Return the optimum and one labelling that attains it; None if infeasible.

    >>> brute_force(Problem.from_data([[0.0], [1.0], [9.0]], 2))
    (Fraction(1, 2), (0, 0, 1))
    """
    best = None
    for labels in feasible_labellings(problem):
        cost = exact_cost(problem.points, problem.weights, labels)
        if best is None or cost < best[0]:
            best = (cost, labels)
    return best
