"""Depth-first branch and bound over the labels of the samples of one group. Compiled.

Samples are labelled in a fixed order, positions ``start .. end - 1``. A node has labels up to a
position; the larger of two lower bounds on all its completions is used.

*Additions.* The value of the clusters so far has its minimum over the boxes at ``c``, and grows at
least by ``W_k |m - c_k|^2`` from there (a strongly convex function over a convex set). Divided
among the samples without a label in proportion to their weights, of total ``U``, a sample put into
cluster ``k`` adds at least ``min over m of w (W_k / U) |m - c_k|^2 + w |x - m|^2``, and may choose
its cheapest cluster. `least_addition` has this in closed form with ``ratio = W_k / (W_k + U)``.

*Russian doll search.* ``tail_bound[p]`` is a lower bound on the samples from position ``p`` on,
taken alone with the share ``share[p]`` of the linear term. The labelled samples keep the rest of
the share. Valid because one choice of the centres serves both, and the minimum of a sum is not
below the sum of the minima. The shares are proportional to the weights, so that the linear term
moves the centres of both alike. For the same reason bounds of blocks of positions add up.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.grouped.cluster_values import (
    add_member,
    best_coordinate,
    least_addition,
)


class Group(NamedTuple):
    """One group in search order, and the boxes. Read only."""

    points: np.ndarray  # (m, d)
    weights: np.ndarray  # (m,)
    link_start: np.ndarray  # (m + 1,)
    link: np.ndarray  # cannot-links, both directions
    allowed: np.ndarray  # (m, K) bool
    nearest: np.ndarray  # (m, K) squared distance to the box, rounded down
    identical_cluster: np.ndarray  # (K,) previous identical cluster, or -1
    lower: np.ndarray  # (K, d)
    upper: np.ndarray  # (K, d)
    nu: np.ndarray  # (K, d)


class SearchStack(NamedTuple):
    """Scratch of the search, by depth."""

    label: np.ndarray  # (m,) int64
    blocked: np.ndarray  # (m, K) int64 how many labelled neighbours exclude a cluster
    mass: np.ndarray  # (m,) what the changed cluster was before
    moment: np.ndarray  # (m, d)
    square: np.ndarray  # (m,)
    n_children: np.ndarray  # (m,) int64
    next_child: np.ndarray  # (m,) int64
    child_bound: np.ndarray  # (m, K)
    child_label: np.ndarray  # (m, K) int64
    center: np.ndarray  # (K, d)
    rest: np.ndarray  # (m + 1,) weight from a position on
    mass_after: np.ndarray  # (K,)
    ratio: np.ndarray  # (K,)


class Segment(NamedTuple):
    """The positions to label, and bounds of their tails."""

    start: int
    end: int  # one past the last
    share: np.ndarray  # (m + 1,) share of the linear term of the tail from a position on
    tail_bound: np.ndarray  # (m + 1,) lower bound on that tail, with its share
    total_share: float  # share of the linear term of all positions


class SearchResult(NamedTuple):
    """Result of a search."""

    value: float  # of the best labelling known
    lower_bound: float  # infinite only if there is no labelling
    nodes: int


@njit(cache=True, nogil=True)
def new_stack(group):
    """Scratch for `search`."""
    m, n_clusters = group.allowed.shape
    d = group.points.shape[1]
    rest = np.zeros(m + 1)
    for i in range(m - 1, -1, -1):
        rest[i] = rest[i + 1] + group.weights[i]
    return SearchStack(
        np.full(m, -1),
        np.zeros((m, n_clusters), np.int64),
        np.empty(m),
        np.empty((m, d)),
        np.empty(m),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.empty((m, n_clusters)),
        np.empty((m, n_clusters), np.int64),
        np.empty((n_clusters, d)),
        rest,
        np.empty(n_clusters),
        np.empty(n_clusters),
    )


@njit(cache=True, nogil=True)
def assign_label(position, k, group, sums, stack):
    """Assign label ``k`` to the sample at ``position``."""
    stack.label[position] = k
    stack.mass[position] = sums.mass[k]
    stack.moment[position] = sums.moment[k]
    stack.square[position] = sums.square[k]
    add_member(sums, k, group.points[position], group.weights[position])
    for e in range(group.link_start[position], group.link_start[position + 1]):
        stack.blocked[group.link[e], k] += 1


@njit(cache=True, nogil=True)
def undo_label(position, group, sums, stack):
    """Undo `assign_label`, bit for bit."""
    k = stack.label[position]
    sums.mass[k] = stack.mass[position]
    sums.moment[k] = stack.moment[position]
    sums.square[k] = stack.square[position]
    sums.count[k] -= 1
    stack.label[position] = -1
    for e in range(group.link_start[position], group.link_start[position + 1]):
        stack.blocked[group.link[e], k] -= 1


@njit(cache=True, nogil=True)
def _labelled_value(position, k, group, sums, stack, share):
    """Value of all clusters with ``position`` in ``k``; leaves centres in ``stack.center``."""
    total = 0.0
    for t in range(group.lower.shape[0]):
        mass, square = sums.mass[t], sums.square[t]
        if t == k:
            mass += group.weights[position]
        for j in range(group.points.shape[1]):
            moment = sums.moment[t, j]
            if t == k:
                gain = group.weights[position] * group.points[position, j]
                moment += gain
                square += gain * group.points[position, j]
            pull = share * group.nu[t, j]
            m = best_coordinate(mass, moment, pull, group.lower[t, j], group.upper[t, j])
            stack.center[t, j] = m
            total += (mass * m - 2.0 * moment + pull) * m
        total += square
        stack.mass_after[t] = mass
    return total


@njit(cache=True, nogil=True)
def _additions(first, end, group, stack, enough):
    """What the samples ``first .. end - 1`` add at least to the clusters in ``stack``.

    Ends early once ``enough`` is reached; the sum so far is a bound as well.
    """
    points, lower, upper, center = group.points, group.lower, group.upper, stack.center
    weights, allowed, nearest = group.weights, group.allowed, group.nearest
    blocked, ratio = stack.blocked, stack.ratio
    n_clusters = lower.shape[0]
    for t in range(n_clusters):
        mass = stack.mass_after[t]
        ratio[t] = mass / (mass + (stack.rest[first] - stack.rest[end]))
    total = 0.0
    for i in range(first, end):
        least = np.inf
        for t in range(n_clusters):
            if not allowed[i, t] or blocked[i, t] > 0 or nearest[i, t] >= least:
                continue
            added = nearest[i, t]
            if ratio[t] > 0.0:
                added = max(added, least_addition(points, i, center, t, ratio[t], lower, upper))
            least = min(least, added)
        total += weights[i] * least
        if total >= enough:
            break
    return total


@njit(cache=True, nogil=True)
def _child_bound(position, k, segment, group, sums, stack, ceiling):
    """The larger of both bounds; the second only if the first is below ``ceiling``."""
    first, total_share = position + 1, segment.total_share
    bound = _labelled_value(position, k, group, sums, stack, total_share - segment.share[first])
    bound += segment.tail_bound[first]
    if first == segment.end or bound >= ceiling:
        return bound
    for e in range(group.link_start[position], group.link_start[first]):
        stack.blocked[group.link[e], k] += 1
    value = _labelled_value(position, k, group, sums, stack, total_share)
    bound = max(bound, value + _additions(first, segment.end, group, stack, ceiling - value))
    for e in range(group.link_start[position], group.link_start[first]):
        stack.blocked[group.link[e], k] -= 1
    return bound


@njit(cache=True, nogil=True)
def _expand(position, segment, group, sums, stack, ceiling):
    """List the children at ``position``, cheapest bound first."""
    n_children = 0
    for k in range(group.lower.shape[0]):
        if not group.allowed[position, k] or stack.blocked[position, k] > 0:
            continue
        identical_cluster = group.identical_cluster[k]
        if identical_cluster >= 0 and sums.count[k] == 0 and sums.count[identical_cluster] == 0:
            continue
        bound = _child_bound(position, k, segment, group, sums, stack, ceiling)
        at = n_children
        while at > 0 and stack.child_bound[position, at - 1] > bound:
            stack.child_bound[position, at] = stack.child_bound[position, at - 1]
            stack.child_label[position, at] = stack.child_label[position, at - 1]
            at -= 1
        stack.child_bound[position, at] = bound
        stack.child_label[position, at] = k
        n_children += 1
    stack.n_children[position] = n_children
    stack.next_child[position] = 0


@njit(cache=True, nogil=True)
def search(
    segment,  # IN
    group,  # IN
    sums,  # IN/OUT restored on return
    stack,  # IN/OUT restored on return
    best,
    tolerance,
    node_limit,
    labels,  # OUT  (m,) positions start .. end - 1, if something better than ``best`` is found
):
    """Label the positions of the segment.

    ``best`` is the value of a known labelling, or infinite. Every branch that is not followed is
    recorded, so the lower bound is valid (up to rounding) for any tolerance and any limit; it is
    infinite only if there is no labelling at all.
    """
    start, end = segment.start, segment.end
    nodes, lowest = 0, np.inf
    position = start
    _expand(position, segment, group, sums, stack, best - tolerance)
    while position >= start:
        i = stack.next_child[position]
        if i == stack.n_children[position]:
            position -= 1
            if position >= start:
                undo_label(position, group, sums, stack)
            continue
        bound = stack.child_bound[position, i]
        if bound >= best - tolerance or nodes >= node_limit:
            # The children are sorted: the bound of this one covers the following.
            lowest = min(lowest, bound)
            stack.next_child[position] = stack.n_children[position]
            continue
        stack.next_child[position] = i + 1
        nodes += 1
        if position + 1 == end:
            best = bound
            for p in range(start, position):
                labels[p] = stack.label[p]
            labels[position] = stack.child_label[position, i]
            continue
        assign_label(position, stack.child_label[position, i], group, sums, stack)
        position += 1
        _expand(position, segment, group, sums, stack, best - tolerance)
    return SearchResult(best, min(best, lowest), nodes)
