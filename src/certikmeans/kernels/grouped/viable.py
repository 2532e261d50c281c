"""Which clusters the samples of a part can still need. Compiled."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def distance_ranges(
    points,  # IN   (n, d)
    lower,  # IN   (K, d)
    upper,  # IN   (K, d)
    nearest,  # OUT  (n, K)
    farthest,  # OUT  (n, K)
):
    """Squared distance from every sample to every box: smallest and largest, rounded outward.

    Differences, squares and sums round at most ``d + 3`` times in relative terms.
    """
    n, d = points.shape
    slack = (d + 6) * EPS
    for i in range(n):
        for k in range(lower.shape[0]):
            least, most = 0.0, 0.0
            for j in range(d):
                below, above = lower[k, j] - points[i, j], points[i, j] - upper[k, j]
                outside = max(below, above, 0.0)
                across = max(-below, -above)
                across = max(across, outside)
                least += outside * outside
                most += across * across
            nearest[i, k] = least * (1.0 - slack)
            farthest[i, k] = most * (1.0 + slack)


@njit(cache=True, nogil=True)
def narrow(
    nearest,  # IN   (n, K)
    farthest,  # IN   (n, K)
    link_start,  # IN   (n + 1,)
    link,  # IN
    viable,  # INOUT (n, K)
):
    """Take out clusters that a cheapest labelling can do without; False if none is left.

    Three rules, each of which leaves a cheapest labelling, so they may build on one another. The
    multipliers play no part, as the linear term does not depend on the labels.

    * ``k`` goes if a cluster ``t`` whose box is closer in every position is open to the sample and
      to none of its neighbours: moving there keeps the labelling proper and lowers the cost.
    * Samples with a favourite, closer in every position than all else, move there together, if
      no two neighbours share one and no neighbour outside the set can be in it (`_agree`).
    * A sample with one cluster left closes it to its neighbours.
    """
    n, n_clusters = viable.shape
    taken = np.zeros((n, n_clusters), np.int64)
    left = np.zeros(n, np.int64)
    for i in range(n):
        for k in range(n_clusters):
            if viable[i, k]:
                left[i] += 1
                for e in range(link_start[i], link_start[i + 1]):
                    taken[link[e], k] += 1
    settled = np.zeros(n, np.bool_)
    favourite = np.empty(n, np.int64)
    changed = True
    while changed:
        changed = False
        _agree(nearest, farthest, link_start, link, viable, favourite)
        for i in range(n):
            if left[i] == 0:
                return False
            for k in range(n_clusters):
                if not viable[i, k] or k == favourite[i]:
                    continue
                if favourite[i] >= 0 or _dispensable(i, k, nearest, farthest, viable, taken):
                    _close(i, k, link_start, link, viable, taken, left)
                    changed = True
            if left[i] == 1 and not settled[i]:
                settled[i] = True
                changed = _claim(i, link_start, link, viable, taken, left) or changed
    return True


@njit(cache=True, nogil=True)
def _agree(nearest, farthest, link_start, link, viable, favourite):
    """Favourites of the largest set of samples that can all move to them, else -1."""
    n, n_clusters = viable.shape
    for i in range(n):
        favourite[i] = -1
        for t in range(n_clusters):
            ahead = viable[i, t]
            for k in range(n_clusters):
                if k != t and viable[i, k] and not farthest[i, t] < nearest[i, k]:
                    ahead = False
            if ahead:
                favourite[i] = t
    shrinking = True
    while shrinking:
        shrinking = False
        for i in range(n):
            t = favourite[i]
            if t < 0:
                continue
            for e in range(link_start[i], link_start[i + 1]):
                other = favourite[link[e]]
                if other == t or (other < 0 and viable[link[e], t]):
                    favourite[i] = -1
                    shrinking = True
                    break


@njit(cache=True, nogil=True)
def _claim(i, link_start, link, viable, taken, left):
    """Close the only cluster of ``i`` to its neighbours; whether that changed anything."""
    only = 0
    while not viable[i, only]:
        only += 1
    changed = False
    for e in range(link_start[i], link_start[i + 1]):
        if viable[link[e], only]:
            _close(link[e], only, link_start, link, viable, taken, left)
            changed = True
    return changed


@njit(cache=True, nogil=True)
def _dispensable(i, k, nearest, farthest, viable, taken):
    for t in range(viable.shape[1]):
        if t != k and viable[i, t] and taken[i, t] == 0 and farthest[i, t] < nearest[i, k]:
            return True
    return False


@njit(cache=True, nogil=True)
def _close(i, k, link_start, link, viable, taken, left):
    viable[i, k] = False
    left[i] -= 1
    for e in range(link_start[i], link_start[i + 1]):
        taken[link[e], k] -= 1
