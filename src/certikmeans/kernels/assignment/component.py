"""One component of the cannot-link graph whose nearest labels clash: the cheapest proper labels."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.assignment.elimination import eliminate
from certikmeans.kernels.assignment.layout import ELIMINATE, SEARCH, tables_of
from certikmeans.kernels.assignment.matching import cheapest_matching, matching_bound
from certikmeans.kernels.assignment.trees import cheapest_label, pass_message, solve_tree

SOLVED, LEFT, IMPOSSIBLE = 0, 1, 2

SUM_BLOCK = 1024


@njit(cache=True, nogil=True)
def next_clash(
    graph,  # IN
    vertex,  # IN  where to begin
    last,  # IN  where to end
    labels,  # IN  int64, by vertex less ``offset``
    offset,  # IN
):
    """First vertex from ``vertex`` on with its parent's label; ``last`` if there is none.

    Decides for trees, and finds most of what there is in components with cycles: see `clashes`.
    """
    for v in range(vertex, last):
        parent = graph.parents[v]
        if parent >= 0 and labels[v - offset] == labels[parent - offset]:
            return v
    return last


@njit(cache=True, nogil=True)
def clashes(
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
    slot,  # IN
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0; messages are added
    costs,  # OUT  (n_core, n_labels) float64 costs of the core with all that hangs on it
):
    """Peel the trees off a component: what they cost becomes a cost of the core."""
    for i in range(cores.peel_start[slot], cores.peel_start[slot + 1]):
        pass_message(unary, cores.peel[i], cores.anchor[i])
    first = cores.start[slot]
    for v in range(costs.shape[0]):
        for k in range(costs.shape[1]):
            costs[v, k] = unary[cores.vertex[first + v], k]


@njit(cache=True, nogil=True)
def scatter_core(
    cores,  # IN
    slot,  # IN
    unary,  # IN   (n_vertices, n_labels) as `gather_core` left it
    places,  # IN   (n_core,) int64 proper labels of the core
    labels,  # OUT  (n_vertices,) int64
):
    """Label the component from its core: the peeled vertices, last peeled first."""
    first = cores.start[slot]
    for v in range(places.size):
        labels[cores.vertex[first + v]] = places[v]
    for i in range(cores.peel_start[slot + 1] - 1, cores.peel_start[slot] - 1, -1):
        v = cores.peel[i]
        labels[v] = cheapest_label(unary[v], labels[cores.anchor[i]])


@njit(cache=True, nogil=True)
def _match_core(costs, places):
    """Cheapest distinct labels of a complete graph: ``(value, lower)``, proven by prices."""
    prices = np.empty(costs.shape[1])
    if not cheapest_matching(costs, places, prices):
        return np.inf, np.inf
    value = 0.0
    for v in range(places.size):
        value += costs[v, places[v]]
    return value, min(value, matching_bound(costs, prices))


@njit(cache=True, nogil=True)
def _solve_cyclic(layout, slot, unary, entries, labels):
    """`solve_component` for a component with cycles. Returns ``(value, lower)``."""
    cores = layout.cores
    n_core = cores.start[slot + 1] - cores.start[slot]
    costs = np.empty((n_core, unary.shape[1]))
    places = np.empty(n_core, np.int64)
    gather_core(cores, slot, unary, costs)
    if cores.method[slot] == ELIMINATE:
        lower = value = eliminate(tables_of(layout.tables, cores, slot), costs, entries, places)
    else:
        value, lower = _match_core(costs, places)
    if value < np.inf:
        scatter_core(cores, slot, unary, places, labels)
    return value, lower


@njit(cache=True, nogil=True)
def solve_component(
    layout,  # IN
    component,  # IN
    unary,  # IN/OUT  (n_vertices, n_labels) float64 >= 0, inf = forbidden; becomes messages
    entries,  # OUT  float64 scratch for elimination
    labels,  # OUT  (n_vertices,) int64 proper labels
):
    """Cheapest proper labels of a component.

    Returns ``(status, shortfall)``. SOLVED: the labels cost at most ``shortfall`` more than the
    optimum, apart from the rounding of sums of nonnegative numbers. IMPOSSIBLE: every proper
    labelling uses a forbidden label. LEFT: nothing was done, the core takes a search.
    """
    first, slot = layout.graph.starts[component], layout.graph.slot[component]
    if slot >= 0 and layout.cores.method[slot] == SEARCH:
        return LEFT, 0.0
    if slot < 0:
        parents = layout.graph.parents[first : first + labels.size]
        lower = value = solve_tree(unary, parents, first, labels)
    else:
        value, lower = _solve_cyclic(layout, slot, unary, entries, labels)
    if value < np.inf:
        return SOLVED, max(0.0, value - lower)
    for v in range(labels.size):
        labels[v] = layout.graph.witness[first + v]
    return IMPOSSIBLE, np.inf


@njit(cache=True, nogil=True)
def _table_cost(costs, labels, skipped):
    """Cost of the labels, in two levels, so that a term passes through few additions."""
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
    pending,  # OUT  (n_slots,) bool: takes a search; not labelled properly and not counted
):
    """Cheapest proper labels for a table of costs.

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
    for slot in range(pending.size):
        pending[slot] = False
    shortfall, impossible = 0.0, False
    for c in range(graph.slot.size):
        first, last = graph.starts[c], graph.starts[c + 1]
        own = labels[first:last]
        if not clashes(graph, c, own):
            continue
        for v in range(first, last):
            for k in range(n_labels):
                unary[v - first, k] = costs[v, k]
        status, more = solve_component(layout, c, unary[: last - first], entries, own)
        if status == LEFT:
            pending[graph.slot[c]] = True
            for v in range(first, last):
                skipped[v] = True
        elif status == IMPOSSIBLE:
            impossible = True
        else:
            shortfall += more
    cost = _table_cost(costs, labels, skipped)
    if impossible or cost == np.inf:
        return np.inf, np.inf
    return cost, cost - shortfall
