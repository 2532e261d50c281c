"""Depth-first branch and bound over boxes for the best admissible cluster, by prices.

The search of `kernels.pricing.search` for any kind of constraints: boxes are bounded by
`bound_priced_box` instead of forests.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.constraint_prices.compose import priced_bound
from certikmeans.kernels.constraint_prices.select import select_set
from certikmeans.kernels.pricing.boxes import choose_axis
from certikmeans.kernels.pricing.priced_box import bound_priced_box, make_priced_workspace
from certikmeans.kernels.pricing.search import (
    MAX_BOUNDS_PER_BOX,
    REBOUND_RATIO,
    contract_box,
    quadratic_at,
)
from certikmeans.kernels.pricing.set_selection import best_of_members


class PricedStack(NamedTuple):
    """Stack of open boxes; members of a box are a slice of the arena."""

    lows: np.ndarray  # (capacity, d)
    highs: np.ndarray  # (capacity, d)
    fixed_sums: np.ndarray  # (capacity, d + 2) quadratic of the groups that are in
    fixed_demands: np.ndarray  # (capacity,) their demand
    uppers: np.ndarray  # (capacity,) at least the value of every cluster of the box
    starts: np.ndarray  # (capacity,) int64: first member in the arena
    sizes: np.ndarray  # (capacity,) int64: members, open groups in ascending order
    arena: np.ndarray  # int32
    shifts: np.ndarray  # float64, like the arena: bonuses of groups that are in


class PricedSearchParams(NamedTuple):
    """Settings of one search."""

    error: float  # at least the rounding error of a computed upper bound, without prices
    price_error: float  # the part due to prices, relative to the sum of their sizes
    mean_error: np.ndarray  # (d,) at least the rounding error of a computed mean
    active_faces: np.ndarray  # (2, d): of the region that contains all boxes
    excluded_box: np.ndarray  # (2, d): empty
    tolerance: float  # an improving value raises the cutoff to itself plus this
    resolution: (
        float  # a box is not split if its bound exceeds the price bound at its centre by less
    )
    budget: float  # evaluations of a coordinate, about


class ImprovingSets(NamedTuple):
    """Ring buffer of the last sets whose value exceeded the cutoff."""

    centers: np.ndarray  # (capacity, d)
    values: np.ndarray  # (capacity,)
    members: np.ndarray  # (capacity, n) uint8: open groups of the set: 1, other open groups: 2


class PricedSearchResult(NamedTuple):
    """Result of a search."""

    n_open: int  # boxes left on the stack
    n_bounded: int
    n_found: int  # improving sets in all, also those overwritten
    cutoff: float
    unsplittable_bound: float  # largest bound of a box that was not split, or -inf
    unsplittable_center: np.ndarray  # (d,) centre of that box


class ProcessedPricedBox(NamedTuple):
    """Remainder of a box after repeated bounding and contraction."""

    bound: float  # -inf if the box is closed
    excess: float  # over the bound of the centre alone, at most
    start: int  # of the open groups in the arena, behind the original members
    size: int
    n_bounds: int
    n_evaluations: float


@njit(cache=True, nogil=True)
def process_priced_box(instance, stack, work, node, params, cutoff):
    """Bound and contract the box at ``node`` until neither makes progress."""
    box, arena, shifts = work.box, stack.arena, stack.shifts
    lo, hi, side = box.lo, box.hi, box.side
    d = lo.size
    lo[:] = stack.lows[node]
    hi[:] = stack.highs[node]
    box.sums[:] = stack.fixed_sums[node]
    box.demand[0] = stack.fixed_demands[node]
    bound = stack.uppers[node]
    start, size = stack.starts[node], stack.sizes[node]
    free = start + size
    n_bounds, n_evaluations = 0, 0.0
    while True:
        n_bounds += 1
        effort = work.prices.effort[1]
        bounded = bound_priced_box(
            instance,
            arena[start : start + size],
            shifts[start : start + size],
            work,
            params,
            cutoff,
        )
        n_evaluations += (size + 1.0) * (d + 4.0) + (work.prices.effort[1] - effort)
        bound = min(bound, bounded.bound)
        if bound <= cutoff or bounded.n_open < 0:
            return ProcessedPricedBox(-np.inf, np.inf, start, size, n_bounds, n_evaluations)
        start, size = free, np.int64(bounded.n_open)
        for i in range(size):
            arena[free + i] = work.ids[i]
            shifts[free + i] = work.shift[i]
        side[:] = hi - lo
        if not contract_box(instance, work.ids[:size], box, bounded.by_chords - cutoff, params):
            return ProcessedPricedBox(-np.inf, np.inf, start, size, n_bounds, n_evaluations)
        shrunk = 1.0
        for j in range(d):
            if side[j] > 0.0:
                shrunk = min(shrunk, (hi[j] - lo[j]) / side[j])
        if shrunk >= REBOUND_RATIO or n_bounds >= MAX_BOUNDS_PER_BOX:
            excess = min(bounded.excess, bounded.excess + bound - bounded.bound)
            return ProcessedPricedBox(bound, excess, start, size, n_bounds, n_evaluations)


@njit(cache=True, nogil=True)
def probe_priced(instance, work, m, least):
    """Value of a good admissible set at the maximizer; the set is in ``work.chosen``.

    -inf where prices, those of the box or those at the maximizer, show that no set has a value
    above ``least``: a selection takes several times as long as prices.
    """
    box, y, ids, value = work.box, work.box.y, work.ids, work.value
    points, weights, lam = instance.points, instance.weights, instance.lam
    for j in range(y.size):
        y[j] = min(max(y[j], box.lo[j]), box.hi[j])
    for i in range(m):
        s = ids[i]
        r = 0.0
        for j in range(y.size):
            away = points[s, j] - y[j]
            r += away * away
        value[i] = lam[s] + work.shift[i] - weights[s] * r
    fixed = quadratic_at(box.sums, y)
    if fixed + priced_bound(box.constant[0], value[:m], work.price[:m]) <= least:
        return -np.inf
    if instance.disjoint_sets:
        return fixed + best_of_members(work.constraints, m, work)
    return fixed + select_set(
        work.constraints, ids[:m], value[:m], least - fixed, work.prices, work.chosen[:m]
    )


@njit(cache=True, nogil=True)
def push_priced(stack, node, box, upper, start, size):
    """Write the current box to index ``node`` of the stack."""
    stack.lows[node] = box.lo
    stack.highs[node] = box.hi
    stack.fixed_sums[node] = box.sums
    stack.fixed_demands[node] = box.demand[0]
    stack.uppers[node] = upper
    stack.starts[node] = start
    stack.sizes[node] = size


@njit(cache=True, nogil=True)
def record_set(instance, work, m, value, improving_sets, n_found):
    """Keep an improving set, in the place of the oldest one."""
    slot = n_found % improving_sets.values.size
    improving_sets.centers[slot] = work.box.y
    improving_sets.values[slot] = value
    members = improving_sets.members[slot]
    members[:] = 0
    for i in range(m):
        members[work.ids[i]] = 1 if work.chosen[i] == 1 else 2


@njit(cache=True, nogil=True)
def search_priced_boxes(
    instance,  # IN   PricedInstance
    stack,  # IN/OUT PricedStack; ``n_open`` boxes on it at the start
    n_open,  # IN
    params,  # IN   PricedSearchParams
    cutoff,  # IN   boxes with an upper bound of at most this are closed
    improving_sets,  # OUT
):
    """Search boxes depth first.

    Afterwards the value of every admissible cluster is at most ``max(cutoff, unsplittable_bound,
    uppers[:n_open])``. A box is not split further if it is too small, or if its bound exceeds the
    price bound at its centre by at most the resolution: smaller boxes could not do better.
    """
    uppers, starts, sizes, mean_error = (
        stack.uppers,
        stack.starts,
        stack.sizes,
        params.mean_error,
    )
    capacity = np.int64(1)
    for node in range(n_open):
        capacity = max(capacity, sizes[node])
    work = make_priced_workspace(instance, capacity)
    box = work.box
    n_bounded, n_evaluations, n_found, unsplittable_bound = 0, 0.0, 0, -np.inf
    unsplittable_center = np.zeros(mean_error.size)
    while n_open > 0 and n_evaluations < params.budget:
        node = n_open - 1
        free = starts[node] + sizes[node]  # entries beyond belonged to boxes that are closed
        if node + 2 > uppers.size or free + 2 * sizes[node] > stack.arena.size:
            break
        n_open = node
        if uppers[node] <= cutoff:
            continue
        processed = process_priced_box(instance, stack, work, node, params, cutoff)
        n_bounded += processed.n_bounds
        n_evaluations += processed.n_evaluations
        if processed.bound <= cutoff:
            continue
        m, bound = processed.size, processed.bound
        for i in range(m):
            work.upper[i] -= work.price[i]
            work.lower[i] -= work.price[i]
        axis = choose_axis(
            instance, work.ids[:m], work.state, work.upper, work.lower, box.lo, box.hi, work.score
        )
        value = probe_priced(instance, work, m, cutoff)
        if value > cutoff:
            record_set(instance, work, m, value, improving_sets, n_found)
            n_found += 1
            cutoff = value + params.tolerance
            if bound <= cutoff:
                continue
        width = box.hi[axis] - box.lo[axis]
        if width <= 4.0 * mean_error[axis] or processed.excess <= params.resolution:
            if bound > unsplittable_bound:
                unsplittable_bound = bound
                unsplittable_center[:] = box.center
            continue
        middle = 0.5 * (box.lo[axis] + box.hi[axis])
        below = 1 if box.y[axis] < middle else 0
        push_priced(stack, n_open, box, bound, processed.start, m)
        push_priced(stack, n_open + 1, box, bound, processed.start, m)
        stack.highs[n_open + below, axis] = middle
        stack.lows[n_open + 1 - below, axis] = middle
        n_open += 2
    return PricedSearchResult(
        n_open, n_bounded, n_found, cutoff, unsplittable_bound, unsplittable_center
    )
