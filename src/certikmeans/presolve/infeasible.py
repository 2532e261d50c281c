"""Finding out why no labelling exists. Returns a proof, never a bare "no"."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.colouring.obstructions import OddCycleScan, scan_for_odd_cycle
from certikmeans.presolve.colour_search import SLICE, PieceSearch, SubGraph, find_clique
from certikmeans.presolve.conflicts import (
    CliqueTooLarge,
    GroupLink,
    InfeasibilityProof,
    MustLinkPath,
    OddCycle,
    Pair,
    UncolourableSet,
)
from certikmeans.presolve.critical import critical_subgraph, needed_must_links
from certikmeans.problem.data import Problem
from certikmeans.problem.graph import ApartGraph
from certikmeans.stop import StopSignal

__all__ = [
    "CliqueTooLarge",
    "InfeasibilityProof",
    "MustLinkPath",
    "OddCycle",
    "UncolourableSet",
    "explain_uncolourable",
    "find_contradiction",
]

# How many contradicted cannot-links are compared for the shortest path.
_PATHS_COMPARED = 16
# A shorter cycle is a courtesy.
_CYCLE_SECONDS = 2.0


@final
class _MustLinkPaths:
    """Shortest must-link paths inside some groups."""

    def __init__(self, problem: Problem, wanted: NDArray[np.bool_]) -> None:
        from scipy.sparse import coo_array  # takes as long to load as a small run

        links = problem.must_link[wanted[problem.must_link[:, 0]]]
        self._points, ends = np.unique(links, return_inverse=True)
        ends = ends.reshape(-1, 2)
        size = len(self._points)
        ones = np.ones(len(links), dtype=np.int8)
        self._graph = coo_array((ones, (ends[:, 0], ends[:, 1])), shape=(size, size)).tocsr()
        self._from: dict[int, NDArray[np.int32]] = {}

    def path(self, first: int, last: int) -> tuple[int, ...]:
        """Return the points from ``first`` to ``last`` of the same group."""
        from scipy.sparse.csgraph import breadth_first_order

        if first == last:
            return (first,)
        # Predecessors are kept per end, because many paths share one.
        at, root = (int(i) for i in np.searchsorted(self._points, (first, last)))
        if root not in self._from:
            _, self._from[root] = breadth_first_order(self._graph, root, directed=False)
        before = self._from[root]
        walk = [at]
        while walk[-1] != root:
            walk.append(int(before[walk[-1]]))
        return tuple(int(point) for point in self._points[walk])


def find_contradiction(problem: Problem, group_of_point: NDArray[np.int64]) -> MustLinkPath | None:
    """Return a must-link path between the ends of a cannot-link, or None if there is none.

    Parameters
    ----------
    problem : Problem
        As stated.
    group_of_point : ndarray of shape (n_points,)
        Must-link component of each point.

    Examples
    --------
    >>> problem = Problem.from_data(
    ...     [[0.0], [1.0], [2.0]], 2, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)]
    ... )
    >>> find_contradiction(problem, np.array([0, 0, 0]))
    MustLinkPath(path=(0, 1, 2))
    """
    ends = group_of_point[problem.cannot_link]
    bad = problem.cannot_link[ends[:, 0] == ends[:, 1]]
    if len(bad) == 0:
        return None
    # Small groups first: paths are short there and quickly found.
    sizes = np.bincount(group_of_point)[group_of_point[bad[:, 0]]]
    bad = bad[np.argsort(sizes, kind="stable")[:_PATHS_COMPARED]]
    wanted = np.zeros(int(group_of_point.max()) + 1, dtype=np.bool_)
    wanted[group_of_point[bad[:, 0]]] = True
    paths = _MustLinkPaths(problem, wanted[group_of_point])
    return MustLinkPath(min((paths.path(int(i), int(j)) for i, j in bad), key=len))


def explain_uncolourable(
    problem: Problem,
    point_rows: NDArray[np.int64],
    graph: ApartGraph,
    n_clusters: int,
    component: int,
    stop: StopSignal,
    *,
    witness: NDArray[np.int64] | None = None,
) -> InfeasibilityProof:
    """Prove in terms of the original pairs that a component cannot be coloured.

    The simplest proof is preferred: a clique that is too large; with two clusters an odd cycle;
    else an irreducible set of pairs.

    Parameters
    ----------
    problem : Problem
        As stated.
    point_rows : ndarray of shape (n_points,)
        Vertex of ``graph`` for each point.
    graph : ApartGraph
        Cannot-links between groups.
    n_clusters : int
        Number of colours.
    component : int
        A component without a proper colouring, as `find_colouring` reports.
    stop : StopSignal
        When it comes, the proof is valid but may be larger than need be.
    witness : ndarray, optional
        `Colouring.witness`: vertices of the component that cannot be coloured by themselves.
        Saves searching for them again.
    """
    whole = SubGraph(graph.indptr, graph.neighbors, np.arange(graph.n_vertices))
    inside = np.arange(graph.starts[component], graph.starts[component + 1])
    core = whole.restricted_to(inside).core(n_clusters)
    clique = _clique(core, n_clusters + 1, stop, witness)
    if clique is not None:
        return _explain_clique(problem, point_rows, clique)
    if n_clusters == 2:
        return _explain_odd_cycle(problem, point_rows, core, stop)
    if witness is None:
        witness = _witness(core, n_clusters, stop)
    core = whole.restricted_to(witness)
    return _explain_irreducible(problem, point_rows, core, n_clusters, stop)


def _clique(
    core: SubGraph, size: int, stop: StopSignal, witness: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return the vertices of a clique of ``size``, if one is found in time."""
    if witness is not None and len(witness) == size:
        return witness  # not colourable with size - 1 colours, so every two are adjacent
    if size == 2:
        return core.vertices[[0, core.neighbors[0]]]
    found = find_clique(core, size, stop, n_slices=300)
    return None if found is None else core.vertices[found]


