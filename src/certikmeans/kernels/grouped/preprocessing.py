"""Preprocessing of sample groups: search order, box distances, reduction of allowed clusters. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance, squared_distance_to


@njit(cache=True, nogil=True)
def order_farthest_first(
    points,  # IN   (m, d)
    order,  # OUT  (m,) int64
):
    """Each point as far as possible from those before it; the first, from the mean."""
    m, d = points.shape
    distances = np.empty(m)
    mean = np.zeros(d)
    for i in range(m):
        for j in range(d):
            mean[j] += points[i, j] / m
    for i in range(m):
        distances[i] = squared_distance_to(points, i, mean)
    for position in range(m):
        chosen = 0
        for i in range(1, m):
            if distances[i] > distances[chosen]:
                chosen = i
        order[position] = chosen
        for i in range(m):
            if distances[i] < 0.0:
                continue
            distance = squared_distance(points, i, points, chosen)
            if position == 0 or distance < distances[i]:
                distances[i] = distance
        distances[chosen] = -1.0


# Which clusters the samples of a part can still need. Compiled.


@njit(cache=True, nogil=True)
def reduce_allowed(
    nearest,  # IN   (n, K)
    farthest,  # IN   (n, K)
    link_start,  # IN   (n + 1,)
    link,  # IN
    allowed,  # INOUT (n, K)
):
    """Take out clusters that a cheapest labelling can do without; False if none is left.

    Three rules, each of which leaves a cheapest labelling, so they may build on one another. The
    multipliers play no part, as the linear term does not depend on the labels.

    * ``k`` goes if a cluster ``t`` whose box is closer in every position is open to the sample and
      to none of its neighbours: moving there keeps the labelling proper and lowers the cost.
    * Samples with a favourite, closer in every position than all else, move there together, if
      no two neighbours share one and no neighbour outside the set can be in it (`_joint_moves`).
    * A sample with one cluster left closes it to its neighbours.
    """
    n, n_clusters = allowed.shape
    n_neighbors_allowed = np.zeros((n, n_clusters), np.int64)
    n_allowed = np.zeros(n, np.int64)
    for i in range(n):
        for k in range(n_clusters):
            if allowed[i, k]:
                n_allowed[i] += 1
                for e in range(link_start[i], link_start[i + 1]):
                    n_neighbors_allowed[link[e], k] += 1
    propagated = np.zeros(n, np.bool_)
    preferred = np.empty(n, np.int64)
    changed = True
    while changed:
        changed = False
        _joint_moves(nearest, farthest, link_start, link, allowed, preferred)
        for i in range(n):
            if n_allowed[i] == 0:
                return False
            for k in range(n_clusters):
                if not allowed[i, k] or k == preferred[i]:
                    continue
                if preferred[i] >= 0 or _is_dominated(
                    i, k, nearest, farthest, allowed, n_neighbors_allowed
                ):
                    _remove_cluster(i, k, link_start, link, allowed, n_neighbors_allowed, n_allowed)
                    changed = True
            if n_allowed[i] == 1 and not propagated[i]:
                propagated[i] = True
                changed = (
                    _propagate_fixed(i, link_start, link, allowed, n_neighbors_allowed, n_allowed)
                    or changed
                )
    return True


@njit(cache=True, nogil=True)
def _joint_moves(nearest, farthest, link_start, link, allowed, preferred):
    """Favourites of the largest set of samples that can all move to them, else -1."""
    n, n_clusters = allowed.shape
    for i in range(n):
        preferred[i] = -1
        for t in range(n_clusters):
            ahead = allowed[i, t]
            for k in range(n_clusters):
                if k != t and allowed[i, k] and not farthest[i, t] < nearest[i, k]:
                    ahead = False
            if ahead:
                preferred[i] = t
    shrinking = True
    while shrinking:
        shrinking = False
        for i in range(n):
            t = preferred[i]
            if t < 0:
                continue
            for e in range(link_start[i], link_start[i + 1]):
                other = preferred[link[e]]
                if other == t or (other < 0 and allowed[link[e], t]):
                    preferred[i] = -1
                    shrinking = True
                    break


@njit(cache=True, nogil=True)
def _propagate_fixed(i, link_start, link, allowed, n_neighbors_allowed, n_allowed):
    """Close the only cluster of ``i`` to its neighbours; whether that changed anything."""
    only = 0
    while not allowed[i, only]:
        only += 1
    changed = False
    for e in range(link_start[i], link_start[i + 1]):
        if allowed[link[e], only]:
            _remove_cluster(
                link[e], only, link_start, link, allowed, n_neighbors_allowed, n_allowed
            )
            changed = True
    return changed


@njit(cache=True, nogil=True)
def _is_dominated(i, k, nearest, farthest, allowed, n_neighbors_allowed):
    for t in range(allowed.shape[1]):
        if (
            t != k
            and allowed[i, t]
            and n_neighbors_allowed[i, t] == 0
            and farthest[i, t] < nearest[i, k]
        ):
            return True
    return False


@njit(cache=True, nogil=True)
def _remove_cluster(i, k, link_start, link, allowed, n_neighbors_allowed, n_allowed):
    allowed[i, k] = False
    n_allowed[i] -= 1
    for e in range(link_start[i], link_start[i + 1]):
        n_neighbors_allowed[link[e], k] -= 1
