"""State of the search for labels under any mix of constraints, and its elementary moves. Compiled.

The objective of labels is their cost plus the price of violated soft pairs. Costs are those of a
table, or sums of squares about the means, which move with the labels. Hard constraints are
cannot-links, cannot-link sets and sizes; for every group and cluster the number of cannot-links
into it is kept, so that a move is evaluated in constant time.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance


class LabelRules(NamedTuple):
    """Constraints of all kinds; arrays of absent kinds are empty."""

    link_indptr: np.ndarray  # (n + 1,) int64
    links: np.ndarray  # cannot-links, both directions
    soft_indptr: np.ndarray  # (n + 1,) int64
    soft_neighbors: np.ndarray  # both directions
    soft_bonus: np.ndarray  # for sharing a cluster
    set_indptr: np.ndarray  # (n_sets + 1,) int64
    set_members: np.ndarray
    group_indptr: np.ndarray  # (n + 1,) int64
    group_sets: np.ndarray
    demand: np.ndarray  # (n,), or (0,) without limits on sizes
    lower: np.ndarray  # (k,)
    upper: np.ndarray  # (k,)


class SearchData(NamedTuple):
    """What does not change during a search."""

    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    costs: np.ndarray  # (n, k) cost of every label; (0, 0): squared distances to the means
    rules: LabelRules


class SearchState(NamedTuple):
    """Labels and the sums that evaluate moves."""

    labels: np.ndarray  # (n,) int64
    clashes: np.ndarray  # (n, k) int32 cannot-links of the group into the cluster
    bonus: np.ndarray  # (n, k) bonuses of the group into the cluster; (0, 0) without soft pairs
    occupancy: np.ndarray  # (n_sets, k) int32 members of the set in the cluster
    totals: np.ndarray  # (k,) demand
    counts: np.ndarray  # (k,) int64 groups
    masses: np.ndarray  # (k,)
    sums: np.ndarray  # (k, d) weighted sums
    means: np.ndarray  # (k, d); that of an empty cluster stays


@njit(cache=True, nogil=True)
def fill_state(
    data,  # IN
    state,  # IN/OUT  from its labels
):
    """Compute all sums from the labels."""
    rules, labels = data.rules, state.labels
    n, k = labels.size, state.counts.size
    state.clashes[:] = 0
    state.bonus[:] = 0.0
    state.occupancy[:] = 0
    state.totals[:] = 0.0
    state.counts[:] = 0
    state.masses[:] = 0.0
    state.sums[:] = 0.0
    for i in range(n):
        a = labels[i]
        for e in range(rules.link_indptr[i], rules.link_indptr[i + 1]):
            state.clashes[rules.links[e], a] += 1
        for e in range(rules.soft_indptr[i], rules.soft_indptr[i + 1]):
            state.bonus[rules.soft_neighbors[e], a] += rules.soft_bonus[e]
        for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
            state.occupancy[rules.group_sets[e], a] += 1
        if rules.demand.size:
            state.totals[a] += rules.demand[i]
        state.counts[a] += 1
        if data.costs.size == 0:
            w = data.weights[i]
            state.masses[a] += w
            for j in range(data.points.shape[1]):
                state.sums[a, j] += w * data.points[i, j]
    for c in range(k):
        _update_mean(state, c)


@njit(cache=True, nogil=True)
def _update_mean(state, c):
    if state.counts[c] > 0 and state.masses[c] > 0.0:
        for j in range(state.means.shape[1]):
            state.means[c, j] = state.sums[c, j] / state.masses[c]


@njit(cache=True, nogil=True)
def relabel(
    data,  # IN
    state,  # IN/OUT
    i,  # IN   group
    b,  # IN   its new label
    with_means,  # IN  whether means follow
):
    """Move a group to another cluster."""
    rules = data.rules
    a = state.labels[i]
    state.labels[i] = b
    for e in range(rules.link_indptr[i], rules.link_indptr[i + 1]):
        other = rules.links[e]
        state.clashes[other, a] -= 1
        state.clashes[other, b] += 1
    for e in range(rules.soft_indptr[i], rules.soft_indptr[i + 1]):
        other = rules.soft_neighbors[e]
        state.bonus[other, a] -= rules.soft_bonus[e]
        state.bonus[other, b] += rules.soft_bonus[e]
    for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
        state.occupancy[rules.group_sets[e], a] -= 1
        state.occupancy[rules.group_sets[e], b] += 1
    if rules.demand.size:
        state.totals[a] -= rules.demand[i]
        state.totals[b] += rules.demand[i]
    state.counts[a] -= 1
    state.counts[b] += 1
    if data.costs.size == 0:
        w = data.weights[i]
        state.masses[a] -= w
        state.masses[b] += w
        for j in range(data.points.shape[1]):
            state.sums[a, j] -= w * data.points[i, j]
            state.sums[b, j] += w * data.points[i, j]
        if state.counts[a] == 0:  # no rounding errors in an empty cluster
            state.masses[a] = 0.0
            state.sums[a, :] = 0.0
        if with_means:
            _update_mean(state, a)
            _update_mean(state, b)


@njit(cache=True, nogil=True)
def conflicts(rules, state, i, b):
    """Number of violated cannot-links and shared sets of a group if it were in a cluster."""
    count = state.clashes[i, b]
    own = 1 if state.labels[i] == b else 0
    for e in range(rules.group_indptr[i], rules.group_indptr[i + 1]):
        count += state.occupancy[rules.group_sets[e], b] - own
    return count


@njit(cache=True, nogil=True)
def excess_change(rules, state, i, b):
    """Change of the violation of the limits on sizes if a group moves to another cluster."""
    if rules.demand.size == 0:
        return 0.0
    a, size = state.labels[i], rules.demand[i]
    before = _excess(rules, a, state.totals[a]) + _excess(rules, b, state.totals[b])
    after = _excess(rules, a, state.totals[a] - size) + _excess(rules, b, state.totals[b] + size)
    return after - before


@njit(cache=True, nogil=True)
def _excess(rules, c, total):
    """Amount by which a total violates the limits of a cluster."""
    return max(0.0, total - rules.upper[c]) + max(0.0, rules.lower[c] - total)


@njit(cache=True, nogil=True)
def total_excess(rules, state):
    """Sum of the violations of the limits on sizes."""
    total = 0.0
    if rules.demand.size:
        for c in range(state.totals.size):
            total += _excess(rules, c, state.totals[c])
    return total


@njit(cache=True, nogil=True)
def unary(data, state, i, c):
    """Cost of a label, about the present mean."""
    if data.costs.size:
        return data.costs[i, c]
    return data.weights[i] * squared_distance(data.points, i, state.means, c)


@njit(cache=True, nogil=True)
def leaving_gain(data, state, i):
    """Decrease of the cost when a group leaves its cluster, without its soft pairs."""
    a = state.labels[i]
    if data.costs.size:
        return data.costs[i, a]
    w, m = data.weights[i], state.masses[a]
    if state.counts[a] < 2 or m <= w:
        return 0.0
    return w * m / (m - w) * squared_distance(data.points, i, state.means, a)


@njit(cache=True, nogil=True)
def entering_cost(data, state, i, b):
    """Increase of the cost when a group enters another cluster, without its soft pairs."""
    if data.costs.size:
        return data.costs[i, b]
    if state.counts[b] == 0:
        return 0.0
    w, m = data.weights[i], state.masses[b]
    return w * m / (m + w) * squared_distance(data.points, i, state.means, b)


@njit(cache=True, nogil=True)
def move_gain(data, state, i, b):
    """Decrease of the objective when a group moves to another cluster."""
    gain = leaving_gain(data, state, i) - entering_cost(data, state, i, b)
    if state.bonus.size:
        gain += state.bonus[i, b] - state.bonus[i, state.labels[i]]
    return gain


@njit(cache=True, nogil=True)
def next_random(generator):
    """Next 64 random bits (xorshift64*); ``generator`` is one uint64, not 0."""
    x = generator[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    generator[0] = x
    return x * np.uint64(2685821657736338717)


@njit(cache=True, nogil=True)
def uniform(generator):
    """Random number in [0, 1)."""
    return (next_random(generator) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def below(generator, count):
    """Random whole number below ``count``."""
    return min(count - 1, int(uniform(generator) * count))
