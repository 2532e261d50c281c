"""Colouring groups with K colours by plain search, and small sets that cannot be coloured.

The graphs that are left after peeling off vertices with fewer than K neighbours are small in
practice; where one is not, the search gives up after a fixed number of steps and says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from certikmeans.problem.conflicts.graph import IntArray, PairGraph, adjacency, components
from certikmeans.stop import StopSignal

NeighborSets = dict[int, set[int]]

_MAX_STEPS = 50_000


class StepLimitReached(Exception):
    """The search was given up."""


def k_core(neighbor_sets: NeighborSets, n_colors: int) -> NeighborSets:
    """Peel off vertices with fewer neighbours than colours: they can be coloured last.

    >>> k_core({0: {1, 2, 3}, 1: {0, 2}, 2: {0, 1}, 3: {0}}, 2) == {0: {1, 2}, 1: {0, 2}, 2: {0, 1}}
    True
    """
    left = {v: set(adjacent) for v, adjacent in neighbor_sets.items()}
    low_degree = [v for v, adjacent in left.items() if len(adjacent) < n_colors]
    while low_degree:
        v = low_degree.pop()
        if v not in left:
            continue
        for other in left.pop(v):
            left[other].discard(v)
            if len(left[other]) == n_colors - 1:
                low_degree.append(other)
    return left


def connected_subgraphs(neighbor_sets: NeighborSets) -> list[NeighborSets]:
    """Return the connected components."""
    found, seen = [], set[int]()
    for start in neighbor_sets:
        if start in seen:
            continue
        queue, component = [start], {start}
        while queue:
            for other in neighbor_sets[queue.pop()] - component:
                component.add(other)
                queue.append(other)
        seen |= component
        found.append({v: neighbor_sets[v] for v in sorted(component)})
    return found


def is_colorable(neighbor_sets: NeighborSets, n_colors: int, steps: int = _MAX_STEPS) -> bool:
    """Say whether the graph can be coloured properly.

    The vertex that sees most colours is next, and of the colours not used so far one is tried.

    Raises
    ------
    StepLimitReached
        If it could not be decided.

    Examples
    --------
    >>> triangle = {0: {1, 2}, 1: {0, 2}, 2: {0, 1}}
    >>> is_colorable(triangle, 3), is_colorable(triangle, 2)
    (True, False)
    """
    return all(
        _component_is_colorable(component, n_colors, steps)
        for component in connected_subgraphs(k_core(neighbor_sets, n_colors))
    )


def _component_is_colorable(neighbor_sets: NeighborSets, n_colors: int, steps: int) -> bool:
    seen: dict[int, list[int]] = {v: [0] * n_colors for v in neighbor_sets}
    saturation = dict.fromkeys(neighbor_sets, 0)
    color: dict[int, int] = {}
    trail: list[tuple[int, list[int]]] = []

    def assign_color(v: int, c: int, step: int) -> None:
        for other in neighbor_sets[v]:
            before = seen[other][c]
            seen[other][c] += step
            saturation[other] += (before == 0) - (seen[other][c] == 0)

    while len(color) < len(neighbor_sets):
        steps -= 1
        if steps < 0:
            raise StepLimitReached
        free = (v for v in neighbor_sets if v not in color)
        v = max(free, key=lambda v: (saturation[v], len(neighbor_sets[v])))
        offered = min(len(set(color.values())) + 1, n_colors)
        trail.append((v, [c for c in range(offered) if not seen[v][c]]))
        while trail and not trail[-1][1]:
            v, _ = trail.pop()
            if trail:
                last = trail[-1][0]
                assign_color(last, color.pop(last), -1)
        if not trail:
            return False
        v, left = trail[-1]
        color[v] = left.pop()
        assign_color(v, color[v], 1)
    return True


def uncolorable_subset(neighbor_sets: NeighborSets, n_colors: int) -> set[int] | None:
    """Return vertices that cannot be coloured by themselves, a clique if one is found.

    None if everything can be coloured. If it takes too many steps, `StepLimitReached` is raised.

    >>> wheel = {0: {1, 4, 5}, 1: {0, 2, 5}, 2: {1, 3, 5}, 3: {2, 4, 5}, 4: {3, 0, 5}}
    >>> sorted(uncolorable_subset({**wheel, 5: {0, 1, 2, 3, 4}, 6: {5}}, 3))
    [0, 1, 2, 3, 4, 5]
    """
    undecided = False
    for component in connected_subgraphs(k_core(neighbor_sets, n_colors)):
        found = _find_clique(component, n_colors + 1)
        if found is not None:
            return found
        try:
            if _component_is_colorable(component, n_colors, _MAX_STEPS):
                continue
        except StepLimitReached:
            undecided = True
            continue
        return _shrink(component, n_colors)
    if undecided:
        raise StepLimitReached
    return None


def _find_clique(neighbor_sets: NeighborSets, size: int, steps: int = 20_000) -> set[int] | None:
    """Look for a clique; None if there is none, or none was found in time."""
    left = {v: set(adjacent) for v, adjacent in neighbor_sets.items()}
    for v in sorted(left, key=lambda v: len(left[v])):
        stack = [([v], left[v])]
        while stack and steps > 0:
            steps -= 1
            clique, adjacent = stack.pop()
            if len(clique) == size:
                return set(clique)
            if len(clique) + len(adjacent) < size:
                continue
            ordered = sorted(adjacent, key=lambda u: len(left[u] & adjacent))
            for at, u in enumerate(ordered):
                stack.append(([*clique, u], adjacent.intersection(ordered[at + 1 :], left[u])))
        for other in left.pop(v):
            left[other].discard(v)
    return None


def _shrink(component: NeighborSets, n_colors: int) -> set[int]:
    """Leave out vertices while the others still cannot be coloured."""
    kept = set(component)
    for v in sorted(component, key=lambda v: len(component[v])):
        rest = kept - {v}
        try:
            if not is_colorable({u: component[u] & rest for u in rest}, n_colors, _MAX_STEPS // 10):
                kept = rest
        except StepLimitReached:
            pass
    return kept


def edges_within(vertices: set[int], neighbor_sets: NeighborSets) -> list[tuple[int, int]]:
    """Return the edges between some vertices."""
    return [(u, v) for u, v in combinations(sorted(vertices), 2) if v in neighbor_sets[u]]


# Sets of pairs that cannot all hold: every removal has to take one pair from each of them.
#
# A set is found as a closed walk or a set of groups, and is made of pairs that are not removed:
#
# - a cannot-link and a path of must-links between its ends;
# - with two clusters, a closed walk with an odd number of cannot-links;
# - else, groups that cannot be coloured: a cannot-link for each edge between two groups, and
#   must-links that tie the ends in every group together.
#
# For two clusters the walks are complete: vertices are doubled, a must-link stays on its side and
# a cannot-link changes it, and a labelling exists unless a vertex is joined to its own double.

ConflictSet = frozenset[int]

# A step costs this much beyond its weight, so that of equally light walks the shortest is found.
_STEP_COST = 1e-7
# Sources are taken in portions: their distances to everything have to fit into memory.
_MAX_DISTANCES = 1_000_000
_N_VARIANTS = 4


@final
class ConflictWalks:
    """Shortest walks over pairs, by weights that may change from call to call."""

    def __init__(self, graph: PairGraph, stop: StopSignal, *, doubled: bool) -> None:
        self._graph, self._stop, self._doubled = graph, stop, doubled
        self._edges = self._doubled_edges() if doubled else graph.must
        self._ids = np.tile(np.arange(len(graph.edges)), 2) if doubled else np.arange(graph.n_must)
        self._n = graph.n * (1 + doubled)

    def _doubled_edges(self) -> IntArray:
        """Vertex ``v`` has the double ``n + v``."""
        graph = self._graph
        first, second = graph.edges.copy(), graph.edges.copy()
        second[: graph.n_must] += graph.n
        first[graph.n_must :, 1] += graph.n
        second[graph.n_must :, 0] += graph.n
        return np.concatenate([first, second])

    def lighter_than(
        self, weights: NDArray[np.float64], usable: NDArray[np.bool_], limit: float
    ) -> Iterator[ConflictSet]:
        """Yield conflicts lighter than ``limit``, at most one for each pair of ends.

        All of them, unless the stop signal comes.
        """
        here = usable[self._ids]
        ids = self._ids[here]
        steps = self._edges[here]
        matrix = adjacency(self._n, steps, weights[ids] + _STEP_COST)
        lightest = self._lightest(steps, ids, weights)
        ends, closing = self._ends(weights, usable, limit)
        component = components(self._n, steps)[1]
        connected = component[ends[:, 0]] == component[ends[:, 1]]
        ends, closing = ends[connected], None if closing is None else closing[connected]
        if not len(ends):
            return
        sources, first = np.unique(ends[:, 0], return_inverse=True)
        portion = max(1, _MAX_DISTANCES // self._n)
        for begin in range(0, len(sources), portion):
            if self._stop.reason() is not None:
                return
            distance, predecessors = _distances(matrix, sources[begin : begin + portion], limit)
            inside = (first >= begin) & (first < begin + portion)
            for at in np.flatnonzero(inside).tolist():
                row, last = int(first[at]) - begin, int(ends[at, 1])
                own = [] if closing is None else [int(closing[at])]
                if distance[row, last] + sum(weights[e] for e in own) >= limit:
                    continue
                walk = _walk(predecessors[row], int(ends[at, 0]), last)
                yield frozenset(own + [lightest[step] for step in walk])

    def _ends(
        self, weights: NDArray[np.float64], usable: NDArray[np.bool_], limit: float
    ) -> tuple[IntArray, IntArray | None]:
        """Which walks are conflicts: to the own double, or between the ends of a cannot-link."""
        graph = self._graph
        closing = graph.n_must + np.flatnonzero(usable[graph.n_must :])
        closing = closing[weights[closing] < limit]
        if self._doubled:
            vertices = np.unique(graph.edges[closing])
            return np.stack([vertices, vertices + graph.n], axis=1), None
        return graph.edges[closing], closing

    @staticmethod
    def _lightest(
        steps: IntArray, ids: IntArray, weights: NDArray[np.float64]
    ) -> dict[tuple[int, int], int]:
        found: dict[tuple[int, int], int] = {}
        for (u, v), e in zip(steps.tolist(), ids.tolist(), strict=True):
            key = (min(u, v), max(u, v))
            if key not in found or weights[e] < weights[found[key]]:
                found[key] = e
        return found


def _distances(
    matrix: csr_array, sources: IntArray, limit: float
) -> tuple[NDArray[np.float64], IntArray]:
    """Distances up to ``limit``, infinite beyond: with few light edges, most are never walked."""
    distance, predecessors = dijkstra(
        matrix, directed=False, indices=sources, return_predecessors=True, limit=limit
    )
    return distance, predecessors


def _walk(predecessors: IntArray, first: int, last: int) -> list[tuple[int, int]]:
    steps = []
    while last != first:
        previous = int(predecessors[last])
        steps.append((min(previous, last), max(previous, last)))
        last = previous
    return steps


def coloring_conflicts(
    graph: PairGraph,
    removed: NDArray[np.bool_],
    n_clusters: int,
    *,
    max_conflicts: int,
    n_variants: int = _N_VARIANTS,
) -> list[ConflictSet]:
    """Find groups that cannot be coloured; none of the cannot-links left may be inside a group.

    Up to ``max_conflicts`` conflicts, each in a few variants: of parallel cannot-links, only those that
    nothing runs beside are in all of them.

    Raises
    ------
    StepLimitReached
        If nothing was found and it is not known whether there is something.
    """
    groups = graph.groups(removed)
    links_of_edge: dict[tuple[int, int], list[int]] = defaultdict(list)
    for e in (graph.n_must + np.flatnonzero(~removed[graph.n_must :])).tolist():
        u, v = (int(groups[end]) for end in graph.edges[e])
        links_of_edge[min(u, v), max(u, v)].append(e)
    neighbor_sets: dict[int, set[int]] = defaultdict(set)
    for u, v in links_of_edge:
        neighbor_sets[u].add(v)
        neighbor_sets[v].add(u)
    rows: list[ConflictSet] = []
    forest = _MustLinkForest(graph, removed)
    for _ in range(max_conflicts):
        try:
            vertices = uncolorable_subset(neighbor_sets, n_clusters)
        except StepLimitReached:
            if not rows:
                raise
            break
        if vertices is None:
            break
        between = edges_within(vertices, neighbor_sets)
        for variant in range(n_variants):
            chosen = [links_of_edge[edge][variant % len(links_of_edge[edge])] for edge in between]
            rows.append(frozenset(chosen) | forest.connecting_links(chosen, groups))
        # The edges with fewest pairs behind them are hidden before looking for the next set:
        # where pairs are noisy they are the culprits, and the others are part of many sets.
        fewest = min(len(links_of_edge[edge]) for edge in between)
        for u, v in between:
            if len(links_of_edge[u, v]) == fewest:
                neighbor_sets[u].discard(v)
                neighbor_sets[v].discard(u)
    return list(dict.fromkeys(rows))


@final
class _MustLinkForest:
    """Must-links that tie vertices of a group together."""

    def __init__(self, graph: PairGraph, removed: NDArray[np.bool_]) -> None:
        self._neighbors: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._edges = graph.edges
        for e in np.flatnonzero(~removed[: graph.n_must]).tolist():
            u, v = graph.edges[e].tolist()
            self._neighbors[u].append((v, e))
            self._neighbors[v].append((u, e))

    def connecting_links(self, cannot: Iterable[int], groups: IntArray) -> ConflictSet:
        """Shortest paths from the commonest end in each group to the others."""
        ends: dict[int, Counter[int]] = defaultdict(Counter)
        for e in cannot:
            for point in self._edges[e].tolist():
                ends[int(groups[point])][point] += 1
        used: set[int] = set()
        for end_counts in ends.values():
            if len(end_counts) > 1:
                root = end_counts.most_common(1)[0][0]
                used |= self._paths(root, set(end_counts) - {root})
        return frozenset(used)

    def _paths(self, root: int, wanted: set[int]) -> set[int]:
        predecessors: dict[int, tuple[int, int]] = {root: (root, -1)}
        queue = [root]
        for u in queue:
            if not wanted - predecessors.keys():
                break
            for v, e in self._neighbors[u]:
                if v not in predecessors:
                    predecessors[v] = (u, e)
                    queue.append(v)
        used = set()
        for point in wanted:
            while point != root:
                point, e = predecessors[point]
                used.add(e)
        return used


# Short conflicts that share no pair: each of them has to lose one, so their number is a bound.
#
# Found greedily, the shortest first, with a limited look around: cheap for any number of pairs.

_DEPTHS = (1, 2, 3, 4, 6)
_MAX_STATES = 400  # states looked at from one cannot-link


def disjoint_conflicts(graph: PairGraph, n_clusters: int, stop: StopSignal) -> list[ConflictSet]:
    """Return conflicts that share no edge: closed walks with one cannot-link.

    With two clusters, any odd number of cannot-links will do.

    >>> import numpy as np
    >>> square = PairGraph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 2], [0, 3]]), 3)
    >>> disjoint_conflicts(square, 3, StopSignal())
    [frozenset({0, 1, 3})]
    """
    neighbors: list[dict[int, tuple[int, int]]] = [{} for _ in range(graph.n)]
    last = len(graph.edges) if n_clusters == 2 else graph.n_must
    for e, (u, v) in enumerate(graph.edges[:last].tolist()):
        odd = int(e >= graph.n_must)
        neighbors[u][e] = (v, odd)
        neighbors[v][e] = (u, odd)
    rows: list[ConflictSet] = []
    left = list(range(graph.n_must, len(graph.edges)))
    for depth in _DEPTHS:
        remaining = []
        for at, closing in enumerate(left):
            if at % 100 == 0 and stop.reason() is not None:
                return rows
            u, v = graph.edges[closing].tolist()
            if n_clusters == 2 and closing not in neighbors[u]:
                continue  # used by a walk in the meantime
            path = _short_walk(neighbors, u, v, depth, closing)
            if path is None:
                remaining.append(closing)
                continue
            rows.append(frozenset([closing, *path]))
            for e in rows[-1]:
                for end in graph.edges[e].tolist():
                    neighbors[end].pop(e, None)
        left = remaining
    return rows


def _short_walk(
    neighbors: list[dict[int, tuple[int, int]]], first: int, last: int, depth: int, closing: int
) -> list[int] | None:
    """Edges of a walk with an even number of cannot-links, no edge twice; None if none is near."""
    predecessors: dict[tuple[int, int], tuple[tuple[int, int], int]] = {
        (first, 0): ((first, 0), -1)
    }
    layer = [(first, 0)]
    for _ in range(depth):
        next_layer = []
        for state in layer:
            for e, (other, odd) in neighbors[state[0]].items():
                reached = (other, state[1] ^ odd)
                if e == closing or reached in predecessors:
                    continue
                predecessors[reached] = (state, e)
                if reached == (last, 0):
                    walk = []
                    while reached != (first, 0):
                        reached, e = predecessors[reached]
                        walk.append(e)
                    return walk if len(set(walk)) == len(walk) else None
                next_layer.append(reached)
        if len(predecessors) > _MAX_STATES:
            return None
        layer = next_layer
    return None
