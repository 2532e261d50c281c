"""Cheapest feasible labels, against enumeration in exact arithmetic."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.assignment import AssignmentParams, CannotLinkAssigner, layout
from certikmeans.kernels.assignment import MATCH, SEARCH
from tests.assignment.helpers import (
    SHAPES,
    any_feasible_labels,
    build_problem,
    exact_costs,
    is_feasible,
    oracle,
    random_edges,
)

seeds = st.integers(0, 2**32 - 1)


def draw(seed, shape, shift=0.0, scale=1.0):
    """Return a feasible random problem, feasible labels and centres."""
    rng = np.random.default_rng(seed)
    feasible_labels = None
    while feasible_labels is None:
        n_clusters, n = int(rng.integers(2, 5)), int(rng.integers(4, 8))
        edges = random_edges(shape, n, n_clusters, rng)
        points = rng.integers(-3, 4, size=(n, 2)) if seed % 2 else rng.normal(size=(n, 2))
        weights = rng.integers(1, 4, size=n) if seed % 3 else rng.uniform(0.01, 3.0, size=n)
        problem = build_problem(shift + scale * points, weights, edges, n_clusters)
        feasible_labels = any_feasible_labels(problem.graph, n_clusters, seed)
    centers = shift + scale * rng.normal(scale=0.5, size=(n_clusters, 2))
    if seed % 5 == 0:
        centers[1] = centers[0]
    return problem, feasible_labels, centers


def check_against_oracle(problem, answer, costs):
    """Labels are feasible and optimal up to rounding, and the bound is at most the optimum."""
    best = oracle(problem.graph, costs)
    assert is_feasible(problem.graph, answer.labels)
    assert answer.exact
    if best is None:
        assert answer.cost == np.inf
        assert answer.lower_bound == np.inf
    else:
        own = sum(Fraction(costs[i][k]) for i, k in enumerate(answer.labels))
        assert own - best <= best * Fraction(1, 10**12)
        assert math.isclose(answer.cost, own, rel_tol=1e-12)
        assert Fraction(answer.lower_bound) <= best
        assert answer.lower_bound >= answer.cost * (1 - 1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None)
@given(seed=seeds, shift=st.sampled_from([0.0, 1e8]), scale=st.sampled_from([1.0, 1e-150, 1e70]))
def test_assign_is_optimal(shape, seed, shift, scale):
    problem, feasible_labels, centers = draw(seed, shape, shift if scale == 1.0 else 0.0, scale)
    answer = CannotLinkAssigner(problem, feasible_labels).assign(centers)
    check_against_oracle(problem, answer, exact_costs(problem, centers))


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40, deadline=None)
@given(seed=seeds, forbidden=st.sampled_from([0.0, 0.2, 0.5]))
def test_assign_costs_is_optimal_or_infeasible(shape, seed, forbidden):
    problem, feasible_labels, _ = draw(seed, shape)
    rng = np.random.default_rng(seed)
    size = (problem.n_groups, problem.n_clusters)
    costs = rng.integers(0, 4, size=size).astype(float) if seed % 2 else rng.random(size)
    costs[rng.random(size) < forbidden] = np.inf
    answer = CannotLinkAssigner(problem, feasible_labels).assign_costs(costs)
    check_against_oracle(problem, answer, costs)


def test_infeasible_costs():
    # Two linked groups that may both use one label only.
    problem = build_problem(np.zeros((3, 1)), np.ones(3), [(0, 1)], 2)
    costs = np.array([[0.0, np.inf], [1.0, np.inf], [1.0, 1.0]])
    answer = CannotLinkAssigner(problem, [0, 1, 0]).assign_costs(costs)
    assert (answer.cost, answer.lower_bound, answer.exact) == (np.inf, np.inf, True)
    assert is_feasible(problem.graph, answer.labels)


def test_free_group_without_label_is_infeasible():
    problem = build_problem(np.zeros((2, 1)), np.ones(2), [], 2)
    answer = CannotLinkAssigner(problem, [0, 0]).assign_costs([[1.0, 2.0], [np.inf, np.inf]])
    assert answer.lower_bound == np.inf
    assert answer.exact


def test_lower_bound_survives_underflow():
    problem = build_problem([[1e-170], [3e-170]], [1.0, 1.0], [(0, 1)], 2)
    centers = np.array([[0.0], [2e-170]])
    answer = CannotLinkAssigner(problem, [0, 1]).assign(centers)
    assert Fraction(answer.lower_bound) <= oracle(problem.graph, exact_costs(problem, centers))


@pytest.mark.parametrize("seed", range(5))
def test_clique_with_tails(seed):
    # Partial labels give cliques; a matching solves them where tables would be too large.
    rng = np.random.default_rng(seed)
    n_clusters, n = 6, 8
    edges = random_edges("clique with tails", n, n_clusters, rng)
    problem = build_problem(np.zeros((n, 1)), np.ones(n), edges, n_clusters)
    costs = rng.random((n, n_clusters))
    answer = CannotLinkAssigner(
        problem, any_feasible_labels(problem.graph, n_clusters)
    ).assign_costs(costs)
    check_against_oracle(problem, answer, costs)


@pytest.mark.parametrize("shape", ["cycle", "wheel"])
@pytest.mark.parametrize("seed", range(10))
def test_layout_of_large_cores(seed, shape):
    problem, feasible_labels, centers = draw(seed, shape)
    params = AssignmentParams(large_core_size=2, sparse_edges_per_vertex=0.0)
    large = CannotLinkAssigner(problem, feasible_labels, params=params)
    assert large._layout.cores.method.tolist() == [SEARCH]
    check_against_oracle(problem, large.assign(centers), exact_costs(problem, centers))


def test_many_links_need_no_clique_cover(monkeypatch):
    problem, feasible_labels, centers = draw(0, "cycle")
    params = AssignmentParams(many_links=2, sparse_edges_per_vertex=0.0)
    monkeypatch.setattr(layout, "clique_cover", None)  # not to be called
    large = CannotLinkAssigner(problem, feasible_labels, params=params)
    assert large._layout.cores.method.tolist() == [SEARCH]
    check_against_oracle(problem, large.assign(centers), exact_costs(problem, centers))


def test_complete_core_is_matched():
    edges = [(i, j) for i in range(5) for j in range(i)]
    problem = build_problem(np.zeros((5, 1)), np.ones(5), edges, 6)
    feasible_labels = any_feasible_labels(problem.graph, 6)
    large = CannotLinkAssigner(problem, feasible_labels, params=AssignmentParams(many_links=2))
    assert large._layout.cores.method.tolist() == [MATCH]


def near(graph, v):
    return graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]]


def large_problem(n=60_000, n_clusters=5, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n)
    points = rng.normal(size=(n, 3)) + 2.0 * rng.normal(size=(n_clusters, 3))[labels]
    pairs = rng.integers(n, size=(n // 4, 2))
    pairs = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]
    graph_problem = build_problem(points, rng.uniform(0.5, 2.0, n), pairs.tolist(), n_clusters)
    return graph_problem, points[:n_clusters]


@pytest.fixture(scope="module")
def large():
    problem, centers = large_problem()
    feasible_labels = np.empty(problem.n_groups, dtype=np.int64)
    for v in range(problem.n_groups):
        taken = {int(feasible_labels[u]) for u in near(problem.graph, v) if u < v}
        feasible_labels[v] = next((k for k in range(problem.n_clusters) if k not in taken), 0)
    assert is_feasible(problem.graph, feasible_labels)
    return CannotLinkAssigner(problem, feasible_labels), problem, centers


def test_step_sums(large):
    assigner, problem, centers = large
    labels = np.full(problem.n_groups, -7)
    labels[:100] = 3
    before = labels.copy()
    step = assigner.step(centers, labels)
    assert is_feasible(problem.graph, labels)
    member = labels[:, None] == np.arange(problem.n_clusters)
    weights = problem.weights[:, None] * member
    np.testing.assert_allclose(step.masses, weights.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(step.sums, weights.T @ problem.points, rtol=1e-9, atol=1e-9)
    distances = ((problem.points - centers[labels]) ** 2).sum(axis=1)
    assert math.isclose(step.cost, problem.weights @ distances, rel_tol=1e-12)
    assert step.changed == np.count_nonzero(labels != before)
    assert assigner.step(centers, labels).changed == 0
    assert step.cost * (1 - 1e-8) <= step.lower_bound <= step.cost


@pytest.mark.parametrize("n_threads", [1, 2])
def test_step_independent_of_threads(large, n_threads):
    assigner, problem, centers = large
    alone, together = np.zeros((2, problem.n_groups), dtype=np.int64)
    expected = assigner.step(centers, alone)
    with ThreadPoolExecutor(n_threads) as executor:
        found = assigner.step(centers, together, executor=executor)
        assert len(assigner._chunk_ranges) > 2
        run = assigner.lloyd(centers, together, 20, executor=executor)
    assert found.sums.tobytes() == expected.sums.tobytes()
    assert found.masses.tobytes() == expected.masses.tobytes()
    assert (found.cost, found.lower_bound, found.changed) == (
        expected.cost,
        expected.lower_bound,
        expected.changed,
    )
    again = assigner.lloyd(centers, alone, 20)
    assert run.labels.tobytes() == again.labels.tobytes()
    assert run.centers.tobytes() == again.centers.tobytes()
    assert run.cost == again.cost


def test_assigner_is_thread_safe(large):
    assigner, _, centers = large
    shifted = [centers + 0.1 * i for i in range(6)]
    expected = [assigner.assign(c).labels for c in shifted]
    with ThreadPoolExecutor(3) as executor:
        found = list(executor.map(lambda c: assigner.assign(c).labels, shifted))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_wrong_shapes_are_rejected():
    problem = build_problem(np.zeros((2, 1)), np.ones(2), [], 2)
    assigner = CannotLinkAssigner(problem, [0, 0])
    with pytest.raises(ValueError, match="centers: expected shape"):
        assigner.assign(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="costs: expected shape"):
        assigner.assign_costs(np.zeros((2, 3)))


def test_one_cluster_and_one_group():
    problem = build_problem([[3.0]], [2.0], [], 1)
    answer = CannotLinkAssigner(problem, [0]).assign([[1.0]])
    assert answer.labels.tolist() == [0]
    assert answer.cost == 8.0


def test_read_only_and_other_dtypes():
    problem = build_problem([[0.0], [1.0]], [1.0, 1.0], [(0, 1)], 2)
    centers = np.array([[0], [1]])
    centers.flags.writeable = False
    answer = CannotLinkAssigner(problem, [1, 0]).assign(centers)
    assert answer.labels.tolist() == [0, 1]
