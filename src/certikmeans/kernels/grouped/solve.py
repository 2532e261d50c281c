"""The group problem: cheapest proper labels and centres in the boxes, linear term included."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.grouped.search import (
    Found,
    Group,
    Stretch,
    new_trail,
    put,
    search,
    take_back,
)
from certikmeans.kernels.grouped.start import added_cost, improve, is_proper, label_greedily
from certikmeans.kernels.grouped.values import (
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
def _in_search_order(first, last, chunk, nu):
    """Samples ``first .. last - 1`` as a group: settled ones in front, else as they come.

    Returns ``(group, order, number of settled)``, ``order`` the sample at each place.
    """
    viable, link_start, link = chunk.viable, chunk.link_start, chunk.link
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
    own_viable = viable[order]
    twin = np.empty(n_clusters, np.int64)
    _twins(own_viable, chunk.lower, chunk.upper, nu, twin)
    group = Group(
        chunk.points[order],
        chunk.weights[order],
        starts,
        links,
        own_viable,
        chunk.nearest[order],
        twin,
        chunk.lower,
        chunk.upper,
        nu,
    )
    return group, order, settled


@njit(cache=True, nogil=True)
def _settle(group, n_settled, sums, trail):
    """Label the settled samples; False if one has no cluster or two of them clash."""
    for p in range(n_settled):
        only = np.int64(-1)  # see `kernels`: not a literal
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
    guess = np.full(m, -1)
    nodes, end, blocks, given = 0, m, 0.0, 0.0
    for place in range(m - 1, n_settled, -1):
        allowed = max(LEAST_NODES, (node_limit - nodes) // 4)
        while True:
            share[place] = (trail.rest[place] - trail.rest[end]) / trail.rest[0]
            known = _known_value(group, place, end, share[place], labels, guess, sums)
            tolerance = relative * abs(known) if known < np.inf else 0.0
            tail = Stretch(place, end, share, doll, share[place])
            found = search(tail, group, sums, trail, known, tolerance, allowed, guess)
            doll[place] = found.lower
            nodes += found.nodes
            if found.nodes < allowed or place + 1 == end:
                break
            blocks += doll[place + 1]
            given += share[place + 1]
            end = place + 1
            share[end], doll[end] = 0.0, 0.0
            guess[place] = -1
    whole = 1.0 - given
    known = best
    if end < m and best < np.inf:
        known = _value_of(group, np.int64(0), end, whole, labels, sums)
    _settle(group, n_settled, sums, trail)
    tolerance = relative * abs(known) if known < np.inf else 0.0
    result = labels if end == m else guess
    allowed = max(LEAST_NODES, node_limit - nodes)
    front = Stretch(n_settled, end, share, doll, whole)
    found = search(front, group, sums, trail, known, tolerance, allowed, result)
    if end == m:
        best = found.value
    return Found(best, blocks + found.lower, nodes + found.nodes)


@njit(cache=True, nogil=True)
def _solve_ordered(group, n_settled, relative, quick_limit, node_limit, labels, sums):
    """Minimum of the group problem, attained by ``labels``."""
    m = group.weights.size
    trail = new_trail(group)
    best = np.inf
    if is_proper(group, labels) or label_greedily(group, sums, labels):
        best = improve(group, sums, labels)
    else:
        labels[:] = -1
    clear_sums(sums)
    if not _settle(group, n_settled, sums, trail):
        return Found(np.inf, np.inf, 0)
    if n_settled == m:
        labels[:] = trail.label
        value = total_value(sums, 1.0, group.nu, group.lower, group.upper)
        return Found(value, value, 0)
    for p in range(n_settled):
        labels[p] = trail.label[p]
    none = np.zeros(m + 1)
    tolerance = relative * abs(best) if best < np.inf else 0.0
    limit = min(quick_limit, node_limit)
    everything = Stretch(n_settled, m, none, none, 1.0)
    quick = search(everything, group, sums, trail, best, tolerance, limit, labels)
    if quick.nodes < limit or quick.nodes >= node_limit:
        return quick
    for p in range(n_settled - 1, -1, -1):
        take_back(p, group, sums, trail)
    clear_sums(sums)
    slow = _search_with_dolls(
        group, n_settled, quick.value, relative, node_limit - quick.nodes, labels, sums, trail
    )
    return Found(slow.value, max(quick.lower, slow.lower), quick.nodes + slow.nodes)


@njit(cache=True, nogil=True)
def solve_groups(
    chunk,  # IN
    nu,  # IN   (G, K, d)
    effort,  # IN
    answers,  # OUT  ``labels`` is INOUT: start and result, -1 unknown
):
    """Solve the problems of all groups, each to optimality or to ``node_limit`` nodes
    (fewer where samples times clusters exceed `TYPICAL`). Bounds hold up to rounding.
    """
    starts, lower, upper, labels = chunk.starts, chunk.lower, chunk.upper, answers.labels
    n_clusters, d = lower.shape
    sums = new_sums(n_clusters, d)
    for g in range(starts.size - 1):
        group, order, n_settled = _in_search_order(starts[g], starts[g + 1], chunk, nu[g])
        own = labels[order]
        # A node costs in proportion to samples times clusters: the same work for every group.
        limit = effort.node_limit * TYPICAL // max(TYPICAL, own.size * n_clusters)
        found = _solve_ordered(
            group, n_settled, effort.relative_tolerance, effort.quick_limit, limit, own, sums
        )
        answers.values[g], answers.bounds[g] = found.value, found.lower
        answers.nodes[g] = found.nodes
        if found.value < np.inf:
            sum_up(group.points, group.weights, own, np.int64(0), own.size, sums)
            best_centers(sums, nu[g], lower, upper, answers.centers[g])
            answers.masses[g] = sums.mass
            labels[order] = own
        else:
            answers.centers[g] = 0.5 * (lower + upper)
            answers.masses[g] = 0.0
