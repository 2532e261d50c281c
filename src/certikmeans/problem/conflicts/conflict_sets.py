"""Sets of pairs that cannot all hold. Every removal has to contain a pair of each of them.

Three kinds are generated, each from pairs that are not removed:

- a cannot-link and a path of must-links between its ends;
- with two clusters, a closed walk with an odd number of cannot-links;
- otherwise, groups that cannot be coloured: one cannot-link for each edge between two groups, and
  must-links that connect the ends within every group.

With two clusters the walks are complete: every vertex gets a copy, a must-link stays on its side,
a cannot-link changes sides, and labels exist unless a vertex is connected to its own copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import final

import numpy as np
from scipy.sparse.csgraph import dijkstra

from certikmeans.problem.conflicts.pair_graph import (
    BoolArray,
    FloatArray,
    IntArray,
    MustLinkPaths,
    PairGraph,
    adjacency,
    components,
    edge_numbers,
)
from certikmeans.stop import StopSignal

ConflictSet = frozenset[int]

MIN_STEP_COST = 1e-7  # of equally light walks the shortest is found
_MAX_DISTANCES = 1_000_000  # distances in memory at a time


class ColoringUndecided(Exception):
    """The time for a colouring ran out."""


@final
class ConflictWalks:
    """Shortest walks over pairs, by weights that may change from call to call."""

    def __init__(self, graph: PairGraph, stop: StopSignal, *, doubled: bool) -> None:
        self._graph, self._stop, self._doubled = graph, stop, doubled
        self._n = graph.n * (1 + doubled)
        if doubled:  # vertex v has the copy n + v
            first, second = graph.edges.copy(), graph.edges.copy()
            second[: graph.n_must] += graph.n
            first[graph.n_must :, 1] += graph.n
            second[graph.n_must :, 0] += graph.n
            self._steps = np.concatenate([first, second])
            self._ids = np.tile(np.arange(len(graph.edges)), 2)
        else:
            self._steps, self._ids = graph.must, np.arange(graph.n_must)
        self._id_of_step = edge_numbers(self._steps, self._ids)

    def lighter_than(
        self,
        weights: FloatArray,
        usable: BoolArray,
        limit: float,
        step_cost: float = MIN_STEP_COST,
    ) -> Iterator[ConflictSet]:
        """Yield conflicts lighter than ``limit``, at most one for each pair of ends.

        Every step costs ``step_cost`` beyond its weight: with a large one, a local search finds
        short walks. With the default it is complete unless stopped early: without a result there
        is no such walk.
        """
        here = usable[self._ids]
        steps = self._steps[here]
        matrix = adjacency(self._n, steps, weights[self._ids[here]] + step_cost)
        ends, closing = self._ends(weights, usable, limit)
        component = components(self._n, steps)[1]
        connected = component[ends[:, 0]] == component[ends[:, 1]]
        ends, closing = ends[connected], closing[connected]
        if not len(ends):
            return
        own_weight = np.where(closing >= 0, weights[closing], 0.0)
        sources, first = np.unique(ends[:, 0], return_inverse=True)
        n_at_once = max(1, _MAX_DISTANCES // self._n)
        for begin in range(0, len(sources), n_at_once):
            if self._stop.reason() is not None:
                return
            # Few edges are light, so that most of the graph is beyond the limit.
            distance, predecessors = dijkstra(
                matrix,
                directed=False,
                indices=sources[begin : begin + n_at_once],
                return_predecessors=True,
                limit=limit,
            )
            at = np.flatnonzero((first >= begin) & (first < begin + n_at_once))
            total = distance[first[at] - begin, ends[at, 1]] + own_weight[at]
            for i in at[total < limit].tolist():
                row, (start, last) = first[i] - begin, ends[i].tolist()
                conflict = [] if closing[i] < 0 else [int(closing[i])]
                while last != start:
                    previous = int(predecessors[row, last])
                    conflict.append(self._id_of_step[min(previous, last), max(previous, last)])
                    last = previous
                yield frozenset(conflict)

    def _ends(
        self, weights: FloatArray, usable: BoolArray, limit: float
    ) -> tuple[IntArray, IntArray]:
        """Ends of the walks that are conflicts, and the cannot-link that closes each, or -1."""
        graph = self._graph
        closing = graph.n_must + np.flatnonzero(usable[graph.n_must :])
        closing = closing[weights[closing] < limit]
        if self._doubled:
            vertices = np.unique(graph.edges[closing])
            return np.stack([vertices, vertices + graph.n], axis=1), np.full(len(vertices), -1)
        return graph.edges[closing], closing


def coloring_conflicts(
    graph: PairGraph,
    removed: BoolArray,
    n_clusters: int,
    stop: StopSignal,
    *,
    max_conflicts: int,
    n_variants: int = 1,
) -> list[ConflictSet]:
    """Find groups that cannot be coloured; none of the remaining cannot-links is inside a group.

    Returns up to ``max_conflicts`` conflicts in ``n_variants`` each, which differ in their choice
    among parallel cannot-links.

    Raises
    ------
    ColoringUndecided
        If nothing was found and the existence of a colouring is open.
    """
    groups = graph.groups(removed)
    kept = graph.n_must + np.flatnonzero(~removed[graph.n_must :])
    if not len(kept):
        return []
    ends = np.sort(groups[graph.edges[kept]], axis=1)
    edges, edge_of_link = np.unique(ends, axis=0, return_inverse=True)
    links = [kept[at] for at in _members(edge_of_link.ravel(), len(edges))]
    visible = np.ones(len(edges), dtype=np.bool_)
    paths = MustLinkPaths(graph, removed)
    found: dict[ConflictSet, None] = {}
    for _ in range(max_conflicts):
        try:
            uncolorable = _uncolorable_edges(edges[visible], n_clusters, stop)
        except ColoringUndecided:
            if not found:
                raise
            break
        if not len(uncolorable):
            break
        at = np.flatnonzero(visible)[uncolorable]
        for variant in range(n_variants):
            chosen = [int(links[edge][variant % len(links[edge])]) for edge in at.tolist()]
            found[frozenset(chosen) | _connecting_links(graph, chosen, groups, paths)] = None
        # The edges with the fewest links are hidden from the next search: among noisy pairs these
        # are the wrong ones, and the others belong to many conflicts.
        sizes = np.array([len(links[edge]) for edge in at.tolist()])
        visible[at[sizes == sizes.min()]] = False
    return list(found)


def _members(owner: IntArray, n_owners: int) -> list[IntArray]:
    """Positions at which each owner occurs."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=n_owners))[:-1])


