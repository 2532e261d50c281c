"""Lloyd runs: fixed points, empty clusters, dense components."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.stop import StopSignal
from tests.assignment.helpers import (
    SHAPES,
    any_feasible_labels,
    build_problem,
    is_feasible,
    random_edges,
)
from tests.assignment.test_dense_components import dense_problem


def draw(seed, shape, n=30):
    rng = np.random.default_rng(seed)
    feasible_labels = None
    while feasible_labels is None:
        n_clusters = int(rng.integers(2, 5))
        edges = random_edges(shape, 8, n_clusters, rng)
        points = rng.normal(size=(n, 2))
        problem = build_problem(points, rng.uniform(0.5, 2.0, n), edges, n_clusters)
        feasible_labels = any_feasible_labels(problem.graph, n_clusters, seed)
    return problem, feasible_labels, points[rng.choice(n, n_clusters, replace=False)]


def means(problem, labels, centers):
    """Return the means of the clusters; an empty one keeps its centre."""
    found = centers.copy()
    for k in range(problem.n_clusters):
        own = labels == k
        if own.any():
            found[k] = np.average(problem.points[own], axis=0, weights=problem.weights[own])
    return found


def check_run(problem, run):
    assert is_feasible(problem.graph, run.labels)
    assert np.isfinite(run.centers).all()
    np.testing.assert_allclose(
        run.centers, means(problem, run.labels, run.centers), rtol=1e-9, atol=1e-12
    )
    distances = ((problem.points - run.centers[run.labels]) ** 2).sum(axis=1)
    assert math.isclose(run.cost, problem.weights @ distances, rel_tol=1e-9, abs_tol=1e-300)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_run_ends_in_fixed_point(shape, seed):
    problem, feasible_labels, start = draw(seed, shape)
    assigner = CannotLinkAssigner(problem, feasible_labels)
    labels = np.empty(problem.n_groups, dtype=np.int64)
    run = assigner.lloyd(start, labels)
    assert run.labels is labels
    assert run.exact
    assert run.iterations < 300
    check_run(problem, run)
    again = assigner.assign(run.centers)
    assert again.cost >= run.cost * (1 - 1e-12)
    assert run.cost <= assigner.assign(start).cost * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from(SHAPES))
def test_compiled_run_equals_stepwise(seed, shape):
    problem, feasible_labels, start = draw(seed, shape)
    compiled, stepwise = (
        CannotLinkAssigner(problem, feasible_labels),
        CannotLinkAssigner(problem, feasible_labels),
    )
    stepwise._needs_search = True
    one, other = np.zeros((2, problem.n_groups), dtype=np.int64)
    for limit in (1, 2, 100):
        first, second = compiled.lloyd(start, one, limit), stepwise.lloyd(start, other, limit)
        assert first.labels.tobytes() == second.labels.tobytes()
        assert first.centers.tobytes() == second.centers.tobytes()
        assert (first.cost, first.iterations) == (second.cost, second.iterations)
        check_run(problem, first)


def test_cost_decreases_with_iterations():
    problem, feasible_labels, start = draw(3, "tree", n=200)
    assigner = CannotLinkAssigner(problem, feasible_labels)
    labels = np.empty(problem.n_groups, dtype=np.int64)
    costs = [assigner.lloyd(start, labels, limit).cost for limit in range(1, 15)]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(costs))


def test_tolerance_stops_earlier():
    problem, feasible_labels, start = draw(5, "tree", n=400)
    assigner = CannotLinkAssigner(problem, feasible_labels)
    labels = np.empty(problem.n_groups, dtype=np.int64)
    full, rough = assigner.lloyd(start, labels), assigner.lloyd(start, labels, tolerance=0.05)
    assert rough.iterations < full.iterations
    check_run(problem, rough)


def test_empty_cluster_gets_farthest_group():
    points = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])
    problem = build_problem(points, np.ones(5), [], 3)
    labels = np.empty(5, dtype=np.int64)
    run = CannotLinkAssigner(problem, np.zeros(5)).lloyd([[0.5], [10.5], [1e6]], labels)
    assert run.labels.tolist() == [0, 0, 1, 1, 2]
    assert run.cost == 1.0


def test_empty_cluster_ties():
    points = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    problem = build_problem(points, [1.0, 1.0, 1.0, 1.0], [], 2)
    labels = np.empty(4, dtype=np.int64)
    once = CannotLinkAssigner(problem, np.zeros(4)).lloyd([[0.0], [50.0]], labels, 1)
    assert once.labels.tolist() == [1, 0, 0, 0]


def test_several_empty_clusters():
    rng = np.random.default_rng(0)
    problem = build_problem(rng.normal(size=(12, 2)), np.ones(12), [(0, 1), (1, 2)], 5)
    feasible_labels = any_feasible_labels(problem.graph, 5)
    labels = np.empty(12, dtype=np.int64)
    start = np.full((5, 2), 100.0) + np.arange(5)[:, None]
    run = CannotLinkAssigner(problem, feasible_labels).lloyd(start, labels)
    assert len(set(run.labels.tolist())) == 5
    check_run(problem, run)


def test_more_clusters_than_distinct_points():
    problem = build_problem(np.zeros((4, 2)), np.ones(4), [], 3)
    labels = np.empty(4, dtype=np.int64)
    run = CannotLinkAssigner(problem, np.zeros(4)).lloyd(
        [[0.0, 0.0], [5.0, 5.0], [6.0, 6.0]], labels
    )
    assert run.cost == 0.0
    assert run.labels.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(run.centers, [[0.0, 0.0], [5.0, 5.0], [6.0, 6.0]])


def test_single_group_keeps_cluster_despite_rounding():
    weight, place = next(
        (w, x) for w in (3.0, 5.0, 7.0) for x in np.arange(1, 50) / 10 if w * x / w != x
    )
    problem = build_problem([[place]], [weight], [], 2)
    labels = np.empty(1, dtype=np.int64)
    run = CannotLinkAssigner(problem, [0]).lloyd([[place], [9.0]], labels)
    assert run.labels.tolist() == [0]
    assert run.centers[1, 0] == 9.0


def test_linked_duplicates_use_two_clusters():
    # Two cannot-linked groups at the same point.
    problem = build_problem(np.zeros((2, 1)), np.ones(2), [(0, 1)], 2)
    labels = np.empty(2, dtype=np.int64)
    run = CannotLinkAssigner(problem, [0, 1]).lloyd([[0.0], [9.0]], labels)
    assert sorted(run.labels.tolist()) == [0, 1]
    assert run.cost == 0.0


def test_exact_time_limit_does_not_raise_cost():
    problem, feasible_labels, start = dense_problem(60, 5, 300, 2)
    labels = feasible_labels.copy()
    quick = CannotLinkAssigner(problem, feasible_labels, exact_time_limit=0.0).lloyd(start, labels)
    check_run(problem, quick)
    labels = feasible_labels.copy()
    thorough = CannotLinkAssigner(problem, feasible_labels, exact_time_limit=0.5).lloyd(
        start, labels, 30
    )
    check_run(problem, thorough)
    assert thorough.cost <= quick.cost * (1 + 1e-9)


def test_stopped_run_is_consistent():
    problem, feasible_labels, start = dense_problem(60, 5, 300, 3)
    stop = StopSignal()
    stop.interrupt()
    labels = np.empty(60, dtype=np.int64)
    run = CannotLinkAssigner(problem, feasible_labels).lloyd(start, labels, stop=stop)
    assert run.iterations == 1
    check_run(problem, run)
