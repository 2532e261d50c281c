"""Chains, and what the cost of moving one depends on: shared by both kinds of moves. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit


class Clusters(NamedTuple):
    """All that the cost of a move depends on."""

    counts: np.ndarray  # (k,) int64 groups
    masses: np.ndarray  # (k,)
    sums: np.ndarray  # (k, d) weighted sums


class ChainLimits(NamedTuple):
    """Which moves are considered."""

    least_gain: float  # moves that gain less are taken for rounding
    longest: int  # chain considered
    passes: int  # sweeps over all groups


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
def add_up(points, weights, labels, clusters):
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
