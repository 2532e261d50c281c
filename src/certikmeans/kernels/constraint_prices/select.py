"""An admissible set of large value at a point, and solutions in halves.

The solution of the linear program is rounded: members at 1 first, then those at 1/2, those that
exclude little value first. Then a local search: drop members that do not pay, exchange a member
for all that conflict with it, or for several that only conflict with it. Sizes are priced by
``theta`` meanwhile and met at the end.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.compose import alternate, priced_bound, total_demand
from certikmeans.kernels.constraint_prices.size_cuts import values_after_cuts
from certikmeans.kernels.constraint_prices.sizes import all_units, select_units
from certikmeans.kernels.constraint_prices.workspace import mark_members, unmark_members

MAX_PASSES = 8
MAX_EXCHANGES = 30  # members of each side tried in exchanges of equal numbers
OPTIMAL_RTOL = 1e-12  # a set that reaches the bound of the prices up to this is a best one


class Selection(NamedTuple):
    """A set under construction."""

    chosen: np.ndarray  # (m,) uint8
    gain: np.ndarray  # (m,) values, less theta times demand, plus bonuses to the set
    conflicts: np.ndarray  # (m,) int32: hard cannot-links to the set
    set_members: np.ndarray  # (n_sets,) int32: members in the set
    total: np.ndarray  # (1,) demand of the set


@njit(cache=True, nogil=True)
def switch_member(
    constraints,  # IN
    ids,  # IN   (m,) int32
    i,  # IN   member
    position,  # IN   (n,) int32: members numbered
    selection,  # IN/OUT
):
    """Put a member into the set, or take it out."""
    s = ids[i]
    sign = 1 - 2 * np.int64(selection.chosen[i])
    selection.chosen[i] = 1 - selection.chosen[i]
    if constraints.demand.size > 0:
        selection.total[0] += sign * constraints.demand[s]
    for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
        j = position[constraints.pair_neighbors[e]]
        if j >= 0:
            if constraints.pair_bonus[e] == -np.inf:
                selection.conflicts[j] += sign
            else:
                selection.gain[j] += sign * constraints.pair_bonus[e]
    for e in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        selection.set_members[constraints.group_sets[e]] += sign


@njit(cache=True, nogil=True)
def is_blocked(
    constraints,  # IN
    s,  # IN   group
    conflicts,  # IN   its hard cannot-links to the set
    set_members,  # IN   (n_sets,) int32
):
    """Whether a group cannot enter the set because of a pair or a set."""
    if conflicts > 0:
        return True
    for e in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        if set_members[constraints.group_sets[e]] > 0:
            return True
    return False


@njit(cache=True, nogil=True)
def list_conflicts(
    constraints,  # IN
    ids,  # IN
    i,  # IN   member outside the set
    work,  # IN/OUT order: members in conflict with it
    selection,  # IN
):
    """List the members of the set that exclude a group.

    Returns ``(count, sum of their gains)``; a member found twice counts twice in the sum.
    """
    s, position = ids[i], work.position
    count, loss = 0, 0.0
    if selection.conflicts[i] > 0:
        for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
            if constraints.pair_bonus[e] == -np.inf:
                j = position[constraints.pair_neighbors[e]]
                if j >= 0 and selection.chosen[j] == 1:
                    work.order[count] = j
                    count += 1
                    loss += selection.gain[j]
    for k in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        number = constraints.group_sets[k]
        if selection.set_members[number] > 0:
            for e in range(constraints.set_indptr[number], constraints.set_indptr[number + 1]):
                j = position[constraints.set_members[e]]
                if j >= 0 and selection.chosen[j] == 1:
                    known = False
                    for f in range(count):
                        known |= work.order[f] == j
                    if not known:
                        work.order[count] = j
                        count += 1
                        loss += selection.gain[j]
    return count, loss


@njit(cache=True, nogil=True)
def replace_by_several(
    constraints,  # IN
    ids,  # IN
    i,  # IN   member of the set
    work,  # IN/OUT
    selection,  # IN/OUT
):
    """Exchange a member for compatible groups that only it excludes, if their values are larger."""
    s, position, listed, mark = ids[i], work.position, work.order, work.pairs.queued
    count, total = 0, 0.0
    for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
        if constraints.pair_bonus[e] == -np.inf:
            j = position[constraints.pair_neighbors[e]]
            if (
                j >= 0
                and selection.conflicts[j] == 1
                and selection.gain[j] > 0.0
                and not is_blocked(constraints, ids[j], 0, selection.set_members)
            ):
                listed[count] = j
                mark[j] = 0
                count += 1
                total += selection.gain[j]
    if total <= selection.gain[i]:
        return False
    taken, total = 0, 0.0
    while True:
        best = -1
        for k in range(taken, count):
            j = listed[k]
            if mark[j] == 0 and (best < 0 or selection.gain[j] > selection.gain[listed[best]]):
                best = k
        if best < 0:
            break
        j = listed[best]
        listed[best], listed[taken] = listed[taken], j
        taken += 1
        mark[j] = 1
        total += selection.gain[j]
        u = ids[j]
        for e in range(constraints.pair_indptr[u], constraints.pair_indptr[u + 1]):
            if constraints.pair_bonus[e] < 0.0:
                k = position[constraints.pair_neighbors[e]]
                if k >= 0:
                    mark[k] = 1
        for k in range(taken, count):
            if mark[listed[k]] == 0 and shares_set(constraints, u, ids[listed[k]]):
                mark[listed[k]] = 1
    if total <= selection.gain[i] * (1.0 + 1e-12):
        return False
    switch_member(constraints, ids, i, position, selection)
    for k in range(taken):
        switch_member(constraints, ids, listed[k], position, selection)
    return True


@njit(cache=True, nogil=True)
def shares_set(
    constraints,  # IN
    first,  # IN   group
    second,  # IN   group
):
    """Whether two groups are in a common set."""
    indptr, group_sets = constraints.group_set_indptr, constraints.group_sets
    for e in range(indptr[first], indptr[first + 1]):
        for f in range(indptr[second], indptr[second + 1]):
            if group_sets[e] == group_sets[f]:
                return True
    return False


@njit(cache=True, nogil=True)
def round_solution(
    constraints,  # IN
    ids,  # IN
    work,  # IN   x
    selection,  # IN/OUT
):
    """Insert members at 1, then at 1/2, then others, as far as they are compatible."""
    m = ids.size
    score = work.zeros[:m]
    for i in range(m):
        rivals = 1
        if work.x[i] == 0.5:
            s = ids[i]
            for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
                j = work.position[constraints.pair_neighbors[e]]
                if j >= 0 and constraints.pair_bonus[e] < 0.0 and work.x[j] == 0.5:
                    rivals += 1
        score[i] = -selection.gain[i] / rivals
    order = np.argsort(score)
    for i in range(m):
        score[i] = 0.0  # `zeros` again
    for level in (1.0, 0.5, 0.0):
        for i in order:
            if work.x[i] != level or (level < 1.0 and selection.gain[i] <= 0.0):
                continue
            if not is_blocked(constraints, ids[i], selection.conflicts[i], selection.set_members):
                switch_member(constraints, ids, i, work.position, selection)
    return order


@njit(cache=True, nogil=True)
def improve_set(
    constraints,  # IN
    ids,  # IN
    order,  # IN   (m,) int64: members in the order of trial
    work,  # IN/OUT
    selection,  # IN/OUT
):
    """Local search on the priced values."""
    paired = constraints.pair_neighbors.size > 0
    for _ in range(MAX_PASSES):
        changed = False
        for i in order:
            gain = selection.gain[i]
            if selection.chosen[i] == 1:
                if gain < 0.0:
                    switch_member(constraints, ids, i, work.position, selection)
                    changed = True
                elif paired and replace_by_several(constraints, ids, i, work, selection):
                    changed = True
            elif gain > 0.0:
                count, loss = list_conflicts(constraints, ids, i, work, selection)
                if gain > loss * (1.0 + 1e-12):
                    for k in range(count):
                        j = work.order[k]
                        switch_member(constraints, ids, j, work.position, selection)
                    switch_member(constraints, ids, i, work.position, selection)
                    changed = True
        if not changed:
            break


@njit(cache=True, nogil=True)
def meet_sizes(
    constraints,  # IN
    ids,  # IN
    work,  # IN
    selection,  # IN/OUT gain is without theta
):
    """Insert and drop members until the size is within its limits, and fill it up.

    Returns whether it is.
    """
    demand, gain, chosen, total = (
        constraints.demand,
        selection.gain,
        selection.chosen,
        selection.total,
    )
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    for _ in range(2 * ids.size):
        if low <= total[0] <= high:
            break
        best, best_ratio = -1, -np.inf
        short = total[0] < low
        for i in range(ids.size):
            a = demand[ids[i]]
            if a == 0.0 or (chosen[i] == 1) == short:
                continue
            if short and (
                total[0] + a > high
                or is_blocked(constraints, ids[i], selection.conflicts[i], selection.set_members)
            ):
                continue
            ratio = gain[i] / a if short else -gain[i] / a
            if ratio > best_ratio:
                best, best_ratio = i, ratio
        if best < 0:
            return False
        switch_member(constraints, ids, best, work.position, selection)
        if not short and total[0] < low:  # one too large: leave the rest to insertions
            continue
    if not low <= total[0] <= high:
        return False
    for _ in range(MAX_PASSES):
        changed = False
        for i in range(ids.size):
            a = demand[ids[i]]
            if chosen[i] == 0:
                if (
                    gain[i] > 0.0
                    and total[0] + a <= high
                    and not is_blocked(
                        constraints, ids[i], selection.conflicts[i], selection.set_members
                    )
                ):
                    switch_member(constraints, ids, i, work.position, selection)
                    changed = True
            elif gain[i] < 0.0 and total[0] - a >= low:
                switch_member(constraints, ids, i, work.position, selection)
                changed = True
        changed |= exchange_pairs(constraints, ids, work, selection)
        if not changed:
            break
    return True


@njit(cache=True, nogil=True)
def exchange_pairs(
    constraints,  # IN
    ids,  # IN
    work,  # IN
    selection,  # IN/OUT
):
    """Exchange one member for one group, both near the margin, if that pays."""
    demand, gain, chosen, total = (
        constraints.demand,
        selection.gain,
        selection.chosen,
        selection.total,
    )
    low, high = constraints.size_limits[0], constraints.size_limits[1]
    inside = np.flatnonzero(chosen == 1)
    outside = np.flatnonzero(chosen == 0)
    inside = inside[np.argsort(gain[inside])][:MAX_EXCHANGES]
    outside = outside[np.argsort(-gain[outside])][:MAX_EXCHANGES]
    changed = False
    for i in inside:
        for j in outside:
            if chosen[i] == 0:
                break
            size = total[0] - demand[ids[i]] + demand[ids[j]]
            if chosen[j] == 1 or gain[j] <= gain[i] or not low <= size <= high:
                continue
            switch_member(constraints, ids, i, work.position, selection)
            blocked = is_blocked(constraints, ids[j], selection.conflicts[j], selection.set_members)
            # Bonuses between the two make the gain after the first step the one that counts.
            if blocked or gain[j] <= gain[i] + 1e-12 * abs(gain[i]):
                switch_member(constraints, ids, i, work.position, selection)
            else:
                switch_member(constraints, ids, j, work.position, selection)
                changed = True
    return changed


@njit(cache=True, nogil=True)
def set_value(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    position,  # IN   (n,) int32: members numbered
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
            j = position[constraints.pair_neighbors[e]]
            if j > i and chosen[j] == 1:
                total += constraints.pair_bonus[e]
    return total


@njit(cache=True, nogil=True)
def select_marked(
    constraints,  # IN
    ids,  # IN   (m,) int32
    values,  # IN   (m,)
    theta,  # IN   price of size
    bound,  # IN   upper bound on the value of a set
    work,  # IN/OUT members numbered; x is a solution of the linear program
    chosen,  # OUT  (m,) uint8
):
    """`select_set` after the linear program."""
    m = ids.size
    sized = constraints.demand.size > 0
    selection = Selection(chosen, work.values[:m], work.counts[:m], work.set_mark, work.size)
    selection.total[0] = 0.0
    for i in range(m):
        chosen[i] = 0
        selection.gain[i] = values[i] - theta * work.demand[i]
        selection.conflicts[i] = 0
    order = round_solution(constraints, ids, work, selection)
    value = -np.inf if sized else set_value(constraints, ids, values, work.position, chosen)
    if value < bound - OPTIMAL_RTOL * abs(bound):
        improve_set(constraints, ids, order, work, selection)
    feasible = True
    if sized:
        for i in range(m):
            selection.gain[i] += theta * work.demand[i]
        feasible = meet_sizes(constraints, ids, work, selection)
    for i in range(m):
        if chosen[i] == 1:
            s = ids[i]
            for e in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
                work.set_mark[constraints.group_sets[e]] = 0
    return set_value(constraints, ids, values, work.position, chosen) if feasible else -np.inf


@njit(cache=True, nogil=True)
def select_set(
    constraints,  # IN   ConstraintArrays
    ids,  # IN   (m,) int32, ascending
    values,  # IN   (m,) float64
    least,  # IN   give up if prices show that no set has a larger value
    work,  # IN/OUT PriceWorkspace
    chosen,  # OUT  (m,) uint8
):
    """Find an admissible set of large value.

    Exact for pairs without cycles, disjoint sets, or sizes of unit demands alone. Returns the
    value with bonuses, -inf if no admissible set was found.
    """
    if constraints.demand.size > 0 and total_demand(constraints, ids) < constraints.size_limits[0]:
        for i in range(ids.size):
            chosen[i] = 0
        return -np.inf
    alone = constraints.pair_neighbors.size == 0 and constraints.group_sets.size == 0
    if alone and constraints.demand.size > 0 and all_units(constraints.demand):
        low, high = constraints.size_limits[0], constraints.size_limits[1]
        scratch, reduced = work.left[: ids.size], values
        if constraints.cut_of.size > 0:
            reduced = work.values[: ids.size]
            values_after_cuts(constraints, ids, values, scratch, reduced)
        value = select_units(reduced, low, high, scratch, chosen)
        return value if value > least else -np.inf
    mark_members(ids, work.position)
    constant, theta = alternate(constraints, ids, values, work)
    bound, value = priced_bound(constant, values, work.best[: ids.size]), -np.inf
    if bound > least:
        value = select_marked(constraints, ids, values, theta, bound, work, chosen)
    unmark_members(ids, work.position)
    return value
