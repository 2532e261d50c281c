"""Preprocessing of sample groups: search order, box distances, allowed clusters. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance, squared_distance_to


@njit(cache=True, nogil=True)
def order_farthest_first(
    points,  # IN   (m, d)
    order,  # OUT  (m,) int64
):
    """Farthest-first order; the first point is the farthest from the mean."""
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


# Allowed clusters of the samples.


@njit(cache=True, nogil=True)
def reduce_allowed(
    nearest,  # IN   (n, K)
    farthest,  # IN   (n, K)
    link_start,  # IN   (n + 1,)
    link,  # IN
    allowed,  # IN/OUT (n, K)
):
    """Remove clusters that some cheapest labelling does not use; False if none is left.

    Three rules, each of which keeps some cheapest labelling, so they can be combined. The
    multipliers do not matter, as the linear term does not depend on the labels.

    * ``k`` goes if a cluster ``t`` whose box is closer in every position is allowed for the sample
      and for none of its neighbours: moving there stays feasible and lowers the cost.
    * Samples with a preferred cluster, closer in every position than all others, move there, if
      no two neighbours share one and no neighbour outside the set can be in it (`_joint_moves`).
    * The only cluster of a sample is removed from its neighbours.
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
    """Preferred clusters of the largest set of samples that can all move to them, else -1."""
    n, n_clusters = allowed.shape
    for i in range(n):
        preferred[i] = -1
        for t in range(n_clusters):
            is_preferred = allowed[i, t]
            for k in range(n_clusters):
                if k != t and allowed[i, k] and not farthest[i, t] < nearest[i, k]:
                    is_preferred = False
            if is_preferred:
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
    """Remove the only cluster of ``i`` from its neighbours; True if that changed anything."""
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
