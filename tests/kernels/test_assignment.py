"""Assignment kernels against enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.assignment.layout import clique_cover
from certikmeans.kernels import assignment
from certikmeans.kernels.assignment import matching_bound, min_cost_matching
from certikmeans.kernels.dense_assignment.branching import Piece, new_search_state, search_piece
from certikmeans.kernels.dense_assignment.dual_bound import (
    CoreProblem,
    ascend_multipliers,
    core_value,
    dual_bound,
    reduce_costs,
)
from certikmeans.kernels.dense_assignment.heuristics import (
    improve_by_swaps,
    permute_classes,
    tabu_search,
)
from certikmeans.kernels.dense_assignment.solve import search_core
from certikmeans.kernels.graph import peel_component
from certikmeans.kernels.lloyd import iteration
from tests.assignment.helpers import (
    any_feasible_labels,
    build_graph,
    build_problem,
    random_edges,
    read_only,
)

seeds = st.integers(0, 2**32 - 1)


def test_kernels_are_compiled():
    problem = build_problem([[0.0], [1.0]], np.ones(2), [(0, 1)], 2)
    assigner = CannotLinkAssigner(problem, [0, 1])
    labels = np.zeros(2, dtype=np.int64)
    assigner.step([[0.0], [1.0]], labels)
    assigner.lloyd([[0.0], [1.0]], labels)
    assigner.assign_costs(np.ones((2, 2)))
    for kernel in (iteration.assign_chunks, iteration.lloyd, assignment.assign_table):
        assert kernel.nopython_signatures
        assert kernel.targetoptions["nogil"]


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5, 6, 9])
def test_nearest_centers(n_features):
    rng = np.random.default_rng(n_features)
    points, centers = rng.normal(size=(100, n_features)), rng.normal(size=(4, n_features))
    centers[3] = centers[1]  # a tie goes to the lower number
    columns = np.ascontiguousarray(points.T)
    scratch, best, labels = np.empty(70), np.empty(70), np.empty(70, dtype=np.int64)
    iteration.nearest_centers(columns, 20, centers, scratch, best, labels)
    distances = ((points[20:90, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    np.testing.assert_allclose(best, distances.min(axis=1), rtol=1e-14)


@settings(max_examples=150, deadline=None)
@given(seed=seeds, forbidden=st.sampled_from([0.0, 0.3, 0.6]))
def test_matching_bound(seed, forbidden):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 5))
    n_columns = int(rng.integers(n_rows, 6))
    costs = rng.integers(0, 6, size=(n_rows, n_columns)).astype(float)
    if seed % 2:
        costs = rng.random((n_rows, n_columns)) * 1e6
    costs[rng.random(costs.shape) < forbidden] = np.inf
    column_of, prices = np.empty(n_rows, dtype=np.int64), np.empty(n_columns)
    values = [
        sum(Fraction(costs[i, j]) for i, j in enumerate(columns))
        for columns in itertools.permutations(range(n_columns), n_rows)
        if all(costs[i, j] < np.inf for i, j in enumerate(columns))
    ]
    assert min_cost_matching(costs, column_of, prices) == bool(values)
    if values:
        assert len(set(column_of.tolist())) == n_rows
        own = sum(Fraction(c) for c in costs[np.arange(n_rows), column_of])
        assert float(own) <= float(min(values)) * (1 + 1e-12)
        lower = matching_bound(costs, prices)
        assert Fraction(lower) <= min(values)
        assert lower >= float(min(values)) - 1e-9 * (1 + costs[np.isfinite(costs)].max())
        assert Fraction(matching_bound(costs, rng.random(n_columns))) <= min(values)


def clique_arrays(graph):
    near = [set(graph.neighbors[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr)]
    cliques = clique_cover(near)
    member_start = read_only(np.cumsum([0] + [len(q) for q in cliques]))
    return member_start, read_only([v for q in cliques for v in q])


def dense_component(graph, costs):
    return CoreProblem(graph.indptr, graph.neighbors, *clique_arrays(graph), costs)


def draw_core(seed):
    """Return the core of a graph, connected or not, and its exact optimum."""
    rng = np.random.default_rng(seed)
    feasible_labels = None
    while feasible_labels is None:
        n, n_labels = int(rng.integers(3, 7)), int(rng.integers(2, 5))
        graph, _ = build_graph(n, random_edges("dense", n, n_labels, rng))
        feasible_labels = any_feasible_labels(graph, n_labels, seed)
    costs = rng.integers(0, 5, size=(n, n_labels)).astype(float)
    if seed % 2:
        costs = rng.random((n, n_labels))
    proper = [
        labels
        for labels in itertools.product(range(n_labels), repeat=n)
        if all(labels[u] != labels[v] for u, v in graph.edges())
    ]
    best = min(sum(Fraction(costs[v, k]) for v, k in enumerate(x)) for x in proper)
    return dense_component(graph, costs), feasible_labels, proper, best


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_dual_bound_is_valid_and_ascends(seed):
    core, _, _, best = draw_core(seed)
    costs = core.costs
    rng = np.random.default_rng(seed)
    allowed = np.ones(costs.shape, dtype=bool)
    n_cliques = len(core.member_start) - 1
    prices, reduced = rng.random((n_cliques, costs.shape[1])), np.empty_like(costs)
    for start in (prices, np.zeros_like(prices)):
        reduce_costs(core, allowed, start, reduced)
        before = dual_bound(reduced, start)
        assert ascend_multipliers(core, np.inf, reduced, start, 20)
        assert (start >= 0).all()
        reduce_costs(core, allowed, start, reduced)
        after = dual_bound(reduced, start)
        assert before <= after + 1e-9
        assert after <= float(best) + 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_reduced_cost_fixing_is_valid(seed):
    core, feasible_labels, proper, best = draw_core(seed)
    costs = core.costs
    places, allowed = feasible_labels.copy(), np.ones(costs.shape, dtype=bool)
    prices = np.zeros((len(core.member_start) - 1, costs.shape[1]))
    found = search_core(core, feasible_labels, 0, 0.0, prices, places, allowed)
    assert Fraction(found.lower_bound) <= best
    assert found.value == core_value(core, places)
    for labels in proper:
        if sum(costs[v, k] for v, k in enumerate(labels)) < found.value - 1e-9:
            assert all(allowed[v, k] for v, k in enumerate(labels))


@settings(max_examples=150, deadline=None)
@given(seed=seeds, known=st.booleans(), dual=st.booleans())
def test_branch_and_bound_is_exact(seed, known, dual):
    # Without good prices the bounds of the search itself have to hold.
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(6, 9)), int(rng.integers(3, 5))
    graph, _ = build_graph(n, random_edges("dense", n, n_labels, rng))
    costs = rng.random((n, n_labels)) ** 2 if seed % 2 else rng.random((n, n_labels)) + 5.0
    every = np.indices((n_labels,) * n).reshape(n, -1)
    edges = graph.edges()
    every = every[:, (every[edges[:, 0]] != every[edges[:, 1]]).all(axis=0)]
    values = costs[np.arange(n)[:, None], every].sum(axis=0)
    places, upper = np.full(n, -1), np.inf
    if known and len(values):  # nearly the best, so that much is cut off
        chosen = np.argsort(values)[min(len(values) - 1, int(rng.integers(1, 6)))]
        places, upper = every[:, chosen].copy(), float(values[chosen])
    core = dense_component(graph, costs)
    prices = np.zeros((len(core.member_start) - 1, n_labels))
    if dual:
        prices = 0.3 * rng.random(prices.shape)
    reduced = np.empty_like(costs)
    reduce_costs(core, np.ones(costs.shape, dtype=bool), prices, reduced)
    finished, value, _ = search_piece(
        core,
        Piece(np.arange(n), 0, np.zeros(n, dtype=np.int64), float(prices.sum())),
        reduced,
        upper,
        10**6,
        new_search_state(n, n_labels),
        places,
    )
    assert finished
    if not len(values):
        assert value == np.inf
    else:
        assert abs(value - values.min()) <= 1e-9
        assert abs(core_value(core, places) - value) <= 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_moves_feasible_and_descending(seed):
    core, feasible_labels, _, best = draw_core(seed)
    costs = core.costs
    places = np.empty_like(feasible_labels)
    assert permute_classes(costs, feasible_labels, places)
    renamed = core_value(core, places)
    namings = itertools.permutations(range(costs.shape[1]))
    values = [core_value(core, np.array(name)[feasible_labels]) for name in namings]
    assert renamed <= min(values) + 1e-9
    improve_by_swaps(core, places, 10)
    swapped = core_value(core, places)
    assert swapped <= renamed
    labels = costs.argmin(axis=1)
    found = tabu_search(core, costs, labels, 100, swapped, places)
    assert found == core_value(core, places)
    assert float(best) - 1e-9 <= found <= swapped


@pytest.mark.parametrize("seed", range(20))
def test_peeling(seed):
    rng = np.random.default_rng(seed)
    n = 12
    edges = [(int(rng.integers(v)), v) for v in range(1, n)] + [(0, 5), (2, 7)]
    graph, _ = build_graph(n, [(u, v) for u, v in edges if u != v])
    peeled, anchors = peel_component(graph.indptr, graph.neighbors, 0, n)
    left = set(range(n))
    near = [set(graph.neighbors[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr)]
    for v, anchor in zip(peeled.tolist(), anchors.tolist(), strict=True):
        assert near[v] & left == {anchor}
        left.remove(v)
    assert left
    assert all(len(near[v] & left) >= 2 for v in left)
