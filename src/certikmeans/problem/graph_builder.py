"""Construction of the cannot-link graph with contiguous components."""

from __future__ import annotations

import numpy as np

from certikmeans._types import Ints
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.kernels.graph import breadth_first_order
from certikmeans.problem.arrays import distinct


def build_cannot_link_graph(n_groups: int, pairs: Ints) -> tuple[CannotLinkGraph, Ints]:
    """Build the graph and the numbering that makes each component a range.

    Given the centres, components are independent; numbering them one after the other lets
    every later stage work on slices, and lets threads share them without sharing points.

    Parameters
    ----------
    n_groups : int
        Number of vertices.
    pairs : ndarray of shape (m, 2)
        Cannot-links between group numbers; repetitions are merged. No self-loops.

    Returns
    -------
    graph : CannotLinkGraph
        In the new numbering.
    order : ndarray of shape (n_groups,)
        ``order[new] == old``.

    Examples
    --------
    >>> graph, order = build_cannot_link_graph(5, np.array([[4, 1], [1, 2], [2, 1]]))
    >>> order
    array([1, 2, 4, 0, 3])
    >>> graph.edges()
    array([[0, 1],
           [0, 2]])
    >>> graph.parents
    array([-1,  0,  0])
    """
    if len(pairs) == 0:
        return edgeless_graph(n_groups), np.arange(n_groups)
    indptr, neighbors = _symmetric_adjacency(n_groups, pairs)
    order = np.empty(n_groups, dtype=np.int64)
    parents = np.empty(n_groups, dtype=np.int64)
    starts = np.empty(n_groups // 2 + 1, dtype=np.int64)
    n_linked, n_components = breadth_first_order(indptr, neighbors, order, parents, starts)
    order[n_linked:] = np.flatnonzero(np.diff(indptr) == 0)

    position = np.empty(n_groups, dtype=np.int64)
    position[order] = np.arange(n_groups)
    indptr, neighbors = _symmetric_adjacency(n_groups, position[pairs])
    starts = starts[: n_components + 1].copy()
    edges_before = indptr[starts] // 2
    graph = CannotLinkGraph(
        n_vertices=n_groups,
        indptr=indptr,
        neighbors=neighbors,
        starts=starts,
        parents=parents[:n_linked].copy(),
        n_extra_edges=np.diff(edges_before) - (np.diff(starts) - 1),
    )
    return graph, order


def _symmetric_adjacency(n: int, pairs: Ints) -> tuple[Ints, Ints]:
    """Adjacency in compressed rows: each distinct pair in both directions, sorted."""
    tails = np.concatenate([pairs[:, 0], pairs[:, 1]])
    heads = np.concatenate([pairs[:, 1], pairs[:, 0]])
    keys = distinct(tails * np.int64(n) + heads)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys // n, minlength=n), out=indptr[1:])
    return indptr, keys % n


def edgeless_graph(n: int) -> CannotLinkGraph:
    """No cannot-links."""
    none = np.empty(0, dtype=np.int64)
    return CannotLinkGraph(
        n_vertices=n,
        indptr=np.zeros(n + 1, dtype=np.int64),
        neighbors=none,
        starts=np.zeros(1, dtype=np.int64),
        parents=none,
        n_extra_edges=none,
    )
