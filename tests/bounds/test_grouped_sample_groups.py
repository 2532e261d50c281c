"""Sample groups: whole components, limited size, representative."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import solve
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.grouped import GroupedBound
from certikmeans.bounds.grouped.sample_groups import make_sample_groups, size_limit
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem


@pytest.mark.parametrize(("d", "n_clusters", "size"), [(4, 3, 30), (8, 3, 17), (60, 3, 1)])
def test_size_limit(d, n_clusters, size):
    assert size_limit(d, n_clusters) == size


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("limit", [1, 2, 3, None])
def test_partition_into_whole_components(seed, limit):
    problem = presolve(feasible_problem(seed, largest=12), StopSignal()).reduced
    groups = make_sample_groups(problem, limit)
    assert sorted(groups.order) == list(range(problem.n_groups))
    assert groups.starts[0] == 0
    assert groups.starts[-1] == problem.n_groups
    assert np.array_equal(groups.points, problem.points[groups.order])
    group_of = np.repeat(np.arange(groups.n_sets), np.diff(groups.starts))
    pairs = set()
    for i in range(problem.n_groups):
        for j in groups.link[groups.link_start[i] : groups.link_start[i + 1]]:
            assert group_of[i] == group_of[j]
            pairs.add(tuple(sorted((int(groups.order[i]), int(groups.order[j])))))
    assert pairs == {tuple(edge) for edge in problem.graph.edges().tolist()}
    largest = max([1, *np.diff(problem.graph.starts).tolist()])
    allowed = size_limit(problem.n_dims, problem.n_clusters) if limit is None else limit
    assert np.diff(groups.starts).max() <= max(allowed, largest)


def test_groups_are_representative():
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 40, axis=0)
    problem = presolve(
        Problem.from_data(centers + rng.normal(size=(120, 2)), 3), StopSignal()
    ).reduced
    groups = make_sample_groups(problem)
    means = [
        groups.points[a:b].mean(axis=0)
        for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True)
    ]
    assert groups.n_sets == 4
    assert np.abs(means).max() < 1.0


def test_large_component_is_divided():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(140, 2))
    chain = [(i, i + 1) for i in range(139)]
    done = presolve(Problem.from_data(points, 3, cannot_link=chain), StopSignal())
    groups = make_sample_groups(done.reduced)
    assert np.diff(groups.starts).max() <= size_limit(2, 3)
    assert len(groups.link) < 2 * 139
    for i in range(140):
        for j in groups.link[groups.link_start[i] : groups.link_start[i + 1]]:
            assert np.searchsorted(groups.starts, i, "right") == np.searchsorted(
                groups.starts, j, "right"
            )
    bound = GroupedBound(max_evaluations=5)
    value = bound.compute(groups, Domain.root(done.reduced), np.inf, BoundContext()).value
    best = solve(Problem.from_data(points, 3, cannot_link=chain), time_limit=20)
    assert 0.0 < value <= best.cost
