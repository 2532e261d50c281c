"""The group problem: cheapest proper labels and centres in the boxes, linear term included."""

import numpy as np
from numba import njit

from certikmeans.kernels.grouped_search import Group, new_trail, put, search, take_back
from certikmeans.kernels.grouped_start import added_cost, improve, is_proper, label_greedily
from certikmeans.kernels.grouped_values import (
    best_centers,
    clear_sums,
    new_sums,
    sum_up,
    total_value,
)

TYPICAL = 90  # samples times clusters of a group that may have all of the node limit

LEAST_NODES = 100  # for each tail, even when the limit is used up


@njit(cache=True, nogil=True)
def _twins(viable, lower, upper, nu, twin):
    """Previous cluster with the same box, the same pull and the same viable samples, or -1."""
    for k in range(lower.shape[0]):
        twin[k] = -1
        for t in range(k - 1, -1, -1):
            same = True
            for j in range(lower.shape[1]):
                if lower[k, j] != lower[t, j] or upper[k, j] != upper[t, j] or nu[k, j] != nu[t, j]:
                    same = False
            for i in range(viable.shape[0]):
                if viable[i, k] != viable[i, t]:
                    same = False
            if same:
                twin[k] = t
                break


@njit(cache=True, nogil=True)
def _in_search_order(first, last, points, weights, link_start, link, viable, nearest, box):
    """Samples ``first .. last - 1`` as a group: settled ones in front, else as they come.

    Returns ``(group, order, number of settled)``, ``order`` the sample at each place.
    """
    m = last - first
    n_clusters = viable.shape[1]
    order = np.empty(m, np.int64)
    n_settled = 0
    for wanted in range(2):
        for i in range(first, last):
            open_clusters = 0
            for k in range(n_clusters):
                open_clusters += viable[i, k]
            if (open_clusters > 1) == (wanted == 1):
                order[n_settled] = i
                n_settled += 1
        if wanted == 0:
            settled = n_settled
    place_of = np.empty(m, np.int64)
    for p in range(m):
        place_of[order[p] - first] = p
    starts = np.zeros(m + 1, np.int64)
    for p in range(m):
        starts[p + 1] = starts[p] + link_start[order[p] + 1] - link_start[order[p]]
    links = np.empty(starts[m], np.int64)
    for p in range(m):
        at = starts[p]
        for e in range(link_start[order[p]], link_start[order[p] + 1]):
            links[at] = place_of[link[e] - first]
            at += 1
    lower, upper, nu = box
    own_viable = viable[order]
    twin = np.empty(n_clusters, np.int64)
    _twins(own_viable, lower, upper, nu, twin)
    group = Group(
        points[order],
        weights[order],
        starts,
        links,
        own_viable,
        nearest[order],
        twin,
        lower,
        upper,
        nu,
    )
    return group, order, settled


@njit(cache=True, nogil=True)
def _settle(group, n_settled, sums, trail):
    """Label the settled samples; False if one has no cluster or two of them clash."""
    for p in range(n_settled):
        only = -1
        for k in range(group.viable.shape[1]):
            if group.viable[p, k]:
                only = k
        if only < 0 or trail.blocked[p, only] > 0:
            return False
        put(p, only, group, sums, trail)
    return True


@njit(cache=True, nogil=True)
def _value_of(group, place, end, share, labels, sums):
    sum_up(group.points, group.weights, labels, place, end, sums)
    value = total_value(sums, share, group.nu, group.lower, group.upper)
    clear_sums(sums)
    return value


@njit(cache=True, nogil=True)
def _known_value(group, place, end, share, labels, found, sums):
    """Best value known for the places ``place .. end - 1``; its labels go to ``found``.

    Either the group's own labels, or those of the next smaller doll with the new sample where it
    costs least.
    """
    best = np.inf
    if place + 1 == end or found[place + 1] >= 0:
        sum_up(group.points, group.weights, found, place + 1, end, sums)
        least = np.inf
        for k in range(group.lower.shape[0]):
            clash = not group.viable[place, k]
            for e in range(group.link_start[place], group.link_start[place + 1]):
                other = group.link[e]
                clash = clash or (place < other < end and found[other] == k)
            if not clash:
                cost = added_cost(place, k, group, sums, share)
                if cost < least:
                    least, found[place] = cost, k
        if found[place] >= 0:
            best = _value_of(group, place, end, share, found, sums)
    if labels[place] >= 0:
        value = _value_of(group, place, end, share, labels, sums)
        if value < best:
            best = value
            found[place:end] = labels[place:end]
    clear_sums(sums)
    return best


