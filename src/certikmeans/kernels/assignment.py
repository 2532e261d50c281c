"""Cheapest feasible labels of one component of the cannot-link graph. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance
from certikmeans.rounding import EPS

# Layout of the cannot-link graph for compiled code: flat arrays, computed once.

# Method for the core of a component with cycles.
ELIMINATE, MATCH, SEARCH = 0, 1, 2


class GraphLayout(NamedTuple):
    """Components of the cannot-link graph, as in `problem.graph.CannotLinkGraph`."""

    indptr: np.ndarray  # (n_linked + 1,)
    neighbors: np.ndarray
    starts: np.ndarray  # (n_components + 1,) first vertex
    parents: np.ndarray  # (n_linked,) breadth-first parent, -1 at a root
    cyclic_component: np.ndarray  # (n_components,) number among those with cycles, or -1
    feasible_labels: np.ndarray  # (n_linked,)


class CoreLayout(NamedTuple):
    """Components with cycles: the peeled trees and the core.

    Inside a component vertices are numbered from 0 ("local"); inside a core by their position in
    the elimination order ("position").
    """

    method: np.ndarray  # (n_cyclic,) ELIMINATE, MATCH or SEARCH
    peel_start: np.ndarray  # (n_cyclic + 1,)
    peel: np.ndarray  # local vertices in the order they are peeled
    anchor: np.ndarray  # local vertex that each of them was attached to
    start: np.ndarray  # (n_cyclic + 1,)
    vertex: np.ndarray  # (n_positions,) local vertex of every position
    link_start: np.ndarray  # (n_positions + 1,)
    link: np.ndarray  # positions of the neighbours in the core
    clique_start: np.ndarray  # (n_cyclic + 1,) cliques that cover the links; SEARCH only
    member_start: np.ndarray  # (n_cliques + 1,)
    member: np.ndarray  # positions


class EliminationTables(NamedTuple):
    """The tables of bucket elimination, one per position."""

    scope_start: np.ndarray  # (n_positions + 1,)
    scope: np.ndarray  # later positions that the table depends on, ascending
    scope_linked: np.ndarray  # 1 where that position is a neighbour
    child_start: np.ndarray  # (n_positions + 1,)
    child: np.ndarray  # positions whose tables are summed here
    stride_start: np.ndarray  # (n_children + 1,)
    stride: np.ndarray  # step in the child's table per scope position, then for this position
    start: np.ndarray  # (n_positions,) first entry
    size: np.ndarray  # (n_cyclic,) entries of all tables; 0 if too many


class AssignmentLayout(NamedTuple):
    """Layout of the cannot-links for compiled code."""

    graph: GraphLayout
    cores: CoreLayout
    tables: EliminationTables


@njit(cache=True, nogil=True)
def component_tables(tables, cores, cyclic_component):
    """Return the tables of one cyclic component, by position."""
    first, last = cores.start[cyclic_component], cores.start[cyclic_component + 1]
    return EliminationTables(
        tables.scope_start[first : last + 1],
        tables.scope,
        tables.scope_linked,
        tables.child_start[first : last + 1],
        tables.child,
        tables.stride_start,
        tables.stride,
        tables.start[first:last],
        tables.size,
    )


# Dynamic programming on trees: messages from the leaves up, labels from the root down.


@njit(cache=True, nogil=True)
def pass_message(
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0
    vertex,  # IN
    parent,  # IN
):
    """Add to each label of ``parent`` the least cost of ``vertex`` among the other labels.

    That is its best value, except for the label of the best, which gets the second best:
    O(n_labels) instead of a minimum per pair of labels.
    """
    best, second, where = np.inf, np.inf, -1
    for k in range(unary.shape[1]):
        value = unary[vertex, k]
        if value < best:
            best, second, where = value, best, k
        elif value < second:
            second = value
    for k in range(unary.shape[1]):
        unary[parent, k] += second if k == where else best


@njit(cache=True, nogil=True)
def cheapest_label(
    costs,  # IN  (n_labels,) float64
    taken,  # IN  a label that must not be used, or -1
):
    """Lowest label of least cost other than ``taken``; finite only if some cost is."""
    best, where = np.inf, -1
    for k in range(costs.size):
        if k != taken and (where < 0 or costs[k] < best):
            best, where = costs[k], k
    return where


@njit(cache=True, nogil=True)
def solve_tree(
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0, inf = forbidden; becomes messages
    parents,  # IN   (n_vertices,) int64 parent's number plus ``first``, -1 for the root; ascending
    first,  # IN   number of the root in ``parents``
    labels,  # OUT  (n_vertices,) int64 a cheapest feasible labelling
):
    """Least cost of a feasible labelling of a tree; inf if there is none.

    Only sums and minima of nonnegative numbers: the value returned is at most the rounded cost of
    every feasible labelling, and each cost passes through fewer than ``n_vertices`` additions.
    """
    n = unary.shape[0]
    for v in range(n - 1, 0, -1):
        pass_message(unary, v, parents[v] - first)
    nothing = parents[0]
    for v in range(n):
        taken = labels[parents[v] - first] if v > 0 else nothing
        labels[v] = cheapest_label(unary[v], taken)
    return unary[0, labels[0]]


# Cheapest assignment of rows to distinct columns (Hungarian method), with a proof by multipliers.


@njit(cache=True, nogil=True)
def _augment(costs, row, row_dual, column_dual, owner, way, distance, done):
    """Add ``row`` (1-based) by a shortest augmenting path. False if there is no finite one."""
    n_columns = costs.shape[1]
    owner[0] = row
    column = 0
    for j in range(n_columns + 1):
        distance[j] = np.inf
        done[j] = False
    while owner[column] != 0:
        done[column] = True
        at, delta, following = owner[column], np.inf, 0
        for j in range(1, n_columns + 1):
            if done[j]:
                continue
            reduced = costs[at - 1, j - 1] - row_dual[at] - column_dual[j]
            if reduced < distance[j]:
                distance[j], way[j] = reduced, column
            if distance[j] < delta:
                delta, following = distance[j], j
        if delta == np.inf:
            return False
        for j in range(n_columns + 1):
            if done[j]:
                row_dual[owner[j]] += delta
                column_dual[j] -= delta
            else:
                distance[j] -= delta
        column = following
    while column != 0:
        before = way[column]
        owner[column] = owner[before]
        column = before
    return True


@njit(cache=True, nogil=True)
def min_cost_matching(
    costs,  # IN   (n_rows, n_columns) float64 >= 0, inf = forbidden; n_rows <= n_columns
    column_of,  # OUT  (n_rows,) int64
    multipliers,  # OUT  (n_columns,) float64 >= 0; see `matching_bound`
):
    """Match every row to its own column at least cost. False if no finite matching exists.

    Whether a finite matching exists is decided without arithmetic: the path search fails only if
    no column outside the searched ones is allowed for any row inside (Hall's condition).
    """
    n_rows, n_columns = costs.shape
    row_dual = np.zeros(n_rows + 1)
    column_dual = np.zeros(n_columns + 1)
    owner = np.zeros(n_columns + 1, np.int64)
    way = np.zeros(n_columns + 1, np.int64)
    distance = np.empty(n_columns + 1)
    done = np.empty(n_columns + 1, np.bool_)
    for row in range(1, n_rows + 1):
        if not _augment(costs, row, row_dual, column_dual, owner, way, distance, done):
            return False
    for j in range(1, n_columns + 1):
        multipliers[j - 1] = max(0.0, -column_dual[j])
        if owner[j] > 0:
            column_of[owner[j] - 1] = j - 1
    return True


@njit(cache=True, nogil=True)
def matching_bound(
    costs,  # IN  (n_rows, n_columns) float64 >= 0
    multipliers,  # IN  (n_columns,) float64 >= 0, any
):
    """Lower bound on every matching: ``sum_i min_j (c_ij + p_j) - sum_j p_j``, rounded down.

    Valid for any multipliers, because a matching pays each multiplier at most once.
    """
    n_rows, n_columns = costs.shape
    gained, paid = 0.0, 0.0
    for i in range(n_rows):
        least = np.inf
        for j in range(n_columns):
            least = min(least, costs[i, j] + multipliers[j])
        gained += least
    for j in range(n_columns):
        paid += multipliers[j]
    return gained - paid - (n_rows + n_columns + 4) * EPS * (gained + paid)


# Bucket elimination of a core along a fixed order: exact, one table per vertex.


@njit(cache=True, nogil=True)
def _min_over_labels(
    costs,  # IN  (n_labels,) float64
    blocked,  # IN  (n_labels,) int64, > 0 where a neighbour has the label
    entries,  # IN  float64 tables
    bases,  # IN  where the child tables stand
    strides,  # IN  their step per label of this position
    n_children,  # IN
):
    """Least cost over the labels of one position, and the lowest label that attains it."""
    best, where = np.inf, -1
    for k in range(costs.size):
        if blocked[k] == 0:
            value = costs[k]
            for c in range(n_children):
                value += entries[bases[c] + strides[c] * k]
            if value < best:
                best, where = value, k
    return best, where


@njit(cache=True, nogil=True)
def _load_children(tables, position, n_scope, bases, strides):
    first = tables.child_start[position]
    n_children = tables.child_start[position + 1] - first
    for c in range(n_children):
        bases[c] = tables.start[tables.child[first + c]]
        strides[c] = tables.stride[tables.stride_start[first + c] + n_scope]
    return n_children


@njit(cache=True, nogil=True)
def _fill_table(
    tables,  # IN
    position,  # IN
    costs,  # IN  (n_labels,) float64
    entries,  # IN/OUT
    digits,  # OUT  scratch: the labels of the scope
    blocked,  # OUT  scratch (n_labels,)
    bases,  # OUT  scratch
    strides,  # OUT  scratch
):
    """Least cost of the eliminated part for every labelling of the scope."""
    n_labels = costs.size
    begin = tables.scope_start[position]
    n_scope = tables.scope_start[position + 1] - begin
    children = tables.child_start[position]
    n_children = _load_children(tables, position, n_scope, bases, strides)
    for k in range(n_labels):
        blocked[k] = 0
    for u in range(n_scope):
        digits[u] = 0
        blocked[0] += tables.scope_linked[begin + u]
    entry = tables.start[position]
    u = 0
    while u >= 0:
        value, _ = _min_over_labels(costs, blocked, entries, bases, strides, n_children)
        entries[entry] = value
        entry += 1
        u = n_scope - 1
        while u >= 0:  # count up: the last scope position runs fastest
            linked = tables.scope_linked[begin + u]
            blocked[digits[u]] -= linked
            step = 1 if digits[u] + 1 < n_labels else 1 - n_labels
            digits[u] += step
            blocked[digits[u]] += linked
            for c in range(n_children):
                bases[c] += step * tables.stride[tables.stride_start[children + c] + u]
            if step == 1:
                break
            u -= 1


@njit(cache=True, nogil=True)
def _read_label(tables, position, labels, costs, entries, blocked, bases, strides):
    """Best label of a position once its scope is labelled (``labels``)."""
    begin = tables.scope_start[position]
    n_scope = tables.scope_start[position + 1] - begin
    children = tables.child_start[position]
    n_children = _load_children(tables, position, n_scope, bases, strides)
    for k in range(costs.size):
        blocked[k] = 0
    for u in range(n_scope):
        label = labels[tables.scope[begin + u]]
        blocked[label] += tables.scope_linked[begin + u]
        for c in range(n_children):
            bases[c] += label * tables.stride[tables.stride_start[children + c] + u]
    _, label = _min_over_labels(costs, blocked, entries, bases, strides, n_children)
    return label


@njit(cache=True, nogil=True)
def eliminate(
    tables,  # IN   of one cyclic component, see `component_tables`
    costs,  # IN   (n_core, n_labels) float64 >= 0, inf = forbidden; by position
    entries,  # OUT  float64 scratch, as long as its tables
    labels,  # OUT  (n_core,) int64 a cheapest feasible labelling, if the value is finite
):
    """Least cost of a feasible labelling of a core; inf if there is none.

    Only sums and minima of nonnegative numbers, as in `solve_tree`.
    """
    n_core, n_labels = costs.shape
    digits = np.empty(n_core, np.int64)
    bases = np.empty(n_core, np.int64)
    strides = np.empty(n_core, np.int64)
    blocked = np.empty(n_labels, np.int64)
    total = 0.0
    for v in range(n_core):
        _fill_table(tables, v, costs[v], entries, digits, blocked, bases, strides)
        if tables.scope_start[v] == tables.scope_start[v + 1]:
            total += entries[tables.start[v]]
    if total < np.inf:
        for v in range(n_core - 1, -1, -1):
            labels[v] = _read_label(tables, v, labels, costs[v], entries, blocked, bases, strides)
    return total


# Cheapest feasible labels of one component whose nearest labels conflict.

SOLVED, DEFERRED, INFEASIBLE = 0, 1, 2

SUM_BLOCK = 1024


@njit(cache=True, nogil=True)
def next_conflict(
    graph,  # IN
    vertex,  # IN  where to begin
    last,  # IN  where to end
    labels,  # IN  int64, by vertex less ``offset``
    offset,  # IN
):
    """First vertex from ``vertex`` on with its parent's label; ``last`` if there is none.

    Complete for trees only; in components with cycles see `has_conflict`.
    """
    for v in range(vertex, last):
        parent = graph.parents[v]
        if parent >= 0 and labels[v - offset] == labels[parent - offset]:
            return v
    return last


@njit(cache=True, nogil=True)
def has_conflict(
    graph,  # IN
    component,  # IN
    labels,  # IN  (n_vertices,) int64 of the component
):
    """Whether two linked vertices of the component have the same label."""
    first = graph.starts[component]
    for v in range(labels.size):
        for e in range(graph.indptr[first + v], graph.indptr[first + v + 1]):
            if labels[graph.neighbors[e] - first] == labels[v]:
                return True
    return False


@njit(cache=True, nogil=True)
def gather_core(
    cores,  # IN
    cyclic_component,  # IN
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0; messages are added
    costs,  # OUT  (n_core, n_labels) float64 costs of the core including the trees
):
    """Peel the trees off a component; their costs become costs of the core."""
    for i in range(cores.peel_start[cyclic_component], cores.peel_start[cyclic_component + 1]):
        pass_message(unary, cores.peel[i], cores.anchor[i])
    first = cores.start[cyclic_component]
    for v in range(costs.shape[0]):
        for k in range(costs.shape[1]):
            costs[v, k] = unary[cores.vertex[first + v], k]


@njit(cache=True, nogil=True)
def scatter_core(
    cores,  # IN
    cyclic_component,  # IN
    unary,  # IN   (n_vertices, n_labels) as `gather_core` left it
    core_labels,  # IN   (n_core,) int64 feasible labels of the core
    labels,  # OUT  (n_vertices,) int64
):
    """Label the component from its core: the peeled vertices, last peeled first."""
    first = cores.start[cyclic_component]
    for v in range(core_labels.size):
        labels[cores.vertex[first + v]] = core_labels[v]
    for i in range(
        cores.peel_start[cyclic_component + 1] - 1, cores.peel_start[cyclic_component] - 1, -1
    ):
        v = cores.peel[i]
        labels[v] = cheapest_label(unary[v], labels[cores.anchor[i]])


@njit(cache=True, nogil=True)
def _match_core(costs, core_labels):
    """Cheapest distinct labels of a complete graph: ``(value, lower)``, proven by multipliers."""
    multipliers = np.empty(costs.shape[1])
    if not min_cost_matching(costs, core_labels, multipliers):
        return np.inf, np.inf
    value = 0.0
    for v in range(core_labels.size):
        value += costs[v, core_labels[v]]
    return value, min(value, matching_bound(costs, multipliers))


@njit(cache=True, nogil=True)
def _solve_cyclic(layout, cyclic_component, unary, entries, labels):
    """`solve_component` for a component with cycles. Returns ``(value, lower)``."""
    cores = layout.cores
    n_core = cores.start[cyclic_component + 1] - cores.start[cyclic_component]
    costs = np.empty((n_core, unary.shape[1]))
    core_labels = np.empty(n_core, np.int64)
    gather_core(cores, cyclic_component, unary, costs)
    if cores.method[cyclic_component] == ELIMINATE:
        lower = value = eliminate(
            component_tables(layout.tables, cores, cyclic_component), costs, entries, core_labels
        )
    else:
        value, lower = _match_core(costs, core_labels)
    if value < np.inf:
        scatter_core(cores, cyclic_component, unary, core_labels, labels)
    return value, lower


@njit(cache=True, nogil=True)
def solve_component(
    layout,  # IN
    component,  # IN
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0, inf = forbidden; becomes messages
    entries,  # OUT  float64 scratch for elimination
    labels,  # OUT  (n_vertices,) int64 feasible labels
):
    """Cheapest feasible labels of a component.

    Returns ``(status, shortfall)``. SOLVED: the labels cost at most ``shortfall`` more than the
    optimum, apart from the rounding of sums of nonnegative numbers. INFEASIBLE: every
    feasible labelling uses a forbidden label. DEFERRED: nothing was done, the core needs a search.
    """
    first = layout.graph.starts[component]
    cyclic_component = layout.graph.cyclic_component[component]
    if cyclic_component >= 0 and layout.cores.method[cyclic_component] == SEARCH:
        return DEFERRED, 0.0
    if cyclic_component < 0:
        parents = layout.graph.parents[first : first + labels.size]
        lower = value = solve_tree(unary, parents, first, labels)
    else:
        value, lower = _solve_cyclic(layout, cyclic_component, unary, entries, labels)
    if value < np.inf:
        return SOLVED, max(0.0, value - lower)
    for v in range(labels.size):
        labels[v] = layout.graph.feasible_labels[first + v]
    return INFEASIBLE, np.inf


@njit(cache=True, nogil=True)
def _table_cost(costs, labels, skipped):
    """Cost of the labels, in two levels, so that each term passes through few additions."""
    total = 0.0
    for first in range(0, labels.size, SUM_BLOCK):
        part = 0.0
        for v in range(first, min(first + SUM_BLOCK, labels.size)):
            if not skipped[v]:
                part += costs[v, labels[v]]
        total += part
    return total


@njit(cache=True, nogil=True)
def assign_table(
    layout,  # IN
    costs,  # IN   (n_groups, n_labels) float64 >= 0, inf = forbidden
    largest_component,  # IN
    largest_table,  # IN
    labels,  # OUT  (n_groups,) int64
    pending,  # OUT  (n_cyclic,) bool: needs a search; labels not feasible, cost not counted
):
    """Cheapest feasible labels for a table of costs.

    Returns ``(cost, lower)`` of all components but the pending ones, ``lower`` without the
    rounding of sums; both inf if one of them has no labelling of finite cost.
    """
    n_groups, n_labels = costs.shape
    graph = layout.graph
    unary = np.empty((largest_component, n_labels))
    entries = np.empty(largest_table)
    skipped = np.zeros(n_groups, np.bool_)
    nothing = n_labels
    for i in range(n_groups):
        labels[i] = cheapest_label(costs[i], nothing)
    for cyclic_component in range(pending.size):
        pending[cyclic_component] = False
    shortfall, infeasible = 0.0, False
    for c in range(graph.cyclic_component.size):
        first, last = graph.starts[c], graph.starts[c + 1]
        own = labels[first:last]
        if not has_conflict(graph, c, own):
            continue
        for v in range(first, last):
            for k in range(n_labels):
                unary[v - first, k] = costs[v, k]
        status, more = solve_component(layout, c, unary[: last - first], entries, own)
        if status == DEFERRED:
            pending[graph.cyclic_component[c]] = True
            for v in range(first, last):
                skipped[v] = True
        elif status == INFEASIBLE:
            infeasible = True
        else:
            shortfall += more
    cost = _table_cost(costs, labels, skipped)
    if infeasible or cost == np.inf:
        return np.inf, np.inf
    return cost, cost - shortfall


@njit(cache=True, nogil=True)
def label_greedily(
    points,  # IN   (n, d) float64
    links,  # IN
    n_linked,  # IN   groups from this one on have no links
    centers,  # IN   (k, d) float64
    labels,  # OUT  (n,) int64, feasible unless False is returned
):
    """Assign groups in order to the nearest centre that no earlier neighbour has.

    Returns False if a group is left without one.
    """
    indptr, neighbors = links.indptr, links.neighbors
    taken = np.full(centers.shape[0], -1, dtype=np.int64)
    labels[:] = -1
    for i in range(points.shape[0]):
        if i < n_linked:
            for e in range(indptr[i], indptr[i + 1]):
                if labels[neighbors[e]] >= 0:
                    taken[labels[neighbors[e]]] = i
        least, label = np.inf, -1
        for k in range(centers.shape[0]):
            away = squared_distance(points, i, centers, k)
            if away < least and taken[k] != i:
                least, label = away, k
        if label < 0:
            return False
        labels[i] = label
    return True
