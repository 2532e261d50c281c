"""Local search by Kempe chains: moves that Lloyd iterations cannot make. Compiled.

Lloyd moves all groups at once for fixed centres; a move here changes the centres with the group.
Moving a group from cluster ``a`` to ``b`` may violate a cannot-link to a group in ``b``, which
then has to move to ``a``, and so on: the Kempe chain of the group swaps sides. Without a conflict
the chain is the group alone, and the move is Hartigan's. Only two clusters change, and their sums
of squares are ``sum w |x|^2 - |s|^2 / m`` with ``m`` the mass and ``s`` the weighted sum: so a move
is evaluated from two masses and two sums.

Two searches share the chains: `improve_by_chains` tries all clusters and takes the first move that
gains; `improve_by_neighborhood_moves` tries nearby clusters only and takes the best move, for many
clusters.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance
from certikmeans.kernels.kempe_chains import collect_chain, swap_chain


class ClusterSums(NamedTuple):
    """Sufficient statistics of the clusters for the cost of a move."""

    counts: np.ndarray  # (k,) int64 groups
    masses: np.ndarray  # (k,)
    sums: np.ndarray  # (k, d) weighted sums


class ChainLimits(NamedTuple):
    """Which moves are considered."""

    min_gain: float  # smaller gains are attributed to rounding
    max_length: int  # longest chain considered
    max_passes: int  # sweeps over all groups


class ChainScratch(NamedTuple):
    """Scratch arrays of a search."""

    mark: np.ndarray  # (n,) int64, all -1
    chain: np.ndarray  # (max_length,) int64
    shift: np.ndarray  # (d,) weighted sum that leaves the first cluster
    best_chain: np.ndarray  # (max_length,) int64


@njit(cache=True, nogil=True)
def _new_scratch(n, d, max_length):
    return ChainScratch(
        np.full(n, -1, dtype=np.int64),
        np.empty(max_length, dtype=np.int64),
        np.empty(d),
        np.empty(max_length, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _sum_clusters(points, weights, labels, clusters):
    """Compute the statistics of the clusters of ``labels``."""
    clusters.counts[:] = 0
    clusters.masses[:] = 0.0
    clusters.sums[:] = 0.0
    for i in range(labels.size):
        clusters.counts[labels[i]] += 1
        clusters.masses[labels[i]] += weights[i]
        for j in range(points.shape[1]):
            clusters.sums[labels[i], j] += weights[i] * points[i, j]


@njit(cache=True, nogil=True)
def _update_mean(clusters, k, means):
    """Set the mean of a cluster from its sums; that of an empty cluster stays."""
    for j in range(means.shape[1] if clusters.masses[k] > 0.0 else 0):
        means[k, j] = clusters.sums[k, j] / clusters.masses[k]


@njit(cache=True, nogil=True)
def _sum_and_average(points, weights, labels, clusters, means):
    _sum_clusters(points, weights, labels, clusters)
    for k in range(means.shape[0]):
        _update_mean(clusters, k, means)


@njit(cache=True, nogil=True)
def _chain_shift(points, weights, labels, chain, length, shift):
    """Mass and number of groups that leave the first group's cluster if the chain swaps sides.

    Their weighted sum goes into ``shift``.
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


@njit(cache=True, nogil=True)
def _gain(clusters, a, b, mass_shift, sum_shift):
    """Decrease in cost when ``mass_shift`` and ``sum_shift`` go from ``a`` to ``b``.

    Both clusters hold groups after the move, and ``a`` before it. A mass of 0 is a rounding error
    then (weights far apart absorb each other in the updates): the move is not evaluated.
    """
    masses, sums = clusters.masses, clusters.sums
    mass_a, mass_b = masses[a] - mass_shift, masses[b] + mass_shift
    if masses[a] <= 0.0 or mass_a <= 0.0 or mass_b <= 0.0:
        return -np.inf
    before_a, before_b, after_a, after_b = 0.0, 0.0, 0.0, 0.0
    for j in range(sums.shape[1]):
        before_a += sums[a, j] ** 2
        before_b += sums[b, j] ** 2
        after_a += (sums[a, j] - sum_shift[j]) ** 2
        after_b += (sums[b, j] + sum_shift[j]) ** 2
    value = -before_a / masses[a]
    if masses[b] > 0.0:
        value -= before_b / masses[b]
    value += after_a / mass_a
    value += after_b / mass_b
    return value


