"""Depth-first branch and bound over the labels of the samples of one group. Compiled.

Samples are labelled in a fixed order, places ``start .. end - 1``. A node has labels up to a place;
two lower bounds on all its completions are used, the larger one counts.

*Additions.* The value of the clusters so far has its minimum over the boxes at ``c``, and grows at
least by ``W_k |m - c_k|^2`` from there (a strongly convex function over a convex set). Shared out
among the samples without a label in proportion to their weights, of total ``U``, a sample put into
cluster ``k`` adds at least ``min over m of w (W_k / U) |m - c_k|^2 + w |x - m|^2``, and may choose
its cheapest cluster. `least_addition` has this in closed form with ``ratio = W_k / (W_k + U)``.

*Dolls.* ``doll[p]`` is a lower bound on the samples from place ``p`` on, taken alone with the share
``share[p]`` of the linear term (Russian doll search). The labelled samples keep the rest of the
share. Valid because one position of the centres serves both, and the minimum of a sum is not below
the sum of the minima. The shares follow the weights, so that both parts feel the same pull.
For the same reason a group can be cut into blocks of places: their bounds add up.
"""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.grouped.values import (
    add_member,
    best_coordinate,
    least_addition,
)


class Group(NamedTuple):
    """One group in search order, and the part's boxes. Read only."""

    points: np.ndarray  # (m, d)
    weights: np.ndarray  # (m,)
    link_start: np.ndarray  # (m + 1,)
    link: np.ndarray  # cannot-links, both directions
    viable: np.ndarray  # (m, K) bool
    nearest: np.ndarray  # (m, K) squared distance to the box, rounded down
    twin: np.ndarray  # (K,) previous cluster that cannot be told apart, or -1
    lower: np.ndarray  # (K, d)
    upper: np.ndarray  # (K, d)
    nu: np.ndarray  # (K, d)


class Trail(NamedTuple):
    """Scratch of the search, by depth."""

    label: np.ndarray  # (m,) int64
    blocked: np.ndarray  # (m, K) int64 how many labelled neighbours bar a cluster
    mass: np.ndarray  # (m,) what the changed cluster was before
    moment: np.ndarray  # (m, d)
    square: np.ndarray  # (m,)
    n_children: np.ndarray  # (m,) int64
    upcoming: np.ndarray  # (m,) int64
    child_bound: np.ndarray  # (m, K)
    child_label: np.ndarray  # (m, K) int64
    center: np.ndarray  # (K, d)
    rest: np.ndarray  # (m + 1,) weight from a place on
    mass_after: np.ndarray  # (K,)
    ratio: np.ndarray  # (K,)


class Stretch(NamedTuple):
    """The places to label, and what is known of their tails."""

    start: int
    end: int  # one past the last
    share: np.ndarray  # (m + 1,) share of the linear term that belongs to the tail from a place on
    doll: np.ndarray  # (m + 1,) lower bound on that tail, with its share
    whole: float  # share of the linear term of all of it


class Found(NamedTuple):
    """What a search has shown."""

    value: float  # of the best labelling known
    lower: float  # infinite only if there is no labelling at all
    nodes: int


