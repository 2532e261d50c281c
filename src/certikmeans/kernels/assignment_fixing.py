"""Assignment fixing: min-marginals of cannot-link components and removal of pairs. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.rows import two_smallest


class Components(NamedTuple):
    """Components of the cannot-link graph, and the vertices to enumerate in each. Read only."""

    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64
    starts: np.ndarray  # (n_components + 1,) int64 first vertex
    parents: np.ndarray  # (n_linked,) int64 breadth-first parent, -1 at a root
    component: np.ndarray  # (n_linked,) int64 component of every vertex
    fixed_start: np.ndarray  # (n_components + 1,) int64
    fixed: np.ndarray  # int64 vertices to enumerate, by component
    exact: np.ndarray  # (n_components,) bool: enumerating them leaves a tree


class ComponentCosts(NamedTuple):
    """Least costs of the components and of the whole problem."""

    marginals: np.ndarray  # (n_linked, n_clusters) with each vertex in each cluster
    least: np.ndarray  # (n_components,)
    total: float  # sum of all least costs
    known_bound: float  # another lower bound on that sum, or -inf
    labels: np.ndarray  # (n_groups,) int64 a labelling of finite cost, if ``known_bound`` is finite
    scale: float  # size of the sums that all these come from


class RemovalLimits(NamedTuple):
    """Thresholds for removal, and rounding errors of costs."""

    cutoff: float
    upper_costs: np.ndarray  # (n_components + n_free,) remove what costs more in its component
    error: float  # relative
    absolute_error: float  # absolute


# Min-marginals of cannot-link components: least cost with each group in each cluster.
#
# A cost of inf marks a pair (group, cluster) that is not allowed. Only sums and minima of
# nonnegative numbers are taken, so every value is at most the rounded cost of every feasible
# labelling that it bounds.


@njit(cache=True, nogil=True)
def tree_marginals(
    costs,  # IN   (n_vertices, n_clusters) float64 >= 0
    parents,  # IN   (n_vertices,) int64 parent's number plus ``first``, ascending; -1 for the root
    first,  # IN   number of the root in ``parents``
    up,  # OUT  scratch (>= n_vertices, n_clusters): own cost and messages of the children
    others,  # OUT  scratch, same shape: cost of the parent and messages of later siblings
    down,  # OUT  scratch, same shape: message of the parent, then also of earlier children
    marginals,  # OUT  (n_vertices, n_clusters) float64
):
    """Least cost of a feasible labelling of a tree with each vertex in each cluster.

    Messages run up and then down. What a parent costs without one child is added up from the
    siblings before and after it: a difference of sums could be inf - inf, and would round badly.
    O(n_vertices n_clusters). Each cost passes through fewer than ``4 n_vertices`` additions.
    """
    n, n_clusters = costs.shape
    without = np.empty(n_clusters)
    for v in range(n):
        for k in range(n_clusters):
            up[v, k] = costs[v, k]
    for v in range(n - 1, 0, -1):
        p = parents[v] - first
        best, second, where = two_smallest(up[v])
        for k in range(n_clusters):
            others[v, k] = up[p, k]
            up[p, k] += second if k == where else best
    for k in range(n_clusters):
        down[0, k] = 0.0
        marginals[0, k] = up[0, k]
    for v in range(1, n):
        p = parents[v] - first
        for k in range(n_clusters):
            without[k] = others[v, k] + down[p, k]
        best, second, where = two_smallest(without)
        for k in range(n_clusters):
            down[v, k] = second if k == where else best
            marginals[v, k] = up[v, k] + down[v, k]
        best, second, where = two_smallest(up[v])
        for k in range(n_clusters):
            down[p, k] += second if k == where else best


@njit(cache=True, nogil=True)
def _fix_vertices(
    components,  # IN
    first,  # IN   first vertex of the component
    fixed,  # IN   (n_fixed,) int64 vertices
    digits,  # IN   (n_fixed,) int64 their clusters
    costs,  # IN   (n_vertices, n_clusters) of the component
    work,  # OUT  (>= n_vertices, n_clusters)
):
    """Copy the costs with the fixed vertices in their clusters and their neighbours elsewhere.

    Returns False if a fixed vertex is not allowed in its cluster.
    """
    for f in range(fixed.size):
        if costs[fixed[f] - first, digits[f]] == np.inf:
            return False
    n, n_clusters = costs.shape
    for v in range(n):
        for k in range(n_clusters):
            work[v, k] = costs[v, k]
    for f in range(fixed.size):
        v = fixed[f]
        for k in range(n_clusters):
            if k != digits[f]:
                work[v - first, k] = np.inf
        for e in range(components.indptr[v], components.indptr[v + 1]):
            work[components.neighbors[e] - first, digits[f]] = np.inf
    return True


@njit(cache=True, nogil=True)
def component_marginals(
    components,  # IN
    first,  # IN   first vertex of the component
    fixed,  # IN   (n_fixed,) int64 vertices to enumerate
    costs,  # IN   (n_vertices, n_clusters) of the component
    scratch,  # OUT  (5, >= n_vertices, n_clusters)
    marginals,  # OUT  (n_vertices, n_clusters)
):
    """Least cost with each vertex in each cluster, over the clusters of the ``fixed`` vertices.

    For every choice of those clusters the links of the fixed vertices become forbidden clusters
    of their neighbours, and the rest is relaxed to its spanning tree. Exact if every link outside
    the tree has a fixed end; a lower bound in any case, because links are only left out.
    """
    n, n_clusters = costs.shape
    own_parents = components.parents[first : first + n]
    up, others, down = scratch[0], scratch[1], scratch[2]
    if fixed.size == 0:
        tree_marginals(costs, own_parents, first, up, others, down, marginals)
        return
    work, found = scratch[3], scratch[4]
    for v in range(n):
        for k in range(n_clusters):
            marginals[v, k] = np.inf
    digits = np.zeros(fixed.size, np.int64)
    position = 0
    while position >= 0:
        if _fix_vertices(components, first, fixed, digits, costs, work):
            tree_marginals(work[:n], own_parents, first, up, others, down, found)
            for v in range(n):
                for k in range(n_clusters):
                    marginals[v, k] = min(marginals[v, k], found[v, k])
        position = fixed.size - 1
        while position >= 0:  # count up
            digits[position] += 1
            if digits[position] < n_clusters:
                break
            digits[position] = 0
            position -= 1


@njit(cache=True, nogil=True)
def propagate(
    components,  # IN
    first,  # IN   first vertex of the component
    last,  # IN   one past its last vertex
    costs,  # IN/OUT  (n_groups, n_clusters)
):
    """Forbid the only cluster left for a vertex to its neighbours, until nothing changes.

    Returns whether anything changed. A vertex without any cluster stops that chain: the
    marginals of its component are then inf.
    """
    n_clusters = costs.shape[1]
    stack = np.empty(last - first, np.int64)
    done = np.zeros(last - first, np.bool_)
    height, changed = 0, False
    for v in range(first, last):
        if _only_cluster(costs[v]) >= 0:
            done[v - first] = True
            stack[height] = v
            height += 1
    while height > 0:
        height -= 1
        v = stack[height]
        k = _only_cluster(costs[v])
        if k < 0:
            continue
        for e in range(components.indptr[v], components.indptr[v + 1]):
            u = components.neighbors[e]
            if costs[u, k] == np.inf:
                continue
            costs[u, k] = np.inf
            changed = True
            if n_clusters > 1 and not done[u - first] and _only_cluster(costs[u]) >= 0:
                done[u - first] = True
                stack[height] = u
                height += 1
    return changed


@njit(cache=True, nogil=True)
def _only_cluster(costs):
    """Return the cluster that is left, or -1 if there is none or more than one."""
    where = -1
    for k in range(costs.size):
        if costs[k] < np.inf:
            if where >= 0:
                return -1
            where = k
    return where


# Assignment fixing over all components: box costs, bounds, and removable pairs.

SUM_BLOCK = 1024


@njit(cache=True, nogil=True)
def update_marginals(
    components,  # IN
    stale,  # IN/OUT  (n_components,) bool: compute these; becomes False
    costs,  # IN/OUT  (n_groups, n_clusters): propagation adds inf
    scratch,  # OUT  (5, largest component, n_clusters)
    marginals,  # OUT  (n_linked, n_clusters)
    least,  # OUT  (n_components,) least cost of the component; inf if it has no labelling
):
    """Recompute the marginals of the components in ``stale``."""
    for c in range(stale.size):
        if not stale[c]:
            continue
        stale[c] = False
        first, last = components.starts[c], components.starts[c + 1]
        fixed = components.fixed[components.fixed_start[c] : components.fixed_start[c + 1]]
        if not components.exact[c]:
            propagate(components, first, last, costs)
        component_marginals(
            components, first, fixed, costs[first:last], scratch, marginals[first:last]
        )
        # Every vertex has the same least marginal, up to rounding.
        best, _, _ = two_smallest(marginals[first])
        least[c] = best


@njit(cache=True, nogil=True)
def total_least(
    least,  # IN  (n_components,)
    costs,  # IN  (n_groups, n_clusters)
    n_linked,  # IN
):
    """Sum over components and free groups, in two levels: a term passes through few additions."""
    total = 0.0
    for block in range(0, least.size, SUM_BLOCK):
        part = 0.0
        for c in range(block, min(block + SUM_BLOCK, least.size)):
            part += least[c]
        total += part
    for block in range(n_linked, costs.shape[0], SUM_BLOCK):
        part = 0.0
        for s in range(block, min(block + SUM_BLOCK, costs.shape[0])):
            best = np.inf
            for k in range(costs.shape[1]):
                best = min(best, costs[s, k])
            part += best
        total += part
    return total


@njit(cache=True, nogil=True)
def _remove_costly(
    marginals,  # IN   (n_clusters,)
    rest,  # IN   lower bound on the cost of all other components, up to rounding
    upper_cost,  # IN   remove what costs more than this in its component
    scale,  # IN   size of the sums that ``rest`` comes from
    limits,  # IN
    costs,  # IN/OUT  (n_clusters,)
):
    """Forbid the clusters whose proven cost reaches the cutoff. Returns how many."""
    error, absolute_error = limits.error, limits.absolute_error
    removed = 0
    for k in range(costs.size):
        if costs[k] == np.inf:
            continue
        own = marginals[k]
        removable = own == np.inf
        if not removable:
            removable = rest + own - error * (scale + own) - absolute_error >= limits.cutoff
        if not removable:
            removable = own * (1.0 - error) - absolute_error > upper_cost
        if removable:
            costs[k] = np.inf
            removed += 1
    return removed


@njit(cache=True, nogil=True)
def remove_pairs(
    components,  # IN
    totals,  # IN
    limits,  # IN
    initial_costs,  # IN   (n_groups, n_clusters) costs before anything was removed
    costs,  # IN/OUT  (n_groups, n_clusters)
    stale,  # OUT  (n_components,) bool: True where something was removed
):
    """Remove every pair with which its component and the rest cost at least the cutoff.

    The rest costs the total less the component's least cost; where ``known_bound`` is given, also
    ``known_bound`` less the cost of the labels in the component, which is at least its optimum.
    """
    starts, upper_costs = components.starts, limits.upper_costs
    total, known_bound, labels, scale = (
        totals.total,
        totals.known_bound,
        totals.labels,
        totals.scale,
    )
    n_groups, n_clusters = costs.shape
    n_components = starts.size - 1
    removed = 0
    for c in range(n_components):
        first, last = starts[c], starts[c + 1]
        rest = total - totals.least[c]
        if known_bound > -np.inf:
            own = 0.0
            for v in range(first, last):
                own += initial_costs[v, labels[v]]
            rest = max(rest, known_bound - own)
        for v in range(first, last):
            count = _remove_costly(
                totals.marginals[v], rest, upper_costs[c], scale, limits, costs[v]
            )
            if count > 0:
                stale[c] = True
                removed += count
    n_linked = starts[n_components]
    for s in range(n_linked, n_groups):
        best = np.inf
        for k in range(n_clusters):
            best = min(best, costs[s, k])
        rest = total - best
        if known_bound > -np.inf:
            rest = max(rest, known_bound - initial_costs[s, labels[s]])
        upper_cost = upper_costs[n_components + s - n_linked]
        removed += _remove_costly(costs[s], rest, upper_cost, scale, limits, costs[s])
    return removed


@njit(cache=True, nogil=True)
def _may_move(
    components,  # IN
    v,  # IN   a linked group
    target,  # IN   (n_linked,) int64
    upper_cost,  # IN   (n_linked,) float64
    moving,  # IN   (n_linked,) bool
    costs,  # IN   (n_groups, n_clusters)
):
    """Whether no neighbour can be in, or move to, the cluster that ``v`` would move to."""
    k = target[v]
    for e in range(components.indptr[v], components.indptr[v + 1]):
        u = components.neighbors[e]
        if moving[u]:
            if target[u] == k or costs[u, k] <= upper_cost[u]:
                return False
        elif costs[u, k] < np.inf:
            return False
    return True


@njit(cache=True, nogil=True)
def remove_dominated(
    components,  # IN
    max_costs,  # IN   (n_groups, n_clusters) costs at d_max, rounded up; inf: not allowed at first
    absolute_error,  # IN   absolute error of a cost
    costs,  # IN/OUT  (n_groups, n_clusters) costs at d_min, rounded down
    stale,  # OUT  (n_components,) bool: True where something was removed
):
    """Remove clusters that linked groups would leave simultaneously for cheaper ones.

    ``moving`` shrinks to a set in which every group has a target whose cost is below that of some
    of its allowed clusters, and no neighbour can hold that target after all have moved.
    """
    indptr, neighbors = components.indptr, components.neighbors
    n_linked, n_clusters = components.parents.size, costs.shape[1]
    target = np.empty(n_linked, np.int64)
    upper_cost = np.empty(n_linked)
    moving = np.zeros(n_linked, np.bool_)
    for v in range(n_linked):
        best, _, target[v] = two_smallest(max_costs[v])
        upper_cost[v] = best + 2.0 * absolute_error
        for k in range(n_clusters):
            if upper_cost[v] < costs[v, k] < np.inf:
                moving[v] = True
    # A group is checked once, and again whenever a neighbour is dropped.
    stack = np.empty(n_linked + neighbors.size, np.int64)
    height = 0
    for v in range(n_linked):
        stack[height] = v
        height += 1
    while height > 0:
        height -= 1
        v = stack[height]
        if not moving[v] or _may_move(components, v, target, upper_cost, moving, costs):
            continue
        moving[v] = False
        for e in range(indptr[v], indptr[v + 1]):
            stack[height] = neighbors[e]
            height += 1
    removed = 0
    for v in range(n_linked):
        if not moving[v]:
            continue
        for k in range(n_clusters):
            if upper_cost[v] < costs[v, k] < np.inf:
                costs[v, k] = np.inf
                stale[components.component[v]] = True
                removed += 1
    return removed
