"""Depth-first branch and bound over boxes for the best cluster, with a work budget."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.pricing.box_bound import (
    OPEN,
    Forest,
    ForestWorkspace,
    add_group,
    build_forest,
    filter_reachable,
    forest_workspace,
    maximize_in_box,
    overestimate,
    tree_ranges,
)
from certikmeans.kernels.pricing.boxes import (
    choose_axis,
    has_excluded_box,
    is_inside,
    leave_excluded_box,
    loosest_group,
    select_at,
    shrink_to_means,
    shrink_to_objective,
    worst_conflict,
)

# A box is bounded again before it is split if contraction shrinks a side by this ratio.
REBOUND_RATIO = 0.75
MAX_BOUNDS_PER_BOX = 4
# With at most this many undecided groups, branch on a group instead of splitting the box.
MAX_UNDECIDED_TO_BRANCH = 6


class BoxStack(NamedTuple):
    """Stack of open boxes; members of a box are a slice of the arena."""

    lows: np.ndarray  # (capacity, d)
    highs: np.ndarray  # (capacity, d)
    fixed_sums: np.ndarray  # (capacity, d + 2) quadratic of the groups that are in
    uppers: np.ndarray  # (capacity,) at least the value of every cluster of the box
    starts: np.ndarray  # (capacity,) int64: first member in the arena
    sizes: np.ndarray  # (capacity,) int64: members, undecided groups in ascending order
    arena: np.ndarray  # int32


class SearchParams(NamedTuple):
    """Settings of one search."""

    error: float  # at least the rounding error of a computed upper bound
    mean_error: np.ndarray  # (d,) at least the rounding error of a computed mean
    active_faces: np.ndarray  # (2, d): of the region that contains all boxes
    excluded_box: np.ndarray  # (2, d): centres in it are ignored; low > high if empty
    tolerance: float  # an improving value raises the cutoff to itself plus this
    budget: float  # evaluations of a coordinate, about
    mean_bound: bool  # whether `mean_bound` is used: only clusters centred at their mean count


class ImprovingCenters(NamedTuple):
    """Ring buffer of the last centres whose value exceeded the cutoff."""

    centers: np.ndarray  # (capacity, d)
    values: np.ndarray  # (capacity,)


class SearchResult(NamedTuple):
    """Result of a search."""

    n_open: int  # boxes left on the stack
    n_bounded: int
    n_found: int  # improving centres in all, also those overwritten
    cutoff: float
    unsplittable_bound: float  # largest bound of a box too small to split, or -inf


class Box(NamedTuple):
    """Current box."""

    lo: np.ndarray  # (d,)
    hi: np.ndarray  # (d,)
    side: np.ndarray  # (d,) its sides before the last contraction
    peak: np.ndarray  # (d,) where the quadratic is largest
    y: np.ndarray  # (d,) where it is largest in the box
    sums: np.ndarray  # (d + 2,) quadratic of the groups that are in
    before: np.ndarray  # (d + 2,) the same before the last bound
    estimate: np.ndarray  # (d + 2,) quadratic of the undecided groups


class Workspace(NamedTuple):
    """Workspace of a search; arrays over groups by index in ``space.ids``."""

    space: ForestWorkspace
    upper: np.ndarray
    lower: np.ndarray
    gain: np.ndarray
    coefficient: np.ndarray
    state: np.ndarray  # uint8: OPEN, IN or OUT
    chosen: np.ndarray  # uint8
    score: np.ndarray  # (d,)
    box: Box


class ForestBound(NamedTuple):
    """One bound of a box and the forest it comes from."""

    bound: float
    forest: Forest


class ProcessedBox(NamedTuple):
    """Remainder of a box after repeated bounding and contraction."""

    bound: float  # -inf if the box is closed
    start: int  # of the remaining members in the arena, behind the original ones
    size: int
    forest: Forest
    n_bounds: int
    n_evaluations: float  # evaluations of a coordinate


@njit(cache=True, nogil=True)
def make_workspace(capacity, d, n_linked):
    """Allocate the workspace of boxes of up to ``capacity`` members."""
    return Workspace(
        forest_workspace(capacity, np.full(n_linked, -1, dtype=np.int32)),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity, dtype=np.uint8),
        np.empty(capacity, dtype=np.uint8),
        np.empty(d),
        Box(
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d),
            np.empty(d + 2),
            np.empty(d + 2),
            np.empty(d + 2),
        ),
    )


@njit(cache=True, nogil=True)
def quadratic_at(sums, y):
    """Value of ``c + 2 b.y - A |y|^2``."""
    value = sums[0]
    for j in range(y.size):
        value += y[j] * (2.0 * sums[2 + j] - sums[1] * y[j])
    return value


@njit(cache=True, nogil=True)
def collect_undecided(ids, state, target):
    """Write the undecided groups to ``target``; returns their number."""
    kept = 0
    for i in range(ids.size):
        if state[i] == OPEN:
            target[kept] = ids[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def push_box(stack, node, box, upper, start, size):
    """Write the current box, with the given members, to index ``node`` of the stack."""
    stack.lows[node] = box.lo
    stack.highs[node] = box.hi
    stack.fixed_sums[node] = box.sums
    stack.uppers[node] = upper
    stack.starts[node] = start
    stack.sizes[node] = size


@njit(cache=True, nogil=True)
def bound_box(instance, members, work, error):
    """Bound the box in ``work``."""
    box, upper, lower, coefficient = work.box, work.upper, work.lower, work.coefficient
    m = filter_reachable(instance, members, box.lo, box.hi, work.space.ids, upper, lower)
    forest = build_forest(instance, work.space.ids[:m], work.space)
    tree_ranges(forest, upper, lower, work.gain, coefficient)
    box.before[:] = box.sums
    overestimate(instance, forest, upper, lower, work.state, coefficient, box.sums, box.estimate)
    bound = maximize_in_box(box.sums, box.estimate, box.lo, box.hi, box.peak, box.y) + error
    return ForestBound(bound, forest)


@njit(cache=True, nogil=True)
def mean_bound(instance, forest, box, active_faces, delta):
    """Upper bound on the value of the sets whose mean lies in the box that was bounded last.

    ``sum a_s(mean) = sum a_s(m) + W |mean - m|^2`` with ``m`` the centre of the box: the best set
    of the forest at ``m``, for values raised by ``w_s |r|^2``, ``r`` the half-widths. Along an axis
    where the box touches an active face the mean may lie beyond it; there the distance from the
    box is used instead.
    """
    points, weights, lam = instance.points, instance.weights, instance.lam
    ids, linked, parent, order = forest.ids, forest.linked, forest.parent, forest.order
    lo, hi, sums, mass = box.lo, box.hi, box.before, box.before[1]
    value, radius = sums[0], 0.0
    for j in range(lo.size):
        pull = sums[2 + j]
        y = 0.5 * (lo[j] + hi[j])
        if lo[j] > active_faces[0, j] and hi[j] < active_faces[1, j]:
            half = 0.5 * (hi[j] - lo[j])
            radius += half * half
            value += mass * half * half
        elif mass > 0.0:
            y = min(max(pull / mass, lo[j]), hi[j])
        value += y * (2.0 * pull - mass * y)
    for i in range(ids.size):
        s = ids[i]
        r = 0.0
        for j in range(lo.size):
            x = points[s, j]
            if lo[j] > active_faces[0, j] and hi[j] < active_faces[1, j]:
                away = x - 0.5 * (lo[j] + hi[j])
            else:
                away = max(0.0, max(lo[j] - x, x - hi[j]))
            r += away * away
        delta[i] = lam[s] - weights[s] * (r - radius)
    for q in range(linked - 1, -1, -1):
        i = order[q]
        if parent[i] >= 0 and delta[i] > 0.0:
            delta[parent[i]] -= delta[i]
    for i in range(ids.size):
        value += max(delta[i], 0.0)
    return value


@njit(cache=True, nogil=True)
def contract_box(instance, open_ids, box, excess, search_params):
    """Contract to centres that reach the cutoff and are reachable means; False if empty.

    With an excluded box, the mean of a set that exceeds the cutoff at a centre outside may lie
    inside, where it is not searched: then contraction to means is invalid.
    """
    lo, hi, mean_error = box.lo, box.hi, search_params.mean_error
    mass = box.sums[1] + box.estimate[1]
    if mass > 0.0:
        shrink_to_objective(excess, mass, box.peak, box.y, mean_error, lo, hi)
    for j in range(lo.size):
        if not lo[j] <= hi[j]:
            return False
    if box.sums[1] > 0.0 and not has_excluded_box(search_params.excluded_box):
        return shrink_to_means(
            instance, open_ids, box.sums, mean_error, search_params.active_faces, lo, hi
        )
    return True


@njit(cache=True, nogil=True)
def process_box(instance, stack, work, node, search_params, cutoff):
    """Bound and contract the box at ``node`` until neither makes progress.

    The box, its sums and its maximizer are in ``work`` afterwards.
    """
    box, arena = work.box, stack.arena
    lo, hi, side = box.lo, box.hi, box.side
    d = lo.size
    lo[:] = stack.lows[node]
    hi[:] = stack.highs[node]
    box.sums[:] = stack.fixed_sums[node]
    bound = stack.uppers[node]
    start, size = stack.starts[node], stack.sizes[node]
    free = start + size
    n_bounds, n_evaluations = 0, 0.0
    while True:
        n_bounds += 1
        n_evaluations += (size + 1.0) * d
        bounded = bound_box(instance, arena[start : start + size], work, search_params.error)
        bound = min(bound, bounded.bound)
        if bound > cutoff and search_params.mean_bound:
            by_mean = mean_bound(
                instance, bounded.forest, box, search_params.active_faces, work.gain
            )
            bound = min(bound, by_mean + search_params.error)
        if bound <= cutoff:
            return ProcessedBox(-np.inf, start, size, bounded.forest, n_bounds, n_evaluations)
        start, size = free, collect_undecided(bounded.forest.ids, work.state, arena[free:])
        side[:] = hi - lo
        if not contract_box(
            instance, arena[start : start + size], box, bounded.bound - cutoff, search_params
        ):
            return ProcessedBox(-np.inf, start, size, bounded.forest, n_bounds, n_evaluations)
        shrunk = 1.0
        for j in range(d):
            if side[j] > 0.0:
                shrunk = min(shrunk, (hi[j] - lo[j]) / side[j])
        if shrunk >= REBOUND_RATIO or n_bounds >= MAX_BOUNDS_PER_BOX:
            return ProcessedBox(bound, start, size, bounded.forest, n_bounds, n_evaluations)


@njit(cache=True, nogil=True)
def probe(instance, work, forest, excluded_box, cutoff):
    """Value of the forest's best set at the maximizer, moved out of the excluded box.

    Returns ``(value, conflict)``: if the value exceeds the cutoff, ``conflict`` is the index of a
    group of that set with a violated cannot-link, or -1 if the set is independent.
    """
    box, y = work.box, work.box.y
    for j in range(y.size):
        y[j] = min(max(y[j], box.lo[j]), box.hi[j])
    leave_excluded_box(box.lo, box.hi, excluded_box, y)
    # The coefficients are not needed any more; using them as workspace instead of `gain` saves
    # memory traffic of 8 bytes per free group.
    value = quadratic_at(box.before, y) + select_at(
        instance, forest, y, work.coefficient, work.chosen
    )
    conflict = -1
    if value > cutoff and forest.n_nontree > 0:
        conflict = worst_conflict(instance, forest, work.chosen, work.space.position)
    return value, conflict


@njit(cache=True, nogil=True)
def split_on_group(instance, stack, work, forest, index, free, top, bound):
    """Push the box without the group, and with it and without its neighbours."""
    indptr, neighbors = instance.indptr, instance.neighbors
    ids, box, arena = forest.ids, work.box, stack.arena
    v = ids[index]
    out = np.int64(0)
    for i in range(ids.size):
        if work.state[i] == OPEN and i != index:
            arena[free + out] = ids[i]
            out += 1
    kept = np.int64(0)
    for i in range(out):
        s = arena[free + i]
        compatible = True
        for e in range(indptr[v], indptr[v + 1]):
            if neighbors[e] == s:
                compatible = False
        if compatible:
            arena[free + out + kept] = s
            kept += 1
    push_box(stack, top, box, bound, free, out)
    add_group(instance.points, instance.weights, instance.base, v, 1.0, box.sums)
    push_box(stack, top + 1, box, bound, free + out, kept)


@njit(cache=True, nogil=True)
def split_on_axis(stack, box, axis, start, size, top, bound):
    """Push the two halves of the box; the one with the maximizer is searched first."""
    middle = 0.5 * (box.lo[axis] + box.hi[axis])
    below = 1 if box.y[axis] < middle else 0
    push_box(stack, top, box, bound, start, size)
    push_box(stack, top + 1, box, bound, start, size)
    stack.highs[top + below, axis] = middle
    stack.lows[top + 1 - below, axis] = middle


@njit(cache=True, nogil=True)
def branching_group(work, forest, conflict, size):
    """Index of the group to branch on, or -1 to split the box.

    Branch on a group if smaller boxes alone cannot close this one (the forest ignores a violated
    cannot-link: ``conflict``), or only very small ones (few undecided groups: the value of one is
    zero at the best centre).
    """
    if conflict < 0 and size <= MAX_UNDECIDED_TO_BRANCH:
        return loosest_group(forest.ids, work.state, work.upper, work.lower)
    return conflict


@njit(cache=True, nogil=True)
def search_boxes(
    instance,  # IN
    stack,  # IN/OUT BoxStack; ``n_open`` boxes on it at the start
    n_open,  # IN
    search_params,  # IN
    cutoff,  # IN   boxes with an upper bound of at most this are closed
    improving_centers,  # OUT
):
    """Search boxes depth first.

    Afterwards the value of every cluster is at most
    ``max(cutoff, unsplittable_bound, uppers[:n_open])``: each box removed from the stack was
    bounded by the cutoff or by ``unsplittable_bound`` (too small to split), contains no mean of a
    set it allows (clipped to the region), lies in the excluded box, or was replaced by boxes that
    cover it.
    """
    uppers, starts, sizes, mean_error = (
        stack.uppers,
        stack.starts,
        stack.sizes,
        search_params.mean_error,
    )
    capacity = np.int64(1)
    for node in range(n_open):
        capacity = max(capacity, sizes[node])
    work = make_workspace(capacity, mean_error.size, instance.parents.size)
    box = work.box
    n_bounded, n_evaluations, n_found, unsplittable_bound = 0, 0.0, 0, -np.inf
    while n_open > 0 and n_evaluations < search_params.budget:
        node = n_open - 1
        free = starts[node] + sizes[node]  # entries beyond belonged to boxes that are closed
        if node + 2 > uppers.size or free + 2 * sizes[node] > stack.arena.size:
            break
        n_open = node
        if uppers[node] <= cutoff:
            continue
        processed = process_box(instance, stack, work, node, search_params, cutoff)
        n_bounded += processed.n_bounds
        n_evaluations += processed.n_evaluations
        if processed.bound <= cutoff or is_inside(box.lo, box.hi, search_params.excluded_box):
            continue
        forest, bound = processed.forest, processed.bound
        value, conflict = probe(instance, work, forest, search_params.excluded_box, cutoff)
        if (
            value > cutoff
            and conflict < 0
            and not is_inside(box.y, box.y, search_params.excluded_box)
        ):
            improving_centers.centers[n_found % improving_centers.values.size] = box.y
            improving_centers.values[n_found % improving_centers.values.size] = value
            n_found += 1
            cutoff = value + search_params.tolerance
            if has_excluded_box(search_params.excluded_box):
                # The excluded box is too small: values increase towards it. Stop.
                n_evaluations = search_params.budget
        index = branching_group(work, forest, conflict, processed.size)
        if index >= 0:
            split_on_group(instance, stack, work, forest, index, free, n_open, bound)
        else:
            axis = choose_axis(
                instance, forest.ids, work.state, work.upper, work.lower, box.lo, box.hi, work.score
            )
            if box.hi[axis] - box.lo[axis] <= 4.0 * mean_error[axis]:
                unsplittable_bound = max(unsplittable_bound, bound)
                continue
            split_on_axis(stack, box, axis, processed.start, processed.size, n_open, bound)
        n_open += 2
    return SearchResult(n_open, n_bounded, n_found, cutoff, unsplittable_bound)
