"""Prices of all kinds of constraints together."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.pairs import price_pairs
from certikmeans.kernels.constraint_prices.sets import price_sets
from certikmeans.kernels.constraint_prices.size_cuts import price_units_with_cuts
from certikmeans.kernels.constraint_prices.sizes import price_of_size
from certikmeans.kernels.constraint_prices.workspace import mark_members, unmark_members
from certikmeans.rounding import EPS, TINY

ROUNDS = 6  # alternations between pairs and sets
MAX_THETAS = 10  # prices of size tried together with other kinds
MAX_CYCLE_GAIN = 0.3  # of the constant, by odd cycles
MIN_GAIN = 1e-6  # relative improvement of the bound by a further round


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
def price_pairs_and_sets(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    strengthen,  # IN   whether to price odd cycles, too
    work,  # IN/OUT members numbered; pair_price, set_price, x
):
    """Prices of pairs and sets, alternating while the bound improves.

    Returns ``(constant, sum of the sizes of all terms, largest number of terms of a price)`` of the
    last prices, which are the best ones up to the last round.
    """
    m = ids.size
    has_sets, paired = constraints.group_sets.size > 0, constraints.pair_neighbors.size > 0
    pair_price, set_price, left = work.pair_price[:m], work.set_price[:m], work.values[:m]
    for i in range(m):
        pair_price[i] = 0.0
        set_price[i] = 0.0
    pair_constant, pair_size, pair_terms = 0.0, 0.0, np.int64(0)
    set_constant, set_size, set_terms = 0.0, 0.0, np.int64(0)
    bound = np.inf
    for _ in range(ROUNDS if has_sets and paired else 1):
        if has_sets:
            for i in range(m):
                left[i] = values[i] - pair_price[i]
            set_constant, set_size, set_terms = price_sets(
                constraints, ids, left, paired, work, set_price
            )
        if paired:
            for i in range(m):
                left[i] = values[i] - set_price[i]
            pair_constant, pair_size, pair_terms = price_pairs(
                constraints, ids, left, has_sets, strengthen, work, pair_price
            )
        for i in range(m):
            left[i] = pair_price[i] + set_price[i]
        new = priced_bound(pair_constant + set_constant, values, left)
        if new > bound - 100.0 * MIN_GAIN * abs(bound):
            break
        bound = new
    constant = pair_constant + set_constant
    size = pair_size + set_size + abs(pair_constant) + abs(set_constant)
    return constant, size, pair_terms + set_terms


@njit(cache=True, nogil=True)
def complement_prices(
    values,  # IN   (m,)
    price,  # IN   (m,): of pairs, sets and size
    paired,  # IN
    x,  # IN/OUT (m,): a solution of the pairs, then of all kinds
):
    """Solution of sets that complements the prices: groups above their price are in it."""
    for i in range(values.size):
        margin = values[i] - price[i]
        tiny = 1e-12 * (abs(values[i]) + abs(price[i]))
        if margin > tiny:
            x[i] = 1.0
        elif margin < -tiny or not paired:
            x[i] = 0.0


@njit(cache=True, nogil=True)
def next_theta(
    bracket,  # IN/OUT (2, 3): theta, bound and its slope, left and right of the minimum
    guess,  # IN   tried if one end is open; NaN: none
    best,  # IN   least bound so far
    exact,  # IN   whether the bounds are those of exact linear programs
    step,  # IN   if one end is open
):
    """Next ``theta`` to try, or NaN if the least bound is reached.

    The bound is a convex function of ``theta``; its tangents at the ends of the bracket meet below
    its minimum, and their intersection is tried next.
    """
    low, high = bracket[0, 0], bracket[1, 0]
    if low > -np.inf and high < np.inf:
        slope = bracket[1, 2] - bracket[0, 2]
        rise = bracket[0, 1] - bracket[1, 1] + bracket[1, 2] * high - bracket[0, 2] * low
        theta = rise / slope
        predicted = bracket[0, 1] + bracket[0, 2] * (theta - low)
        if not predicted < best - MIN_GAIN * abs(best):
            return np.nan if exact else 0.5 * (low + high)
        margin = 0.05 * (high - low)
        return min(max(theta, low + margin), high - margin)
    if low < guess < high:
        return guess
    if high < np.inf:
        return 0.0 if high > 0.0 else high - step
    return 0.0 if low < 0.0 else low + step


@njit(cache=True, nogil=True)
def price_at(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    theta,  # IN   price of size
    strengthen,  # IN   whether to price odd cycles, too
    work,  # IN/OUT members numbered; left: values without theta; total: sum of all prices
):
    """Prices of the other kinds for one price of size; returns the constant, rounded up."""
    m = ids.size
    demand, left, total = work.demand[:m], work.left[:m], work.total[:m]
    for i in range(m):
        left[i] = values[i] - theta * demand[i]
    constant, size, terms = price_pairs_and_sets(constraints, ids, left, strengthen, work)
    for i in range(m):
        left[i] = values[i] - work.pair_price[i] - work.set_price[i]
        total[i] = work.pair_price[i] + work.set_price[i] + theta * demand[i]
    if theta != 0.0:
        low, high = constraints.size_limits[0], constraints.size_limits[1]
        high = min(high, total_demand(constraints, ids))
        constant += theta * (high if theta > 0.0 else low)
        size += abs(theta) * 2.0 * high
        constant += TINY
    return constant + (terms + 6) * EPS * size


@njit(cache=True, nogil=True)
def alternate(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    work,  # IN/OUT members numbered; ``best`` and ``x`` are results
):
    """Choose prices of all kinds: the best price of size, with the others at the values it leaves.

    Returns ``(constant, theta)``; the best prices found are in ``work.best``, and ``work.x`` is a
    solution of the linear program of the last prices.
    """
    m = ids.size
    sized, has_sets = constraints.demand.size > 0, constraints.group_sets.size > 0
    paired = constraints.pair_neighbors.size > 0
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    best, demand, total = work.best[:m], work.demand[:m], work.total[:m]
    theta, scale = 0.0, 0.0
    for i in range(m):
        demand[i] = constraints.demand[ids[i]] if sized else 0.0
        scale = max(scale, 0.25 * abs(values[i]))
    if sized:
        theta = price_of_size(values, demand, low, high)
    bracket = np.array([[-np.inf, 0.0, 0.0], [np.inf, 0.0, 0.0]])
    best_bound, best_constant, best_theta = np.inf, 0.0, 0.0
    exact = not has_sets or (not paired and constraints.group_sets.size <= m)
    for k in range(MAX_THETAS if sized and (paired or has_sets) else 1):
        constant = price_at(constraints, ids, values, theta, False, work)
        bound = priced_bound(constant, values, total)
        if bound < best_bound:
            best_bound, best_constant, best_theta = bound, constant, theta
            best[:] = total
        if has_sets or not paired:
            complement_prices(values, total, paired, work.x[:m])
        used = 0.0
        for i in range(m):
            used += demand[i] * work.x[i]
        if not sized or (theta == 0.0 and low <= used <= high):
            break
        slope = (high if theta > 0.0 or (theta == 0.0 and used > high) else low) - used
        if slope == 0.0:
            break
        end = 1 if slope > 0.0 else 0
        bracket[end, 0], bracket[end, 1], bracket[end, 2] = theta, bound, slope
        guess = price_of_size(work.left[:m], demand, low, high) if k == 0 else np.nan
        theta = next_theta(bracket, guess, best_bound, exact, scale)
        scale *= 2.0
        if np.isnan(theta):
            break
    target = work.target[0]
    if paired and target < best_bound <= target + MAX_CYCLE_GAIN * best_constant:
        constant = price_at(constraints, ids, values, best_theta, True, work)
        bound = priced_bound(constant, values, total)
        if bound < best_bound:
            best_constant = constant
            best[:] = total
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

        sum of the bonuses inside + sum of its values <= constant + sum of (values - price) ,

    the former less what it pays for size cuts.

    The constant is -inf if no set among ``ids`` reaches the lower limit on the size.
    """
    m = ids.size
    if constraints.demand.size > 0 and total_demand(constraints, ids) < constraints.size_limits[0]:
        for i in range(m):
            price[i] = 0.0
        return -np.inf
    if constraints.cut_of.size > 0:
        return price_units_with_cuts(constraints, ids, values, work, price)
    mark_members(ids, work.position)
    constant, _ = alternate(constraints, ids, values, work)
    for i in range(m):
        price[i] = work.best[i]
    unmark_members(ids, work.position)
    return constant
