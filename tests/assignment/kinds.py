"""Small problems with every kind of constraint, and all their feasible labellings."""

from __future__ import annotations

from itertools import product

import numpy as np

from certikmeans import Problem
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import feasible_labellings

KINDS = ("sets", "overlapping sets", "sets and pairs", "sizes and pairs", "demands and sets", "all")


def _columns(rng, n_points, n_clusters, n_columns):
    columns = np.full((n_columns, n_points), -1)
    for column in columns:
        rows = rng.permutation(n_points)
        first = 0
        while first < n_points - 1:
            size = int(rng.integers(2, n_clusters + 1))
            column[rows[first : first + size]] = first
            first += size + int(rng.integers(2))
    return columns


def drawn_problem(seed, kind, largest=8):
    """A feasible problem with constraints of the given kinds."""
    for number in range(1_000):
        rng = np.random.default_rng([seed, number, KINDS.index(kind)])
        n, k = int(rng.integers(5, largest + 1)), int(rng.integers(2, 4))
        points = rng.normal(size=(n, 2)) + 1000.0 * rng.integers(2)
        given = {"weights": rng.uniform(0.2, 3.0, size=n)}
        pairs = rng.integers(n, size=(4, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        if "sets" in kind or kind == "all":
            n_columns = 2 if kind == "overlapping sets" else 1
            given["cannot_link_groups"] = _columns(rng, n, k, n_columns)
        if "pairs" in kind or kind == "all":
            given["cannot_link"] = pairs[:3]
        if kind in ("sizes and pairs", "all"):
            given["size_min"], given["size_max"] = 1, -(-n // k) + int(rng.integers(2))
            given["must_link"] = pairs[3:]
        if kind == "demands and sets":
            given["demand"] = rng.uniform(0.5, 2.0, size=n)
            given["size_max"] = 1.3 * float(given["demand"].sum()) / k
        if kind == "all":
            given["soft_must_link"] = np.column_stack([pairs[:2], rng.uniform(size=len(pairs[:2]))])
        problem = Problem.from_data(points, k, **given)
        if next(feasible_labellings(problem), None) is None:
            continue
        done = presolve(problem, StopSignal())
        if isinstance(done, PresolvedProblem) and done.reduced.n_groups > k:
            return problem, done
    raise AssertionError(f"no feasible problem in 1,000 draws from seed {seed}")


def all_labellings(reduced):
    """Every feasible labelling of the groups, each cluster within its own limits."""
    constraints = reduced.label_constraints
    for found in product(range(reduced.n_clusters), repeat=reduced.n_groups):
        labels = np.array(found)
        if constraints.satisfied_by(labels) and (constraints.aligned(labels) == labels).all():
            yield labels


def least_cost(reduced, costs):
    """Least cost of a table over all feasible labellings, penalties included."""
    rows, penalty = np.arange(reduced.n_groups), reduced.label_constraints.penalty
    return min(costs[rows, one].sum() + penalty(one) for one in all_labellings(reduced))
