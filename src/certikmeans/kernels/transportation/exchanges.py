"""Moves and swaps of groups between clusters with limited sizes, with moving centres. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.lloyd.iteration import squared_distances

BLOCK = 512  # groups whose distances are computed together


class SizedPoints(NamedTuple):
    """Points, their weights and demands, and the limits of the clusters."""

    points: np.ndarray  # (n, d)
    columns: np.ndarray  # (d, n) the same
    weights: np.ndarray  # (n,)
    demand: np.ndarray  # (n,)
    limits: np.ndarray  # (2, n_clusters) lower and upper


class ClusterState(NamedTuple):
    """Labels and the sums that evaluate moves."""

    labels: np.ndarray  # (n,) int64
    means: np.ndarray  # (n_clusters, d)
    masses: np.ndarray  # (n_clusters,)
    totals: np.ndarray  # (n_clusters,) demand


@njit(cache=True, nogil=True)
def fill_clusters(data, state):
    """Compute means and totals from the labels; an empty cluster keeps its mean."""
    n_clusters, d = state.means.shape
    sums = np.zeros((n_clusters, d))
    state.masses[:] = 0.0
    state.totals[:] = 0.0
    for s in range(state.labels.size):
        k, w = state.labels[s], data.weights[s]
        for j in range(d):
            sums[k, j] += w * data.points[s, j]
        state.masses[k] += w
        state.totals[k] += data.demand[s]
    for k in range(n_clusters):
        if state.masses[k] > 0.0:
            for j in range(d):
                state.means[k, j] = sums[k, j] / state.masses[k]


@njit(cache=True, nogil=True)
def fill_costs(data, means, costs):
    """Weighted squared distances of all groups to all centres."""
    n, n_clusters = costs.shape
    distances = np.empty(min(BLOCK, n))
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        for k in range(n_clusters):
            squared_distances(data.columns, start, means[k], distances[:size])
            for i in range(size):
                costs[start + i, k] = data.weights[start + i] * distances[i]


@njit(cache=True, nogil=True)
def _change_of_cluster(data, state, k, leaving, entering):
    """Change of the cost of a cluster when a group leaves and another enters; -1 for none.

    The change about the old mean, less what the new mean saves. About the mean the sum of the
    members is 0, so that of the new ones is that of what entered less what left.
    """
    d = state.means.shape[1]
    w_in = data.weights[entering] if entering >= 0 else 0.0
    w_out = data.weights[leaving] if leaving >= 0 else 0.0
    mass = state.masses[k] + w_in - w_out
    change, shift = 0.0, 0.0
    for j in range(d):
        here = 0.0
        if entering >= 0:
            diff = data.points[entering, j] - state.means[k, j]
            here += w_in * diff
            change += w_in * diff * diff
        if leaving >= 0:
            diff = data.points[leaving, j] - state.means[k, j]
            here -= w_out * diff
            change -= w_out * diff * diff
        shift += here * here
    if mass <= 1e-12 * (w_in + w_out):  # the cluster becomes empty
        return change if leaving >= 0 else 0.0
    return change - shift / mass


@njit(cache=True, nogil=True)
def _apply(data, state, s, target):
    """Move a group and update the means."""
    k, w = state.labels[s], data.weights[s]
    for cluster, sign in ((k, -1.0), (target, 1.0)):
        before = state.masses[cluster]
        mass = before + sign * w
        if mass > 1e-12 * w:
            for j in range(state.means.shape[1]):
                diff = data.points[s, j] - state.means[cluster, j]
                state.means[cluster, j] += sign * w / mass * diff
        state.masses[cluster] = mass if mass > 1e-12 * w else 0.0
        state.totals[cluster] += sign * data.demand[s]
    state.labels[s] = target


@njit(cache=True, nogil=True)
def _fits(data, state, k, change):
    """Whether a cluster may change its total."""
    total = state.totals[k] + change
    return change == 0.0 or data.limits[0, k] <= total <= data.limits[1, k]


@njit(cache=True, nogil=True)
def move_groups(data, costs, min_gain, state):
    """Move single groups while that lowers the cost and keeps the limits; returns how many.

    ``costs`` are about centres nearby: only clusters that they allow for are evaluated exactly.
    """
    n, n_clusters = costs.shape
    moves = 0
    for s in range(n):
        i, a, w = state.labels[s], data.demand[s], data.weights[s]
        if not _fits(data, state, i, -a):
            continue
        # At most what leaving gains, with room for the shift of the means in this pass.
        rest = max(state.masses[i] - w, 1e-12 * w)
        least = 2.0 * costs[s, i] * state.masses[i] / rest
        leaving = np.inf
        for j in range(n_clusters):
            if j == i or costs[s, j] * state.masses[j] > least * (state.masses[j] + w):
                continue
            if not _fits(data, state, j, a):
                continue
            if leaving == np.inf:
                leaving = _change_of_cluster(data, state, i, s, -1)
            if leaving + _change_of_cluster(data, state, j, -1, s) < -min_gain:
                _apply(data, state, s, j)
                moves += 1
                break
    return moves


@njit(cache=True, nogil=True)
def _collect(costs, labels, keys, members, counts):
    """For all pairs of clusters, the members that would move most cheaply, in ascending order."""
    n, n_clusters = costs.shape
    width = keys.shape[2]
    counts[:] = 0
    for s in range(n):
        i = labels[s]
        for j in range(n_clusters):
            if j == i:
                continue
            key, place = costs[s, j] - costs[s, i], counts[i, j]
            if place == width:
                if key >= keys[i, j, width - 1]:
                    continue
                place -= 1
            else:
                counts[i, j] += 1
            while place > 0 and keys[i, j, place - 1] > key:
                keys[i, j, place] = keys[i, j, place - 1]
                members[i, j, place] = members[i, j, place - 1]
                place -= 1
            keys[i, j, place], members[i, j, place] = key, s


@njit(cache=True, nogil=True)
def swap_groups(data, costs, min_gain, width, state):
    """Swap groups of two clusters while that lowers the cost and keeps the limits.

    For every pair of clusters the ``width`` members that would move most cheaply are tried.
    Returns the number of swaps.
    """
    n_clusters = costs.shape[1]
    keys = np.empty((n_clusters, n_clusters, width))
    members = np.empty((n_clusters, n_clusters, width), dtype=np.int64)
    counts = np.empty((n_clusters, n_clusters), dtype=np.int64)
    _collect(costs, state.labels, keys, members, counts)
    swaps = 0
    for i in range(n_clusters):
        for j in range(i):
            for p in range(counts[i, j]):
                s = members[i, j, p]
                for q in range(counts[j, i]):
                    t = members[j, i, q]
                    if state.labels[s] != i:
                        break
                    if state.labels[t] != j:
                        continue
                    change = data.demand[t] - data.demand[s]
                    if not (_fits(data, state, i, change) and _fits(data, state, j, -change)):
                        continue
                    gain = _change_of_cluster(data, state, i, s, t)
                    gain += _change_of_cluster(data, state, j, t, s)
                    if gain < -min_gain:
                        _apply(data, state, s, j)
                        _apply(data, state, t, i)
                        swaps += 1
    return swaps
