"""Prices of cannot-link sets: at most one member of a set is in a cluster.

With every price ``q`` between the second largest and the largest value of a set (both at least 0),
``q + sum max(v - q, 0)`` is the largest: exact where no two sets overlap. Sets that overlap are
priced one after the other, each at the values that the prices of the others leave.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit

SWEEPS = 4  # passes over sets that overlap


@njit(cache=True, nogil=True)
def touched_sets(
    constraints,  # IN
    ids,  # IN   (m,) int32
    work,  # IN/OUT touched, set_mark
):
    """List the sets of the members, in the order of the members. Returns their number."""
    indptr, group_sets = constraints.group_set_indptr, constraints.group_sets
    count = np.int64(0)
    for s in ids:
        for e in range(indptr[s], indptr[s + 1]):
            number = group_sets[e]
            if work.set_mark[number] == 0:
                work.set_mark[number] = 1
                work.touched[count] = number
                count += 1
    for k in range(count):
        work.set_mark[work.touched[k]] = 0
    return count


@njit(cache=True, nogil=True)
def price_sets(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    centered,  # IN   whether other kinds of prices follow
    work,  # IN/OUT PriceWorkspace, members numbered
    price,  # OUT  (m,)
):
    """Prices of the sets at these values.

    Returns ``(constant, sum of the prices of the sets, largest number of terms of a price)``.
    """
    indptr, members = constraints.set_indptr, constraints.set_members
    group_indptr, group_sets = constraints.group_set_indptr, constraints.group_sets
    position, q = work.position, work.set_q
    count = touched_sets(constraints, ids, work)
    terms = np.int64(0)
    for i in range(ids.size):
        price[i] = 0.0
        terms = max(terms, group_indptr[ids[i] + 1] - group_indptr[ids[i]])
    for k in range(count):
        q[work.touched[k]] = 0.0
    for _ in range(SWEEPS if terms > 1 else 1):
        for k in range(count):
            number = work.touched[k]
            old, first, second = q[number], 0.0, 0.0
            for e in range(indptr[number], indptr[number + 1]):
                i = position[members[e]]
                if i < 0:
                    continue
                value = values[i] - price[i] + old
                if value > first:
                    first, second = value, first
                elif value > second:
                    second = value
            new = second if terms == 1 and not centered else 0.5 * (first + second)
            if new == old:
                continue
            q[number] = new
            for e in range(indptr[number], indptr[number + 1]):
                i = position[members[e]]
                if i >= 0:
                    price[i] += new - old
    constant, lost = 0.0, 0.0
    for k in range(count):
        term = q[work.touched[k]]
        new = constant + term
        if constant >= term:
            lost += (constant - new) + term
        else:
            lost += (term - new) + constant
        constant = new
    for i in range(ids.size):  # anew, without the roundings of the updates
        price[i] = 0.0
        for e in range(group_indptr[ids[i]], group_indptr[ids[i] + 1]):
            price[i] += q[group_sets[e]]
    return constant + lost, constant, terms
