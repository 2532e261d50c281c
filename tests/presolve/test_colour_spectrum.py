"""Hidden colourings of dense graphs are found; guesses are colours."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.graphs import build_apart_graph
from certikmeans.presolve.colour_spectrum import spectral_colours
from certikmeans.presolve.colouring import find_colouring
from certikmeans.stop import StopSignal


def planted(n, n_colours, n_edges, seed):
    """A graph whose edges join vertices of different colours, which are drawn at random."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(n_colours, size=n)
    ends = rng.integers(n, size=(4 * n_edges, 2))
    ends = np.sort(ends[hidden[ends[:, 0]] != hidden[ends[:, 1]]], axis=1)
    edges = rng.permutation(np.unique(ends, axis=0))[:n_edges]
    assert len(edges) == n_edges
    return build_apart_graph(n, edges)[0]


def clashes(graph, labels):
    tails, heads = graph.edges().T
    return np.count_nonzero(labels[tails] == labels[heads])


@pytest.mark.parametrize(
    ("n_colours", "n_edges"), [(3, 20_000), (5, 20_000), (8, 50_000), (20, 300_000)]
)
def test_a_hidden_colouring_of_two_thousand_points_is_found(n_colours, n_edges):
    graph = planted(2_000, n_colours, n_edges, seed=n_colours)
    found = find_colouring(graph, n_colours, StopSignal())
    assert found.answer == "yes"
    assert clashes(graph, found.labels) == 0


def test_the_guess_is_far_better_than_chance():
    graph = planted(2_000, 5, 40_000, seed=1)
    guess = spectral_colours(graph.indptr, graph.neighbors, 5)
    assert set(guess.tolist()) == set(range(5))
    assert clashes(graph, guess) < 0.1 * 40_000 / 5


def test_the_guess_repeats():
    graph = planted(300, 4, 5_000, seed=2)
    one, two = (spectral_colours(graph.indptr, graph.neighbors, 4) for _ in range(2))
    assert np.array_equal(one, two)


def test_no_guess_where_there_is_nothing_to_gain():
    graph = planted(6, 3, 5, seed=0)
    assert spectral_colours(graph.indptr, graph.neighbors, 5) is None
