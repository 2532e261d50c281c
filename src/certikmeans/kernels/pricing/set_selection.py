"""Decisions on disjoint cannot-link sets in a box, and their best choice at given values."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.sets import touched_sets
from certikmeans.kernels.pricing.box_bound import OUT


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
