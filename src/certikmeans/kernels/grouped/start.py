"""A good labelling of one group to start the search from. Compiled."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.grouped.values import (
    add_member,
    clear_sums,
    cluster_value,
    sum_up,
    total_value,
    value_with,
)

MAX_SWEEPS = 20


@njit(cache=True, nogil=True)
def is_proper(group, labels):
    """Whether ``labels`` uses viable clusters only and keeps every cannot-link."""
    for i in range(labels.size):
        if labels[i] < 0 or not group.viable[i, labels[i]]:
            return False
        for e in range(group.link_start[i], group.link_start[i + 1]):
            if labels[group.link[e]] == labels[i]:
                return False
    return True


@njit(cache=True, nogil=True)
def _allowed(i, k, group, labels):
    if not group.viable[i, k]:
        return False
    for e in range(group.link_start[i], group.link_start[i + 1]):
        if labels[group.link[e]] == k:
            return False
    return True


@njit(cache=True, nogil=True)
def label_greedily(
    group,  # IN
    sums,  # OUT
    labels,  # OUT  (m,)
):
    """Every sample in turn where it costs least; False if one has nowhere to go."""
    clear_sums(sums)
    labels[:] = -1
    for i in range(labels.size):
        chosen, least = -1, np.inf
        for k in range(group.lower.shape[0]):
            if not _allowed(i, k, group, labels):
                continue
            cost = added_cost(i, k, group, sums, 1.0)
            if cost < least:
                chosen, least = k, cost
        if chosen < 0:
            return False
        labels[i] = chosen
        add_member(sums, chosen, group.points[i], group.weights[i])
    return True


@njit(cache=True, nogil=True)
def added_cost(i, k, group, sums, share):
    """What sample ``i`` adds to cluster ``k``."""
    low, high, nu = group.lower[k], group.upper[k], group.nu[k]
    before = cluster_value(sums.mass[k], sums.moment[k], sums.square[k], share, nu, low, high)
    return value_with(sums, k, group.points[i], group.weights[i], share, nu, low, high) - before


@njit(cache=True, nogil=True)
def improve(
    group,  # IN
    sums,  # OUT  of the labels on return
    labels,  # INOUT (m,) proper
):
    """Move single samples while that pays; return the value of the labels."""
    sum_up(group.points, group.weights, labels, np.int64(0), labels.size, sums)
    for _ in range(MAX_SWEEPS):
        moved = False
        for i in range(labels.size):
            home = labels[i]
            _remove(sums, home, group.points[i], group.weights[i])
            chosen, least = home, added_cost(i, home, group, sums, 1.0)
            least -= 1e-12 * abs(least)
            for k in range(group.lower.shape[0]):
                if k != home and _allowed(i, k, group, labels):
                    cost = added_cost(i, k, group, sums, 1.0)
                    if cost < least:
                        chosen, least = k, cost
            labels[i] = chosen
            add_member(sums, chosen, group.points[i], group.weights[i])
            moved = moved or chosen != home
        if not moved:
            break
    # Sums that saw removals carry their rounding: the value returned comes from fresh ones.
    sum_up(group.points, group.weights, labels, np.int64(0), labels.size, sums)
    return total_value(sums, 1.0, group.nu, group.lower, group.upper)


@njit(cache=True, nogil=True)
def _remove(sums, k, point, weight):
    for j in range(point.size):
        sums.moment[k, j] -= weight * point[j]
        sums.square[k] -= weight * point[j] * point[j]
    sums.mass[k] -= weight
    sums.count[k] -= 1
    if sums.count[k] == 0:
        sums.mass[k] = 0.0
        sums.square[k] = 0.0
        sums.moment[k] = 0.0
