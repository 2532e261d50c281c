"""An admissible set of large value at a point."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.workspace import mark_members, unmark_members

PASSES = 4


@njit(cache=True, nogil=True)
def change_member(
    constraints,  # IN
    ids,  # IN   (m,) int32
    i,  # IN   member
    sign,  # IN   1: enters the set, -1: leaves it
    gain,  # IN/OUT (m,): values plus bonuses to members of the set
    work,  # IN/OUT counts: hard cannot-links to members of the set; set_mark: members of each set
):
    """Update the tables after a member has entered or left the set."""
    s = ids[i]
    for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
        j = work.position[constraints.pair_neighbors[e]]
        if j >= 0:
            if constraints.pair_bonus[e] == -np.inf:
                work.counts[j] += sign
            else:
                gain[j] += sign * constraints.pair_bonus[e]
    for e in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        work.set_mark[constraints.group_sets[e]] += sign


@njit(cache=True, nogil=True)
def is_blocked(
    constraints,  # IN
    s,  # IN   group
    conflicts,  # IN   its hard cannot-links to members of the set
    work,  # IN
):
    """Whether a group cannot enter the set because of a pair or a set."""
    if conflicts > 0:
        return True
    for e in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        if work.set_mark[constraints.group_sets[e]] > 0:
            return True
    return False


@njit(cache=True, nogil=True)
def set_value(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    work,  # IN   members numbered
    chosen,  # IN   (m,) uint8
):
    """Value of a set: values and bonuses of its members."""
    total = 0.0
    for i in range(ids.size):
        if chosen[i] == 0:
            continue
        total += values[i]
        s = ids[i]
        for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
            j = work.position[constraints.pair_neighbors[e]]
            if j > i and chosen[j] == 1:
                total += constraints.pair_bonus[e]
    return total


@njit(cache=True, nogil=True)
def select_set(
    constraints,  # IN   ConstraintArrays
    ids,  # IN   (m,) int32, ascending
    values,  # IN   (m,) float64
    work,  # IN/OUT PriceWorkspace
    chosen,  # OUT  (m,) uint8
):
    """Find an admissible set of large value; returns its value, -inf if none was found."""
    m = ids.size
    sized = constraints.demand.size > 0
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    mark_members(ids, work.position)
    gain = work.values[:m]
    for i in range(m):
        chosen[i] = 0
        gain[i] = values[i]
        work.counts[i] = 0
    order = np.argsort(-values)
    total = 0.0
    for _ in range(PASSES):
        changed = False
        for i in order:
            a = constraints.demand[ids[i]] if sized else 0.0
            if chosen[i] == 0:
                if gain[i] <= 0.0 or (sized and total + a > high):
                    continue
                if is_blocked(constraints, ids[i], work.counts[i], work):
                    continue
                sign = 1
            else:
                if gain[i] >= 0.0 or (sized and total - a < low):
                    continue
                sign = -1
            chosen[i] = 1 - chosen[i]
            total += sign * a
            change_member(constraints, ids, i, sign, gain, work)
            changed = True
        if not changed:
            break
    if sized and total < low:
        for i in order:
            if chosen[i] == 1 or total >= low:
                continue
            a = constraints.demand[ids[i]]
            if total + a > high or is_blocked(constraints, ids[i], work.counts[i], work):
                continue
            chosen[i] = 1
            total += a
            change_member(constraints, ids, i, 1, gain, work)
    feasible = not sized or low <= total <= high
    value = set_value(constraints, ids, values, work, chosen) if feasible else -np.inf
    for i in range(m):
        if chosen[i] == 1:
            change_member(constraints, ids, i, -1, gain, work)
    unmark_members(ids, work.position)
    return value