def _witness(core: SubGraph, n_clusters: int, stop: StopSignal) -> NDArray[np.int64]:
    """Return vertices that cannot be coloured by themselves; all of them if time runs out."""
    search = PieceSearch(core, n_clusters)
    while stop.cause() is None:
        if search.advance(stop) == "no" and search.witness is not None:
            return search.witness
    return core.vertices


def _pairs_behind(
    problem: Problem, point_rows: NDArray[np.int64], edges: NDArray[np.int64]
) -> dict[Pair, Pair]:
    """Choose an original cannot-link ``(i, j)`` for every edge ``(u, v)`` between groups.

    Points that occur often are preferred as ends, so that few must-links are needed to tie the
    ends in a group together.
    """
    n = np.int64(len(point_rows))
    rows = point_rows[problem.cannot_link]
    keys = rows.min(axis=1) * n + rows.max(axis=1)
    behind = np.flatnonzero(np.isin(keys, edges.min(axis=1) * n + edges.max(axis=1)))
    candidates: dict[Pair, list[Pair]] = {}
    for (i, j), (u, v) in zip(
        problem.cannot_link[behind].tolist(), rows[behind].tolist(), strict=True
    ):
        candidates.setdefault((u, v), []).append((i, j))
        candidates.setdefault((v, u), []).append((j, i))
    popular = Counter(problem.cannot_link[behind].ravel().tolist())
    return {
        (u, v): max(candidates[u, v], key=lambda pair: popular[pair[0]] + popular[pair[1]])
        for u, v in edges.tolist()
    }


def _paths_within(
    problem: Problem, point_rows: NDArray[np.int64], vertices: NDArray[np.int64]
) -> _MustLinkPaths:
    wanted = np.zeros(int(point_rows.max()) + 1, dtype=np.bool_)
    wanted[vertices] = True
    return _MustLinkPaths(problem, wanted[point_rows])


