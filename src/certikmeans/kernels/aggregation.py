"""Which groups are in their own cluster wherever centres are within reach. Compiled."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit

FREE, STAYS, EXCLUSIVE, FIXED = 0, 1, 2, 3  # worth something at home; nothing elsewhere; both


@njit(cache=True, nogil=True)
def mark_fixed_groups(
    instance,  # IN   Instance
    labels,  # IN   (n,) int64
    centers,  # IN   (K, d), NaN for an empty cluster
    radius,  # IN   (K,): how far centres may be from these
    margin,  # IN   share of the distance between two costs that has to be left
    state,  # OUT  (n,) uint8: SETTLED or less
):
    """Mark groups that every good cluster near a centre holds, or none; returns how many.

    A group whose neighbours in the cannot-link graph could take its place at home is not settled.
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
