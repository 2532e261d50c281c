"""Labels of groups that cannot be divided: repair and improvement for fixed costs. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit

MAX_PASSES = 10  # of the improvement


@njit(cache=True, nogil=True)
def _outside(total, lower, upper):
    """How far a total is outside its limits."""
    return max(0.0, total - upper) + max(0.0, lower - total)


@njit(cache=True, nogil=True)
def _best_move(costs, demand, limits, tolerance, labels, totals):
    """Return the group and cluster of the move that repairs at the least cost per demand."""
    n, n_clusters = costs.shape
    best, group, target = np.inf, -1, -1
    outside = np.empty(n_clusters)
    for k in range(n_clusters):
        outside[k] = _outside(totals[k], limits[0, k], limits[1, k])
    for s in range(n):
        i, a = labels[s], demand[s]
        if a == 0.0:
            continue
        left = _outside(totals[i] - a, limits[0, i], limits[1, i]) - outside[i]
        for j in range(n_clusters):
            if j == i:
                continue
            gain = -left - (_outside(totals[j] + a, limits[0, j], limits[1, j]) - outside[j])
            if gain > tolerance:
                rate = (costs[s, j] - costs[s, i]) / gain
                if rate < best:
                    best, group, target = rate, s, j
    return group, target


@njit(cache=True, nogil=True)
def _best_swap(costs, demand, limits, tolerance, labels, totals):
    """Return the two groups whose swap repairs at the least cost per demand."""
    n, n_clusters = costs.shape
    best, first, second = np.inf, -1, -1
    for i in range(n_clusters):
        before_i = _outside(totals[i], limits[0, i], limits[1, i])
        if before_i == 0.0:
            continue
        for s in range(n):
            if labels[s] != i:
                continue
            for t in range(n):
                j = labels[t]
                if j == i or demand[t] == demand[s]:
                    continue
                change = demand[t] - demand[s]
                gain = before_i - _outside(totals[i] + change, limits[0, i], limits[1, i])
                if gain <= tolerance:
                    continue
                gain += _outside(totals[j], limits[0, j], limits[1, j])
                gain -= _outside(totals[j] - change, limits[0, j], limits[1, j])
                if gain > tolerance:
                    rate = costs[s, j] - costs[s, i] + costs[t, i] - costs[t, j]
                    if rate / gain < best:
                        best, first, second = rate / gain, s, t
    return first, second


@njit(cache=True, nogil=True)
def repair_totals(
    costs,  # IN   (n, n_clusters) float64
    demand,  # IN   (n,) float64
    limits,  # IN   (2, n_clusters) float64 lower and upper
    tolerance,  # IN   of a total
    max_steps,  # IN
    labels,  # INOUT (n,) int64
):
    """Move and swap groups until the totals are within the limits; returns whether they are."""
    n, n_clusters = costs.shape
    totals = np.zeros(n_clusters)
    for step in range(max_steps + 1):
        # Anew each time: the rounding error of the sums does not grow.
        for k in range(n_clusters):
            totals[k] = 0.0
        for s in range(n):
            totals[labels[s]] += demand[s]
        left = 0.0
        for k in range(n_clusters):
            left = max(left, _outside(totals[k], limits[0, k], limits[1, k]))
        if left <= tolerance:
            return True
        if step == max_steps:
            return False
        s, j = _best_move(costs, demand, limits, tolerance, labels, totals)
        if s >= 0:
            labels[s] = j
            continue
        s, t = _best_swap(costs, demand, limits, tolerance, labels, totals)
        if s < 0:
            return False
        labels[s], labels[t] = labels[t], labels[s]
    return False


@njit(cache=True, nogil=True)
def improve_totals(
    costs,  # IN   (n, n_clusters) float64
    demand,  # IN   (n,) float64
    limits,  # IN   (2, n_clusters) float64 lower and upper
    candidates,  # IN   (m,) int64 groups that may swap
    labels,  # INOUT (n,) int64 within the limits
):
    """Move groups, and swap candidates, while that lowers the cost and keeps the limits.

    Returns the number of changes.
    """
    n, n_clusters = costs.shape
    totals = np.zeros(n_clusters)
    for s in range(n):
        totals[labels[s]] += demand[s]
    changes = 0
    for _ in range(MAX_PASSES):
        before = changes
        for s in range(n):
            i, a = labels[s], demand[s]
            best, target = costs[s, i], -1
            if totals[i] - a < limits[0, i] and a > 0.0:
                continue
            for j in range(n_clusters):
                if costs[s, j] < best and (a == 0.0 or totals[j] + a <= limits[1, j]):
                    best, target = costs[s, j], j
            if target >= 0:
                labels[s] = target
                totals[i] -= a
                totals[target] += a
                changes += 1
        for p in range(candidates.size):
            s = candidates[p]
            for q in range(p):
                t = candidates[q]
                i, j = labels[s], labels[t]
                if i == j:
                    continue
                gain = costs[s, i] + costs[t, j] - costs[s, j] - costs[t, i]
                if gain <= 1e-12 * (abs(costs[s, i]) + abs(costs[t, j])):
                    continue
                change = demand[t] - demand[s]
                new_i, new_j = totals[i] + change, totals[j] - change
                if change != 0.0 and not (
                    limits[0, i] <= new_i <= limits[1, i] and limits[0, j] <= new_j <= limits[1, j]
                ):
                    continue
                labels[s], labels[t] = j, i
                totals[i], totals[j] = new_i, new_j
                changes += 1
        if changes == before:
            break
    return changes
