"""Search for infeasibility proofs: cliques, odd cycles and critical subgraphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Ints, Mask
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets, sets_of_columns
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.kernels.coloring.obstructions import OddCycleScan, scan_for_odd_cycle
from certikmeans.presolve.coloring import (
    DEFAULT_PARAMS,
    Colorability,
    ColoringParams,
    ComponentColoring,
    ExactColoring,
    SubGraph,
    TabuColoring,
    find_clique,
    subgraph_from_edges,
)
from certikmeans.presolve.feasibility import Feasibility
from certikmeans.presolve.infeasibility_proofs import (
    CliqueTooLarge,
    GroupLink,
    InfeasibilityProof,
    MustLinkPath,
    OddCycle,
    Pair,
    SetTooLarge,
    UncolorableSet,
)
from certikmeans.presolve.size_proofs import (
    SizesUnattainable,
    find_group_too_large,
    find_total_outside,
)
from certikmeans.problem.data import Problem
from certikmeans.stop import StopSignal

# Of the remaining time, for one coloring problem.
_TIME_FRACTION = 0.1


def _decide(
    graph: SubGraph, n_colors: int, stop: StopSignal, params: ColoringParams = DEFAULT_PARAMS
) -> tuple[Colorability, SubGraph]:
    """Decide whether ``graph`` is colorable; after "no", also returns a subgraph that is not."""
    graph = graph.core(n_colors)
    if graph.size == 0:
        return "yes", graph
    if graph.size > params.max_exact_size:
        return "undecided", graph
    exact = ExactColoring(graph, n_colors, params)
    tabu = TabuColoring(graph, n_colors, params=params)
    stop = (
        stop.with_time_limit(_TIME_FRACTION * stop.remaining)
        if np.isfinite(stop.remaining)
        else stop
    )
    while stop.reason() is None:
        answer = exact.advance(params.work_per_call)
        if answer == "no":
            return "no", graph.induced(exact.core_vertices).core(n_colors)
        if answer == "yes" or tabu.advance(params.work_per_call) == "yes":
            return "yes", graph
    return "undecided", graph


def _without_edge(graph: SubGraph, tail: int, head: int) -> SubGraph:
    """Remove the edge between two vertices, given by their outer names."""
    edges = graph.edges()
    names = graph.vertices[edges]
    same = ((names == (tail, head)) | (names == (head, tail))).all(axis=1)
    rest = subgraph_from_edges(graph.size, edges[~same])
    return SubGraph(rest.indptr, rest.neighbors, graph.vertices)


def critical_subgraph(graph: SubGraph, n_colors: int, stop: StopSignal) -> tuple[SubGraph, bool]:
    """Shrink an uncolorable graph to a critical one: no vertex or edge can be removed.

    One pass over the vertices and one over the edges suffice: what is necessary in a graph is
    necessary in all its uncolorable subgraphs. Every intermediate graph is uncolorable, so the
    result is, even when the time runs out.

    Returns
    -------
    critical : SubGraph
        Uncolorable.
    irreducible : bool
        False if some decision took too long.
    """
    current = graph.core(n_colors)
    irreducible = True
    for vertex in current.vertices[np.argsort(np.diff(current.indptr), kind="stable")]:
        if stop.reason() is not None:
            return current, False
        inside = np.flatnonzero(current.vertices != vertex)
        if len(inside) == current.size:
            continue
        answer, smaller = _decide(current.induced(inside), n_colors, stop)
        if answer == "no":
            current = smaller
        irreducible &= answer != "undecided"
    for tail, head in current.vertices[current.edges()]:
        if stop.reason() is not None:
            return current, False
        trial = _without_edge(current, tail, head)
        if len(trial.neighbors) == len(current.neighbors):
            continue
        answer, smaller = _decide(trial, n_colors, stop)
        if answer == "no":
            current = smaller
        irreducible &= answer != "undecided"
    return current, irreducible


def critical_must_links(
    must: Sequence[tuple[int, int]],
    cannot: Ints,
    n_colors: int,
    stop: StopSignal,
) -> tuple[list[tuple[int, int]], bool]:
    """Remove must-links as long as the pairs still contradict each other.

    Removing a must-link is a relaxation, as it is for a cannot-link, so that cannot-links which
    were necessary before stay necessary. Returns the must-links kept, and whether all are
    necessary.
    """
    kept = list(must)
    irreducible = True
    for link in must:
        if stop.reason() is not None:
            return kept, False
        rest = [other for other in kept if other != link]
        answer, _ = _decide(_contracted(rest, cannot), n_colors, stop)
        if answer == "no":
            kept = rest
        irreducible &= answer != "undecided"
    return kept, irreducible


def _contracted(must: Sequence[tuple[int, int]], cannot: Ints) -> SubGraph:
    """Return the cannot-link graph of the groups that ``must`` forms."""
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


# Proofs in terms of the original pairs.

__all__ = [
    "CliqueTooLarge",
    "InfeasibilityProof",
    "MustLinkPath",
    "OddCycle",
    "UncolorableSet",
    "explain_uncolorable",
    "find_contradiction",
]

# Number of contradicted cannot-links that are compared for the shortest path.
_PATHS_COMPARED = 16
# Time for finding a shorter cycle, in seconds.
_CYCLE_SECONDS = 2.0


@final
class _MustLinkPaths:
    """Shortest must-link paths inside some groups."""

    def __init__(self, problem: Problem, in_groups: Mask) -> None:
        from scipy.sparse import coo_array  # slow import

        links = problem.must_link[in_groups[problem.must_link[:, 0]]]
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
        # Predecessors are stored per end, because many paths share one.
        at, root = (int(i) for i in np.searchsorted(self._points, (first, last)))
        if root not in self._from:
            _, self._from[root] = breadth_first_order(self._graph, root, directed=False)
        before = self._from[root]
        walk = [at]
        while walk[-1] != root:
            walk.append(int(before[walk[-1]]))
        return tuple(int(point) for point in self._points[walk])


def _joined_members(problem: Problem, group_of_point: Ints) -> Ints:
    """Pairs of points of one cannot-link set in one must-link component."""
    found = []
    for rows in sets_of_columns(problem.cannot_link_groups):
        groups = group_of_point[rows]
        order = np.argsort(groups, kind="stable")
        same = np.flatnonzero(np.diff(groups[order]) == 0)
        found += [(rows[order[i]], rows[order[i + 1]]) for i in same]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _set_too_large(problem: Problem, group_of_point: Ints) -> SetTooLarge | None:
    """Return a cannot-link set of more must-link components than clusters."""
    for rows in sets_of_columns(problem.cannot_link_groups):
        if len(rows) > problem.n_clusters:
            return SetTooLarge(tuple(rows[: problem.n_clusters + 1].tolist()))
    return None


def explain_infeasible(
    problem: Problem, group_of_point: Ints, found: Feasibility, stop: StopSignal
) -> InfeasibilityProof:
    """Explain why there are no feasible labels, in terms of the points."""
    coloring, graph, order = found.coloring, found.graph, found.order
    if coloring is None:
        return _explain_sizes(problem, group_of_point)
    assert graph is not None
    assert order is not None
    vertex = np.empty(graph.n_vertices, dtype=np.int64)
    vertex[order] = np.arange(graph.n_vertices)
    of_point = group_of_point.copy()
    inside = of_point < graph.n_vertices
    of_point[inside] = vertex[of_point[inside]]
    return explain_uncolorable(
        with_expanded_sets(problem),
        of_point,
        graph,
        problem.n_clusters,
        coloring.component,
        stop,
        uncolorable_vertices=coloring.uncolorable_vertices,
    )


def find_size_contradiction(problem: Problem, group_of_point: Ints) -> InfeasibilityProof | None:
    """Return a proof by the total demand or by one must-link component, or None."""
    if not problem.has_sizes:
        return None
    total = find_total_outside(problem)
    return find_group_too_large(problem, group_of_point) if total is None else total


def _explain_sizes(problem: Problem, group_of_point: Ints) -> InfeasibilityProof:
    """Proof by exact search, after the simpler ones."""
    simple = find_size_contradiction(problem, group_of_point)
    n_groups = len(np.unique(group_of_point))
    linked = len(problem.cannot_link) > 0 or len(problem.cannot_link_groups) > 0
    return SizesUnattainable(n_groups, problem.n_clusters, linked) if simple is None else simple


def with_expanded_sets(problem: Problem) -> Problem:
    """Return the problem with a cannot-link for every pair of a set, instead of the sets."""
    family = CannotLinkSets.of(problem.n_points, sets_of_columns(problem.cannot_link_groups))
    if family is None:
        return problem
    return Problem.from_data(
        problem.points,
        problem.n_clusters,
        must_link=problem.must_link,
        cannot_link=np.concatenate([problem.cannot_link, family.pairs()]),
        weights=problem.weights,
    )


def find_contradiction(problem: Problem, group_of_point: Ints) -> MustLinkPath | SetTooLarge | None:
    """Return a must-link path between points that cannot be together, or too large a set.

    None if there is neither.

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
        bad = _joined_members(problem, group_of_point)
    if len(bad) == 0:
        return _set_too_large(problem, group_of_point)
    # Small groups first: paths are short there and quickly found.
    sizes = np.bincount(group_of_point)[group_of_point[bad[:, 0]]]
    bad = bad[np.argsort(sizes, kind="stable")[:_PATHS_COMPARED]]
    chosen_groups = np.zeros(int(group_of_point.max()) + 1, dtype=np.bool_)
    chosen_groups[group_of_point[bad[:, 0]]] = True
    paths = _MustLinkPaths(problem, chosen_groups[group_of_point])
    return MustLinkPath(min((paths.path(int(i), int(j)) for i, j in bad), key=len))


