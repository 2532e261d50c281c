"""Min-marginals of cannot-link components: what each group costs at least in each cluster.

A cost of inf marks a pair (group, cluster) that is not viable. Only sums and minima of nonnegative
numbers are taken, so every value is at most the rounded cost of every proper labelling it stands
for.
"""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.smallest import two_least


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
    """Least cost of a proper labelling of a tree with each vertex in each cluster.

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
        best, second, where = two_least(up[v])
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
        best, second, where = two_least(without)
        for k in range(n_clusters):
            down[v, k] = second if k == where else best
            marginals[v, k] = up[v, k] + down[v, k]
        best, second, where = two_least(up[v])
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

    False if a fixed vertex may not be where it is put.
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
    place = 0
    while place >= 0:
        if _fix_vertices(components, first, fixed, digits, costs, work):
            tree_marginals(work[:n], own_parents, first, up, others, down, found)
            for v in range(n):
                for k in range(n_clusters):
                    marginals[v, k] = min(marginals[v, k], found[v, k])
        place = fixed.size - 1
        while place >= 0:  # count up
            digits[place] += 1
            if digits[place] < n_clusters:
                break
            digits[place] = 0
            place -= 1


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
