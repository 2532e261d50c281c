"""Prices of clusters: start values, and the labels and the dual value they imply. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def nearest_at_prices(
    costs,  # IN   (n, n_clusters) float64
    demand,  # IN   (n,) float64
    prices,  # IN   (n_clusters,) float64
    labels,  # OUT  (n,) int64 cheapest label at these prices, the lowest number on a tie
    totals,  # OUT  (n_clusters,) float64 demand of the clusters
):
    """Cheapest labels at given prices, without limits.

    Returns the sum of the least values, and the sum of their magnitudes plus those of the
    products of demand and price, which bounds the rounding error.
    """
    n, n_clusters = costs.shape
    largest = 0.0
    for k in range(n_clusters):
        totals[k] = 0.0
        largest = max(largest, abs(prices[k]))
    value, magnitude = 0.0, 0.0
    for s in range(n):
        least, label, a = np.inf, 0, demand[s]
        for k in range(n_clusters):
            here = costs[s, k] + a * prices[k]
            if here < least:
                least, label = here, k
        labels[s] = label
        totals[label] += a
        value += least
        magnitude += abs(least) + a * largest
    return value, magnitude


@njit(cache=True, nogil=True)
def total_violation(totals, lower, upper):
    """Sum over the clusters of how far the totals are outside the limits."""
    excess = 0.0
    for k in range(totals.size):
        excess += max(0.0, totals[k] - upper[k]) + max(0.0, lower[k] - totals[k])
    return excess


@njit(cache=True, nogil=True)
def _partition_descending(values, weights, first, last):
    """Partition ``first .. last`` around a median of three; returns where the left part ends.

    Everything on the left is at least, everything on the right at most the pivot.
    """
    a, b, c = values[first], values[(first + last) // 2], values[last]
    pivot = max(min(a, b), min(max(a, b), c))
    i, j = first - 1, last + 1
    while True:
        i += 1
        while values[i] > pivot:
            i += 1
        j -= 1
        while values[j] < pivot:
            j -= 1
        if i >= j:
            return j
        values[i], values[j] = values[j], values[i]
        weights[i], weights[j] = weights[j], weights[i]


@njit(cache=True, nogil=True)
def _weighted_threshold(values, weights, target):
    """Return a number such that the larger values have a weight of about ``target``.

    Reorders both arrays. The number lies between the last value that fits and the next one.
    """
    n = values.size
    first, last, rest = 0, n - 1, target
    while first < last:
        middle = _partition_descending(values, weights, first, last)
        left = 0.0
        for i in range(first, middle + 1):
            left += weights[i]
        if left > rest:
            last = middle
        else:
            rest -= left
            first = middle + 1
    # values[first] is the first value that does not fit; those before it are not smaller.
    here = values[first]
    above = np.inf
    for i in range(first):
        above = min(above, values[i])
    return 0.5 * (above + here) if np.isfinite(above) else here + abs(here) + 1.0


@njit(cache=True, nogil=True)
def _two_cheapest(costs, demand, prices, s, first, second, best, next_best):
    """Write the two cheapest labels of a group at the prices, and their values."""
    one, two, least, next_least = 0, 0, np.inf, np.inf
    for k in range(prices.size):
        here = costs[s, k] + demand[s] * prices[k]
        if here < least:
            two, next_least = one, least
            one, least = k, here
        elif here < next_least:
            two, next_least = k, here
    first[s], second[s], best[s], next_best[s] = one, two, least, next_least


@njit(cache=True, nogil=True)
def raise_dual_by_coordinates(
    costs,  # IN   (n, n_clusters) float64
    demand,  # IN   (n,) float64
    lower,  # IN   (n_clusters,) float64
    upper,  # IN   (n_clusters,) float64
    max_sweeps,  # IN
    enough,  # IN   stop when the limits are violated by this much in all
    prices,  # INOUT (n_clusters,) float64
):
    """Set one price after the other such that its cluster is within its limits.

    Each step maximises the dual of the transportation problem in one coordinate: a positive
    price at the upper limit, a negative one at the lower limit, 0 between.
    """
    n, n_clusters = costs.shape
    values, weights = np.empty(n), np.empty(n)
    first, second = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    best, next_best, totals = np.empty(n), np.empty(n), np.empty(n_clusters)
    for _ in range(max_sweeps):
        totals[:] = 0.0
        for s in range(n):
            _two_cheapest(costs, demand, prices, s, first, second, best, next_best)
            totals[first[s]] += demand[s]
        if total_violation(totals, lower, upper) <= enough:
            return
        for k in range(n_clusters):
            own = 0.0
            for s in range(n):
                others, a = next_best[s] if first[s] == k else best[s], demand[s]
                weights[s] = a
                values[s] = (others - costs[s, k]) / a if a > 0.0 else -np.inf
                if values[s] > 0.0:
                    own += a
            before = prices[k]
            if own > upper[k]:
                prices[k] = max(0.0, _weighted_threshold(values, weights, upper[k]))
            elif own < lower[k]:
                prices[k] = min(0.0, _weighted_threshold(values, weights, lower[k]))
            else:
                prices[k] = 0.0
            if prices[k] == before:
                continue
            for s in range(n):
                here = costs[s, k] + demand[s] * prices[k]
                if first[s] == k or second[s] == k or here < next_best[s]:
                    _two_cheapest(costs, demand, prices, s, first, second, best, next_best)
