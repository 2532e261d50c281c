"""Coloring of cannot-link graphs: planted colorings, enumeration, known graphs, limits."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certikmeans.kernels.coloring import greedy, obstructions
from certikmeans.kernels.coloring import search as coloring_search
from certikmeans.presolve import coloring
from certikmeans.presolve.coloring import (
    DEFAULT_PARAMS,
    ColoringParams,
    ComponentColoring,
    ExactColoring,
    TabuColoring,
    find_clique,
    find_coloring,
    spectral_coloring,
    subgraph_from_edges,
)
from certikmeans.presolve.infeasibility_proofs import satisfiable
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal
from tests.clock import timed, within
from tests.presolve.graphs import (
    CYCLE_5,
    GROETZSCH,
    K4,
    PETERSEN,
    WHEEL_5,
    colorable,
    mycielski,
    planted_coloring,
    random_edges,
)


def planted(n, n_colors, n_edges, seed):
    """A graph whose edges join vertices of different colours, which are drawn at random."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_colors, size=n)
    ends = rng.integers(n, size=(4 * n_edges, 2))
    ends = np.sort(ends[hidden[ends[:, 0]] != hidden[ends[:, 1]]], axis=1)
    edges = rng.permutation(np.unique(ends, axis=0))[:n_edges]
    assert len(edges) == n_edges
    return build_cannot_link_graph(n, edges)[0]


def n_conflicts(graph, labels):
    tails, heads = graph.edges().T
    return np.count_nonzero(labels[tails] == labels[heads])


@pytest.mark.parametrize(
    ("n_colors", "n_edges"), [(3, 20_000), (5, 20_000), (8, 50_000), (20, 300_000)]
)
def test_planted_coloring_is_found(n_colors, n_edges):
    graph = planted(2_000, n_colors, n_edges, seed=n_colors)
    found = find_coloring(graph, n_colors, StopSignal())
    assert found.answer == "yes"
    assert n_conflicts(graph, found.labels) == 0


def test_spectral_guess_has_few_conflicts():
    graph = planted(2_000, 5, 40_000, seed=1)
    guess = spectral_coloring(graph.indptr, graph.neighbors, 5)
    assert set(guess.tolist()) == set(range(5))
    assert n_conflicts(graph, guess) < 0.1 * 40_000 / 5


def test_spectral_guess_repeats():
    graph = planted(300, 4, 5_000, seed=2)
    one, two = (spectral_coloring(graph.indptr, graph.neighbors, 4) for _ in range(2))
    assert np.array_equal(one, two)


def test_no_spectral_guess_for_small_graphs():
    graph = planted(6, 3, 5, seed=0)
    assert spectral_coloring(graph.indptr, graph.neighbors, 5) is None


@st.composite
def small_graphs(draw, largest=7):
    n = draw(st.integers(1, largest))
    possible = list(combinations(range(n), 2))
    chosen = draw(st.lists(st.booleans(), min_size=len(possible), max_size=len(possible)))
    return n, [edge for edge, taken in zip(possible, chosen, strict=True) if taken]


def color(n, edges, n_clusters, stop=None):
    """Return the graph and its coloring."""
    graph, _ = build_cannot_link_graph(n, np.array(edges, dtype=np.int64).reshape(-1, 2))
    return graph, find_coloring(graph, n_clusters, stop or StopSignal())


def assert_evidence(graph, found, n_clusters):
    """Check the coloring after "yes", the uncolorable vertices after "no"."""
    edges = graph.edges()
    if found.answer == "yes":
        assert found.component == -1
        assert found.labels.shape == (graph.n_vertices,)
        assert found.labels.min() >= 0
        assert found.labels.max() < n_clusters
        assert (found.labels[edges[:, 0]] != found.labels[edges[:, 1]]).all()
        assert not found.labels[graph.n_linked :].any()
    else:
        assert found.answer == "no"
        assert found.labels is None
        inside = np.isin(edges, found.uncolorable_vertices).all(axis=1)
        assert not satisfiable([], edges[inside].tolist(), n_clusters)
        low, high = graph.starts[found.component : found.component + 2]
        assert ((low <= found.uncolorable_vertices) & (found.uncolorable_vertices < high)).all()