def _uncolorable_edges(edges: IntArray, n_colors: int, stop: StopSignal) -> IntArray:
    """Return the positions of edges that form an uncolourable graph; none if all is colourable."""
    from certikmeans.presolve.coloring import find_coloring, subgraph_from_edges
    from certikmeans.presolve.infeasibility_search import critical_subgraph
    from certikmeans.problem.graph_builder import build_cannot_link_graph

    vertices, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(-1, 2)
    if np.bincount(ends.ravel(), minlength=1).max() < n_colors:
        return np.empty(0, dtype=np.int64)
    graph, order = build_cannot_link_graph(len(vertices), ends)
    coloring = find_coloring(graph, n_colors, stop)
    if coloring.answer == "undecided":
        raise ColoringUndecided
    if coloring.uncolorable_vertices is None:
        return np.empty(0, dtype=np.int64)
    inside = np.sort(order[coloring.uncolorable_vertices])
    whole = subgraph_from_edges(len(vertices), ends)
    critical = whole.induced(inside)
    if critical.size > n_colors + 1:  # else it is a clique
        critical, _ = critical_subgraph(critical, n_colors, stop)
    keys = ends.min(axis=1) * len(vertices) + ends.max(axis=1)
    needed = critical.vertices[critical.edges()]
    wanted = needed.min(axis=1) * len(vertices) + needed.max(axis=1)
    return np.flatnonzero(np.isin(keys, wanted))


def _connecting_links(
    graph: PairGraph, cannot: list[int], groups: IntArray, paths: MustLinkPaths
) -> ConflictSet:
    """Must-links that connect the ends of cannot-links within every group."""
    ends: dict[int, Counter[int]] = defaultdict(Counter)
    for vertex in graph.edges[cannot].ravel().tolist():
        ends[int(groups[vertex])][vertex] += 1
    used: set[int] = set()
    for counts in ends.values():
        root = counts.most_common(1)[0][0]
        for other in counts:
            used |= paths.links(root, other) if other != root else set()
    return frozenset(used)
