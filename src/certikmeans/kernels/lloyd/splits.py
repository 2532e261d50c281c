"""A cluster in two: where, and what that costs. Compiled."""

import numpy as np

from certikmeans.compiling.dispatch import njit

STEPS = 4


@njit(cache=True, nogil=True)
def _between(points, i, place):
    total = 0.0
    for j in range(place.size):
        away = points[i, j] - place[j]
        total += away * away
    return total


@njit(cache=True, nogil=True)
def _farthest(points, members, place):
    """Member farthest from a place."""
    chosen, largest = members[0], -1.0
    for i in members:
        away = _between(points, i, place)
        if away > largest:
            chosen, largest = i, away
    return chosen


@njit(cache=True, nogil=True)
def split_in_two(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    members,  # IN   (m,) int64, m >= 1
    share,  # IN   in [0, 1): the member to begin with; 0: the one farthest from the mean
    pair,  # OUT  (2, d) float64
):
    """Find two centres by a few steps of Lloyd's method. Returns the cost about them."""
    d = points.shape[1]
    sums, masses = np.zeros((2, d)), np.zeros(2)
    first = members[int(share * members.size)]
    if share == 0.0:
        for i in members:
            masses[0] += weights[i]
            for j in range(d):
                sums[0, j] += weights[i] * points[i, j]
        first = _farthest(points, members, sums[0] / masses[0])
    pair[0] = points[first]
    pair[1] = points[_farthest(points, members, pair[0])]
    cost = 0.0
    for step in range(STEPS + 1):
        sums[:] = 0.0
        masses[:] = 0.0
        cost = 0.0
        for i in members:
            one, two = _between(points, i, pair[0]), _between(points, i, pair[1])
            side = 1 if two < one else 0
            cost += weights[i] * min(one, two)
            masses[side] += weights[i]
            for j in range(d):
                sums[side, j] += weights[i] * points[i, j]
        if step < STEPS:
            for side in range(2):
                if masses[side] > 0.0:
                    pair[side] = sums[side] / masses[side]
    return cost


@njit(cache=True, nogil=True)
def split_costs(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    order,  # IN   (n,) int64: members of cluster k are order[starts[k]] .. order[starts[k + 1]]
    starts,  # IN   (k + 1,) int64
    costs,  # OUT  (k,) float64: of each cluster, split in two
):
    """Cost of every cluster about two centres instead of one."""
    pair = np.empty((2, points.shape[1]))
    for k in range(costs.size):
        costs[k] = 0.0
        members = order[starts[k] : starts[k + 1]]
        if members.size > 1:
            costs[k] = split_in_two(points, weights, members, 0.0, pair)