def _ends_by_group(chosen: dict[Pair, Pair]) -> dict[int, Counter[int]]:
    """Count, for every group, the points in which its chosen cannot-links end."""
    ends: dict[int, Counter[int]] = {}
    for edge, pair in chosen.items():
        for vertex, point in zip(edge, pair, strict=True):
            ends.setdefault(vertex, Counter())[point] += 1
    return ends


def _explain_clique(
    problem: Problem, point_rows: NDArray[np.int64], clique: NDArray[np.int64]
) -> CliqueTooLarge:
    edges = list(combinations(clique.tolist(), 2))
    chosen = _pairs_behind(problem, point_rows, np.array(edges))
    ends = _ends_by_group(chosen)
    member = {vertex: ends[vertex].most_common(1)[0][0] for vertex in clique.tolist()}
    paths = _paths_within(problem, point_rows, clique)
    links = tuple(
        GroupLink(
            pair=chosen[u, v],
            first_path=paths.path(chosen[u, v][0], member[u])[::-1],
            second_path=paths.path(chosen[u, v][1], member[v])[::-1],
        )
        for u, v in edges
    )
    return CliqueTooLarge(tuple(member[vertex] for vertex in clique.tolist()), links)


def _shortest_odd_cycle(graph: SubGraph, stop: StopSignal) -> list[int]:
    """Return the vertices along an odd cycle, a shortest one if time allows."""
    n = graph.size
    parent = np.empty(n, dtype=np.int64)
    distance = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    only_one = len(graph.neighbors) == 2 * n  # the core is a single cycle
    cycle: list[int] = []
    root, length = 0, n + 2
    while root < n and not (cycle and (only_one or stop.cause() is not None)):
        scan: OddCycleScan = scan_for_odd_cycle(
            graph.indptr, graph.neighbors, root, length, parent, distance, queue, SLICE
        )
        root = scan.next_root
        if scan.root < 0:
            continue
        left, right = [scan.u], [scan.v]
        # Equal depths: both reach their first common ancestor after the same number of steps.
        while left[-1] != right[-1]:
            left.append(int(parent[left[-1]]))
            right.append(int(parent[right[-1]]))
        cycle = left + right[-2::-1]
        length = len(cycle)
    return [int(graph.vertices[i]) for i in cycle]


def _explain_odd_cycle(
    problem: Problem, point_rows: NDArray[np.int64], core: SubGraph, stop: StopSignal
) -> OddCycle:
    cycle = _shortest_odd_cycle(core, stop.within(_CYCLE_SECONDS))
    edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    chosen = _pairs_behind(problem, point_rows, np.array(edges))
    paths = _paths_within(problem, point_rows, np.array(cycle))
    pairs = tuple(chosen[edge] for edge in edges)
    return OddCycle(
        pairs,
        tuple(
            paths.path(pair[1], following[0])
            for pair, following in zip(pairs, [*pairs[1:], pairs[0]], strict=True)
        ),
    )


def _explain_irreducible(
    problem: Problem,
    point_rows: NDArray[np.int64],
    graph: SubGraph,
    n_clusters: int,
    stop: StopSignal,
) -> UncolourableSet:
    critical, irreducible = critical_subgraph(graph, n_clusters, stop)
    chosen = _pairs_behind(problem, point_rows, critical.vertices[critical.edges()])
    cannot = sorted((min(pair), max(pair)) for pair in chosen.values())
    paths = _paths_within(problem, point_rows, critical.vertices)
    must: set[Pair] = set()
    for ends in _ends_by_group(chosen).values():
        root = ends.most_common(1)[0][0]
        for end in ends:
            path = paths.path(end, root)
            must.update((min(step), max(step)) for step in pairwise(path))
    kept, needed = needed_must_links(sorted(must), np.array(cannot), n_clusters, stop)
    return UncolourableSet(tuple(cannot), tuple(kept), n_clusters, irreducible and needed)
