"""Local search by Kempe chains. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit


class ClusterSums(NamedTuple):
    """All that the cost of a move depends on."""

    counts: np.ndarray  # (k,) int64 groups
    masses: np.ndarray  # (k,)
    sums: np.ndarray  # (k, d) weighted sums


class ChainLimits(NamedTuple):
    """Which moves are considered."""

    min_gain: float  # moves that gain less are taken for rounding
    max_length: int  # chain considered
    max_passes: int  # sweeps over all groups


@njit(cache=True, nogil=True)
def collect_chain(start, b, links, labels, stamp, mark, chain):
    """Collect the chain of ``start`` towards ``b``. Returns its length, 0 if ``chain`` is short."""
    indptr, neighbors, a = links.indptr, links.neighbors, labels[start]
    chain[0] = start
    mark[start] = stamp
    length = 1
    head = 0
    while head < length:
        vertex = chain[head]
        head += 1
        other_side = b if labels[vertex] == a else a
        for e in range(indptr[vertex], indptr[vertex + 1]):
            other = neighbors[e]
            if labels[other] == other_side and mark[other] != stamp:
                if length == chain.size:
                    return 0
                mark[other] = stamp
                chain[length] = other
                length += 1
    return length


@njit(cache=True, nogil=True)
def sum_clusters(points, weights, labels, clusters):
    """Fill in the clusters of ``labels``."""
    clusters.counts[:] = 0
    clusters.masses[:] = 0.0
    clusters.sums[:] = 0.0
    for i in range(labels.size):
        clusters.counts[labels[i]] += 1
        clusters.masses[labels[i]] += weights[i]
        for j in range(points.shape[1]):
            clusters.sums[labels[i], j] += weights[i] * points[i, j]


@njit(cache=True, nogil=True)
def chain_shift(points, weights, labels, chain, length, shift):
    """What leaves the cluster of the first group if the chain changes sides.

    Returns mass and number of groups; the weighted sum goes into ``shift``.
    """
    a = labels[chain[0]]
    mass, count = 0.0, 0
    shift[:] = 0.0
    for c in range(length):
        vertex = chain[c]
        sign = 1.0 if labels[vertex] == a else -1.0
        count += 1 if labels[vertex] == a else -1
        mass += sign * weights[vertex]
        for j in range(shift.size):
            shift[j] += sign * weights[vertex] * points[vertex, j]
    return mass, count


# Local search by Kempe chains: moves that no assignment to fixed centres can see. Compiled.
#
# Moving a group from cluster ``a`` to ``b`` may collide with a cannot-link neighbour in ``b``,
# which then has to move to ``a``, and so on: the connected set of ``a``- and ``b``-labelled
# groups around the first one swaps sides. Without a collision the chain is the group alone,
# and the move is Hartigan's. Chains keep a proper labelling proper, and moving whole chains
# changes only two clusters, whose sums of squares are ``sum w |x|^2 - |s|^2 / m`` with
# ``m`` the mass and ``s`` the weighted sum: so a move is judged from two masses and two sums.


@njit(cache=True, nogil=True)
def _gain(clusters, a, b, mass_shift, sum_shift):
    """Decrease in cost when ``mass_shift`` and ``sum_shift`` go from ``a`` to ``b``."""
    masses, sums = clusters.masses, clusters.sums
    before_a, before_b, after_a, after_b = 0.0, 0.0, 0.0, 0.0
    for j in range(sums.shape[1]):
        before_a += sums[a, j] ** 2
        before_b += sums[b, j] ** 2
        after_a += (sums[a, j] - sum_shift[j]) ** 2
        after_b += (sums[b, j] + sum_shift[j]) ** 2
    mass_a, mass_b = masses[a] - mass_shift, masses[b] + mass_shift
    value = -before_a / masses[a]
    if masses[b] > 0.0:
        value -= before_b / masses[b]
    if mass_a > 0.0:
        value += after_a / mass_a
    if mass_b > 0.0:
        value += after_b / mass_b
    return value


@njit(cache=True, nogil=True)
def _may_leave(points, w, i, means, masses, a, min_gain):
    """Whether a group without cannot-links may gain by moving, rounding left aside.

    Alone it gains ``w (m_a |x - c_a|^2 / (m_a - w) - m_b |x - c_b|^2 / (m_b + w))``. Nearly all
    groups are turned down here, for a small part of what the sums of the moves would take.
    """
    if masses[a] <= w:
        return True
    own = 0.0
    for j in range(points.shape[1]):
        away = points[i, j] - means[a, j]
        own += away * away
    own *= w * masses[a] / (masses[a] - w)
    for b in range(masses.size):
        if b == a:
            continue
        if masses[b] <= 0.0:
            return True
        other = 0.0
        for j in range(points.shape[1]):
            away = points[i, j] - means[b, j]
            other += away * away
        if own - w * masses[b] / (masses[b] + w) * other > 0.5 * min_gain:
            return True
    return False


@njit(cache=True, nogil=True)
def _update_mean(clusters, k, means):
    """Put the mean of a cluster where its sums say; an empty one has none."""
    for j in range(means.shape[1] if clusters.masses[k] > 0.0 else 0):
        means[k, j] = clusters.sums[k, j] / clusters.masses[k]


@njit(cache=True, nogil=True)
def improve_by_chains(
    points,  # IN   (n, d) float64, centred
    weights,  # IN   (n,) float64
    links,  # IN
    limits,  # IN
    clusters,  # OUT  of the final labelling
    labels,  # INOUT (n,) int64, proper before and after
):
    """Apply improving chain moves, first improvement in row order. Returns their number."""
    n, d = points.shape
    counts, masses, sums = clusters.counts, clusters.masses, clusters.sums
    n_clusters = masses.size
    sum_clusters(points, weights, labels, clusters)
    means = np.zeros((n_clusters, d))
    for k in range(n_clusters):
        _update_mean(clusters, k, means)
    mark = np.full(n, -1, dtype=np.int64)
    chain = np.empty(limits.max_length, dtype=np.int64)
    sum_shift = np.empty(d)
    stamp = 0
    moves = 0
    last_move, visited = 0, 0
    for step in range(limits.max_passes * n):
        i = step % n
        visited += 1
        if visited - last_move > n:
            break
        a = labels[i]
        alone = links.indptr[i] == links.indptr[i + 1]
        if alone and not _may_leave(points, weights[i], i, means, masses, a, limits.min_gain):
            continue
        for b in range(n_clusters):
            if b == a:
                continue
            stamp += 1
            length = collect_chain(i, b, links, labels, stamp, mark, chain)
            if length == 0:
                continue
            mass_shift, count_shift = chain_shift(points, weights, labels, chain, length, sum_shift)
            if counts[a] == count_shift or counts[b] == -count_shift:
                continue  # emptying a cluster never lowers the cost
            if _gain(clusters, a, b, mass_shift, sum_shift) <= limits.min_gain:
                continue
            for c in range(length):
                labels[chain[c]] = b if labels[chain[c]] == a else a
            counts[a] -= count_shift
            counts[b] += count_shift
            masses[a] -= mass_shift
            masses[b] += mass_shift
            for j in range(d):
                sums[a, j] -= sum_shift[j]
                sums[b, j] += sum_shift[j]
            _update_mean(clusters, a, means)
            _update_mean(clusters, b, means)
            moves += 1
            last_move = visited
            a = b
    return moves
