"""Sample determination over all components: costs of boxes, bounds, and what can be removed."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.determination.marginals import component_marginals, propagate
from certikmeans.kernels.smallest import two_least
from certikmeans.rounding import EPS

SUM_BLOCK = 1024


@njit(cache=True, nogil=True)
def box_costs(
    points,  # IN   (n_groups, n_axes) float64
    weights,  # IN   (n_groups,) float64
    lower,  # IN   (n_clusters, n_axes) float64
    upper,  # IN   (n_clusters, n_axes) float64
    farthest,  # IN   bool: the farthest point of the box, rounded up, instead of the nearest, down
    costs,  # OUT  (n_groups, n_clusters) float64
):
    """Weighted squared distance from every group to every box, rounded to the safe side."""
    n_axes = points.shape[1]
    error = (n_axes + 6) * EPS
    factor = 1.0 + error if farthest else 1.0 - error
    for s in range(points.shape[0]):
        for k in range(lower.shape[0]):
            total = 0.0
            for j in range(n_axes):
                below = lower[k, j] - points[s, j]
                above = points[s, j] - upper[k, j]
                away = max(-below, -above) if farthest else max(max(below, above), 0.0)
                total += away * away
            costs[s, k] = total * weights[s] * factor


@njit(cache=True, nogil=True)
def update_marginals(
    components,  # IN
    stale,  # IN/OUT  (n_components,) bool: compute these; becomes False
    costs,  # IN/OUT  (n_groups, n_clusters): propagation adds inf
    scratch,  # OUT  (5, largest component, n_clusters)
    marginals,  # OUT  (n_linked, n_clusters)
    least,  # OUT  (n_components,) least cost of the component; inf if it has no labelling
):
    """Bring the marginals of the components in ``stale`` up to date."""
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
        # Every vertex has the same least marginal, rounding aside.
        best, _, _ = two_least(marginals[first])
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
def _remove_dear(
    marginals,  # IN   (n_clusters,)
    rest,  # IN   at most what everything else costs, rounding aside
    ceiling,  # IN   remove what costs more than this in its component
    scale,  # IN   size of the sums that ``rest`` comes from
    limits,  # IN
    costs,  # IN/OUT  (n_clusters,)
):
    """Forbid the clusters whose proven cost reaches the cutoff. Returns how many."""
    error, tiny = limits.error, limits.tiny
    removed = 0
    for k in range(costs.size):
        if costs[k] == np.inf:
            continue
        own = marginals[k]
        dear = own == np.inf
        if not dear:
            dear = rest + own - error * (scale + own) - tiny >= limits.cutoff
        if not dear:
            dear = own * (1.0 - error) - tiny > ceiling
        if dear:
            costs[k] = np.inf
            removed += 1
    return removed


@njit(cache=True, nogil=True)
def remove_pairs(
    components,  # IN
    totals,  # IN
    limits,  # IN
    prices,  # IN   (n_groups, n_clusters) costs before anything was removed
    costs,  # IN/OUT  (n_groups, n_clusters)
    stale,  # OUT  (n_components,) bool: True where something was removed
):
    """Remove every pair whose component, with the pair, and all the rest cost at least the cutoff.

    What the rest costs is the total less the component's own share; where ``known`` is given, also
    ``known`` less what the labels cost in the component, which is at least its optimum.
    """
    starts, ceilings = components.starts, limits.ceilings
    total, known, labels, scale = totals.total, totals.known, totals.labels, totals.scale
    n_groups, n_clusters = costs.shape
    n_components = starts.size - 1
    removed = 0
    for c in range(n_components):
        first, last = starts[c], starts[c + 1]
        rest = total - totals.least[c]
        if known > -np.inf:
            own = 0.0
            for v in range(first, last):
                own += prices[v, labels[v]]
            rest = max(rest, known - own)
        for v in range(first, last):
            count = _remove_dear(totals.marginals[v], rest, ceilings[c], scale, limits, costs[v])
            if count > 0:
                stale[c] = True
                removed += count
    n_linked = starts[n_components]
    for s in range(n_linked, n_groups):
        best = np.inf
        for k in range(n_clusters):
            best = min(best, costs[s, k])
        rest = total - best
        if known > -np.inf:
            rest = max(rest, known - prices[s, labels[s]])
        ceiling = ceilings[n_components + s - n_linked]
        removed += _remove_dear(costs[s], rest, ceiling, scale, limits, costs[s])
    return removed


@njit(cache=True, nogil=True)
def _may_move(
    components,  # IN
    v,  # IN   a linked group
    target,  # IN   (n_linked,) int64
    ceiling,  # IN   (n_linked,) float64
    moving,  # IN   (n_linked,) bool
    costs,  # IN   (n_groups, n_clusters)
):
    """Whether no neighbour can be in, or move to, the cluster that ``v`` would move to."""
    k = target[v]
    for e in range(components.indptr[v], components.indptr[v + 1]):
        u = components.neighbors[e]
        if moving[u]:
            if target[u] == k or costs[u, k] <= ceiling[u]:
                return False
        elif costs[u, k] < np.inf:
            return False
    return True


@njit(cache=True, nogil=True)
def remove_dominated(
    components,  # IN
    dearest,  # IN   (n_groups, n_clusters) costs at d_max, rounded up; inf: not viable at first
    tiny,  # IN   absolute error of a cost
    costs,  # IN/OUT  (n_groups, n_clusters) costs at d_min, rounded down
    stale,  # OUT  (n_components,) bool: True where something was removed
):
    """Remove the clusters that linked groups would leave together for a cheaper one each.

    ``moving`` shrinks to a set in which every group has a target whose cost is below that of some
    of its viable clusters, and no neighbour can hold that target after all have moved.
    """
    indptr, neighbors = components.indptr, components.neighbors
    n_linked, n_clusters = components.parents.size, costs.shape[1]
    target = np.empty(n_linked, np.int64)
    ceiling = np.empty(n_linked)
    moving = np.zeros(n_linked, np.bool_)
    for v in range(n_linked):
        best, _, target[v] = two_least(dearest[v])
        ceiling[v] = best + 2.0 * tiny
        for k in range(n_clusters):
            if ceiling[v] < costs[v, k] < np.inf:
                moving[v] = True
    # A group is looked at once, and again whenever a neighbour stays.
    stack = np.empty(n_linked + neighbors.size, np.int64)
    height = 0
    for v in range(n_linked):
        stack[height] = v
        height += 1
    while height > 0:
        height -= 1
        v = stack[height]
        if not moving[v] or _may_move(components, v, target, ceiling, moving, costs):
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
            if ceiling[v] < costs[v, k] < np.inf:
                costs[v, k] = np.inf
                stale[components.component[v]] = True
                removed += 1
    return removed