def explain_uncolorable(
    problem: Problem,
    group_of_point: Ints,
    graph: CannotLinkGraph,
    n_clusters: int,
    component: int,
    stop: StopSignal,
    *,
    uncolorable_vertices: Ints | None = None,
) -> InfeasibilityProof:
    """Prove in terms of the original pairs that a component is not colorable.

    The simplest proof is preferred: a clique that is too large; with two clusters an odd cycle;
    else an irreducible set of pairs.

    Parameters
    ----------
    problem : Problem
        As stated.
    group_of_point : ndarray of shape (n_points,)
        Vertex of ``graph`` for each point.
    graph : CannotLinkGraph
        Cannot-links between groups.
    n_clusters : int
        Number of colors.
    component : int
        A component without a proper coloring, as `find_coloring` reports.
    stop : StopSignal
        After it, the proof is valid but may be larger than necessary.
    uncolorable_vertices : ndarray, optional
        From `ColoringResult`: vertices of the component whose induced subgraph is not colorable.
    """
    whole = SubGraph(graph.indptr, graph.neighbors, np.arange(graph.n_vertices))
    inside = np.arange(graph.starts[component], graph.starts[component + 1])
    core = whole.induced(inside).core(n_clusters)
    clique = _find_large_clique(core, n_clusters + 1, stop, uncolorable_vertices)
    if clique is not None:
        return _explain_clique(problem, group_of_point, clique)
    if n_clusters == 2:
        return _explain_odd_cycle(problem, group_of_point, core, stop)
    if uncolorable_vertices is None:
        uncolorable_vertices = _find_uncolorable(core, n_clusters, stop)
    core = whole.induced(uncolorable_vertices)
    return _explain_irreducible(problem, group_of_point, core, n_clusters, stop)


