"""From an uncolourable graph to an irreducible part of it, by leaving things out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.colour_search import (
    LARGEST_EXACT,
    SLICE,
    Answer,
    ExactSearch,
    SubGraph,
    TabuSearch,
    subgraph_from_edges,
)
from certikmeans.stop import StopSignal

# Share of the remaining time that a single question may take.
_SHARE = 0.1


def _decide(graph: SubGraph, n_colours: int, stop: StopSignal) -> tuple[Answer, SubGraph]:
    """Decide whether ``graph`` can be coloured; after "no", also a part that cannot be."""
    graph = graph.core(n_colours)
    if graph.size == 0:
        return "yes", graph
    if graph.size > LARGEST_EXACT:
        return "undecided", graph
    exact, tabu = ExactSearch(graph, n_colours), TabuSearch(graph, n_colours)
    stop = stop.within(_SHARE * stop.remaining) if np.isfinite(stop.remaining) else stop
    while stop.cause() is None:
        answer = exact.advance(SLICE)
        if answer == "no":
            return "no", graph.restricted_to(exact.touched).core(n_colours)
        if answer == "yes" or tabu.advance(SLICE) == "yes":
            return "yes", graph
    return "undecided", graph


def _without_edge(graph: SubGraph, tail: int, head: int) -> SubGraph:
    """Leave out the edge between two vertices, given by their names outside."""
    edges = graph.edges()
    names = graph.vertices[edges]
    same = ((names == (tail, head)) | (names == (head, tail))).all(axis=1)
    rest = subgraph_from_edges(graph.size, edges[~same])
    return SubGraph(rest.indptr, rest.neighbors, graph.vertices)


def critical_subgraph(graph: SubGraph, n_colours: int, stop: StopSignal) -> tuple[SubGraph, bool]:
    """Shrink an uncolourable graph until no vertex and no edge can be left out.

    One pass over the vertices and one over the edges suffice: what a graph cannot do without,
    none of its uncolourable subgraphs can. Every intermediate graph is uncolourable, so the
    result is, even when the time runs out.

    Returns
    -------
    critical : SubGraph
        Uncolourable.
    irreducible : bool
        False if some question was not answered in time.
    """
    current = graph.core(n_colours)
    irreducible = True
    for vertex in current.vertices[np.argsort(np.diff(current.indptr), kind="stable")]:
        if stop.cause() is not None:
            return current, False
        inside = np.flatnonzero(current.vertices != vertex)
        if len(inside) == current.size:
            continue
        answer, smaller = _decide(current.restricted_to(inside), n_colours, stop)
        if answer == "no":
            current = smaller
        irreducible &= answer != "undecided"
    for tail, head in current.vertices[current.edges()]:
        if stop.cause() is not None:
            return current, False
        trial = _without_edge(current, tail, head)
        if len(trial.neighbors) == len(current.neighbors):
            continue
        answer, smaller = _decide(trial, n_colours, stop)
        if answer == "no":
            current = smaller
        irreducible &= answer != "undecided"
    return current, irreducible


def needed_must_links(
    must: Sequence[tuple[int, int]],
    cannot: NDArray[np.int64],
    n_colours: int,
    stop: StopSignal,
) -> tuple[list[tuple[int, int]], bool]:
    """Leave out must-links as long as the pairs still contradict each other.

    To leave out a must-link is to relax, as it is for a cannot-link, so that cannot-links which
    were needed before stay needed. Returns the must-links kept, and whether all are needed.
    """
    kept = list(must)
    irreducible = True
    for link in must:
        if stop.cause() is not None:
            return kept, False
        rest = [other for other in kept if other != link]
        answer, _ = _decide(_contracted(rest, cannot), n_colours, stop)
        if answer == "no":
            kept = rest
        irreducible &= answer != "undecided"
    return kept, irreducible


def _contracted(must: Sequence[tuple[int, int]], cannot: NDArray[np.int64]) -> SubGraph:
    """Return the cannot-link graph of the groups that ``must`` makes of the points."""
    points, ends = np.unique(cannot, return_inverse=True)
    names = {int(point): i for i, point in enumerate(points)}
    for pair in must:
        for point in pair:
            names.setdefault(point, len(names))
    group = np.arange(len(names))
    for i, j in must:
        group[group == group[names[i]]] = group[names[j]]
    rows = np.unique(np.sort(group[ends.reshape(-1, 2)], axis=1), axis=0)
    return subgraph_from_edges(len(names), rows)