@njit(cache=True, nogil=True)
def new_trail(group):
    """Scratch for `search`."""
    m, n_clusters = group.viable.shape
    d = group.points.shape[1]
    rest = np.zeros(m + 1)
    for i in range(m - 1, -1, -1):
        rest[i] = rest[i + 1] + group.weights[i]
    return Trail(
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
def put(place, k, group, sums, trail):
    """Give the sample at ``place`` label ``k``."""
    trail.label[place] = k
    trail.mass[place] = sums.mass[k]
    trail.moment[place] = sums.moment[k]
    trail.square[place] = sums.square[k]
    add_member(sums, k, group.points[place], group.weights[place])
    for e in range(group.link_start[place], group.link_start[place + 1]):
        trail.blocked[group.link[e], k] += 1


@njit(cache=True, nogil=True)
def take_back(place, group, sums, trail):
    """Undo `put`, bit for bit."""
    k = trail.label[place]
    sums.mass[k] = trail.mass[place]
    sums.moment[k] = trail.moment[place]
    sums.square[k] = trail.square[place]
    sums.count[k] -= 1
    trail.label[place] = -1
    for e in range(group.link_start[place], group.link_start[place + 1]):
        trail.blocked[group.link[e], k] -= 1


@njit(cache=True, nogil=True)
def _labelled_value(place, k, group, sums, trail, share):
    """Value of all clusters with ``place`` in ``k``; leaves centres in ``trail.center``."""
    total = 0.0
    for t in range(group.lower.shape[0]):
        mass, square = sums.mass[t], sums.square[t]
        if t == k:
            mass += group.weights[place]
        for j in range(group.points.shape[1]):
            moment = sums.moment[t, j]
            if t == k:
                gain = group.weights[place] * group.points[place, j]
                moment += gain
                square += gain * group.points[place, j]
            pull = share * group.nu[t, j]
            m = best_coordinate(mass, moment, pull, group.lower[t, j], group.upper[t, j])
            trail.center[t, j] = m
            total += (mass * m - 2.0 * moment + pull) * m
        total += square
        trail.mass_after[t] = mass
    return total


@njit(cache=True, nogil=True)
def _additions(first, end, group, trail, enough):
    """What the samples ``first .. end - 1`` add at least to the clusters in ``trail``.

    Ends early once ``enough`` is reached; the sum so far is a bound as well.
    """
    points, lower, upper, center = group.points, group.lower, group.upper, trail.center
    weights, viable, nearest = group.weights, group.viable, group.nearest
    blocked, ratio = trail.blocked, trail.ratio
    n_clusters = lower.shape[0]
    for t in range(n_clusters):
        mass = trail.mass_after[t]
        ratio[t] = mass / (mass + (trail.rest[first] - trail.rest[end]))
    total = 0.0
    for i in range(first, end):
        least = np.inf
        for t in range(n_clusters):
            if not viable[i, t] or blocked[i, t] > 0 or nearest[i, t] >= least:
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
def _child_bound(place, k, stretch, group, sums, trail, ceiling):
    """The larger of both bounds; the second only if the first is below ``ceiling``."""
    first, whole = place + 1, stretch.whole
    bound = _labelled_value(place, k, group, sums, trail, whole - stretch.share[first])
    bound += stretch.doll[first]
    if first == stretch.end or bound >= ceiling:
        return bound
    for e in range(group.link_start[place], group.link_start[first]):
        trail.blocked[group.link[e], k] += 1
    value = _labelled_value(place, k, group, sums, trail, whole)
    bound = max(bound, value + _additions(first, stretch.end, group, trail, ceiling - value))
    for e in range(group.link_start[place], group.link_start[first]):
        trail.blocked[group.link[e], k] -= 1
    return bound


@njit(cache=True, nogil=True)
def _expand(place, stretch, group, sums, trail, ceiling):
    """List the children at ``place``, cheapest bound first."""
    n_children = 0
    for k in range(group.lower.shape[0]):
        if not group.viable[place, k] or trail.blocked[place, k] > 0:
            continue
        twin = group.twin[k]
        if twin >= 0 and sums.count[k] == 0 and sums.count[twin] == 0:
            continue
        bound = _child_bound(place, k, stretch, group, sums, trail, ceiling)
        at = n_children
        while at > 0 and trail.child_bound[place, at - 1] > bound:
            trail.child_bound[place, at] = trail.child_bound[place, at - 1]
            trail.child_label[place, at] = trail.child_label[place, at - 1]
            at -= 1
        trail.child_bound[place, at] = bound
        trail.child_label[place, at] = k
        n_children += 1
    trail.n_children[place] = n_children
    trail.upcoming[place] = 0


@njit(cache=True, nogil=True)
def search(
    stretch,  # IN
    group,  # IN
    sums,  # INOUT restored on return
    trail,  # INOUT restored on return
    best,
    tolerance,
    node_limit,
    labels,  # OUT  (m,) places start .. end - 1, if something better than ``best`` is found
):
    """Label the places of the stretch.

    ``best`` is the value of a known labelling, or infinite. Every branch that is not followed is
    recorded, so the lower bound is valid (up to rounding) for any tolerance and any limit; it is
    infinite only if there is no labelling at all.
    """
    start, end = stretch.start, stretch.end
    nodes, lowest = 0, np.inf
    place = start
    _expand(place, stretch, group, sums, trail, best - tolerance)
    while place >= start:
        i = trail.upcoming[place]
        if i == trail.n_children[place]:
            place -= 1
            if place >= start:
                take_back(place, group, sums, trail)
            continue
        bound = trail.child_bound[place, i]
        if bound >= best - tolerance or nodes >= node_limit:
            # The children are sorted: those behind this one are covered by its bound.
            lowest = min(lowest, bound)
            trail.upcoming[place] = trail.n_children[place]
            continue
        trail.upcoming[place] = i + 1
        nodes += 1
        if place + 1 == end:
            best = bound
            for p in range(start, place):
                labels[p] = trail.label[p]
            labels[place] = trail.child_label[place, i]
            continue
        put(place, trail.child_label[place, i], group, sums, trail)
        place += 1
        _expand(place, stretch, group, sums, trail, best - tolerance)
    return Found(best, min(best, lowest), nodes)
