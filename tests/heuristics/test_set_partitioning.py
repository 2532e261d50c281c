"""Set partitioning: exact partitions, and results no worse than the given labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from certikmeans.heuristics.set_partitioning import (
    SetPartitioningHeuristic,
    _solve_set_partitioning,
)
from certikmeans.testing.contracts import check_feasible, make_heuristic_context
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import exact_cost


@dataclass(frozen=True)
class Cluster:
    center: np.ndarray
    members: np.ndarray
    cost: float


def clusters_of(problem, labels):
    means = problem.cluster_means(labels)
    for k in np.unique(labels):
        members = labels == k
        away = problem.points[members] - means[k]
        cost = float(np.sum(problem.weights[members, None] * away**2))
        yield Cluster(means[k], members.astype(np.uint8), cost)


@pytest.mark.parametrize("seed", range(40))
def test_not_worse_than_given_labels(seed):
    ctx = make_heuristic_context(feasible_problem(seed, largest=9))
    problem, feasible_labels = ctx.problem, ctx.feasible_labels
    search = SetPartitioningHeuristic(list(clusters_of(problem, feasible_labels)), feasible_labels)
    labels = search.search(ctx)
    check_feasible(problem, labels)
    before = exact_cost(problem.points, problem.weights, feasible_labels)
    scatter = exact_cost(problem.points, problem.weights, np.zeros(problem.n_groups))
    excess = exact_cost(problem.points, problem.weights, labels) - before
    assert float(excess) <= 1e-12 * float(scatter)


@pytest.mark.parametrize("seed", range(30))
def test_partition_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    inside = (rng.random((4, 9)) < 0.4).astype(float)
    costs = rng.random(9)
    n_clusters = int(rng.integers(1, 5))
    feasible = [
        subset
        for size in range(1, n_clusters + 1)
        for subset in combinations(range(9), size)
        if (inside[:, subset].sum(axis=1) == 1).all()
    ]
    chosen = _solve_set_partitioning(costs, inside, n_clusters, 5.0)
    if not feasible:
        assert chosen is None
    else:
        best = min(costs[list(subset)].sum() for subset in feasible)
        assert costs[chosen].sum() == pytest.approx(best)
