"""One pass of COP-k-means and of PCKMeans, and cluster means. Compiled; arrays in, arrays out."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance


@njit(cache=True, nogil=True)
def cluster_means(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    labels,  # IN   (n,) int64
    centers,  # OUT  (n_clusters, d): an empty cluster keeps the centre it has
):
    """Weighted means of the clusters."""
    n, d = points.shape
    sums = np.zeros(centers.shape)
    masses = np.zeros(centers.shape[0])
    for i in range(n):
        k = labels[i]
        masses[k] += weights[i]
        for j in range(d):
            sums[k, j] += weights[i] * points[i, j]
    for k in range(centers.shape[0]):
        if masses[k] > 0.0:
            for j in range(d):
                centers[k, j] = sums[k, j] / masses[k]


@njit(cache=True, nogil=True)
def cop_pass(
    points,  # IN   (n, d) float64
    first,  # IN   (n_groups,) int64: the member of each group that is visited first
    order,  # IN   (n_groups,) int64: groups in the order of their first visit
    indptr,  # IN   (n_groups + 1,) int64: cannot-links between groups
    neighbors,  # IN   (indptr[-1],) int64
    centers,  # IN   (n_clusters, d) float64
    labels,  # OUT  (n_groups,) int64
):
    """Nearest centre that no earlier group forbids; returns a group without one, or -1.

    Visiting points one by one under the transitive closure of the pairs is the same: the
    first member of a group decides, and nothing is left to decide for the others.
    """
    n_clusters = centers.shape[0]
    taken = np.full(n_clusters, -1)
    labels[:] = -1
    for g in order:
        begin, end = indptr[g], indptr[g + 1]
        for e in range(begin, end):
            if neighbors[e] == g:
                return g
            if labels[neighbors[e]] >= 0:
                taken[labels[neighbors[e]]] = g
        best, least = -1, np.inf
        for k in range(n_clusters):
            if taken[k] == g:
                continue
            squares = squared_distance(points, first[g], centers, k)
            if squares < least:
                best, least = k, squares
        if best < 0:
            return g
        labels[g] = best
    return -1


@njit(cache=True, nogil=True)
def pck_pass(
    points,  # IN   (n, d) float64
    order,  # IN   (n,) int64: points in the order of their visit
    group,  # IN   (n,) int64: neighbourhood of each point
    links,  # IN   Links: cannot-links between neighbourhoods
    centers,  # IN   (n_clusters, d) float64
    weight,  # IN   penalty of a violated pair
    counts,  # OUT  (n_groups, n_clusters) int64: labelled members per cluster; updated
    labels,  # OUT  (n,) int64; -1: not labelled yet
):
    """Move every point to the cluster of least objective; returns how many moved.

    Each move is optimal given all other labels, so the objective never rises. A point stays
    where it is on a tie.
    """
    indptr, neighbors = links.indptr, links.neighbors
    n_clusters = centers.shape[0]
    costs = np.empty(n_clusters)
    moved = 0
    for i in order:
        g, before = group[i], labels[i]
        if before >= 0:
            counts[g, before] -= 1
        others = 0
        for k in range(n_clusters):
            others += counts[g, k]
        for k in range(n_clusters):
            squares = squared_distance(points, i, centers, k)
            broken = others - counts[g, k]
            for e in range(indptr[g], indptr[g + 1]):
                broken += counts[neighbors[e], k]
            costs[k] = 0.5 * squares + weight * broken
        best = max(before, 0)
        for k in range(n_clusters):
            if costs[k] < costs[best]:
                best = k
        moved += best != before
        counts[g, best] += 1
        labels[i] = best
    return moved
