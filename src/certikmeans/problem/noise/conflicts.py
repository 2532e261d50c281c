"""Sets of pairs that cannot all hold: every removal has to take one pair from each of them.

A set is found as a closed walk or a set of groups, and is made of pairs that are not removed:

- a cannot-link and a path of must-links between its ends;
- with two clusters, a closed walk with an odd number of cannot-links;
- else, groups that cannot be coloured: a cannot-link for each edge between two groups, and
  must-links that tie the ends in every group together.

For two clusters the walks are complete: vertices are doubled, a must-link stays on its side and
a cannot-link changes it, and a labelling exists unless a vertex is joined to its own double.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from certikmeans.problem.noise.colouring import OutOfSteps, edges_within, uncolourable_set
from certikmeans.problem.noise.graph import Ids, PairGraph, adjacency, components
from certikmeans.stop import StopSignal

Row = frozenset[int]

# A step costs this much beyond its weight, so that of equally light walks the shortest is found.
_STEP = 1e-7
# Sources are taken in portions: their distances to everything have to fit into memory.
_PORTION = 1_000_000
_VARIANTS = 4


@final
class Walks:
    """Shortest walks over pairs, by weights that may change from call to call."""

    def __init__(self, graph: PairGraph, stop: StopSignal, *, doubled: bool) -> None:
        self._graph, self._stop, self._doubled = graph, stop, doubled
        self._edges = self._doubled_edges() if doubled else graph.must
        self._ids = np.tile(np.arange(len(graph.edges)), 2) if doubled else np.arange(graph.n_must)
        self._n = graph.n * (1 + doubled)

    def _doubled_edges(self) -> Ids:
        """Vertex ``v`` has the double ``n + v``."""
        graph = self._graph
        first, second = graph.edges.copy(), graph.edges.copy()
        second[: graph.n_must] += graph.n
        first[graph.n_must :, 1] += graph.n
        second[graph.n_must :, 0] += graph.n
        return np.concatenate([first, second])

    def light(
        self, weights: NDArray[np.float64], usable: NDArray[np.bool_], limit: float
    ) -> Iterator[Row]:
        """Yield conflicts lighter than ``limit``, at most one for each pair of ends.

        All of them, unless the stop signal comes.
        """
        here = usable[self._ids]
        ids = self._ids[here]
        steps = self._edges[here]
        matrix = adjacency(self._n, steps, weights[ids] + _STEP)
        lightest = self._lightest(steps, ids, weights)
        ends, closing = self._ends(weights, usable, limit)
        piece = components(self._n, steps)[1]
        joined = piece[ends[:, 0]] == piece[ends[:, 1]]
        ends, closing = ends[joined], None if closing is None else closing[joined]
        if not len(ends):
            return
        sources, first = np.unique(ends[:, 0], return_inverse=True)
        portion = max(1, _PORTION // self._n)
        for begin in range(0, len(sources), portion):
            if self._stop.cause() is not None:
                return
            distance, before = _distances(matrix, sources[begin : begin + portion], limit)
            inside = (first >= begin) & (first < begin + portion)
            for at in np.flatnonzero(inside).tolist():
                row, last = int(first[at]) - begin, int(ends[at, 1])
                own = [] if closing is None else [int(closing[at])]
                if distance[row, last] + sum(weights[e] for e in own) >= limit:
                    continue
                walk = _walk(before[row], int(ends[at, 0]), last)
                yield frozenset(own + [lightest[step] for step in walk])

    def _ends(
        self, weights: NDArray[np.float64], usable: NDArray[np.bool_], limit: float
    ) -> tuple[Ids, Ids | None]:
        """Which walks are conflicts: to the own double, or between the ends of a cannot-link."""
        graph = self._graph
        closing = graph.n_must + np.flatnonzero(usable[graph.n_must :])
        closing = closing[weights[closing] < limit]
        if self._doubled:
            vertices = np.unique(graph.edges[closing])
            return np.stack([vertices, vertices + graph.n], axis=1), None
        return graph.edges[closing], closing

    @staticmethod
    def _lightest(steps: Ids, ids: Ids, weights: NDArray[np.float64]) -> dict[tuple[int, int], int]:
        found: dict[tuple[int, int], int] = {}
        for (u, v), e in zip(steps.tolist(), ids.tolist(), strict=True):
            key = (min(u, v), max(u, v))
            if key not in found or weights[e] < weights[found[key]]:
                found[key] = e
        return found


def _distances(matrix: csr_array, sources: Ids, limit: float) -> tuple[NDArray[np.float64], Ids]:
    """Distances up to ``limit``, infinite beyond: with few light edges, most are never walked."""
    distance, before = dijkstra(
        matrix, directed=False, indices=sources, return_predecessors=True, limit=limit
    )
    return distance, before


def _walk(before: Ids, first: int, last: int) -> list[tuple[int, int]]:
    steps = []
    while last != first:
        previous = int(before[last])
        steps.append((min(previous, last), max(previous, last)))
        last = previous
    return steps


def colour_conflicts(
    graph: PairGraph,
    removed: NDArray[np.bool_],
    n_clusters: int,
    *,
    most: int,
    variants: int = _VARIANTS,
) -> list[Row]:
    """Find groups that cannot be coloured; none of the cannot-links left may be inside a group.

    Up to ``most`` conflicts, each in a few variants: of parallel cannot-links, only those that
    nothing runs beside are in all of them.

    Raises
    ------
    OutOfSteps
        If nothing was found and it is not known whether there is something.
    """
    groups = graph.groups(removed)
    behind: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e in (graph.n_must + np.flatnonzero(~removed[graph.n_must :])).tolist():
        u, v = (int(groups[end]) for end in graph.edges[e])
        behind[min(u, v), max(u, v)].append(e)
    neighbours: dict[int, set[int]] = defaultdict(set)
    for u, v in behind:
        neighbours[u].add(v)
        neighbours[v].add(u)
    rows: list[Row] = []
    trees = _Trees(graph, removed)
    for _ in range(most):
        try:
            vertices = uncolourable_set(neighbours, n_clusters)
        except OutOfSteps:
            if not rows:
                raise
            break
        if vertices is None:
            break
        between = edges_within(vertices, neighbours)
        for variant in range(variants):
            chosen = [behind[edge][variant % len(behind[edge])] for edge in between]
            rows.append(frozenset(chosen) | trees.tying(chosen, groups))
        # The edges with fewest pairs behind them are hidden before looking for the next set:
        # where pairs are noisy they are the culprits, and the others are part of many sets.
        fewest = min(len(behind[edge]) for edge in between)
        for u, v in between:
            if len(behind[u, v]) == fewest:
                neighbours[u].discard(v)
                neighbours[v].discard(u)
    return list(dict.fromkeys(rows))


@final
class _Trees:
    """Must-links that tie vertices of a group together."""

    def __init__(self, graph: PairGraph, removed: NDArray[np.bool_]) -> None:
        self._near: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._edges = graph.edges
        for e in np.flatnonzero(~removed[: graph.n_must]).tolist():
            u, v = graph.edges[e].tolist()
            self._near[u].append((v, e))
            self._near[v].append((u, e))

    def tying(self, cannot: Iterable[int], groups: Ids) -> Row:
        """Shortest paths from the commonest end in each group to the others."""
        ends: dict[int, Counter[int]] = defaultdict(Counter)
        for e in cannot:
            for point in self._edges[e].tolist():
                ends[int(groups[point])][point] += 1
        used: set[int] = set()
        for among in ends.values():
            if len(among) > 1:
                root = among.most_common(1)[0][0]
                used |= self._paths(root, set(among) - {root})
        return frozenset(used)

    def _paths(self, root: int, wanted: set[int]) -> set[int]:
        before: dict[int, tuple[int, int]] = {root: (root, -1)}
        queue = [root]
        for u in queue:
            if not wanted - before.keys():
                break
            for v, e in self._near[u]:
                if v not in before:
                    before[v] = (u, e)
                    queue.append(v)
        used = set()
        for point in wanted:
            while point != root:
                point, e = before[point]
                used.add(e)
        return used
