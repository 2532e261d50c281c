"""Local ascent of pricing with any constraints: select an admissible set, move to its mean."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.select import select_set
from certikmeans.kernels.constraint_prices.size_cuts import cut_penalty
from certikmeans.kernels.constraint_prices.workspace import price_workspace
from certikmeans.kernels.pricing.box_bound import add_group
from certikmeans.kernels.pricing.forest_selection import select_by_forest
from certikmeans.kernels.pricing.priced_box import max_effort
from certikmeans.kernels.pricing.set_selection import best_of_all


@njit(cache=True, nogil=True)
def set_bonus(constraints, members):
    """Sum of the bonuses of the pairs inside a set; -inf with a hard cannot-link inside."""
    total = 0.0
    if constraints.pair_neighbors.size == 0:
        return total
    for s in range(members.size):
        if members[s] == 0:
            continue
        for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
            other = constraints.pair_neighbors[e]
            if other > s and members[other] == 1:
                total += constraints.pair_bonus[e]
    return total


@njit(cache=True, nogil=True)
def is_admissible(constraints, members):
    """Whether a set violates no hard constraint."""
    if set_bonus(constraints, members) == -np.inf:
        return False
    for number in range(constraints.set_indptr.size - 1):
        count = 0
        for e in range(constraints.set_indptr[number], constraints.set_indptr[number + 1]):
            count += members[constraints.set_members[e]]
        if count > 1:
            return False
    if constraints.demand.size > 0:
        total = 0.0
        for s in range(members.size):
            if members[s] == 1:
                total += constraints.demand[s]
        if total < constraints.size_limits[0] or total > constraints.size_limits[1]:
            return False
    return True


@njit(cache=True, nogil=True)
def positive_bonus(constraints, n):
    """Sum of the positive bonuses of every group."""
    more = np.zeros(n)
    if constraints.pair_neighbors.size > 0:
        for s in range(n):
            for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
                more[s] += max(constraints.pair_bonus[e], 0.0)
    return more


@njit(cache=True, nogil=True)
def move_to_mean(instance, active_faces, members, y, sums):
    """Move ``y`` to the mean of the members, clipped; returns their value there.

    It includes bonuses and what they pay for size cuts.
    """
    sums[:] = 0.0
    for s in range(members.size):
        if members[s] == 1:
            add_group(instance.points, instance.weights, instance.base, s, 1.0, sums)
    if sums[1] == 0.0:
        return 0.0
    value = sums[0]
    for j in range(y.size):
        y[j] = min(max(sums[2 + j] / sums[1], active_faces[0, j]), active_faces[1, j])
        value += y[j] * (2.0 * sums[2 + j] - sums[1] * y[j])
    return (
        value
        + set_bonus(instance.constraints, members)
        - cut_penalty(instance.constraints, members)
    )


@njit(cache=True, nogil=True)
def ascend_priced(
    instance,  # IN   PricedInstance
    allowed,  # IN   (n,) uint8: groups that may be chosen
    active_faces,  # IN   (2, d): bounds on ``y``
    y,  # IN/OUT (d,): start, then the mean of ``members``, clipped to the faces
    best_sums,  # OUT  (d + 2,): of ``members``
    members,  # IN/OUT (n,) uint8: an admissible set to start from, or the empty one
    limits,  # IN   (2,): most steps; stop at a step that gains less
):
    """Alternate selection and mean until the value converges; returns it, -inf without a set."""
    constraints, points, weights, lam = (
        instance.constraints,
        instance.points,
        instance.weights,
        instance.lam,
    )
    n, d = points.shape
    must_fill = constraints.demand.size > 0 and constraints.size_limits[0] > 0.0
    more = positive_bonus(constraints, n)
    work = price_workspace(constraints, 1 if instance.disjoint_sets else n)
    work.effort[0] = max_effort(constraints)
    ids, values, delta = np.empty(n, dtype=np.int32), np.empty(n), np.empty(n)
    chosen, trial = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
    sums, center = np.empty(d + 2), y.copy()
    nearly_forest = instance.forest.order.size > 0
    best = -np.inf
    best_sums[:] = 0.0
    started = False
    for s in range(n):
        started = started or members[s] == 1
    if started:
        best = move_to_mean(instance, active_faces, members, center, best_sums)
        y[:] = center
    for step in range(int(limits[0])):
        m = 0
        for s in range(n):
            a = -np.inf
            if allowed[s] == 1:
                r = 0.0
                for j in range(d):
                    away = points[s, j] - center[j]
                    r += away * away
                a = lam[s] - weights[s] * r
            if nearly_forest or instance.disjoint_sets:
                values[s] = a
            elif allowed[s] == 1 and (must_fill or a + more[s] > 0.0):
                ids[m] = s
                values[m] = a
                m += 1
        if nearly_forest:
            select_by_forest(constraints, instance.forest, values, delta, trial)
        elif instance.disjoint_sets:
            best_of_all(constraints, values, trial)
        elif select_set(constraints, ids[:m], values[:m], -np.inf, work, chosen[:m]) == -np.inf:
            break
        else:
            trial[:] = 0
            for i in range(m):
                trial[ids[i]] = chosen[i]
        value = move_to_mean(instance, active_faces, trial, center, sums)
        gain = value - best
        if gain <= 1e-12 * abs(value):
            break
        best = value
        members[:] = trial
        best_sums[:] = sums
        y[:] = center
        if step > 0 and gain < limits[1]:
            break
    return best


@njit(cache=True, nogil=True)
def complete_set(
    instance,  # IN   PricedInstance
    allowed,  # IN   (n,) uint8
    y,  # IN   (d,)
    members,  # IN/OUT (n,) uint8: open groups of a set 1, other open groups 2; then the set
):
    """Add decided groups by descending value if they fit and gain; empty if inadmissible."""
    constraints = instance.constraints
    n, d = instance.points.shape
    sized = constraints.demand.size > 0
    values = np.empty(n)
    total = 0.0
    for s in range(n):
        r = 0.0
        for j in range(d):
            away = instance.points[s, j] - y[j]
            r += away * away
        values[s] = instance.lam[s] - instance.weights[s] * r
        if members[s] == 1 and sized:
            total += constraints.demand[s]
    for s in np.argsort(-values):
        if members[s] != 0 or allowed[s] == 0:
            continue
        gain = values[s]
        if constraints.pair_neighbors.size > 0:
            for e in range(constraints.pair_indptr[s], constraints.pair_indptr[s + 1]):
                if members[constraints.pair_neighbors[e]] == 1:
                    gain += constraints.pair_bonus[e]
        if gain <= 0.0 and not (sized and total < constraints.size_limits[0]):
            continue
        if gain == -np.inf:
            continue
        fits = not sized or total + constraints.demand[s] <= constraints.size_limits[1]
        if fits and constraints.set_members.size > 0:
            for k in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
                number = constraints.group_sets[k]
                for e in range(constraints.set_indptr[number], constraints.set_indptr[number + 1]):
                    if members[constraints.set_members[e]] == 1:
                        fits = False
        if fits:
            members[s] = 1
            if sized:
                total += constraints.demand[s]
    for s in range(n):
        if members[s] == 2:
            members[s] = 0
    if not is_admissible(constraints, members):
        members[:] = 0
