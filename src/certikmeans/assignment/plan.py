"""What an assigner knows about its problem before it sees any centres."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment.order import (
    Adjacency,
    EliminationOrder,
    clique_cover,
    elimination_order,
    largest_scope,
)
from certikmeans.kernels.assignment.layout import (
    ELIMINATE,
    MATCH,
    SEARCH,
    Cores,
    Graph,
    Layout,
    Tables,
)
from certikmeans.kernels.graph.peeling import peel_component
from certikmeans.kernels.lloyd.step import Geometry
from certikmeans.problem import ApartGraph, ReducedProblem

CHUNK = 4096

# Above this many additions a search is tried before elimination.
_CHEAP_ELIMINATION = 30_000
# The largest table that elimination may use, with its vertex: 8 MB.
_LARGEST_TABLE = 1_000_000
_LARGEST_TABLES = 4_000_000
# Larger cores are laid out without sets: they are searched, and edges do for a cover by cliques.
# Unless they are hardly more than trees: then elimination is worth the time that its order takes.
_LARGE_CORE = 20_000
_NEARLY_A_TREE = 1.2  # edges per vertex
# With more links, a cover by cliques takes seconds: every link is a clique of its own.
_MANY_LINKS = 20_000

IntArray = NDArray[np.int64]


def _frozen(values: Any, dtype: Any = np.int64) -> NDArray[Any]:
    """Read-only and contiguous: compiled code is then built for one kind of array only."""
    array: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype).view()
    array.flags.writeable = False
    return array


@final
@dataclass(slots=True)
class _Rows:
    """Rows of different lengths, collected into a start array and a flat one."""

    starts: list[int] = field(default_factory=lambda: [0])
    values: list[int] = field(default_factory=list)

    def add(self, row: Iterable[int]) -> None:
        self.values.extend(row)
        self.starts.append(len(self.values))

    def add_many(self, lengths: IntArray, values: IntArray) -> None:
        """Add rows of these lengths, one after the other in ``values``."""
        self.starts.extend((len(self.values) + np.cumsum(lengths)).tolist())
        self.values.extend(values.tolist())


@final
@dataclass(slots=True)
class _CoreBuilder:
    """The part of `Layout` that describes components with cycles, while it is being built."""

    n_labels: int
    method: list[int] = field(default_factory=list)
    peel: _Rows = field(default_factory=_Rows)
    anchor: list[int] = field(default_factory=list)
    core: _Rows = field(default_factory=_Rows)
    link: _Rows = field(default_factory=_Rows)
    scope: _Rows = field(default_factory=_Rows)
    scope_linked: list[int] = field(default_factory=list)
    child: _Rows = field(default_factory=_Rows)
    stride: _Rows = field(default_factory=_Rows)
    table_start: list[int] = field(default_factory=list)
    table_size: list[int] = field(default_factory=list)
    cliques: list[int] = field(default_factory=lambda: [0])
    member: _Rows = field(default_factory=_Rows)

    def add(
        self, indptr: IntArray, neighbors: IntArray, first: int, last: int, method: int | None
    ) -> None:
        """Add the component of vertices ``first .. last - 1``."""
        removed, anchors = peel_component(indptr, neighbors, first, last)
        self.peel.add(removed.tolist())
        self.anchor.extend(anchors.tolist())
        vertices = np.setdiff1d(np.arange(last - first), removed)
        many = indptr[last] - indptr[first] > 2 * _MANY_LINKS
        if (many or len(vertices) > _LARGE_CORE) and method is None:
            links = _links_inside(indptr, neighbors, first, last, vertices)
            large = len(vertices) > _LARGE_CORE or not _is_complete(links)
            if large and len(links) > 2 * _NEARLY_A_TREE * len(vertices):
                self._add_large(vertices, links)
                return
        name = {int(v): i for i, v in enumerate(vertices)}
        adjacency = []
        for v in vertices + first:
            near = neighbors[indptr[v] : indptr[v + 1]] - first
            adjacency.append({name[u] for u in near.tolist() if u in name})
        order = elimination_order(adjacency, largest_scope(self.n_labels, _LARGEST_TABLE))
        chosen = self._choose(adjacency, order) if method is None else method
        if order is None:
            sequence = sorted(range(len(vertices)), key=lambda v: (-len(adjacency[v]), v))
            order = EliminationOrder(tuple(sequence), tuple(() for _ in sequence))
            entries = 0
        else:
            entries = sum(self.n_labels ** len(scope) for scope in order.scopes)
        self.method.append(chosen)
        self.core.add(int(vertices[v]) for v in order.vertices)
        place = {v: i for i, v in enumerate(order.vertices)}
        linked = [{place[u] for u in adjacency[v]} for v in order.vertices]
        for near_places in linked:
            self.link.add(sorted(near_places))
        self._add_tables(linked, order, entries)
        self._add_cliques(linked if chosen == SEARCH else [])

    def _add_large(self, vertices: IntArray, links: IntArray) -> None:
        """Add a core that is searched, given its edges in both directions as places in it."""
        n = len(vertices)
        order = np.lexsort((np.arange(n), -np.bincount(links[:, 0], minlength=n)))
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        links = place[links]
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
        cheap = additions <= _CHEAP_ELIMINATION
        if complete and not (cheap and n_core == 3):
            return MATCH
        return ELIMINATE if cheap else SEARCH

    def _add_tables(self, linked: list[set[int]], order: EliminationOrder, entries: int) -> None:
        """Lay out one table per vertex; ``entries`` 0 leaves the slot without tables."""
        usable = 0 < entries <= _LARGEST_TABLES
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
                # The last place of a scope runs fastest; a place outside it does not matter.
                weight = {u: n_labels**e for e, u in enumerate(reversed(scopes[c]))}
                self.stride.add(weight.get(u, 0) for u in (*scope, i))

    def _add_cliques(self, linked: list[set[int]]) -> None:
        for clique in clique_cover(linked):
            self.member.add(clique)
        self.cliques.append(len(self.member.starts) - 1)

    def close(self) -> tuple[Cores, Tables]:
        """Return what was collected, as arrays."""
        cores = Cores(
            method=_frozen(self.method),
            peel_start=_frozen(self.peel.starts),
            peel=_frozen(self.peel.values),
            anchor=_frozen(self.anchor),
            start=_frozen(self.core.starts),
            vertex=_frozen(self.core.values),
            link_start=_frozen(self.link.starts),
            link=_frozen(self.link.values),
            clique_start=_frozen(self.cliques),
            member_start=_frozen(self.member.starts),
            member=_frozen(self.member.values),
        )
        tables = Tables(
            scope_start=_frozen(self.scope.starts),
            scope=_frozen(self.scope.values),
            scope_linked=_frozen(self.scope_linked),
            child_start=_frozen(self.child.starts),
            child=_frozen(self.child.values),
            stride_start=_frozen(self.stride.starts),
            stride=_frozen(self.stride.values),
            start=_frozen(self.table_start),
            size=_frozen(self.table_size),
        )
        return cores, tables


def _links_inside(
    indptr: IntArray, neighbors: IntArray, first: int, last: int, vertices: IntArray
) -> IntArray:
    """Links between some vertices of a component, in both directions, as places among them."""
    place = np.full(last - first, -1)
    place[vertices] = np.arange(len(vertices))
    degrees = np.diff(indptr[first : last + 1])
    tails = place[np.repeat(np.arange(last - first), degrees)]
    heads = place[neighbors[indptr[first] : indptr[last]] - first]
    inside = (tails >= 0) & (heads >= 0)
    return np.stack([tails[inside], heads[inside]], axis=1)


def _is_complete(links: IntArray) -> bool:
    """Whether every vertex is linked to every other: matched, however many links there are."""
    n = int(links.max()) + 1
    return len(links) == n * (n - 1)


def build_layout(
    graph: ApartGraph, n_labels: int, witness: IntArray, *, method: int | None = None
) -> Layout:
    """Lay out the graph for compiled code.

    Parameters
    ----------
    graph : ApartGraph
    n_labels : int
    witness : ndarray of shape (n_vertices,)
        Any proper labelling.
    method : int, optional
        Solve every core with this method, whatever it costs, instead of choosing. For tests.
    """
    n_linked = graph.n_linked
    cores = _CoreBuilder(n_labels)
    slot = np.full(graph.n_components, -1)
    indptr, neighbors = _frozen(graph.indptr[: n_linked + 1]), _frozen(graph.neighbors)
    for number, component in enumerate(np.flatnonzero(graph.extra_edges)):
        slot[component] = number
        first, last = int(graph.starts[component]), int(graph.starts[component + 1])
        cores.add(indptr, neighbors, first, last, method)
    return Layout(
        Graph(
            indptr=indptr,
            neighbors=neighbors,
            starts=_frozen(graph.starts),
            parents=_frozen(graph.parents),
            slot=_frozen(slot),
            witness=_frozen(witness[:n_linked]),
        ),
        *cores.close(),
    )


def build_geometry(problem: ReducedProblem, layout: Layout, chunk: int = CHUNK) -> Geometry:
    """Cut the groups into chunks of about ``chunk`` rows that end where a component ends.

    The cut depends on the problem alone, never on the number of threads.
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
    cycles = np.flatnonzero(layout.graph.slot >= 0)
    direct = layout.tables.size[layout.cores.method == ELIMINATE]
    return Geometry(
        points=_frozen(problem.points, np.float64),
        columns=_frozen(problem.points.T, np.float64),
        weights=_frozen(problem.weights, np.float64),
        chunk_vertex=_frozen(vertex),
        chunk_component=_frozen(component),
        chunk_cycle=_frozen(np.searchsorted(cycles, component)),
        cycles=_frozen(cycles),
        longest_chunk=int(np.diff(vertex).max()),
        largest_component=int(np.diff(starts).max(initial=0)),
        largest_table=int(direct.max(initial=0)),
    )
