"""Squared distances, means of groups, and costs of labels with rounding bounds. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.rounding import EPS, UNDERFLOW


@njit(cache=True, nogil=True)
def squared_distance(
    points,  # IN  (n, d) float64
    i,  # IN  row of ``points``
    others,  # IN  (m, d) float64
    k,  # IN  row of ``others``
):
    """Squared distance between two rows."""
    total = 0.0
    for j in range(points.shape[1]):
        diff = points[i, j] - others[k, j]
        total += diff * diff
    return total


@njit(cache=True, nogil=True)
def squared_distance_to(
    points,  # IN  (n, d) float64
    i,  # IN  row of ``points``
    point,  # IN  (d,) float64
):
    """Squared distance from a row to one point."""
    total = 0.0
    for j in range(point.size):
        diff = points[i, j] - point[j]
        total += diff * diff
    return total


@njit(cache=True, nogil=True)
def cluster_costs(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    means,  # IN   (k, d) float64
    labels,  # IN   (n,) int64
    costs,  # OUT  (k,) float64
):
    """Cost of every cluster about given means, without a rounding bound. Returns their sum."""
    costs[:] = 0.0
    total = 0.0
    for i in range(labels.size):
        away = weights[i] * squared_distance(points, i, means, labels[i])
        costs[labels[i]] += away
        total += away
    return total


# Means of groups of points, and what their members cost about them. Compiled.


class GroupMeans(NamedTuple):
    """Every group as one weighted point."""

    means: np.ndarray  # (n_groups, d)
    masses: np.ndarray  # (n_groups,)
    sizes: np.ndarray  # (n_groups,) int64


@njit(cache=True, nogil=True)
def aggregate_groups(
    points,  # IN   (n, d)
    weights,  # IN   (n,)
    group_of,  # IN   (n,) int64
    groups,  # OUT  zeros before
):
    """Mass and mean of every group; a group of one member has exactly its point as mean.

    A group of weight 0 costs nothing; its mean is that with equal weights.
    """
    means, masses, sizes = groups
    for i in range(group_of.size):
        masses[group_of[i]] += weights[i]
        sizes[group_of[i]] += 1
    for i in range(group_of.size):
        g = group_of[i]
        counted = weights[i] if masses[g] > 0.0 else 1.0
        for j in range(points.shape[1]):
            means[g, j] += points[i, j] if sizes[g] == 1 else counted * points[i, j]
    for g in range(sizes.size):
        if sizes[g] > 1:
            for j in range(points.shape[1]):
                means[g, j] /= masses[g] if masses[g] > 0.0 else sizes[g]


@njit(cache=True, nogil=True)
def within_group_cost(
    points,  # IN   (n, d)
    weights,  # IN   (n,)
    group_of,  # IN   (n,) int64
    groups,  # IN
):
    """Sum of ``w_i |x_i - c|^2`` about the computed means, and at least that of ``|g|^2 / W``.

    ``g = sum w_i (x_i - c)`` of a group errs by ``(size + 4) u`` of the sum of its absolute terms.
    Both totals have terms that are not negative and are summed with compensation (Neumaier): they
    err by a few units in the last place, plus something of order ``(n u)^2``.
    """
    means, masses, sizes = groups
    d = points.shape[1]
    position = np.empty(sizes.size, dtype=np.int32)  # of the groups that have several members
    n_shared = 0
    for g in range(sizes.size):
        position[g] = n_shared
        n_shared += sizes[g] > 1
    moment = np.zeros((n_shared, 2 * d))
    total, compensation = 0.0, 0.0
    for i in range(group_of.size):
        g = group_of[i]
        if sizes[g] == 1:
            continue
        for j in range(d):
            diff = points[i, j] - means[g, j]
            weighted_diff = weights[i] * diff
            moment[position[g], j] += weighted_diff
            moment[position[g], d + j] += abs(weighted_diff)
            term = weighted_diff * diff
            new_total = total + term
            compensation += (
                (total - new_total) + term if total >= term else (term - new_total) + total
            )
            total = new_total
    drift, drift_compensation = 0.0, 0.0
    for g in range(sizes.size):
        if sizes[g] == 1:
            continue
        divisor = masses[g] if masses[g] > 0.0 else 1.0 * sizes[g]
        for j in range(d):
            most = abs(moment[position[g], j]) + (sizes[g] + 4) * EPS * moment[position[g], d + j]
            term = most * most / divisor
            new_total = drift + term
            drift_compensation += (
                (drift - new_total) + term if drift >= term else (term - new_total) + drift
            )
            drift = new_total
    return total + compensation, drift + drift_compensation


# Cost of a labelling, rounded up. Compiled; arrays in, numbers out.


@njit(cache=True, nogil=True)
def labels_cost(
    points,  # IN   (n_points, n_features) float64
    weights,  # IN   (n_points,) float64, > 0
    labels,  # IN   (n_points,) int64
    centers,  # OUT  (n_clusters, n_features): means; for empty clusters that of labels[0]
):
    """Cost of ``labels`` with every cluster at its exact mean, rounded up.

    With ``c`` the computed mean of a cluster, ``W`` its mass and ``g = sum w_i (x_i - c)``, the
    exact cost is ``sum w_i |x_i - c|^2 - |g|^2 / W``. The second term matters only where points
    are so far from zero that their mean is not a float; it is rounded down, the first one up.
    The terms of the first are not negative: a difference errs by EPS/2 in relative terms, its
    square and weight by 4 times that, the sum over features by n_features times, and the sum
    over points, being compensated, by 2 times plus something of order n EPS^2.
    """
    n_points, n_features = points.shape
    masses = np.zeros(centers.shape[0])
    sizes = np.zeros(centers.shape[0])
    for i in range(n_points):
        k = labels[i]
        if sizes[k] == 0.0:
            for j in range(n_features):  # element by element: slices take long to compile
                centers[k, j] = points[i, j]
        masses[k] += weights[i]
        sizes[k] += 1.0
    # From the first member to the mean, so that equal points have their mean exactly; then
    # once more, because with uneven weights the first result may be far off for its cluster.
    for _ in range(2):
        shift = np.zeros(centers.shape)
        for i in range(n_points):
            k = labels[i]
            for j in range(n_features):
                shift[k, j] += weights[i] * (points[i, j] - centers[k, j])
        for k in range(centers.shape[0]):
            for j in range(n_features if masses[k] > 0.0 else 0):
                centers[k, j] += shift[k, j] / masses[k]
    for k in range(centers.shape[0]):
        if masses[k] == 0.0:
            for j in range(n_features):
                centers[k, j] = centers[labels[0], j]

    signed = np.zeros(centers.shape)
    absolute = np.zeros(centers.shape)
    total, compensation, scattered = 0.0, 0.0, False
    for i in range(n_points):
        k = labels[i]
        squares = 0.0
        for j in range(n_features):
            diff = points[i, j] - centers[k, j]
            squares += diff * diff
            scattered |= diff != 0.0
            signed[k, j] += weights[i] * diff
            absolute[k, j] += weights[i] * abs(diff)
        term = weights[i] * squares
        # Neumaier's compensated summation.
        new_total = total + term
        compensation += (total - new_total) + term if total >= term else (term - new_total) + total
        total = new_total
    excess = 0.0
    for k in range(centers.shape[0]):
        for j in range(n_features if masses[k] > 0.0 else 0):
            pull = abs(signed[k, j]) - (sizes[k] + 4.0) * EPS * absolute[k, j]
            if pull > 0.0:
                excess += pull * (pull / masses[k]) * (1.0 - (sizes[k] + 8.0) * EPS)
    excess *= 1.0 - centers.size * EPS
    above = (total + compensation) * (1.0 + (n_features + 10) * EPS) - excess
    return max(0.0, above) * (1.0 + 2.0 * EPS) + UNDERFLOW if scattered else 0.0
