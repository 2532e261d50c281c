"""Decisions and prices of disjoint cannot-link sets over a box.

Over a box with ``l <= a <= u`` for every group, a price ``q`` gives the bound ``q + sum of the
chords of max(a - q, 0)``. Prices for one point of the box (`constraint_prices`) are the best ones
for small boxes only: in a large one all members may be positive somewhere, and their chords add up.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.sets import touched_sets
from certikmeans.kernels.pricing.box_bound import OUT
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def drop_dominated(
    constraints,  # IN
    m,  # IN   open groups
    work,  # IN/OUT PricedWorkspace: state
):
    """Members of a set that another open member is nowhere worth less than are OUT.

    In any set of the groups left, exchanging the former for the latter loses nothing and breaks no
    constraint: there is no other kind, and no group is in two sets. The latter stays.
    """
    indptr, members = constraints.set_indptr, constraints.set_members
    position, upper, lower = work.position, work.upper, work.lower
    for i in range(m):
        position[work.ids[i]] = i
    count = touched_sets(constraints, work.ids[:m], work.prices)
    for k in range(count):
        number = work.prices.touched[k]
        best, kept = 0.0, -1
        for e in range(indptr[number], indptr[number + 1]):
            i = position[members[e]]
            if i >= 0 and lower[i] > best:
                best, kept = lower[i], i
        for e in range(indptr[number], indptr[number + 1]):
            i = position[members[e]]
            if i >= 0 and i != kept and upper[i] <= best:
                work.state[i] = OUT
    for i in range(m):
        position[work.ids[i]] = -1


@njit(cache=True, nogil=True)
def price_sets_by_ranges(
    instance,  # IN
    m,  # IN   open groups
    work,  # IN/OUT PricedWorkspace: price
):
    """Price every set so that its chords are least at the centre of the box; returns the constant.

    The sum of the chords at a point is convex in the price, and least where the chords' fractions
    ``(a - l) / (u - l)`` of the members with ``u`` above the price add up to 1. A price is at least
    every ``l``: then the chord of a group that is worth more everywhere is not above it.
    """
    indptr, members = instance.constraints.set_indptr, instance.constraints.set_members
    position, upper, lower, center = work.position, work.upper, work.lower, work.box.center
    fraction = work.prices.values
    for i in range(m):
        s = work.ids[i]
        position[s] = i
        work.price[i] = 0.0
        away = 0.0
        for j in range(center.size):
            away += (instance.points[s, j] - center[j]) ** 2
        a = instance.lam[s] - instance.weights[s] * away
        width = upper[i] - lower[i]
        fraction[i] = min(max((a - lower[i]) / width, 0.0), 1.0) if width > 0.0 else 1.0
    count = touched_sets(instance.constraints, work.ids[:m], work.prices)
    constant = 0.0
    for k in range(count):
        number = work.prices.touched[k]
        first, last = indptr[number], indptr[number + 1]
        q = 0.0
        for e in range(first, last):
            i = position[members[e]]
            if i >= 0:
                q = max(q, lower[i])
        while True:
            total, above = 0.0, np.inf
            for e in range(first, last):
                i = position[members[e]]
                if i >= 0 and upper[i] > q:
                    total += fraction[i]
                    above = min(above, upper[i])
            if total <= 1.0:
                break
            q = above
        for e in range(first, last):
            i = position[members[e]]
            if i >= 0:
                work.price[i] = q
        constant += q
    for i in range(m):
        position[work.ids[i]] = -1
    return constant * (1.0 + 2.0 * count * EPS)


@njit(cache=True, nogil=True)
def best_of_all(
    constraints,  # IN
    values,  # IN   (n,)
    chosen,  # OUT  (n,) uint8: the set of largest value
):
    """Select the largest positive value of every set, and all positive values in no set."""
    indptr, members = constraints.set_indptr, constraints.set_members
    for s in range(values.size):
        in_set = constraints.group_set_indptr[s + 1] > constraints.group_set_indptr[s]
        chosen[s] = 1 if values[s] > 0.0 and not in_set else 0
    for number in range(indptr.size - 1):
        best, kept = 0.0, -1
        for e in range(indptr[number], indptr[number + 1]):
            if values[members[e]] > best:
                best, kept = values[members[e]], members[e]
        if kept >= 0:
            chosen[kept] = 1


@njit(cache=True, nogil=True)
def best_of_members(
    constraints,  # IN
    m,  # IN   open groups
    work,  # IN/OUT PricedWorkspace: value of the open groups; OUT chosen
):
    """Select the same among the open groups of a box; returns the value of the set."""
    indptr, group_sets = constraints.group_set_indptr, constraints.group_sets
    value, chosen = work.value, work.chosen
    best = work.prices.set_q  # of every set
    for i in range(m):
        s = work.ids[i]
        chosen[i] = 0
        if indptr[s + 1] > indptr[s]:
            best[group_sets[indptr[s]]] = 0.0
    total = 0.0
    for i in range(m):
        s = work.ids[i]
        if indptr[s + 1] > indptr[s]:
            number = group_sets[indptr[s]]
            best[number] = max(best[number], value[i])
    for i in range(m):
        s = work.ids[i]
        if value[i] <= 0.0:
            continue
        if indptr[s + 1] > indptr[s]:
            number = group_sets[indptr[s]]
            if value[i] < best[number]:
                continue
            best[number] = np.inf  # one of several with the same value
        chosen[i] = 1
        total += value[i]
    return total
