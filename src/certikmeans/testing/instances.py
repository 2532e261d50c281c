"""Small random instances with weights, duplicates, shifts and all kinds of constraints."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from certikmeans.errors import InputError
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import feasible_labellings

SHIFTS = (0.0, 1e4, 1e8)


def random_problem(seed: int, *, largest: int = 7) -> Problem:
    """Draw a small problem: weights, duplicates, far shifts; CL trees, cycles and cliques.

    The pairs are drawn regardless of feasibility, so some instances are infeasible.

    >>> random_problem(0).n_points <= 7
    True
    """
    rng = np.random.default_rng(seed)
    n_points = int(rng.integers(1, largest + 1))
    n_features = int(rng.integers(1, 4))
    points = rng.normal(size=(n_points, n_features)) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.3:
        points = np.round(points, 1)
    if n_points > 2 and rng.random() < 0.3:
        points[rng.integers(n_points)] = points[rng.integers(n_points)]
    if rng.random() < 0.2:
        points[:, rng.integers(n_features)] = 1.0
    points = points + SHIFTS[rng.integers(len(SHIFTS))]
    weights = _random_weights(rng, n_points)
    n_clusters = int(rng.integers(1, min(4, n_points) + 1))
    return Problem.from_data(
        points,
        n_clusters,
        must_link=_random_pairs(rng, n_points, rng.choice([0.0, 0.1, 0.3])),
        cannot_link=_cannot_links(rng, n_points),
        weights=weights,
    )


def feasible_problem(
    seed: int, *, largest: int = 7, min_clusters: int = 2, weightless: bool = False
) -> Problem:
    """Draw until the problem is feasible and has more groups than clusters.

    So a test on such an instance is never vacuous.

    Parameters
    ----------
    seed : int
        The same seed gives the same problem.
    largest : int
        Maximum number of points.
    min_clusters : int
        Minimum number of clusters.
    weightless : bool
        Whether some points may have weight 0.

    Examples
    --------
    >>> feasible_problem(3).n_clusters >= 2
    True
    """
    for number in range(1_000):
        problem = random_problem(1_000_003 * number + seed, largest=largest)
        if weightless:
            problem = _with_zeros(problem, np.random.default_rng([seed, number]))
        if problem.n_clusters < min_clusters:
            continue
        try:
            done = presolve(problem, StopSignal(), explanation_seconds=0.0)
        except InputError:  # a weightless point with a cannot-link
            continue
        if isinstance(done, PresolvedProblem) and done.reduced.n_groups > problem.n_clusters:
            return problem
    raise AssertionError(f"no feasible problem in 1,000 draws from seed {seed}")


def soft_problem(seed: int, *, largest: int = 7, others: bool = False) -> Problem:
    """Draw a feasible problem with hard and soft pairs.

    Soft pairs may be parallel, opposite, inside must-link groups, across cannot-links, of a point
    with itself, in cycles, and of penalty 0. Penalties range from a hundredth to ten times the
    mean squared distance.

    Parameters
    ----------
    seed : int
        The same seed gives the same problem.
    largest : int
        Maximum number of points.
    others : bool
        Whether there are cannot-link sets or limits on cluster sizes as well.

    Examples
    --------
    >>> soft_problem(1).has_soft_pairs
    True
    """
    for number in range(1_000):
        rng = np.random.default_rng([seed, number])
        base = feasible_problem(1_000_003 * number + seed, largest=largest)
        n = base.n_points
        spread = float(np.sum((base.points - base.points.mean(axis=0)) ** 2)) / n
        unit = spread * 10.0 ** float(rng.uniform(-2.0, 1.0)) + 1e-3
        soft = []
        for _ in range(2):
            pairs = rng.integers(n, size=(int(rng.integers(1, 2 * n)), 2))
            prices = unit * np.round(rng.uniform(0.0, 2.0, size=len(pairs)), 1 + rng.integers(9))
            soft.append(np.column_stack([pairs, prices]))
        changes: dict[str, Any] = {"soft_must_link": soft[0], "soft_cannot_link": soft[1]}
        if others and rng.random() < 0.6:
            sets = np.full(n, -1)
            members = rng.permutation(n)[: int(rng.integers(2, base.n_clusters + 1))]
            sets[members] = 3
            changes["cannot_link_groups"] = sets
        if others and rng.random() < 0.6:
            changes["size_min"] = int(rng.integers(0, n // base.n_clusters + 1))
            changes["size_max"] = int(rng.integers(-(-n // base.n_clusters), n + 1))
        problem = replace(base, **changes)
        if next(feasible_labellings(problem), None) is not None:
            return problem
    raise AssertionError(f"no feasible problem in 1,000 draws from seed {seed}")


def infeasible_problem(seed: int, *, largest: int = 7) -> Problem:
    """Draw until no labelling satisfies every pair.

    >>> infeasible_problem(3).n_points <= 7
    True
    """
    for number in range(1_000):
        problem = random_problem(1_000_003 * number + seed, largest=largest)
        if not isinstance(
            presolve(problem, StopSignal(), explanation_seconds=0.0), PresolvedProblem
        ):
            return problem
    raise AssertionError(f"no infeasible problem in 1,000 draws from seed {seed}")


def _with_zeros(problem: Problem, rng: np.random.Generator) -> Problem:
    weights = np.where(rng.random(problem.n_points) < 0.3, 0.0, problem.weights)
    return replace(problem, weights=weights) if weights.any() else problem


def _random_weights(rng: np.random.Generator, n_points: int) -> Any:
    kind = rng.integers(3)
    if kind == 0:
        return None
    if kind == 1:
        return rng.integers(1, 6, size=n_points).astype(float)
    return rng.uniform(0.01, 3.0, size=n_points)


def _random_pairs(rng: np.random.Generator, n_points: int, density: float) -> Any:
    pairs = np.array(list(combinations(range(n_points), 2)), dtype=np.int64).reshape(-1, 2)
    return pairs[rng.random(len(pairs)) < density]


def _cannot_links(rng: np.random.Generator, n_points: int) -> Any:
    order = rng.permutation(n_points)
    kind = rng.integers(6)
    if n_points < 3 or kind == 0:
        return _random_pairs(rng, n_points, rng.choice([0.0, 0.1, 0.4]))
    if kind == 1:  # a random tree
        return [(order[i], order[rng.integers(i)]) for i in range(1, n_points)]
    if kind == 2:  # a cycle, sometimes with a tail
        size = int(rng.integers(3, n_points + 1))
        ring = [(order[i], order[(i + 1) % size]) for i in range(size)]
        return ring + [(order[i], order[rng.integers(i)]) for i in range(size, n_points)]
    if kind == 3:  # a clique
        return list(combinations(order[: rng.integers(2, min(5, n_points) + 1)], 2))
    if kind == 4:  # a star
        return [(order[0], other) for other in order[1:]]
    return _random_pairs(rng, n_points, 0.15)
