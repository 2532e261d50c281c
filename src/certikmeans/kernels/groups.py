"""Means of groups of points, and what their members cost about them. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.rounding import EPS


class Groups(NamedTuple):
    """Every group as one weighted point."""

    means: np.ndarray  # (n_groups, d)
    masses: np.ndarray  # (n_groups,)
    sizes: np.ndarray  # (n_groups,) int64


@njit(cache=True, nogil=True)
def fill_groups(
    points,  # IN   (n, d)
    weights,  # IN   (n,)
    group_of,  # IN   (n,) int64
    groups,  # OUT  Groups, zeros before
):
    """Weigh and average the members; a group of one is that one, to the last digit.

    A group that weighs nothing costs nothing; it is put where it would be with equal weights.
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
def cost_inside(
    points,  # IN   (n, d)
    weights,  # IN   (n,)
    group_of,  # IN   (n,) int64
    groups,  # IN   Groups
):
    """Sum of ``w_i |x_i - c|^2`` about the computed means, and at least that of ``|g|^2 / W``.

    ``g = sum w_i (x_i - c)`` of a group errs by ``(size + 4) u`` of the sum of its absolute terms.
    Both totals have terms that are not negative and are summed with compensation (Neumaier): they
    err by a few units in the last place, plus something of order ``(n u)^2``.
    """
    means, masses, sizes = groups
    d = points.shape[1]
    place = np.empty(sizes.size, dtype=np.int32)  # of the groups that have several members
    n_shared = 0
    for g in range(sizes.size):
        place[g] = n_shared
        n_shared += sizes[g] > 1
    pull = np.zeros((n_shared, 2 * d))
    total, lost = 0.0, 0.0
    for i in range(group_of.size):
        g = group_of[i]
        if sizes[g] == 1:
            continue
        for j in range(d):
            away = points[i, j] - means[g, j]
            tug = weights[i] * away
            pull[place[g], j] += tug
            pull[place[g], d + j] += abs(tug)
            term = tug * away
            raised = total + term
            lost += (total - raised) + term if total >= term else (term - raised) + total
            total = raised
    drift, missed = 0.0, 0.0
    for g in range(sizes.size):
        if sizes[g] == 1:
            continue
        divisor = masses[g] if masses[g] > 0.0 else 1.0 * sizes[g]
        for j in range(d):
            most = abs(pull[place[g], j]) + (sizes[g] + 4) * EPS * pull[place[g], d + j]
            term = most * most / divisor
            raised = drift + term
            missed += (drift - raised) + term if drift >= term else (term - raised) + drift
            drift = raised
    return total + lost, drift + missed
