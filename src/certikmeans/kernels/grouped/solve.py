"""Group subproblem: input, limits, result, and the solver by branch and bound. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.grouped.cluster_values import (
    added_cost,
    best_centers,
    clear_sums,
    compute_sums,
    improve_labels,
    is_feasible,
    label_greedily,
    new_sums,
    total_value,
)
from certikmeans.kernels.grouped.search import (
    Group,
    SearchResult,
    Segment,
    assign_label,
    new_stack,
    search,
    undo_label,
)


class Chunk(NamedTuple):
    """Consecutive groups, samples renumbered from zero."""

    starts: np.ndarray  # (G + 1,) samples of group g are starts[g] .. starts[g + 1] - 1
    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    link_start: np.ndarray  # (n + 1,)
    link: np.ndarray  # cannot-links, both directions, inside groups
    allowed: np.ndarray  # (n, K) bool
    nearest: np.ndarray  # (n, K) squared distances to the boxes, rounded down
    lower: np.ndarray  # (K, d)
    upper: np.ndarray  # (K, d)


class SearchLimits(NamedTuple):
    """Work limits, counted so that results repeat bit for bit.

    ``seconds`` is what the stop signal leaves, for SCIP, which cannot be interrupted.
    """

    relative_tolerance: float  # branches this close to the best labelling are pruned
    quick_limit: int  # nodes of the plain search, before the Russian doll search
    node_limit: int  # nodes per group in all
    seconds: float = np.inf


class GroupSolutions(NamedTuple):
    """Solutions of consecutive groups."""

    values: np.ndarray  # (G,) value of the labels; infinite if none were found
    bounds: np.ndarray  # (G,) lower bounds on the minimum; infinite if there is no labelling
    centers: np.ndarray  # (G, K, d) minimising centres of the labels
    masses: np.ndarray  # (G, K) weight of the clusters
    nodes: np.ndarray  # (G,) int64
    labels: np.ndarray  # (n,) int64, -1 where none were found


# The group problem: cheapest feasible labels and centres in the boxes, linear term included.

REFERENCE_SIZE = 90  # samples times clusters of a group that gets the whole node limit

MIN_NODES = 100  # for each tail, even when the limit is reached


@njit(cache=True, nogil=True)
def _identical_clusters(allowed, lower, upper, nu, identical_cluster):
    """Previous cluster with the same box, multipliers and allowed samples, or -1."""
    for k in range(lower.shape[0]):
        identical_cluster[k] = -1
        for t in range(k - 1, -1, -1):
            same = True
            for j in range(lower.shape[1]):
                if lower[k, j] != lower[t, j] or upper[k, j] != upper[t, j] or nu[k, j] != nu[t, j]:
                    same = False
            for i in range(allowed.shape[0]):
                if allowed[i, k] != allowed[i, t]:
                    same = False
            if same:
                identical_cluster[k] = t
                break


@njit(cache=True, nogil=True)
def _reorder_group(first, last, chunk, nu):
    """Samples ``first .. last - 1`` as a group: fixed ones first, else in order.

    Returns ``(group, order, n_fixed)``, ``order`` the sample at each position.
    """
    allowed, link_start, link = chunk.allowed, chunk.link_start, chunk.link
    m = last - first
    n_clusters = allowed.shape[1]
    order = np.empty(m, np.int64)
    n_fixed = 0
    for wanted in range(2):
        for i in range(first, last):
            open_clusters = 0
            for k in range(n_clusters):
                open_clusters += allowed[i, k]
            if (open_clusters > 1) == (wanted == 1):
                order[n_fixed] = i
                n_fixed += 1
        if wanted == 0:
            fixed_end = n_fixed
    position_of = np.empty(m, np.int64)
    for p in range(m):
        position_of[order[p] - first] = p
    starts = np.zeros(m + 1, np.int64)
    for p in range(m):
        starts[p + 1] = starts[p] + link_start[order[p] + 1] - link_start[order[p]]
    links = np.empty(starts[m], np.int64)
    for p in range(m):
        at = starts[p]
        for e in range(link_start[order[p]], link_start[order[p] + 1]):
            links[at] = position_of[link[e] - first]
            at += 1
    own_allowed = allowed[order]
    identical_cluster = np.empty(n_clusters, np.int64)
    _identical_clusters(own_allowed, chunk.lower, chunk.upper, nu, identical_cluster)
    group = Group(
        chunk.points[order],
        chunk.weights[order],
        starts,
        links,
        own_allowed,
        chunk.nearest[order],
        identical_cluster,
        chunk.lower,
        chunk.upper,
        nu,
    )
    return group, order, fixed_end


@njit(cache=True, nogil=True)
def _assign_fixed(group, n_fixed, sums, stack):
    """Label the fixed samples; False if one has no cluster or two of them conflict."""
    for p in range(n_fixed):
        only = np.int64(-1)  # not a literal: numba would infer another type
        for k in range(group.allowed.shape[1]):
            if group.allowed[p, k]:
                only = k
        if only < 0 or stack.blocked[p, only] > 0:
            return False
        assign_label(p, only, group, sums, stack)
    return True


@njit(cache=True, nogil=True)
def _value_of(group, position, end, share, labels, sums):
    compute_sums(group.points, group.weights, labels, position, end, sums)
    value = total_value(sums, share, group.nu, group.lower, group.upper)
    clear_sums(sums)
    return value


@njit(cache=True, nogil=True)
def _upper_bound(group, position, end, share, labels, found, sums):
    """Best value known for the positions ``position .. end - 1``; its labels go to ``found``.

    Either the group's own labels, or those of the next smaller doll with the new sample where it
    costs least.
    """
    best = np.inf
    if position + 1 == end or found[position + 1] >= 0:
        compute_sums(group.points, group.weights, found, position + 1, end, sums)
        least = np.inf
        for k in range(group.lower.shape[0]):
            clash = not group.allowed[position, k]
            for e in range(group.link_start[position], group.link_start[position + 1]):
                other = group.link[e]
                clash = clash or (position < other < end and found[other] == k)
            if not clash:
                cost = added_cost(position, k, group, sums, share)
                if cost < least:
                    least, found[position] = cost, k
        if found[position] >= 0:
            best = _value_of(group, position, end, share, found, sums)
    if labels[position] >= 0:
        value = _value_of(group, position, end, share, labels, sums)
        if value < best:
            best = value
            found[position:end] = labels[position:end]
    clear_sums(sums)
    return best


@njit(cache=True, nogil=True)
def _russian_doll_search(group, n_fixed, best, relative, node_limit, labels, sums, stack):
    """Solve ever longer tails of the group, each with the bounds of the shorter ones.

    A tail that takes too long is not waited for: the next shorter one becomes a block of its own,
    the blocks in front start afresh, and the bounds of the blocks are added.
    ``sums`` is empty on entry, and nothing is labelled in ``stack``.
    """
    m = group.weights.size
    share, tail_bound = np.zeros(m + 1), np.zeros(m + 1)
    guess = np.full(m, -1)
    nodes, end, blocks, used_share = 0, m, 0.0, 0.0
    for position in range(m - 1, n_fixed, -1):
        node_budget = max(MIN_NODES, (node_limit - nodes) // 4)
        while True:
            share[position] = (stack.rest[position] - stack.rest[end]) / stack.rest[0]
            known = _upper_bound(group, position, end, share[position], labels, guess, sums)
            tolerance = relative * abs(known) if known < np.inf else 0.0
            tail = Segment(position, end, share, tail_bound, share[position])
            found = search(tail, group, sums, stack, known, tolerance, node_budget, guess)
            tail_bound[position] = found.lower_bound
            nodes += found.nodes
            if found.nodes < node_budget or position + 1 == end:
                break
            blocks += tail_bound[position + 1]
            used_share += share[position + 1]
            end = position + 1
            share[end], tail_bound[end] = 0.0, 0.0
            guess[position] = -1
    total_share = 1.0 - used_share
    known = best
    if end < m and best < np.inf:
        known = _value_of(group, np.int64(0), end, total_share, labels, sums)
    _assign_fixed(group, n_fixed, sums, stack)
    tolerance = relative * abs(known) if known < np.inf else 0.0
    result = labels if end == m else guess
    node_budget = max(MIN_NODES, node_limit - nodes)
    front = Segment(n_fixed, end, share, tail_bound, total_share)
    found = search(front, group, sums, stack, known, tolerance, node_budget, result)
    if end == m:
        best = found.value
    return SearchResult(best, blocks + found.lower_bound, nodes + found.nodes)


@njit(cache=True, nogil=True)
def _solve_ordered(group, n_fixed, relative, quick_limit, node_limit, labels, sums):
    """Minimum of the group problem, attained by ``labels``."""
    m = group.weights.size
    stack = new_stack(group)
    best = np.inf
    if is_feasible(group, labels) or label_greedily(group, sums, labels):
        best = improve_labels(group, sums, labels)
    else:
        labels[:] = -1
    clear_sums(sums)
    if not _assign_fixed(group, n_fixed, sums, stack):
        return SearchResult(np.inf, np.inf, 0)
    if n_fixed == m:
        labels[:] = stack.label
        value = total_value(sums, 1.0, group.nu, group.lower, group.upper)
        return SearchResult(value, value, 0)
    for p in range(n_fixed):
        labels[p] = stack.label[p]
    none = np.zeros(m + 1)
    tolerance = relative * abs(best) if best < np.inf else 0.0
    limit = min(quick_limit, node_limit)
    everything = Segment(n_fixed, m, none, none, 1.0)
    quick = search(everything, group, sums, stack, best, tolerance, limit, labels)
    if quick.nodes < limit or quick.nodes >= node_limit:
        return quick
    for p in range(n_fixed - 1, -1, -1):
        undo_label(p, group, sums, stack)
    clear_sums(sums)
    slow = _russian_doll_search(
        group, n_fixed, quick.value, relative, node_limit - quick.nodes, labels, sums, stack
    )
    return SearchResult(
        slow.value, max(quick.lower_bound, slow.lower_bound), quick.nodes + slow.nodes
    )


@njit(cache=True, nogil=True)
def solve_groups(
    chunk,  # IN
    nu,  # IN   (G, K, d)
    limits,  # IN
    solutions,  # OUT  ``labels`` is IN/OUT: start and result, -1 unknown
):
    """Solve the problems of all groups, each to optimality or to ``node_limit`` nodes
    (fewer where samples times clusters exceed `REFERENCE_SIZE`). Bounds hold up to rounding.
    """
    starts, lower, upper, labels = chunk.starts, chunk.lower, chunk.upper, solutions.labels
    n_clusters, d = lower.shape
    sums = new_sums(n_clusters, d)
    for g in range(starts.size - 1):
        group, order, n_fixed = _reorder_group(starts[g], starts[g + 1], chunk, nu[g])
        own = labels[order]
        # A node costs in proportion to samples times clusters: the same work for every group.
        limit = limits.node_limit * REFERENCE_SIZE // max(REFERENCE_SIZE, own.size * n_clusters)
        found = _solve_ordered(
            group, n_fixed, limits.relative_tolerance, limits.quick_limit, limit, own, sums
        )
        solutions.values[g], solutions.bounds[g] = found.value, found.lower_bound
        solutions.nodes[g] = found.nodes
        if found.value < np.inf:
            compute_sums(group.points, group.weights, own, np.int64(0), own.size, sums)
            best_centers(sums, nu[g], lower, upper, solutions.centers[g])
            solutions.masses[g] = sums.mass
            labels[order] = own
        else:
            solutions.centers[g] = 0.5 * (lower + upper)
            solutions.masses[g] = 0.0
