"""Prices of size cuts, for unit demands without other constraints.

A size cut belongs to a set ``A`` of groups with a number ``r`` of free members: a cluster pays
``beta max(m - r, 0)`` for ``m`` members in ``A`` (`bounds.cluster.size_cuts` says why). The sets
are disjoint. For any ``0 <= t <= beta`` that is at least ``t (m - r)``: ``p_s += t`` in ``A`` and
``c += t r`` is a valid price in the sense of this package.

The best members of ``A`` in any number are those of largest value, so the cut takes ``beta`` from
the value of all but the ``r`` largest: with these values it has disappeared.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.sizes import kth_largest, price_of_units, value_between
from certikmeans.rounding import EPS, TINY


@njit(cache=True, nogil=True)
def members_of_cut(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    cut,  # IN
    scratch,  # OUT  (m,): values of the members of the cut first
):
    """Number of members in the set of a cut."""
    count = 0
    for i in range(ids.size):
        if constraints.cut_of[ids[i]] == cut:
            scratch[count] = values[i]
            count += 1
    return count


@njit(cache=True, nogil=True)
def values_after_cuts(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    scratch,  # WORK (m,)
    reduced,  # OUT  (m,)
):
    """Values less ``beta`` for all but the free members of every cut; of equal ones, the first."""
    reduced[:] = values
    for cut in range(constraints.cut_free.size):
        count = members_of_cut(constraints, ids, values, cut, scratch)
        free = np.int64(constraints.cut_free[cut])
        if count <= free:
            continue
        threshold = kth_largest(scratch[:count], free) if free > 0 else np.inf
        n_equal = free
        for i in range(ids.size):
            if constraints.cut_of[ids[i]] == cut and values[i] > threshold:
                n_equal -= 1
        for i in range(ids.size):
            if constraints.cut_of[ids[i]] != cut or values[i] > threshold:
                continue
            if values[i] == threshold and n_equal > 0:
                n_equal -= 1
            else:
                reduced[i] -= constraints.cut_price[cut]


@njit(cache=True, nogil=True)
def price_units_with_cuts(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    work,  # WORK left, values
    price,  # OUT  (m,)
):
    """Prices of sizes and cuts; returns the constant, rounded up as in `update_prices`.

    A price is a sum of two terms, and the constant one of a term per cut and one for the size:
    their rounding errors are below ``(number of cuts + 3) EPS`` of the sums below.
    """
    m, n_cuts = ids.size, constraints.cut_free.size
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    scratch, reduced = work.left[:m], work.values[:m]
    values_after_cuts(constraints, ids, values, scratch, reduced)
    theta = price_of_units(reduced, low, high, scratch)
    most = min(high, float(m))
    if np.isinf(theta):  # fewer members than the limit
        theta = 0.0
    constant = theta * (most if theta > 0.0 else low)
    size = abs(theta) * (most + m)
    for i in range(m):
        price[i] = theta
    for cut in range(n_cuts):
        count = members_of_cut(constraints, ids, values, cut, scratch)
        free = constraints.cut_free[cut]
        margin = value_between(scratch[:count], np.int64(free)) - theta
        t = min(max(margin, 0.0), constraints.cut_price[cut])
        if t == 0.0:
            continue
        for i in range(m):
            if constraints.cut_of[ids[i]] == cut:
                price[i] = theta + t
        constant += t * free
        size += t * (free + count)
    return constant + (n_cuts + 8) * EPS * size + TINY


@njit(cache=True, nogil=True)
def cut_penalty(
    constraints,  # IN
    members,  # IN   (n,) uint8
):
    """What a set pays for size cuts."""
    total = 0.0
    for cut in range(constraints.cut_free.size):
        count = 0
        for s in range(members.size):
            if members[s] == 1 and constraints.cut_of[s] == cut:
                count += 1
        total += constraints.cut_price[cut] * max(count - constraints.cut_free[cut], 0.0)
    return total
