"""Is there a labelling at all? A proper K-colouring of the cannot-link graph, or the culprit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.colouring.greedy import colour_peeled, gather_ball, peel, two_colour
from certikmeans.presolve.colour_search import Answer, PieceSearch, SubGraph, greedy_labels
from certikmeans.problem.graph import ApartGraph
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class Colouring:
    """The answer to "can the groups be told apart with K labels?", with its evidence.

    "undecided" is an honest third answer: the time ran out on a hard component.
    """

    answer: Answer
    labels: NDArray[np.int64] | None = None  # "yes": a proper colouring; free vertices are 0
    component: int = -1  # "no": the culprit; "undecided": the first component left open
    witness: NDArray[np.int64] | None = None  # "no": vertices that cannot be coloured by themselves


def find_colouring(graph: ApartGraph, n_clusters: int, stop: StopSignal) -> Colouring:
    """Colour the cannot-link graph with ``n_clusters`` colours, or find out that none exists.

    Bipartite components are coloured by parity. Elsewhere vertices with fewer than K neighbours
    are peeled off, as they can always be coloured last; the core is coloured greedily, and the
    pieces on which that fails are searched exactly. All but the last step takes linear time.

    Parameters
    ----------
    graph : ApartGraph
        Cannot-links between groups.
    n_clusters : int
        Number of colours, K.
    stop : StopSignal
        Limits the exact search only.

    Returns
    -------
    Colouring

    Examples
    --------
    >>> from certikmeans.presolve.cannot_link import build_apart_graph
    >>> triangle, _ = build_apart_graph(4, np.array([[0, 1], [1, 2], [0, 2]]))
    >>> find_colouring(triangle, 2, StopSignal()).answer
    'no'
    >>> find_colouring(triangle, 3, StopSignal()).labels.tolist()
    [2, 1, 0, 0]
    """
    labels = np.zeros(graph.n_vertices, dtype=np.int64)
    if graph.n_components == 0:
        return Colouring("yes", labels)
    if n_clusters == 1:
        return Colouring("no", component=0, witness=np.array([0, graph.neighbors[0]]))
    odd = np.zeros(graph.n_components, dtype=np.bool_)
    first_odd = two_colour(
        graph.indptr,
        graph.neighbors,
        graph.starts,
        graph.parents,
        graph.extra_edges,
        labels,
        odd,
    )
    if first_odd < 0:
        return Colouring("yes", labels)
    if n_clusters == 2:
        inside = np.arange(graph.starts[first_odd], graph.starts[first_odd + 1])
        return Colouring("no", component=int(first_odd), witness=inside)
    return _colour_odd_components(graph, n_clusters, stop, labels, odd)


def _colour_odd_components(
    graph: ApartGraph,
    n_clusters: int,
    stop: StopSignal,
    labels: NDArray[np.int64],
    odd: NDArray[np.bool_],
) -> Colouring:
    alive = np.zeros(graph.n_vertices, dtype=np.bool_)
    alive[: graph.n_linked] = np.repeat(odd, np.diff(graph.starts))
    peeled = np.empty(graph.n_vertices, dtype=np.int64)
    n_peeled = peel(graph.indptr, graph.neighbors, n_clusters, alive, peeled)
    whole = SubGraph(graph.indptr, graph.neighbors, np.arange(graph.n_vertices))
    core = whole.restricted_to(np.flatnonzero(alive))

    core_labels = greedy_labels(core, n_clusters)
    searches = [PieceSearch(piece, n_clusters) for piece in _failed_pieces(core, core_labels)]
    labels[core.vertices] = core_labels
    while searches:
        still_open = []
        for search in searches:
            if stop.cause() is not None:
                still_open.append(search)
                continue
            answer = search.advance(stop)
            if answer == "no":
                assert search.witness is not None
                return Colouring(
                    "no",
                    component=_component_of(graph, search.witness[:1]),
                    witness=np.sort(search.witness),
                )
            if answer == "yes":
                assert search.labels is not None
                labels[search.graph.vertices] = search.labels
            else:
                still_open.append(search)
        searches = still_open
        if searches and stop.cause() is not None:
            open_vertices = np.concatenate([search.graph.vertices[:1] for search in searches])
            return Colouring("undecided", component=_component_of(graph, open_vertices))
    colour_peeled(graph.indptr, graph.neighbors, n_clusters, peeled[:n_peeled], labels)
    return Colouring("yes", labels)


def _failed_pieces(core: SubGraph, labels: NDArray[np.int64]) -> list[SubGraph]:
    """Connected pieces of the core on which the greedy colouring failed, small ones first."""
    reached = np.zeros(core.size, dtype=np.bool_)
    buffer = np.empty(core.size, dtype=np.int64)
    pieces = []
    for seed in np.flatnonzero(labels < 0):
        if not reached[seed]:
            size = gather_ball(core.indptr, core.neighbors, seed, core.size, reached, buffer)
            pieces.append(core.restricted_to(np.sort(buffer[:size])))
    return sorted(pieces, key=lambda piece: piece.size)


def _component_of(graph: ApartGraph, vertices: NDArray[np.int64]) -> int:
    """Return the smallest number of a component that holds one of the vertices."""
    return int(np.searchsorted(graph.starts, vertices, side="right").min()) - 1
