"""Chain moves between neighbouring clusters only, for many clusters. Compiled.

What `chain_moves` does, at a cost that hardly grows with the number of clusters: a group is
offered to the clusters that are nearest to its own, and a chain is followed only where its first
group would gain by itself. Some group of a chain does, or nearly: at fixed centres the gain of a
chain is the sum of those of its groups. What is missed at the border is left to `chain_moves`.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance
from certikmeans.kernels.lloyd.kempe_moves import chain_shift, collect_chain, sum_clusters


class MoveScratch(NamedTuple):
    """Scratch of the moves."""

    mark: np.ndarray  # (n,) int64, all -1
    chain: np.ndarray  # (longest,) int64
    shift: np.ndarray  # (d,)
    best_chain: np.ndarray  # (longest,) int64


@njit(cache=True, nogil=True)
def _update_mean(clusters, k, means):
    for j in range(means.shape[1]):
        means[k, j] = clusters.sums[k, j] / clusters.masses[k]


@njit(cache=True, nogil=True)
def _chain_gain(points, weights, clusters, labels, b, length, scratch):
    """Decrease in cost if the chain changes sides; -inf if that empties a cluster."""
    masses, sums, counts = clusters.masses, clusters.sums, clusters.counts
    chain, shift = scratch.chain, scratch.shift
    a = labels[chain[0]]
    mass, count = chain_shift(points, weights, labels, chain, length, shift)
    mass_a, mass_b = masses[a] - mass, masses[b] + mass
    if counts[a] == count or counts[b] == -count or mass_a <= 0.0 or mass_b <= 0.0:
        return -np.inf
    before, after = 0.0, 0.0
    for j in range(shift.size):
        before += sums[a, j] ** 2 / masses[a] + sums[b, j] ** 2 / masses[b]
        after += (sums[a, j] - shift[j]) ** 2 / mass_a + (sums[b, j] + shift[j]) ** 2 / mass_b
    return after - before


@njit(cache=True, nogil=True)
def _apply(points, weights, clusters, labels, b, length, chain, means):
    """Let the chain change sides."""
    a = labels[chain[0]]
    for c in range(length):
        vertex = chain[c]
        source = labels[vertex]
        target = b if source == a else a
        labels[vertex] = target
        w = weights[vertex]
        clusters.counts[source] -= 1
        clusters.counts[target] += 1
        clusters.masses[source] -= w
        clusters.masses[target] += w
        for j in range(points.shape[1]):
            clusters.sums[source, j] -= w * points[vertex, j]
            clusters.sums[target, j] += w * points[vertex, j]
    _update_mean(clusters, a, means)
    _update_mean(clusters, b, means)


@njit(cache=True, nogil=True)
def _sums_and_means(points, weights, labels, clusters, means):
    sum_clusters(points, weights, labels, clusters)
    for k in range(means.shape[0]):
        if clusters.masses[k] > 0.0:
            _update_mean(clusters, k, means)


@njit(cache=True, nogil=True)
def sum_of_squares(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    means,  # IN   (k, d) float64
    labels,  # IN   (n,) int64
    costs,  # OUT  (k,) float64
):
    """Cost of every cluster; returns their sum."""
    costs[:] = 0.0
    total = 0.0
    for i in range(labels.size):
        away = weights[i] * squared_distance(points, i, means, labels[i])
        costs[labels[i]] += away
        total += away
    return total


@njit(cache=True, nogil=True)
def improve_by_neighborhood_moves(
    points,  # IN   (n, d) float64, centred
    weights,  # IN   (n,) float64
    links,  # IN
    limits,  # IN   as in `chain_moves`
    neighbor_clusters,  # IN   (k, .) int64: clusters that the groups of a cluster are offered to
    clusters,  # OUT  of the final labelling
    means,  # IN/OUT (k, d): of the final labelling; that of an empty cluster stays
    labels,  # INOUT (n,) int64, proper before and after
):
    """Move every group to the best of the near clusters, until no move gains. Returns moves."""
    n, d = points.shape
    masses, counts = clusters.masses, clusters.counts
    _sums_and_means(points, weights, labels, clusters, means)
    scratch = MoveScratch(
        np.full(n, -1, dtype=np.int64),
        np.empty(limits.max_length, dtype=np.int64),
        np.empty(d),
        np.empty(limits.max_length, dtype=np.int64),
    )
    stamp, moves, last_move = 0, 0, 0
    for visited in range(limits.max_passes * n):
        if visited - last_move > n:
            break
        i = visited % n
        a, w = labels[i], weights[i]
        if counts[a] < 2 or masses[a] <= w:
            continue
        leave = w * masses[a] / (masses[a] - w) * squared_distance(points, i, means, a)
        best_gain, best, best_length = limits.min_gain, -1, 0
        free = links.indptr[i] == links.indptr[i + 1]
        for e in range(neighbor_clusters.shape[1]):
            b = neighbor_clusters[a, e]
            if b == a or masses[b] <= 0.0:
                continue
            gain = leave - w * masses[b] / (masses[b] + w) * squared_distance(points, i, means, b)
            if gain <= limits.min_gain:
                continue
            length = 1
            if not free:
                stamp += 1
                length = collect_chain(i, b, links, labels, stamp, scratch.mark, scratch.chain)
                if length == 0:
                    continue
                if length > 1:
                    gain = _chain_gain(points, weights, clusters, labels, b, length, scratch)
            if gain > best_gain:
                best_gain, best, best_length = gain, b, length
                if length > 1:
                    scratch.best_chain[:length] = scratch.chain[:length]
                else:
                    scratch.best_chain[0] = i
        if best >= 0:
            _apply(points, weights, clusters, labels, best, best_length, scratch.best_chain, means)
            moves += 1
            last_move = visited
    return moves


@njit(cache=True, nogil=True)
def join_regions(
    shared,  # IN   (k, k) float64: weight that cluster a of the one and b of the other share
    least,  # IN   part of the smaller one that makes them one region
    region,  # OUT  (2 k,) int64: number of the region of every cluster, the first labelling's first
):
    """Number the regions in which two labellings differ or agree. Returns how many there are."""
    k = shared.shape[0]
    first, second = np.zeros(k), np.zeros(k)
    for a in range(k):
        for b in range(k):
            first[a] += shared[a, b]
            second[b] += shared[a, b]
    region[:] = -1
    stack = np.empty(2 * k, dtype=np.int64)
    count = 0
    for start in range(2 * k):
        if region[start] >= 0:
            continue
        region[start] = count
        stack[0] = start
        top = 1
        while top > 0:
            top -= 1
            v = stack[top]
            for u in range(k):
                a, b, other = (v, u, k + u) if v < k else (u, v - k, u)
                enough = least * min(first[a], second[b])
                if region[other] < 0 and 0.0 < shared[a, b] >= enough:
                    region[other] = count
                    stack[top] = other
                    top += 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def label_greedily(
    points,  # IN   (n, d) float64
    links,  # IN
    n_linked,  # IN   groups from here on have no links
    centers,  # IN   (k, d) float64
    labels,  # OUT  (n,) int64, proper unless False is returned
):
    """Give every group the nearest centre that no neighbour before it has. False: none is left."""
    indptr, neighbors = links.indptr, links.neighbors
    taken = np.full(centers.shape[0], -1, dtype=np.int64)
    labels[:] = -1
    for i in range(points.shape[0]):
        if i < n_linked:
            for e in range(indptr[i], indptr[i + 1]):
                if labels[neighbors[e]] >= 0:
                    taken[labels[neighbors[e]]] = i
        least, label = np.inf, -1
        for k in range(centers.shape[0]):
            away = squared_distance(points, i, centers, k)
            if away < least and taken[k] != i:
                least, label = away, k
        if label < 0:
            return False
        labels[i] = label
    return True
