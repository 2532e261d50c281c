"""Layout of the cannot-link graph for compiled code: elimination orders, tables, clique covers."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Ints
from certikmeans.assignment.params import DEFAULT_PARAMS, AssignmentParams
from certikmeans.kernels.assignment import (
    ELIMINATE,
    MATCH,
    SEARCH,
    AssignmentLayout,
    CoreLayout,
    EliminationTables,
    GraphLayout,
)
from certikmeans.kernels.graph import peel_component
from certikmeans.kernels.lloyd.iteration import Geometry
from certikmeans.problem import CannotLinkGraph, ReducedProblem

Adjacency = Sequence[set[int]]


@final
@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """Vertices of a core in elimination order, and the scopes of their tables."""

    vertices: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]  # later positions, ascending


def max_scope_size(n_labels: int, max_entries: int) -> int:
    """Return the largest scope whose table, with the vertex itself, has ``max_entries`` or fewer.

    >>> max_scope_size(3, 100)
    3
    """
    return int(math.log(max_entries) / math.log(n_labels) + 1e-9) - 1


def elimination_order(
    adjacency: Adjacency, max_scope: int, min_fill_size: int = DEFAULT_PARAMS.min_fill_size
) -> EliminationOrder | None:
    """Eliminate vertices one by one, joining the neighbours of each; cheapest first.

    Parameters
    ----------
    adjacency : sequence of set
        Neighbours of vertices ``0 .. n - 1``. Not modified.
    max_scope : int
        Return None as soon as every remaining vertex has more neighbours than this. The order is
        greedy, so None does not prove that there are no small tables.
    min_fill_size : int
        Up to this many vertices the order is by fill, above by degree.

    Examples
    --------
    >>> cycle = [{1, 3}, {0, 2}, {1, 3}, {0, 2}]
    >>> elimination_order(cycle, max_scope=2)
    EliminationOrder(vertices=(0, 1, 2, 3), scopes=((1, 3), (2, 3), (3,), ()))
    >>> elimination_order(cycle, max_scope=1) is None
    True
    """
    left = {v: set(adjacent) for v, adjacent in enumerate(adjacency)}
    by_fill = len(left) <= min_fill_size

    def priority(v: int) -> tuple[int, int, int]:
        adjacent = left[v]
        fill = 0
        if by_fill and len(adjacent) <= max_scope:
            fill = sum(len(adjacent) - 1 - len(adjacent & left[u]) for u in adjacent) // 2
        return (int(len(adjacent) > max_scope), fill, len(adjacent))

    queue = [(priority(v), v) for v in left]
    heapq.heapify(queue)
    vertices: list[int] = []
    near_at: list[set[int]] = []
    while left:
        rank, v = heapq.heappop(queue)
        if v not in left:
            continue
        current = priority(v)
        if current != rank:  # outdated entry
            if current > rank:
                heapq.heappush(queue, (current, v))
            continue
        if current[0]:
            return None
        adjacent = left.pop(v)
        vertices.append(v)
        near_at.append(adjacent)
        changed = set(adjacent)
        for u in adjacent:
            left[u].discard(v)
            left[u] |= adjacent - {u}
            if by_fill:
                changed |= left[u]
        for u in sorted(changed):
            heapq.heappush(queue, (priority(u), u))
    position = {v: i for i, v in enumerate(vertices)}
    scopes = tuple(tuple(sorted(position[u] for u in adjacent)) for adjacent in near_at)
    return EliminationOrder(tuple(vertices), scopes)


def clique_cover(adjacency: Adjacency) -> list[list[int]]:
    """Cover every edge by cliques, each grown greedily around an uncovered edge.

    >>> clique_cover([{1, 2}, {0, 2}, {0, 1, 3}, {2}])
    [[0, 1, 2], [2, 3]]
    """
    covered: set[tuple[int, int]] = set()
    cliques = []
    for v, adjacent in enumerate(adjacency):
        for u in sorted(adjacent):
            if u < v or (v, u) in covered:
                continue
            clique, common = [v, u], adjacent & adjacency[u]
            while common:
                joined = max(common, key=lambda w: (len(common & adjacency[w]), -w))
                clique.append(joined)
                common = common & adjacency[joined]
            clique.sort()
            covered.update((a, b) for i, a in enumerate(clique) for b in clique[i + 1 :])
            cliques.append(clique)
    return cliques


# The layout of a problem, computed before any centres are known.

CHUNK = 4096  # groups per chunk of an assignment step


def _read_only(values: Any, dtype: Any = np.int64) -> NDArray[Any]:
    """Read-only and contiguous, so that kernels are compiled for one array type only."""
    array: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype).view()
    array.flags.writeable = False
    return array


@final
@dataclass(slots=True)
class _RaggedRows:
    """Rows of different lengths, collected into a start array and a flat one."""

    starts: list[int] = field(default_factory=lambda: [0])
    values: list[int] = field(default_factory=list)

    def add(self, row: Iterable[int]) -> None:
        self.values.extend(row)
        self.starts.append(len(self.values))

    def add_many(self, lengths: Ints, values: Ints) -> None:
        """Add rows of these lengths, one after the other in ``values``."""
        self.starts.extend((len(self.values) + np.cumsum(lengths)).tolist())
        self.values.extend(values.tolist())


@final
@dataclass(slots=True)
class _CoreLayoutBuilder:
    """Builder of the layout of components with cycles."""

    n_labels: int
    params: AssignmentParams
    method: list[int] = field(default_factory=list)
    peel: _RaggedRows = field(default_factory=_RaggedRows)
    anchor: list[int] = field(default_factory=list)
    core: _RaggedRows = field(default_factory=_RaggedRows)
    link: _RaggedRows = field(default_factory=_RaggedRows)
    scope: _RaggedRows = field(default_factory=_RaggedRows)
    scope_linked: list[int] = field(default_factory=list)
    child: _RaggedRows = field(default_factory=_RaggedRows)
    stride: _RaggedRows = field(default_factory=_RaggedRows)
    table_start: list[int] = field(default_factory=list)
    table_size: list[int] = field(default_factory=list)
    cliques: list[int] = field(default_factory=lambda: [0])
    member: _RaggedRows = field(default_factory=_RaggedRows)

    def add(self, indptr: Ints, neighbors: Ints, first: int, last: int, method: int | None) -> None:
        """Add the component of vertices ``first .. last - 1``."""
        removed, anchors = peel_component(indptr, neighbors, first, last)
        self.peel.add(removed.tolist())
        self.anchor.extend(anchors.tolist())
        vertices = np.setdiff1d(np.arange(last - first), removed)
        params = self.params
        many = indptr[last] - indptr[first] > 2 * params.many_links
        if (many or len(vertices) > params.large_core_size) and method is None:
            links = _links_inside(indptr, neighbors, first, last, vertices)
            large = len(vertices) > params.large_core_size or not _is_complete(links)
            if large and len(links) > 2 * params.sparse_edges_per_vertex * len(vertices):
                self._add_large(vertices, links)
                return
        name = {int(v): i for i, v in enumerate(vertices)}
        adjacency = []
        for v in vertices + first:
            near = neighbors[indptr[v] : indptr[v + 1]] - first
            adjacency.append({name[u] for u in near.tolist() if u in name})
        max_scope = max_scope_size(self.n_labels, params.max_table_entries)
        order = elimination_order(adjacency, max_scope, params.min_fill_size)
        chosen = self._choose(adjacency, order) if method is None else method
        if order is None:
            sequence = sorted(range(len(vertices)), key=lambda v: (-len(adjacency[v]), v))
            order = EliminationOrder(tuple(sequence), tuple(() for _ in sequence))
            entries = 0
        else:
            entries = sum(self.n_labels ** len(scope) for scope in order.scopes)
        self.method.append(chosen)
        self.core.add(int(vertices[v]) for v in order.vertices)
        position = {v: i for i, v in enumerate(order.vertices)}
        linked = [{position[u] for u in adjacency[v]} for v in order.vertices]
        for near_positions in linked:
            self.link.add(sorted(near_positions))
        self._add_tables(linked, order, entries)
        self._add_cliques(linked if chosen == SEARCH else [])

    def _add_large(self, vertices: Ints, links: Ints) -> None:
        """Add a core that is searched, given its edges in both directions as positions in it."""
        n = len(vertices)
        order = np.lexsort((np.arange(n), -np.bincount(links[:, 0], minlength=n)))
        position = np.empty(n, dtype=np.int64)
        position[order] = np.arange(n)
        links = position[links]
        links = links[np.lexsort((links[:, 1], links[:, 0]))]
        edges = links[links[:, 0] < links[:, 1]]
        nothing = np.zeros(n, dtype=np.int64)
        self.method.append(SEARCH)
        self.core.add(vertices[order].tolist())
        self.link.add_many(np.bincount(links[:, 0], minlength=n), links[:, 1])
        self.table_size.append(0)
        self.table_start.extend(nothing.tolist())
        self.scope.add_many(nothing, nothing[:0])
        self.child.add_many(nothing, nothing[:0])
        self.member.add_many(np.full(len(edges), 2), edges.ravel())
        self.cliques.append(len(self.member.starts) - 1)

    def _choose(self, adjacency: Adjacency, order: EliminationOrder | None) -> int:
        n_core = len(adjacency)
        complete = all(len(near) == n_core - 1 for near in adjacency)
        additions = np.inf
        if order is not None:
            additions = sum(self.n_labels ** (len(scope) + 1) for scope in order.scopes)
        cheap = additions <= self.params.max_cheap_additions
        if complete and not (cheap and n_core == 3):
            return MATCH
        return ELIMINATE if cheap else SEARCH

    def _add_tables(self, linked: list[set[int]], order: EliminationOrder, entries: int) -> None:
        """Lay out one table per vertex; none if ``entries`` is 0 or too large."""
        usable = 0 < entries <= self.params.max_total_entries
        self.table_size.append(entries if usable else 0)
        scopes, n_labels = order.scopes, self.n_labels
        children: list[list[int]] = [[] for _ in scopes]
        offset = 0
        for i, scope in enumerate(scopes):
            self.table_start.append(offset)
            if not usable:
                continue
            offset += n_labels ** len(scope)
            if scope:
                children[scope[0]].append(i)
        for i, scope in enumerate(scopes):
            self.scope.add(scope if usable else ())
            self.scope_linked.extend(int(u in linked[i]) for u in scope if usable)
            self.child.add(children[i])
            for c in children[i]:
                # The last position of a scope runs fastest; positions outside have stride 0.
                weight = {u: n_labels**e for e, u in enumerate(reversed(scopes[c]))}
                self.stride.add(weight.get(u, 0) for u in (*scope, i))

    def _add_cliques(self, linked: list[set[int]]) -> None:
        for clique in clique_cover(linked):
            self.member.add(clique)
        self.cliques.append(len(self.member.starts) - 1)

    def close(self) -> tuple[CoreLayout, EliminationTables]:
        """Return the layout as arrays."""
        cores = CoreLayout(
            method=_read_only(self.method),
            peel_start=_read_only(self.peel.starts),
            peel=_read_only(self.peel.values),
            anchor=_read_only(self.anchor),
            start=_read_only(self.core.starts),
            vertex=_read_only(self.core.values),
            link_start=_read_only(self.link.starts),
            link=_read_only(self.link.values),
            clique_start=_read_only(self.cliques),
            member_start=_read_only(self.member.starts),
            member=_read_only(self.member.values),
        )
        tables = EliminationTables(
            scope_start=_read_only(self.scope.starts),
            scope=_read_only(self.scope.values),
            scope_linked=_read_only(self.scope_linked),
            child_start=_read_only(self.child.starts),
            child=_read_only(self.child.values),
            stride_start=_read_only(self.stride.starts),
            stride=_read_only(self.stride.values),
            start=_read_only(self.table_start),
            size=_read_only(self.table_size),
        )
        return cores, tables


def _links_inside(indptr: Ints, neighbors: Ints, first: int, last: int, vertices: Ints) -> Ints:
    """Links between some vertices of a component, in both directions, as positions among them."""
    position = np.full(last - first, -1)
    position[vertices] = np.arange(len(vertices))
    degrees = np.diff(indptr[first : last + 1])
    tails = position[np.repeat(np.arange(last - first), degrees)]
    heads = position[neighbors[indptr[first] : indptr[last]] - first]
    inside = (tails >= 0) & (heads >= 0)
    return np.stack([tails[inside], heads[inside]], axis=1)


def _is_complete(links: Ints) -> bool:
    """Whether every vertex is linked to every other."""
    n = int(links.max()) + 1
    return len(links) == n * (n - 1)


def build_layout(
    graph: CannotLinkGraph,
    n_labels: int,
    feasible_labels: Ints,
    *,
    method: int | None = None,
    params: AssignmentParams = DEFAULT_PARAMS,
) -> AssignmentLayout:
    """Lay out the graph for compiled code.

    Parameters
    ----------
    graph : CannotLinkGraph
    n_labels : int
    feasible_labels : ndarray of shape (n_vertices,)
        Any feasible labelling.
    method : int, optional
        Solve every core with this method instead of choosing one. For tests.
    """
    n_linked = graph.n_linked
    cores = _CoreLayoutBuilder(n_labels, params)
    cyclic_component = np.full(graph.n_components, -1)
    indptr, neighbors = _read_only(graph.indptr[: n_linked + 1]), _read_only(graph.neighbors)
    for number, component in enumerate(np.flatnonzero(graph.n_extra_edges)):
        cyclic_component[component] = number
        first, last = int(graph.starts[component]), int(graph.starts[component + 1])
        cores.add(indptr, neighbors, first, last, method)
    return AssignmentLayout(
        GraphLayout(
            indptr=indptr,
            neighbors=neighbors,
            starts=_read_only(graph.starts),
            parents=_read_only(graph.parents),
            cyclic_component=_read_only(cyclic_component),
            feasible_labels=_read_only(feasible_labels[:n_linked]),
        ),
        *cores.close(),
    )


def build_geometry(
    problem: ReducedProblem, layout: AssignmentLayout, chunk: int = CHUNK
) -> Geometry:
    """Partition the groups into chunks of about ``chunk`` rows that split no component.

    The partition depends on the problem alone, never on the number of threads.
    """
    starts, n_groups = problem.graph.starts, problem.n_groups
    vertex, component = [0], [0]
    while vertex[-1] < n_groups:
        target = vertex[-1] + chunk
        if target < starts[-1]:
            c = int(np.searchsorted(starts, target))
            vertex.append(int(starts[c]))
            component.append(c)
        else:
            vertex.append(min(target, n_groups))
            component.append(len(starts) - 1)
    cycles = np.flatnonzero(layout.graph.cyclic_component >= 0)
    direct = layout.tables.size[layout.cores.method == ELIMINATE]
    return Geometry(
        points=_read_only(problem.points, np.float64),
        columns=_read_only(problem.points.T, np.float64),
        weights=_read_only(problem.weights, np.float64),
        chunk_vertex=_read_only(vertex),
        chunk_component=_read_only(component),
        chunk_cycle=_read_only(np.searchsorted(cycles, component)),
        cycles=_read_only(cycles),
        longest_chunk=int(np.diff(vertex).max()),
        largest_component=int(np.diff(starts).max(initial=0)),
        largest_table=int(direct.max(initial=0)),
    )
