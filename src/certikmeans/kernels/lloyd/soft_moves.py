"""Moves of single groups under soft pairs and cannot-links, centres moving along. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def _fill_clusters(points, weights, labels, counts, masses, means):
    counts[:] = 0
    masses[:] = 0.0
    sums = np.zeros(means.shape)
    for v in range(len(points)):
        k = labels[v]
        counts[k] += 1
        masses[k] += weights[v]
        for j in range(points.shape[1]):
            sums[k, j] += weights[v] * points[v, j]
    for k in range(len(masses)):
        if masses[k] > 0.0:
            for j in range(points.shape[1]):
                means[k, j] = sums[k, j] / masses[k]


@njit(cache=True, nogil=True)
def _best_move(points, weights, v, earned, labels, masses, means):
    """Cluster to which a group moves with the largest gain, and the change of the objective."""
    own, w = labels[v], weights[v]
    best, best_change = own, np.inf
    away = 0.0
    for j in range(points.shape[1]):
        away += (points[v, j] - means[own, j]) ** 2
    removal = away * w * masses[own] / (masses[own] - w)
    for k in range(len(masses)):
        if k == own:
            continue
        insertion = 0.0
        if masses[k] > 0.0:
            for j in range(points.shape[1]):
                insertion += (points[v, j] - means[k, j]) ** 2
            insertion *= w * masses[k] / (masses[k] + w)
        change = insertion - removal - (earned[k] - earned[own])
        if change < best_change:
            best, best_change = k, change
    return best, best_change


@njit(cache=True, nogil=True)
def improve_by_soft_moves(
    points,  # IN  (n, d)
    weights,  # IN  (n,)
    graph,  # IN  PairGraph; a bonus of -inf is a cannot-link
    means,  # OUT  (n_clusters, d); a cluster that is empty keeps its centre
    labels,  # INOUT  feasible
    max_passes,  # IN
    min_gain,  # IN  smaller gains are rounding
):
    """Move groups until no move gains; returns the number of moves.

    The gain of a move is that of the sum of squares about moving centres (Hartigan and Wong) and
    of the penalties. The last group of a cluster stays.
    """
    n_clusters, d = means.shape
    counts = np.zeros(n_clusters, np.int64)
    masses = np.zeros(n_clusters)
    earned = np.zeros(n_clusters)  # bonuses with the members of every cluster
    total = 0
    for _ in range(max_passes):
        _fill_clusters(points, weights, labels, counts, masses, means)
        moves = 0
        for v in range(len(points)):
            own, w = labels[v], weights[v]
            if counts[own] == 1 or not masses[own] > w:
                continue
            first, last = graph.indptr[v], graph.indptr[v + 1]
            if first < last:
                earned[:] = 0.0
                for e in range(first, last):
                    earned[labels[graph.neighbors[e]]] += graph.bonus[e]
            k, change = _best_move(points, weights, v, earned, labels, masses, means)
            if first < last:
                earned[:] = 0.0
            if not change < -min_gain:
                continue
            for j in range(d):
                means[own, j] -= (points[v, j] - means[own, j]) * w / (masses[own] - w)
                means[k, j] += (points[v, j] - means[k, j]) * w / (masses[k] + w)
            masses[own] -= w
            masses[k] += w
            counts[own] -= 1
            counts[k] += 1
            labels[v] = k
            moves += 1
        total += moves
        if moves == 0:
            break
    _fill_clusters(points, weights, labels, counts, masses, means)
    return total
