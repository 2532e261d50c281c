"""Which groups are in their own cluster wherever centres are within reach. Compiled."""

import math

import numpy as np

from certikmeans.compiling.dispatch import njit

LOST, HELD, ALONE, SETTLED = 0, 1, 2, 3  # worth something at home; nothing elsewhere; both


@njit(cache=True, nogil=True)
def settle(
    instance,  # IN   Instance
    labels,  # IN   (n,) int64
    centers,  # IN   (K, d), NaN for an empty cluster
    reach,  # IN   (K,): how far centres may be from these
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
        for k in range(reach.size):
            square = 0.0
            for j in range(d):
                away = points[s, j] - centers[k, j]
                square += away * away
            if not square < np.inf:
                continue
            distance = math.sqrt(square)
            if labels[s] == k:
                far = distance + reach[k]
                least = lam[s] - w * far * far
                own = w * square
            else:
                near = max(0.0, distance - reach[k])
                most = max(most, lam[s] - w * near * near)
                other = min(other, w * square)
        room = margin * max(0.0, min(other, 1e300) - own)
        state[s] = (HELD if least > room else LOST) + (ALONE if most < -room else LOST)
    count = 0
    for s in range(n):
        if state[s] != SETTLED:
            continue
        for e in range(indptr[s], indptr[s + 1]):
            if state[neighbors[e]] < ALONE:
                state[s] = ALONE
        if state[s] == SETTLED:
            count += 1
    return count