@settings(max_examples=200, deadline=None)
@given(small_graphs(), st.integers(1, 4))
def test_coloring_against_enumeration(small, n_clusters):
    n, edges = small
    graph, found = color(n, edges, n_clusters)
    assert found.answer == ("yes" if colorable(n, edges, n_clusters) else "no")
    assert_evidence(graph, found, n_clusters)


@settings(max_examples=200, deadline=None)
@given(small_graphs(), st.integers(1, 4), st.integers(1, 300))
def test_exact_search_in_small_steps(small, n_clusters, work):
    n, edges = small
    graph = subgraph_from_edges(n, np.array(edges, dtype=np.int64).reshape(-1, 2))
    search = ExactColoring(graph, n_clusters)
    while (answer := search.advance(work)) == "undecided":
        pass
    assert answer == ("yes" if colorable(n, edges, n_clusters) else "no")
    if answer == "yes":
        assert all(search.labels[i] != search.labels[j] for i, j in edges)
        assert search.labels.max() < n_clusters
    else:
        part = graph.induced(search.core_vertices)
        assert not colorable(part.size, part.edges().tolist(), n_clusters)


@pytest.mark.parametrize("seed", range(40))
def test_coloring_against_backtracking(seed):
    # Near the threshold for 3 and 4 colours, where both answers occur and searches backtrack.
    rng = np.random.default_rng(seed)
    n_clusters = 3 + seed % 2
    n = 40 if n_clusters == 3 else 28
    edges = random_edges(rng, n, (4.6 if n_clusters == 3 else 8.4) / n)
    graph, found = color(n, edges, n_clusters)
    assert (found.answer == "yes") == satisfiable([], edges.tolist(), n_clusters)
    assert_evidence(graph, found, n_clusters)


@settings(max_examples=150, deadline=None)
@given(small_graphs(largest=9), st.integers(2, 6))
def test_clique_search_against_enumeration(small, size):
    n, edges = small
    graph = subgraph_from_edges(n, np.array(edges, dtype=np.int64).reshape(-1, 2))
    found = find_clique(graph, size, StopSignal(), max_calls=10)
    present = set(edges)
    exists = any(
        present.issuperset(combinations(subset, 2)) for subset in combinations(range(n), size)
    )
    assert (found is not None) == exists
    if found is not None:
        assert len(found) == size
        assert present.issuperset(combinations(found.tolist(), 2))


@pytest.mark.parametrize(
    ("n", "edges", "chromatic"),
    [
        (2, [(0, 1)], 2),
        (4, K4, 4),
        (5, CYCLE_5, 3),
        (6, WHEEL_5, 4),
        (10, PETERSEN, 3),
        (11, GROETZSCH, 4),
        (23, mycielski(11, GROETZSCH), 5),
        (9, [(i, j + 4) for i in range(4) for j in range(5)], 2),
        (12, list(combinations(range(12), 2)), 12),
    ],
)
def test_known_chromatic_numbers(n, edges, chromatic):
    for n_clusters in range(1, chromatic + 2):
        graph, found = color(n, edges, n_clusters)
        assert found.answer == ("yes" if n_clusters >= chromatic else "no")
        assert_evidence(graph, found, n_clusters)


def test_no_pairs():
    _, found = color(4, [], 1)
    assert found.answer == "yes"
    assert found.labels.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("obstruction", [K4, WHEEL_5, GROETZSCH])
def test_uncolorable_component(obstruction):
    # Colourable components of every kind (tree, even and odd cycle, 3-regular) come first.
    parts = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3), (3, 0)], CYCLE_5, PETERSEN, obstruction]
    edges, shift = [], 0
    for part in parts:
        edges += [(i + shift, j + shift) for i, j in part]
        shift += 1 + max(max(edge) for edge in part)
    graph, found = color(shift + 2, edges, 3)
    assert found.answer == "no"
    assert found.component == 4
    assert_evidence(graph, found, 3)


@pytest.mark.parametrize("n", [3000, DEFAULT_PARAMS.max_exact_size + 10_000])
def test_small_obstruction_in_large_component(n):
    rng = np.random.default_rng(n)
    edges = np.concatenate([planted_coloring(rng, n, 2 * n, 3), np.array(WHEEL_5)])
    graph, found = color(n, edges, 3, StopSignal(20.0))
    assert found.answer == "no"
    assert len(found.uncolorable_vertices) < 100
    assert_evidence(graph, found, 3)


