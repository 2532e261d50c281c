"""Lloyd iterations with limits on cluster sizes, and exchanges. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import cluster_costs
from certikmeans.kernels.transportation.exchanges import (
    fill_clusters,
    fill_costs,
    move_groups,
    swap_groups,
)
from certikmeans.kernels.transportation.groups import improve_totals, repair_totals
from certikmeans.kernels.transportation.prices import (
    nearest_at_prices,
    raise_dual_by_coordinates,
    total_violation,
)
from certikmeans.kernels.transportation.shares import largest_shares, transport_shares
from certikmeans.kernels.transportation.units import transport_units


class AssignmentLimits(NamedTuple):
    """Limits of an assignment in the form that kernels need, and of its work."""

    whole: np.ndarray  # (2, n_clusters) int64; empty if demands differ, else they are 0 or 1
    totals: np.ndarray  # (2, n_clusters) the same, or limits on the demand
    active: np.ndarray  # (m,) int64 groups of positive demand
    tolerance: float  # of a total
    path_fraction: float
    max_sweeps: int
    max_paths: int
    max_repair_steps: int
    n_candidates: int  # groups that may swap at fixed costs


@njit(cache=True, nogil=True)
def assign_with_limits(
    costs,  # IN   (n, n_clusters) float64, finite
    demand,  # IN   (n,) float64
    limits,  # IN   AssignmentLimits
    prices,  # INOUT (n_clusters,) float64 any start values
    labels,  # OUT  (n,) int64
):
    """Cheap labels within the limits.

    Optimal if all demands are equal. Otherwise the largest shares of the linear relaxation,
    repaired and improved. Groups without demand take the cheapest label.

    Returns 1 if the labels are optimal, 0 if they are within the limits, -1 if they are not.
    """
    n, n_clusters = costs.shape
    m = limits.active.size
    if m == n:
        return _assign_active(costs, demand, limits, prices, labels)
    inner_costs, inner_demand = np.empty((m, n_clusters)), np.empty(m)
    inner_labels = np.empty(m, dtype=np.int64)
    for i in range(m):
        inner_costs[i] = costs[limits.active[i]]
        inner_demand[i] = demand[limits.active[i]]
    status = _assign_active(inner_costs, inner_demand, limits, prices, inner_labels)
    for s in range(n):
        labels[s] = np.argmin(costs[s])
    for i in range(m):
        labels[limits.active[i]] = inner_labels[i]
    return status


@njit(cache=True, nogil=True)
def _far_from_balanced(totals, limits, prices):
    """Whether paths would have to carry much demand from these prices."""
    lower, upper = limits.totals[0], limits.totals[1]
    enough = limits.path_fraction * totals.sum()
    if total_violation(totals, lower, upper) > enough:
        return True
    for k in range(prices.size):
        # A price other than 0 belongs to a cluster at its limit.
        if prices[k] > 0.0 and upper[k] - totals[k] > enough:
            return True
        if prices[k] < 0.0 and totals[k] - lower[k] > enough:
            return True
    return False


@njit(cache=True, nogil=True)
def _assign_active(costs, demand, limits, prices, labels):
    """Cheap labels of groups of positive demand; returns a status as `assign_with_limits`."""
    n, n_clusters = costs.shape
    lower, upper, totals = limits.totals[0], limits.totals[1], np.empty(n_clusters)
    nearest_at_prices(costs, demand, prices, labels, totals)
    if _far_from_balanced(totals, limits, prices):
        enough = limits.path_fraction * totals.sum()
        raise_dual_by_coordinates(costs, demand, lower, upper, limits.max_sweeps, enough, prices)
    if limits.whole.size > 0:
        steps = transport_units(
            costs, limits.whole[0], limits.whole[1], limits.max_paths, prices, labels
        )
        return 1 if steps >= 0 else -1
    shares = np.empty((n, n_clusters))
    steps = transport_shares(costs, demand, limits.totals, limits.max_paths, prices, shares)
    if steps == -1:
        return -1
    divided = largest_shares(shares, labels)
    if not repair_totals(
        costs, demand, limits.totals, limits.tolerance, limits.max_repair_steps, labels
    ):
        return -1
    if steps >= 0 and divided == 0:
        return 1
    candidates = _least_regrets(costs, demand, prices, limits.n_candidates)
    improve_totals(costs, demand, limits.totals, candidates, labels)
    return 0


@njit(cache=True, nogil=True)
def _least_regrets(costs, demand, prices, count):
    """Groups with the smallest difference between their two cheapest labels at the prices."""
    n, n_clusters = costs.shape
    regret = np.empty(n)
    for s in range(n):
        first, second = np.inf, np.inf
        for k in range(n_clusters):
            here = costs[s, k] + demand[s] * prices[k]
            if here < first:
                first, second = here, first
            elif here < second:
                second = here
        regret[s] = second - first
    return np.argsort(regret, kind="mergesort")[: min(count, n)]


@njit(cache=True, nogil=True)
def descend_with_limits(
    data,  # IN   SizedPoints
    limits,  # IN   AssignmentLimits
    max_iterations,  # IN
    tolerance,  # IN   least relative decrease of the cost
    width,  # IN   candidates per pair of clusters for swaps; 0: Lloyd iterations only
    prices,  # INOUT (n_clusters,) float64
    state,  # INOUT ClusterState: the means are the start, the rest is written
):
    """Alternate assignments and means, then moves and swaps, until neither improves.

    Returns the cost, the number of iterations, and whether it converged. The cost is infinite if
    no labels within the limits were found, which can only happen where demands differ.
    """
    n, n_clusters = data.weights.size, state.means.shape[0]
    costs, each = np.empty((n, n_clusters)), np.empty(n_clusters)
    labels, kept = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    best, iterations = np.inf, 0
    while iterations < max_iterations:
        iterations += 1
        fill_costs(data, state.means, costs)
        if assign_with_limits(costs, data.demand, limits, prices, labels) < 0:
            break
        same = True
        for s in range(n):
            same = same and labels[s] == state.labels[s]
            kept[s], state.labels[s] = state.labels[s], labels[s]
        fill_clusters(data, state)
        cost = cluster_costs(data.points, data.weights, state.means, state.labels, each)
        if not same and cost < best * (1.0 - tolerance):
            best = cost
            continue
        if cost > best:  # labels of groups are not always optimal
            state.labels[:] = kept
            fill_clusters(data, state)
        best = min(cost, best)
        if width == 0 or not _exchange(data, costs, 1e-12 * best, width, state):
            return best, iterations, True
        best = cluster_costs(data.points, data.weights, state.means, state.labels, each)
    return best, iterations, False


@njit(cache=True, nogil=True)
def _exchange(data, costs, min_gain, width, state):
    """Move and swap until nothing gains; returns whether anything did. Overwrites ``costs``."""
    improved = False
    while True:
        fill_costs(data, state.means, costs)
        changes = move_groups(data, costs, min_gain, state)
        changes += swap_groups(data, costs, min_gain, width, state)
        fill_clusters(data, state)
        if changes == 0:
            return improved
        improved = True