@njit(cache=True, nogil=True)
def _search_with_dolls(group, n_settled, best, relative, node_limit, labels, sums, trail):
    """Solve ever longer tails of the group, each with the bounds of the shorter ones.

    A tail that takes too long is not waited for: the next shorter one becomes a block of its own,
    the blocks in front start afresh, and the bounds of the blocks are added.
    ``sums`` is empty on entry, and nothing is labelled in ``trail``.
    """
    m = group.weights.size
    share, doll = np.zeros(m + 1), np.zeros(m + 1)
    found = np.full(m, -1)
    nodes, end, blocks, given = 0, m, 0.0, 0.0
    for place in range(m - 1, n_settled, -1):
        allowed = max(LEAST_NODES, (node_limit - nodes) // 4)
        while True:
            share[place] = (trail.rest[place] - trail.rest[end]) / trail.rest[0]
            known = _known_value(group, place, end, share[place], labels, found, sums)
            tolerance = relative * abs(known) if known < np.inf else 0.0
            _, doll[place], used = search(
                place,
                end,
                group,
                sums,
                trail,
                share,
                doll,
                share[place],
                known,
                tolerance,
                allowed,
                found,
            )
            nodes += used
            if used < allowed or place + 1 == end:
                break
            blocks += doll[place + 1]
            given += share[place + 1]
            end = place + 1
            share[end], doll[end] = 0.0, 0.0
            found[place] = -1
    whole = 1.0 - given
    known = best
    if end < m and best < np.inf:
        known = _value_of(group, 0, end, whole, labels, sums)
    _settle(group, n_settled, sums, trail)
    tolerance = relative * abs(known) if known < np.inf else 0.0
    result = labels if end == m else found
    allowed = max(LEAST_NODES, node_limit - nodes)
    known, lower, used = search(
        n_settled, end, group, sums, trail, share, doll, whole, known, tolerance, allowed, result
    )
    if end == m:
        best = known
    return best, blocks + lower, nodes + used


@njit(cache=True, nogil=True)
def _solve_ordered(group, n_settled, relative, quick_limit, node_limit, labels, sums):
    """Minimum of the group problem: ``(value of labels, lower bound, nodes)``."""
    m = group.weights.size
    trail = new_trail(group)
    best = np.inf
    if is_proper(group, labels) or label_greedily(group, sums, labels):
        best = improve(group, sums, labels)
    else:
        labels[:] = -1
    clear_sums(sums)
    if not _settle(group, n_settled, sums, trail):
        return np.inf, np.inf, 0
    if n_settled == m:
        labels[:] = trail.label
        value = total_value(sums, 1.0, group.nu, group.lower, group.upper)
        return value, value, 0
    for p in range(n_settled):
        labels[p] = trail.label[p]
    none = np.zeros(m + 1)
    tolerance = relative * abs(best) if best < np.inf else 0.0
    limit = min(quick_limit, node_limit)
    best, lower, nodes = search(
        n_settled, m, group, sums, trail, none, none, 1.0, best, tolerance, limit, labels
    )
    if nodes < limit or nodes >= node_limit:
        return best, lower, nodes
    for p in range(n_settled - 1, -1, -1):
        take_back(p, group, sums, trail)
    clear_sums(sums)
    best, other, used = _search_with_dolls(
        group, n_settled, best, relative, node_limit - nodes, labels, sums, trail
    )
    return best, max(lower, other), nodes + used


@njit(cache=True, nogil=True)
def solve_groups(
    starts,  # IN   (G + 1,) samples of group g are starts[g] .. starts[g + 1] - 1
    points,  # IN   (n, d)
    weights,  # IN   (n,)
    link_start,  # IN   (n + 1,)
    link,  # IN   cannot-links, both directions, inside groups
    viable,  # IN   (n, K) bool
    nearest,  # IN   (n, K) squared distances to the boxes, rounded down
    lower,  # IN   (K, d)
    upper,  # IN   (K, d)
    nu,  # IN   (G, K, d)
    relative,
    quick_limit,
    node_limit,
    labels,  # INOUT (n,) start and result, -1 unknown
    values,  # OUT  (G,) value of the labels; infinite if none were found
    bounds,  # OUT  (G,) at most the minimum, up to rounding; infinite if there is no labelling
    centers,  # OUT  (G, K, d) minimising centres of the labels
    masses,  # OUT  (G, K) weight of the clusters
    nodes,  # OUT  (G,) int64
):
    """Solve the problems of all groups, each to optimality or to ``node_limit`` nodes
    (fewer where samples times clusters exceed `TYPICAL`).
    """
    n_clusters, d = lower.shape
    sums = new_sums(n_clusters, d)
    for g in range(starts.size - 1):
        group, order, n_settled = _in_search_order(
            starts[g],
            starts[g + 1],
            points,
            weights,
            link_start,
            link,
            viable,
            nearest,
            (lower, upper, nu[g]),
        )
        own = labels[order]
        # A node costs in proportion to samples times clusters: the same work for every group.
        limit = node_limit * TYPICAL // max(TYPICAL, own.size * n_clusters)
        values[g], bounds[g], nodes[g] = _solve_ordered(
            group, n_settled, relative, quick_limit, limit, own, sums
        )
        if values[g] < np.inf:
            sum_up(group.points, group.weights, own, 0, own.size, sums)
            best_centers(sums, nu[g], lower, upper, centers[g])
            masses[g] = sums.mass
            labels[order] = own
        else:
            centers[g] = 0.5 * (lower + upper)
            masses[g] = 0.0