@pytest.mark.parametrize(("n", "degree"), [(3000, 3.8), (3000, 8.0), (30_000, 20.0)])
def test_planted_coloring_of_large_component(n, degree):
    rng = np.random.default_rng(n)
    edges = planted_coloring(rng, n, int(n * degree / 2), 3)
    graph, found = color(n, edges, 3, StopSignal(20.0))
    assert found.answer == "yes"
    assert_evidence(graph, found, 3)


def test_coloring_repeats():
    edges = planted_coloring(np.random.default_rng(5), 1000, 4000, 3)
    (_, first), (_, second) = (color(1000, edges, 3) for _ in range(2))
    assert np.array_equal(first.labels, second.labels)


@timed(2.0)
def test_time_limit(seconds):
    # 20 colours are too many to refute and too few to be found for this density and size.
    edges = random_edges(np.random.default_rng(0), 200, 0.5)
    color(200, edges, 20, StopSignal(0.01))  # compile first
    with within(seconds):
        _, found = color(200, edges, 20, StopSignal(0.2))
    assert found.answer == "undecided"
    assert found.component == 0
    assert found.labels is None
    assert found.uncolorable_vertices is None


def test_first_open_component():
    edges = random_edges(np.random.default_rng(1), 200, 0.5) + 2
    _, found = color(202, np.concatenate([[[0, 1]], edges]), 20, StopSignal(0.05))
    assert found.answer == "undecided"
    assert found.component == 1


def test_interrupt():
    stop = StopSignal()
    stop.interrupt()
    edges = random_edges(np.random.default_rng(2), 200, 0.5)
    assert color(200, edges, 20, stop)[1].answer == "undecided"
    assert color(11, GROETZSCH, 4, stop)[1].answer == "yes"
    assert color(10, PETERSEN, 2, stop)[1].answer == "no"


def test_tabu_search_state():
    rng = np.random.default_rng(3)
    edges = random_edges(rng, 60, 0.5)
    graph = subgraph_from_edges(60, edges)
    search = TabuColoring(graph, 6)
    for _ in range(20):
        assert search.advance(20_000) == "undecided"
        state = search._state
        conflicts = state.color[edges[:, 0]] == state.color[edges[:, 1]]
        assert state.counters[coloring_search.N_CONFLICTS] == 2 * conflicts.sum()
        listed = np.sort(state.conflicting[: state.counters[coloring_search.N_CONFLICTING]])
        assert listed.tolist() == np.unique(edges[conflicts]).tolist()


def test_kernels_are_compiled():
    color(6, WHEEL_5, 3)
    for kernel in (
        greedy.two_color,
        greedy.peel,
        greedy.dsatur,
        coloring_search.advance_search,
        obstructions.scan_for_clique,
    ):
        assert kernel.signatures


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [2, 3, 8])
def test_large_sparse_graph_takes_linear_time(n_clusters):
    rng = np.random.default_rng(7)
    n = 1_500_000
    edges = planted_coloring(rng, n, n // 2, n_clusters)
    graph, _ = build_cannot_link_graph(n, edges)
    find_coloring(graph, n_clusters, StopSignal())
    with within(1.0):
        found = find_coloring(graph, n_clusters, StopSignal())
    assert found.answer == "yes"
    assert_evidence(graph, found, n_clusters)


@pytest.mark.parametrize("helpful", [True, False])
def test_spectral_start_is_dropped_unless_helpful(helpful, monkeypatch):
    edges = np.array(list(combinations(range(4), 2)))  # not colorable with 3
    params = ColoringParams(rounds_before_spectral=1, spectral_trial_rounds=2)
    component = ComponentColoring(subgraph_from_edges(4, edges), 3, params)
    guess = np.array([0, 1, 2, 2]) if helpful else np.zeros(4, dtype=np.int64)
    monkeypatch.setattr(coloring, "spectral_coloring", lambda *_: guess)
    component._tabu._state.counters[coloring_search.BEST] = 2 * 3  # three conflicts
    counts = [len(component._tabu_searches()) for _ in range(4)]
    assert counts == [2, 2, *((2, 2) if helpful else (1, 1))]
