"""Groups that belong to their own cluster for all centres in given balls."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit

# Value of a group: positive in its own cluster; negative in all others; both.
FREE, STAYS, EXCLUSIVE, FIXED = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def mark_fixed_groups(
    instance,  # IN   Instance
    labels,  # IN   (n,) int64
    centers,  # IN   (K, d), NaN for an empty cluster
    radius,  # IN   (K,): of the balls around the centres
    margin,  # IN   required margin, relative to the difference of the two smallest costs
    state,  # OUT  (n,) uint8: FREE, STAYS, EXCLUSIVE or FIXED
):
    """Mark groups that belong to their own cluster and to no other; returns their number.

    A group is not fixed if a neighbour in the cannot-link graph could replace it in its cluster.
    """
    points, weights, lam = instance.points, instance.weights, instance.lam
    indptr, neighbors = instance.indptr, instance.neighbors
    n, d = points.shape
    for s in range(n):
        w = weights[s]
        least, most, own, other = -np.inf, -np.inf, np.inf, np.inf
        for k in range(radius.size):
            square = 0.0
            for j in range(d):
                diff = points[s, j] - centers[k, j]
                square += diff * diff
            if not square < np.inf:
                continue
            distance = math.sqrt(square)
            if labels[s] == k:
                max_distance = distance + radius[k]
                least = lam[s] - w * max_distance * max_distance
                own = w * square
            else:
                min_distance = max(0.0, distance - radius[k])
                most = max(most, lam[s] - w * min_distance * min_distance)
                other = min(other, w * square)
        min_margin = margin * max(0.0, min(other, 1e300) - own)
        state[s] = (STAYS if least > min_margin else FREE) + (
            EXCLUSIVE if most < -min_margin else FREE
        )
    count = 0
    for s in range(n):
        if state[s] != FIXED:
            continue
        for e in range(indptr[s], indptr[s + 1]):
            if state[neighbors[e]] < EXCLUSIVE:
                state[s] = EXCLUSIVE
        if state[s] == FIXED:
            count += 1
    return count