@njit(cache=True, nogil=True)
def _may_leave(points, w, i, means, masses, a, min_gain):
    """Whether a group without cannot-links may gain by moving, up to rounding.

    Alone it gains ``w (m_a |x - c_a|^2 / (m_a - w) - m_b |x - c_b|^2 / (m_b + w))``. This rejects
    nearly all groups, much faster than evaluating their moves from the sums.
    """
    if masses[a] <= w:
        return True
    own = squared_distance(points, i, means, a) * (w * masses[a] / (masses[a] - w))
    for b in range(masses.size):
        if b == a:
            continue
        if masses[b] <= 0.0:
            return True
        other = squared_distance(points, i, means, b)
        if own - w * masses[b] / (masses[b] + w) * other > 0.5 * min_gain:
            return True
    return False


@njit(cache=True, nogil=True)
def improve_by_chains(
    points,  # IN   (n, d) float64, centred
    weights,  # IN   (n,) float64
    links,  # IN
    limits,  # IN
    clusters,  # OUT  of the final labelling
    labels,  # IN/OUT (n,) int64, feasible before and after
):
    """Apply improving chain moves, first improvement in row order. Returns their number."""
    n, d = points.shape
    counts, masses, sums = clusters.counts, clusters.masses, clusters.sums
    n_clusters = masses.size
    means = np.zeros((n_clusters, d))
    _sum_and_average(points, weights, labels, clusters, means)
    mark, chain, shift, _ = _new_scratch(n, d, limits.max_length)
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
            length = collect_chain(links.indptr, links.neighbors, labels, i, b, stamp, mark, chain)
            if length == 0:
                continue
            mass, count = _chain_shift(points, weights, labels, chain, length, shift)
            if counts[a] == count or counts[b] == -count:
                continue  # emptying a cluster never lowers the cost
            if _gain(clusters, a, b, mass, shift) <= limits.min_gain:
                continue
            swap_chain(labels, chain, length, b)
            counts[a] -= count
            counts[b] += count
            masses[a] -= mass
            masses[b] += mass
            for j in range(d):
                sums[a, j] -= shift[j]
                sums[b, j] += shift[j]
            _update_mean(clusters, a, means)
            _update_mean(clusters, b, means)
            moves += 1
            last_move = visited
            a = b
    return moves


# Moves between neighbouring clusters only, at a cost that hardly grows with their number: a chain
# is followed only where its first group would gain by itself. Some group of an improving chain
# does, or nearly: for fixed centres the gain of a chain is the sum of those of its groups.


@njit(cache=True, nogil=True)
def _chain_gain(points, weights, clusters, labels, b, length, scratch):
    """Decrease in cost if the chain swaps sides; -inf if that empties a cluster.

    Sums term by term, unlike `_gain`: the best of several moves is chosen by these values, and
    another order of summation would break ties differently.
    """
    masses, sums, counts = clusters.masses, clusters.sums, clusters.counts
    chain, shift = scratch.chain, scratch.shift
    a = labels[chain[0]]
    mass, count = _chain_shift(points, weights, labels, chain, length, shift)
    mass_a, mass_b = masses[a] - mass, masses[b] + mass
    if counts[a] == count or counts[b] == -count or mass_a <= 0.0 or mass_b <= 0.0:
        return -np.inf
    before, after = 0.0, 0.0
    for j in range(shift.size):
        before += sums[a, j] ** 2 / masses[a] + sums[b, j] ** 2 / masses[b]
        after += (sums[a, j] - shift[j]) ** 2 / mass_a + (sums[b, j] + shift[j]) ** 2 / mass_b
    return after - before


@njit(cache=True, nogil=True)
def _apply_chain(points, weights, clusters, labels, b, length, chain, means):
    """Swap the sides of a chain; sums are updated group by group."""
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
def improve_by_neighborhood_moves(
    points,  # IN   (n, d) float64, centred
    weights,  # IN   (n,) float64
    links,  # IN
    limits,  # IN
    neighbor_clusters,  # IN   (k, .) int64: clusters that groups of a cluster may move to
    clusters,  # OUT  of the final labelling
    means,  # IN/OUT (k, d): of the final labelling; that of an empty cluster stays
    labels,  # IN/OUT (n,) int64, feasible before and after
):
    """Apply the best improving move of each group until none is left. Returns their number."""
    n, d = points.shape
    masses, counts = clusters.masses, clusters.counts
    _sum_and_average(points, weights, labels, clusters, means)
    scratch = _new_scratch(n, d, limits.max_length)
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
                length = collect_chain(
                    links.indptr, links.neighbors, labels, i, b, stamp, scratch.mark, scratch.chain
                )
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
            _apply_chain(
                points, weights, clusters, labels, best, best_length, scratch.best_chain, means
            )
            moves += 1
            last_move = visited
    return moves
