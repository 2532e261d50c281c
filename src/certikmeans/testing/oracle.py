"""Enumeration in exact arithmetic: slow, short and simple."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
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


def exact_penalty(problem: Problem, labels: Any) -> Fraction:
    """Penalties of the violated soft pairs.

    >>> exact_penalty(
    ...     Problem.from_data([[0.0], [1.0]], 2, soft_must_link=[(0, 1, 2.5)]), [0, 1]
    ... )
    Fraction(5, 2)
    """
    total = Fraction(0)
    for priced, paid_together in (
        (problem.soft_must_link, False),
        (problem.soft_cannot_link, True),
    ):
        for (i, j), penalty in zip(priced.pairs.tolist(), priced.penalties.tolist(), strict=True):
            if (labels[i] == labels[j]) == paid_together:
                total += Fraction(penalty)
    return total


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


def respects_sets(labels: Any, columns: Any) -> bool:
    """Whether no cluster has two points of one cannot-link set.

    >>> respects_sets([0, 0, 1], [[5, -1, 5]]), respects_sets([0, 0, 1], [[5, 5, -1]])
    (True, False)
    """
    for column in columns:
        used = [(int(s), int(label)) for s, label in zip(column, labels, strict=True) if s >= 0]
        if len(set(used)) < len(used):
            return False
    return True


def respects_sizes(problem: Problem, labels: Any) -> bool:
    """Whether some numbering of the clusters satisfies the limits on sizes.

    >>> limited = Problem.from_data([[0.0], [1.0], [2.0]], 2, size_min=[2, 1])
    >>> respects_sizes(limited, [0, 1, 1]), respects_sizes(limited, [0, 0, 0])
    (True, False)
    """
    if not problem.has_sizes:
        return True
    k, n = problem.n_clusters, problem.n_points
    demand = [1.0] * n if problem.demand is None else problem.demand.tolist()
    sizes = [Fraction(0)] * k
    for label, amount in zip(labels, demand, strict=True):
        sizes[label] += Fraction(amount)
    low = [0.0] * k if problem.size_min is None else problem.size_min.tolist()
    high = [math.inf] * k if problem.size_max is None else problem.size_max.tolist()
    return any(
        all(low[i] <= size <= high[i] for i, size in zip(order, sizes, strict=True))
        for order in permutations(range(k))
    )


def feasible_labellings(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Every labelling that satisfies every hard constraint, up to renaming clusters."""
    for labels in numbered_by_first_appearance(problem.n_points, problem.n_clusters):
        if (
            respects(labels, problem.must_link, problem.cannot_link)
            and respects_sets(labels, problem.cannot_link_groups)
            and respects_sizes(problem, labels)
        ):
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
    """Return the optimum, penalties included, and one labelling that attains it.

    None if the problem is infeasible.

    >>> brute_force(Problem.from_data([[0.0], [1.0], [9.0]], 2))
    (Fraction(1, 2), (0, 0, 1))
    """
    best = None
    for labels in feasible_labellings(problem):
        cost = exact_cost(problem.points, problem.weights, labels)
        cost += exact_penalty(problem, labels)
        if best is None or cost < best[0]:
            best = (cost, labels)
    return best
