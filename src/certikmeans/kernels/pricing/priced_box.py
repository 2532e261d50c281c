"""Upper bound on the value of the best admissible set over a box, by prices of the constraints.

With valid prices ``p`` and constant ``c`` (`constraint_prices`) the value of every admissible set
is at most ``c + sum over all groups of max(v_s - p_s, 0)``, for any values ``v``. A box with centre
``m`` and half-widths ``r`` has two such bounds:

* **Mean bound.** If the mean of a set lies in the box, ``sum a_s(mean) = sum a_s(m) + W |mean -
  m|^2 <= sum (a_s(m) + w_s |r|^2)``: take ``v_s = a_s(m) + w_s |r|^2``. Along an axis where the
  box touches an active face of the region the mean may lie beyond it: there take the least
  distance of the group from the box instead.
* **Chords.** ``a_s - p_s`` is a quadratic with shifted multiplier, and ``max(t, 0)`` lies below its
  chord: one concave quadratic in ``y``, valid over the box.

**Decisions.** Let (y, I) be a best pair. Any best set at y has its mean at y, else its value would
be larger there. So a decision is valid if some best set at every y of the box, among those that
obey the earlier decisions, obeys it. OUT: ``u_s`` and all bonuses to open groups together are at
most 0, and sizes have no lower limit; or, among sets above the cutoff alone, the mean bound less
``p_s - v_s`` is at most the cutoff (`drop_hopeless`). IN: ``l_s`` and all negative bonuses to open
groups together are at least 0, no open group shares a set with it, and sizes are not limited.
Disjoint sets: see `drop_dominated`. The bonuses of a group that is IN move to its open neighbours
(``shift``). Equal sizes: see `decide_by_rank`. Intervals are rounded outward.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.constraint_model.arrays import ConstraintArrays
from certikmeans.kernels.constraint_prices.compose import update_prices
from certikmeans.kernels.constraint_prices.sizes import kth_largest
from certikmeans.kernels.constraint_prices.workspace import PriceWorkspace, price_workspace
from certikmeans.kernels.pricing.box_bound import IN, OPEN, OUT
from certikmeans.kernels.pricing.set_selection import drop_dominated
from certikmeans.kernels.soft_assignment import Forest
from certikmeans.rounding import EPS

MAX_DECISION_SWEEPS = 4
# A flow is cut short after this many scans of every pair: its prices are valid, only less good.
MAX_SCANS = 4


class PricedInstance(NamedTuple):
    """The groups, their multipliers and all constraints. Read only."""

    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    lam: np.ndarray  # (n,) multipliers
    base: np.ndarray  # (n,) lam - w |x|^2
    magnitude: np.ndarray  # (n,) |lam| + sum of the finite |bonuses|
    constraints: ConstraintArrays
    rank_sizes: bool  # sizes are the only constraints, all demands are 1, and no cuts are priced
    forest: Forest  # of the pairs where they are nearly one and the only constraints, else empty
    disjoint_sets: bool  # sets are the only constraints, and no group is in two of them


class PricedBox(NamedTuple):
    """Current box."""

    lo: np.ndarray  # (d,)
    hi: np.ndarray  # (d,)
    side: np.ndarray  # (d,) its sides before the last contraction
    peak: np.ndarray  # (d,) where the quadratic is largest
    y: np.ndarray  # (d,) where it is largest in the box
    center: np.ndarray  # (d,)
    free_axis: np.ndarray  # (d,) uint8: 1 where means are in the box
    sums: np.ndarray  # (d + 2,) quadratic of the groups that are in
    before: np.ndarray  # (d + 2,) the same before the last decisions
    estimate: np.ndarray  # (d + 2,) quadratic of the open groups
    demand: np.ndarray  # (2,) of the groups that are in; before the last decisions
    constant: np.ndarray  # (1,) of the last prices


class PricedWorkspace(NamedTuple):
    """Workspace of a search; arrays over groups by index in ``ids``."""

    ids: np.ndarray  # int32
    shift: np.ndarray  # bonuses of groups that are in
    upper: np.ndarray
    lower: np.ndarray
    value: np.ndarray  # of the mean bound
    price: np.ndarray
    state: np.ndarray  # uint8: OPEN, IN or OUT
    chosen: np.ndarray  # uint8
    position: np.ndarray  # (n,) int32: index in ``ids``, all -1 between calls
    score: np.ndarray  # (d,)
    prices: PriceWorkspace
    constraints: ConstraintArrays  # with size limits of the box
    box: PricedBox


@njit(cache=True, nogil=True)
def max_effort(constraints):
    """Limit on the work of one set of prices."""
    return np.int64(MAX_SCANS) * constraints.pair_neighbors.size + 1_000


@njit(cache=True, nogil=True)
def make_priced_workspace(instance, capacity):
    """Allocate the workspace of boxes of up to ``capacity`` members."""
    n, d = instance.points.shape
    shared = instance.constraints
    constraints = ConstraintArrays(
        shared.pair_indptr,
        shared.pair_neighbors,
        shared.pair_bonus,
        shared.set_indptr,
        shared.set_members,
        shared.group_set_indptr,
        shared.group_sets,
        shared.demand,
        shared.size_limits.copy(),
        shared.cut_of,
        shared.cut_free,
        shared.cut_price,
    )
    prices = price_workspace(constraints, capacity)
    prices.effort[0] = max_effort(constraints)
    return PricedWorkspace(
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity, dtype=np.uint8),
        np.empty(capacity, dtype=np.uint8),
        np.full(n, -1, dtype=np.int32),
        np.empty(d),
        prices,
        constraints,
        PricedBox(
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d, dtype=np.uint8),
            np.empty(d + 2),
            np.empty(d + 2),
            np.empty(d + 2),
            np.empty(2),
            np.empty(1),
        ),
    )


@njit(cache=True, nogil=True)
def add_shifted(points, weights, base, s, coefficient, sums):
    """Add ``coefficient * a_s`` with the given ``base`` to a quadratic."""
    mass = coefficient * weights[s]
    sums[0] += coefficient * base
    sums[1] += mass
    for j in range(points.shape[1]):
        sums[2 + j] += mass * points[s, j]


@njit(cache=True, nogil=True)
def evaluate_members(
    instance,  # IN
    members,  # IN   (size,) int32, ascending
    shifts,  # IN   (size,)
    work,  # WORK the box; OUT ids, shift, upper, lower, value
):
    """Ranges over the box, outward, and values of the mean bound; all members are kept.

    A coordinate difference, its square, the sum over ``d``, the product with the weight and the
    last subtraction err by less than ``(d + 6) EPS`` of ``|lam| + w r^2`` together; the shift is a
    sum of some of the group's bonuses, and errs by at most one EPS of their sizes per bonus.
    """
    points, weights, lam, magnitude = (
        instance.points,
        instance.weights,
        instance.lam,
        instance.magnitude,
    )
    box = work.box
    lo, hi, center, free_axis = box.lo, box.hi, box.center, box.free_axis
    d = lo.size
    paired = instance.constraints.pair_neighbors.size > 0
    indptr = instance.constraints.pair_indptr
    radius = 0.0
    for j in range(d):
        center[j] = 0.5 * (lo[j] + hi[j])
        if free_axis[j] == 1:
            half = 0.5 * (hi[j] - lo[j])
            radius += half * half
    radius *= 1.0 + 8.0 * EPS
    for i in range(members.size):
        s = members[i]
        near = 0.0
        far = 0.0
        middle = 0.0
        for j in range(d):
            x = points[s, j]
            below = lo[j] - x
            above = x - hi[j]
            gap = max(0.0, max(below, above))
            reach = max(-below, -above)
            near += gap * gap
            far += reach * reach
            if free_axis[j] == 1:
                away = x - center[j]
                middle += away * away
            else:
                middle += gap * gap
        w = weights[s]
        near *= w
        far *= w
        degree = float(indptr[s + 1] - indptr[s]) if paired else 0.0
        relative_error = (d + 8 + 4.0 * degree) * EPS
        here = lam[s] + shifts[i]
        work.ids[i] = s
        work.shift[i] = shifts[i]
        work.state[i] = OPEN
        work.upper[i] = here - near + relative_error * (magnitude[s] + near)
        work.lower[i] = here - far - relative_error * (magnitude[s] + far)
        work.value[i] = here - w * (middle - radius)
    return members.size


@njit(cache=True, nogil=True)
def decide_by_rank(m, lower_count, upper_count, work):
    """Decide groups of equal size, at least and at most so many of which are chosen.

    Let T be the ``upper_count`` groups of largest ``l``, ties by order. A group outside T with
    ``u <= min of l over T`` is OUT: a best set with it has at most ``upper_count - 1`` others,
    lacks one of T, and exchanging the two does not lower its value; no group of T is dropped by
    this rule, so that exchanges end. The same with the ``lower_count`` groups of largest ``l`` if
    ``u <= 0``: a larger set may simply leave the group out. IN, likewise: ``l`` at least the
    ``upper_count + 1``-th largest u, and at least 0 or the ``lower_count + 1``-th largest u: a set
    without the group has a group of no larger value to exchange, or room for one.
    """
    upper, lower, state, scratch = work.upper, work.lower, work.state, work.price
    for i in range(m):
        scratch[i] = lower[i]
    least_u = kth_largest(scratch[:m], upper_count) if upper_count > 0 else np.inf
    least_l = kth_largest(scratch[:m], lower_count) if lower_count > 0 else np.inf
    threshold_out = max(least_u, min(least_l, 0.0))
    for i in range(m):
        scratch[i] = upper[i]
    next_u = kth_largest(scratch[:m], upper_count + 1) if upper_count >= 0 else np.inf
    next_l = kth_largest(scratch[:m], lower_count + 1) if lower_count >= 0 else np.inf
    threshold_in = max(next_u, min(next_l, 0.0))
    for i in range(m):
        # Strict: a group of T has u >= l >= the threshold.
        if upper[i] < threshold_out:
            state[i] = OUT
        elif lower[i] > threshold_in:
            state[i] = IN


@njit(cache=True, nogil=True)
def has_open_mate(constraints, position, state, s, i):
    """Whether an open group shares a set with group ``s``, which has index ``i``."""
    for k in range(constraints.group_set_indptr[s], constraints.group_set_indptr[s + 1]):
        number = constraints.group_sets[k]
        for e in range(constraints.set_indptr[number], constraints.set_indptr[number + 1]):
            q = position[constraints.set_members[e]]
            if q >= 0 and q != i and state[q] == OPEN:
                return True
    return False


@njit(cache=True, nogil=True)
def decide_by_sign(m, sized, may_shrink, work):
    """Decide groups by the signs of their ranges; repeated while bonuses of others change them."""
    constraints = work.constraints
    indptr, neighbors, bonus = (
        constraints.pair_indptr,
        constraints.pair_neighbors,
        constraints.pair_bonus,
    )
    ids, state, upper, lower = work.ids, work.state, work.upper, work.lower
    position = work.position
    paired, in_sets = neighbors.size > 0, constraints.set_members.size > 0
    if paired or in_sets:
        for i in range(m):
            position[ids[i]] = i
    for _sweep in range(MAX_DECISION_SWEEPS):
        changed = False
        for i in range(m):
            if state[i] != OPEN:
                continue
            s = ids[i]
            could_leave, could_stay = upper[i] <= 0.0, lower[i] >= 0.0 and not sized
            if not (could_leave or could_stay):
                continue
            more, less = 0.0, 0.0
            if paired:
                for e in range(indptr[s], indptr[s + 1]):
                    q = position[neighbors[e]]
                    if q >= 0 and state[q] == OPEN:
                        more += max(bonus[e], 0.0)
                        less += min(bonus[e], 0.0)
                        if less == -np.inf and not could_leave:
                            break
            # The margins of the ranges cover the rounding of these sums.
            if upper[i] + more <= 0.0:
                if may_shrink:
                    state[i] = OUT
                    changed = True
                continue
            if not could_stay or not lower[i] + less >= 0.0:
                continue
            if in_sets and has_open_mate(constraints, position, state, s, i):
                continue
            state[i] = IN
            if paired:
                for e in range(indptr[s], indptr[s + 1]):
                    q = position[neighbors[e]]
                    if q >= 0 and state[q] == OPEN:
                        changed = True
                        work.shift[q] += bonus[e]
                        upper[q] += bonus[e]
                        lower[q] += bonus[e]
                        work.value[q] += bonus[e]
        if not changed or not (paired or in_sets):
            break
    if paired or in_sets:
        for i in range(m):
            position[ids[i]] = -1


@njit(cache=True, nogil=True)
def apply_decisions(instance, m, work):
    """Add the groups that are IN to the fixed sums, keep the open ones; returns their number."""
    box, ids, state = work.box, work.ids, work.state
    demand = instance.constraints.demand
    kept = 0
    for i in range(m):
        s = ids[i]
        if state[i] == IN:
            add_shifted(
                instance.points,
                instance.weights,
                instance.base[s] + work.shift[i],
                s,
                1.0,
                box.sums,
            )
            if demand.size > 0:
                box.demand[0] += demand[s]
        elif state[i] == OPEN:
            ids[kept] = s
            work.shift[kept] = work.shift[i]
            work.upper[kept] = work.upper[i]
            work.lower[kept] = work.lower[i]
            work.value[kept] = work.value[i]
            state[kept] = OPEN
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def fixed_mean_value(box):
    """Largest value of the groups that are in, for a mean in the box (or beyond a face)."""
    sums, mass = box.sums, box.sums[1]
    value = sums[0]
    for j in range(box.lo.size):
        pull = sums[2 + j]
        if box.free_axis[j] == 1:
            half = 0.5 * (box.hi[j] - box.lo[j])
            value += box.center[j] * (2.0 * pull - mass * box.center[j]) + mass * half * half
        else:
            y = pull / mass if mass > 0.0 else box.center[j]
            y = min(max(y, box.lo[j]), box.hi[j])
            value += y * (2.0 * pull - mass * y)
    return value


@njit(cache=True, nogil=True)
def estimate_by_chords(instance, m, constant, work):
    """Quadratic above ``constant + sum of max(a_s - p_s, 0)`` over the box, into the estimate."""
    box, ids, price, upper, lower = work.box, work.ids, work.price, work.upper, work.lower
    points, weights, base = instance.points, instance.weights, instance.base
    estimate = box.estimate
    estimate[:] = 0.0
    estimate[0] = constant
    for i in range(m):
        u, low = upper[i] - price[i], lower[i] - price[i]
        if u <= 0.0:
            continue
        slope = 1.0
        if low < 0.0:
            slope = u / (u - low)
            estimate[0] -= slope * low
        s = ids[i]
        add_shifted(points, weights, base[s] + (work.shift[i] - price[i]), s, slope, estimate)


class PricedBound(NamedTuple):
    """One bound of a box."""

    bound: float  # the smaller of both
    by_chords: float
    excess: float  # the mean bound exceeds that of the centre alone by at most this
    n_open: int  # -1 if no admissible set remains


@njit(cache=True, nogil=True)
def drop_hopeless(m, excess, work):
    """Drop open groups that no set above the cutoff contains; returns the number kept.

    The mean bound of sets that contain a group of negative margin ``v_s - p_s`` is lower by that.
    ``excess`` is the mean bound less the cutoff, rounded up.
    """
    kept = 0
    for i in range(m):
        if work.value[i] - work.price[i] < -excess:
            continue
        work.ids[kept] = work.ids[i]
        work.shift[kept] = work.shift[i]
        work.upper[kept] = work.upper[i]
        work.lower[kept] = work.lower[i]
        work.value[kept] = work.value[i]
        work.price[kept] = work.price[i]
        work.state[kept] = work.state[i]
        kept += 1
    return kept


@njit(cache=True, nogil=True)
def bound_priced_box(instance, members, shifts, work, params, cutoff):
    """Bound the box in ``work``: decide groups, price the open ones, mean bound and chords."""
    box = work.box
    for j in range(box.lo.size):
        inside = box.lo[j] > params.active_faces[0, j] and box.hi[j] < params.active_faces[1, j]
        box.free_axis[j] = 1 if inside else 0
    m = evaluate_members(instance, members, shifts, work)
    limits, sized = work.constraints.size_limits, instance.constraints.demand.size > 0
    box.before[:] = box.sums
    box.demand[1] = box.demand[0]
    lower_limit, upper_limit = -np.inf, np.inf
    if sized:
        lower_limit = instance.constraints.size_limits[0] - box.demand[0]
        upper_limit = instance.constraints.size_limits[1] - box.demand[0]
    if instance.rank_sizes:
        if lower_limit > m or upper_limit < 0.0:
            return PricedBound(-np.inf, -np.inf, np.inf, -1)
        least = np.int64(max(0.0, np.ceil(lower_limit)))
        most = np.int64(min(np.floor(upper_limit), m + 1.0))
        decide_by_rank(m, least, most, work)
    else:
        if instance.disjoint_sets:
            drop_dominated(instance.constraints, m, work)
        decide_by_sign(m, sized, not (sized and lower_limit > 0.0), work)
    m = apply_decisions(instance, m, work)
    if sized:
        limits[0] = max(instance.constraints.size_limits[0] - box.demand[0], 0.0)
        limits[1] = instance.constraints.size_limits[1] - box.demand[0]
    ids, price, value = work.ids[:m], work.price[:m], work.value[:m]
    constant = update_prices(work.constraints, ids, value, work.prices, price)
    box.constant[0] = constant
    by_mean = constant + fixed_mean_value(box)
    open_mass, radius, size = 0.0, 0.0, abs(constant)
    for i in range(m):
        by_mean += max(value[i] - price[i], 0.0)
        size += abs(price[i])
        open_mass += instance.weights[ids[i]]
    for j in range(box.lo.size):
        half = 0.5 * (box.hi[j] - box.lo[j])
        radius += half * half if box.free_axis[j] == 1 else np.inf
    estimate_by_chords(instance, m, constant, work)
    # `maximize_in_box` of the sums of both
    mass = box.sums[1] + box.estimate[1]
    by_chords = box.sums[0] + box.estimate[0]
    for j in range(box.lo.size):
        pull = box.sums[2 + j] + box.estimate[2 + j]
        box.peak[j] = pull / mass if mass > 0.0 else box.center[j]
        box.y[j] = min(max(box.peak[j], box.lo[j]), box.hi[j])
        by_chords += box.y[j] * (2.0 * pull - mass * box.y[j])
    error = params.error + params.price_error * size
    by_chords += error
    bound = min(by_mean + error, by_chords)
    excess = bound - (by_mean + error) + (box.sums[1] + open_mass) * radius
    if instance.constraints.cut_of.size > 0:
        m = drop_hopeless(m, max(by_mean + 2.0 * error - cutoff, 0.0) * (1.0 + 4.0 * EPS), work)
    return PricedBound(bound, by_chords, excess, m)