def _find_large_clique(
    core: SubGraph, size: int, stop: StopSignal, uncolorable_vertices: Ints | None
) -> Ints | None:
    """Return the vertices of a clique of ``size``, if one is found in time."""
    if uncolorable_vertices is not None and len(uncolorable_vertices) == size:
        return uncolorable_vertices  # with size - 1 colors, so every two are adjacent
    if size == 2:
        return core.vertices[[0, core.neighbors[0]]]
    found = find_clique(core, size, stop, max_calls=300)
    return None if found is None else core.vertices[found]


def _find_uncolorable(core: SubGraph, n_clusters: int, stop: StopSignal) -> Ints:
    """Return vertices whose induced subgraph is not colorable; all of them if time runs out."""
    search = ComponentColoring(core, n_clusters)
    while stop.reason() is None:
        if search.advance(stop) == "no" and search.uncolorable_vertices is not None:
            return search.uncolorable_vertices
    return core.vertices


def _original_pairs(problem: Problem, group_of_point: Ints, edges: Ints) -> dict[Pair, Pair]:
    """Choose an original cannot-link ``(i, j)`` for every edge ``(u, v)`` between groups.

    Points that occur often are preferred as ends, so that few must-links are needed to connect
    the ends in a group.
    """
    n = np.int64(len(group_of_point))
    rows = group_of_point[problem.cannot_link]
    keys = rows.min(axis=1) * n + rows.max(axis=1)
    candidates_at = np.flatnonzero(np.isin(keys, edges.min(axis=1) * n + edges.max(axis=1)))
    candidates: dict[Pair, list[Pair]] = {}
    for (i, j), (u, v) in zip(
        problem.cannot_link[candidates_at].tolist(), rows[candidates_at].tolist(), strict=True
    ):
        candidates.setdefault((u, v), []).append((i, j))
        candidates.setdefault((v, u), []).append((j, i))
    popular = Counter(problem.cannot_link[candidates_at].ravel().tolist())
    return {
        (u, v): max(candidates[u, v], key=lambda pair: popular[pair[0]] + popular[pair[1]])
        for u, v in edges.tolist()
    }


