"""Prices of all kinds of constraints together."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.pairs import price_pairs
from certikmeans.kernels.constraint_prices.sets import price_sets
from certikmeans.kernels.constraint_prices.sizes import price_of_size
from certikmeans.kernels.constraint_prices.workspace import mark_members, unmark_members
from certikmeans.rounding import EPS, TINY

ROUNDS = 3  # alternations between kinds
SWEEPS = 3  # passes over sets that overlap


@njit(cache=True, nogil=True)
def priced_bound(
    constant,  # IN
    values,  # IN   (m,)
    price,  # IN   (m,)
):
    """Upper bound on the best admissible set: ``constant + sum max(values - price, 0)``."""
    total = constant
    for i in range(values.size):
        total += max(values[i] - price[i], 0.0)
    return total


@njit(cache=True, nogil=True)
def total_demand(
    constraints,  # IN
    ids,  # IN   (m,) int32
):
    """Upper bound on the sum of the demands of the members."""
    total = 0.0
    for s in ids:
        total += constraints.demand[s]
    return total * (1.0 + ids.size * EPS)


@njit(cache=True, nogil=True)
def subtract_prices(
    values,  # IN   (m,)
    first,  # IN   (m,)
    second,  # IN   (m,)
    theta,  # IN   times ``demand``, if not 0
    demand,  # IN
    left,  # OUT  (m,)
):
    """Values minus the prices of some kinds."""
    for i in range(values.size):
        left[i] = values[i] - first[i] - second[i]
    if theta != 0.0:
        for i in range(values.size):
            left[i] -= theta * demand[i]


@njit(cache=True, nogil=True)
def alternate(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    work,  # IN/OUT members numbered; ``best`` and ``x`` are results
):
    """Choose prices, one kind after the other at the values that the others leave.

    Returns ``(constant, theta)``; the best prices found are in ``work.best``.
    """
    m = ids.size
    sized, has_sets = constraints.demand.size > 0, constraints.group_sets.size > 0
    paired = constraints.pair_neighbors.size > 0
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    pair_price, set_price = work.pair_price[:m], work.set_price[:m]
    left, best, demand, x = work.values[:m], work.best[:m], work.demand[:m], work.x[:m]
    nothing = work.zeros[:m]
    for i in range(m):
        pair_price[i] = 0.0
        set_price[i] = 0.0
        demand[i] = constraints.demand[ids[i]] if sized else 0.0
    theta = 0.0
    if sized:
        high = min(high, total_demand(constraints, ids))
        theta = price_of_size(values, demand, low, high)
    kinds = sized + has_sets + paired
    best_bound, best_constant, best_theta = np.inf, 0.0, 0.0
    pair_constant, pair_size, pair_terms = 0.0, 0.0, np.int64(0)
    set_constant, set_size, set_terms = 0.0, 0.0, np.int64(0)
    for _ in range(1 if kinds <= 1 else ROUNDS):
        if paired:
            subtract_prices(values, set_price, nothing, theta, demand, left)
            pair_constant, pair_size, pair_terms = price_pairs(
                constraints, ids, left, work, pair_price
            )
        if has_sets:
            subtract_prices(values, pair_price, nothing, theta, demand, left)
            set_constant, set_size, set_terms = price_sets(
                constraints, ids, left, SWEEPS, work, set_price
            )
        if sized and kinds > 1:
            subtract_prices(values, pair_price, set_price, 0.0, demand, left)
            theta = price_of_size(left, demand, low, high)
        constant = pair_constant + set_constant
        size = pair_size + set_size + abs(pair_constant) + abs(set_constant)
        for i in range(m):
            left[i] = pair_price[i] + set_price[i]
        if theta != 0.0:
            constant += theta * (high if theta > 0.0 else low)
            size += abs(theta) * 2.0 * high
            for i in range(m):
                left[i] += theta * demand[i]
        constant += (pair_terms + set_terms + 6) * EPS * size
        if theta != 0.0:
            constant += TINY
        bound = priced_bound(constant, values, left)
        if not bound < best_bound:
            break
        best_bound, best_constant, best_theta = bound, constant, theta
        for i in range(m):
            best[i] = left[i]
    if not paired:
        for i in range(m):
            x[i] = 1.0 if values[i] > best[i] else 0.0
    return best_constant, best_theta


@njit(cache=True, nogil=True)
def update_prices(
    constraints,  # IN   ConstraintArrays
    ids,  # IN   (m,) int32, ascending: the groups that may be in the set
    values,  # IN   (m,) float64
    work,  # IN/OUT PriceWorkspace
    price,  # OUT  (m,) float64
):
    """Choose prices for sets among ``ids`` at these values; returns the constant.

    Every admissible set among ``ids`` satisfies, exactly for the numbers returned,

        sum of the bonuses inside + sum of its values <= constant + sum of (values - price) .

    The constant is -inf if no set among ``ids`` reaches the lower limit on the size.
    """
    m = ids.size
    if constraints.demand.size > 0 and total_demand(constraints, ids) < constraints.size_limits[0]:
        for i in range(m):
            price[i] = 0.0
        return -np.inf
    mark_members(ids, work.position)
    constant, _ = alternate(constraints, ids, values, work)
    for i in range(m):
        price[i] = work.best[i]
    unmark_members(ids, work.position)
    return constant
