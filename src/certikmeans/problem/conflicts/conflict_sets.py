"""The graph of pairs, and sets of pairs that cannot all hold.

Every removal has to contain a pair of each set.

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
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from certikmeans._types import Floats, Ints, Mask
from certikmeans.stop import StopSignal

_MAX_PEEL_ROUNDS = 200  # with fewer rounds than needed, components are larger than necessary


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairGraph:
    """Pairs among vertices ``0 .. n - 1``. Edge ``e`` is a must-link if ``e < n_must``."""

    n: int
    edges: Ints  # (m, 2), the must-links first; distinct within each kind, no loops
    n_must: int

    @classmethod
    def of(cls, n: int, must: Ints, cannot: Ints) -> PairGraph:
        """Put both kinds into one array."""
        return cls(n, np.concatenate([must, cannot]).reshape(-1, 2), len(must))

    @property
    def must(self) -> Ints:
        """The must-links."""
        return self.edges[: self.n_must]

    @property
    def cannot(self) -> Ints:
        """The cannot-links."""
        return self.edges[self.n_must :]

    def cyclic_components(self) -> list[tuple[PairGraph, Ints]]:
        """Split into connected components without pendant trees, each with its edge numbers.

        Components are independent, because labels can be permuted within each. Vertices with a
        single pair are peeled off repeatedly: with two or more clusters, they can be labelled last.
        """
        kept = self._two_core_edges()
        n_components, component = components(self.n, self.edges[kept])
        of_edge = component[self.edges[kept, 0]]
        order = np.argsort(of_edge, kind="stable")
        cuts = np.searchsorted(of_edge[order], np.arange(n_components + 1))
        found = []
        for k in np.flatnonzero(np.diff(cuts)):
            ids = kept[order[cuts[k] : cuts[k + 1]]]  # ascending, so must-links stay in front
            vertices, local = np.unique(self.edges[ids], return_inverse=True)
            n_must = int((ids < self.n_must).sum())
            found.append((PairGraph(len(vertices), local.reshape(-1, 2), n_must), ids))
        return found

    def _two_core_edges(self) -> Ints:
        kept = np.arange(len(self.edges))
        for _ in range(_MAX_PEEL_ROUNDS):
            degree = np.bincount(self.edges[kept].ravel(), minlength=self.n)
            inner = (degree[self.edges[kept]] > 1).all(axis=1)
            if inner.all():
                break
            kept = kept[inner]
        return kept

    def groups(self, removed: Mask) -> Ints:
        """Number the components of the must-links that are not removed."""
        return components(self.n, self.must[~removed[: self.n_must]])[1]

    def inside(self, groups: Ints) -> Mask:
        """Return which edges join vertices of the same group."""
        return np.asarray(groups[self.edges[:, 0]] == groups[self.edges[:, 1]])

    def violated(self, labels: Ints) -> Ints:
        """Return the edges that a labelling violates."""
        wrong = self.inside(labels)
        wrong[: self.n_must] = ~wrong[: self.n_must]
        return np.flatnonzero(wrong)


@final
class MustLinkPaths:
    """Paths along the must-links that are not removed."""

    def __init__(self, graph: PairGraph, removed: Mask) -> None:
        kept = np.flatnonzero(~removed[: graph.n_must])
        self._matrix = adjacency(graph.n, graph.edges[kept], np.ones(len(kept)))
        self._edge = edge_numbers(graph.edges[kept], kept)
        self._root, self._predecessors = -1, np.empty(0, dtype=np.int32)

    def path(self, first: int, last: int, root: int | None = None) -> list[int]:
        """Return the vertices of a path in the breadth-first tree of ``root``.

        By default ``first`` is the root, and the path a shortest one. The tree of the last root
        is kept.
        """
        root = first if root is None else root
        if root != self._root:
            tree = breadth_first_order(self._matrix, root, directed=False)
            self._root, self._predecessors = root, tree[1]
        up, down = self._to_root(first), self._to_root(last)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return up + down[-2::-1]

    def links(self, first: int, last: int) -> set[int]:
        """Return the edge numbers of a shortest path."""
        walk = self.path(first, last)
        return {self._edge[min(step), max(step)] for step in pairwise(walk)}

    def _to_root(self, vertex: int) -> list[int]:
        walk = [vertex]
        while self._predecessors[walk[-1]] >= 0:
            walk.append(int(self._predecessors[walk[-1]]))
        return walk


def edge_numbers(edges: Ints, numbers: Ints) -> dict[tuple[int, int], int]:
    """Map edges, the smaller end first, to their numbers."""
    ends = map(tuple, np.sort(edges, axis=1).tolist())
    return dict(zip(ends, numbers.tolist(), strict=True))


def components(n: int, edges: Ints) -> tuple[int, Ints]:
    """Count and number the connected components."""
    found, number = connected_components(adjacency(n, edges, np.ones(len(edges))), directed=False)
    return int(found), np.asarray(number, dtype=np.int64)


def adjacency(n: int, edges: Ints, weights: Floats) -> csr_array:
    """Return a sparse matrix that has every edge once, in one direction."""
    return coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()


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
        weights: Floats,
        usable: Mask,
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

    def _ends(self, weights: Floats, usable: Mask, limit: float) -> tuple[Ints, Ints]:
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
    removed: Mask,
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


def _members(owner: Ints, n_owners: int) -> list[Ints]:
    """Positions at which each owner occurs."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=n_owners))[:-1])


def _uncolorable_edges(edges: Ints, n_colors: int, stop: StopSignal) -> Ints:
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
    graph: PairGraph, cannot: list[int], groups: Ints, paths: MustLinkPaths
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