def _paths_within(problem: Problem, group_of_point: Ints, vertices: Ints) -> _MustLinkPaths:
    chosen_groups = np.zeros(int(group_of_point.max()) + 1, dtype=np.bool_)
    chosen_groups[vertices] = True
    return _MustLinkPaths(problem, chosen_groups[group_of_point])


def _ends_by_group(chosen: dict[Pair, Pair]) -> dict[int, Counter[int]]:
    """Count, for every group, the points in which its chosen cannot-links end."""
    ends: dict[int, Counter[int]] = {}
    for edge, pair in chosen.items():
        for vertex, point in zip(edge, pair, strict=True):
            ends.setdefault(vertex, Counter())[point] += 1
    return ends


def _explain_clique(problem: Problem, group_of_point: Ints, clique: Ints) -> CliqueTooLarge:
    edges = list(combinations(clique.tolist(), 2))
    chosen = _original_pairs(problem, group_of_point, np.array(edges))
    ends = _ends_by_group(chosen)
    member = {vertex: ends[vertex].most_common(1)[0][0] for vertex in clique.tolist()}
    paths = _paths_within(problem, group_of_point, clique)
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
    while root < n and not (cycle and (only_one or stop.reason() is not None)):
        scan: OddCycleScan = scan_for_odd_cycle(
            graph.indptr,
            graph.neighbors,
            root,
            length,
            parent,
            distance,
            queue,
            DEFAULT_PARAMS.work_per_call,
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
    problem: Problem, group_of_point: Ints, core: SubGraph, stop: StopSignal
) -> OddCycle:
    cycle = _shortest_odd_cycle(core, stop.with_time_limit(_CYCLE_SECONDS))
    edges = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    chosen = _original_pairs(problem, group_of_point, np.array(edges))
    paths = _paths_within(problem, group_of_point, np.array(cycle))
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
    group_of_point: Ints,
    graph: SubGraph,
    n_clusters: int,
    stop: StopSignal,
) -> UncolorableSet:
    critical, irreducible = critical_subgraph(graph, n_clusters, stop)
    chosen = _original_pairs(problem, group_of_point, critical.vertices[critical.edges()])
    cannot = sorted((min(pair), max(pair)) for pair in chosen.values())
    paths = _paths_within(problem, group_of_point, critical.vertices)
    must: set[Pair] = set()
    for ends in _ends_by_group(chosen).values():
        root = ends.most_common(1)[0][0]
        for end in ends:
            path = paths.path(end, root)
            must.update((min(step), max(step)) for step in pairwise(path))
    kept, needed = critical_must_links(sorted(must), np.array(cannot), n_clusters, stop)
    return UncolorableSet(tuple(cannot), tuple(kept), n_clusters, irreducible and needed)
