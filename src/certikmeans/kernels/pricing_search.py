"""Depth-first search over boxes for the best cluster, a bounded amount of work per call.

Arrays travel in three tuples, so that signatures stay readable:

``data``  IN      points (n, d), weights (n,), lam (n,), base (n,) = lam - w |x|^2, parents (l,),
                  cyclic (l,), indptr (n + 1,), neighbors: the instance and its multipliers
``stack`` IN/OUT  lows (cap, d), highs (cap, d), settled (cap, d + 2), uppers (cap,), starts (cap,),
                  sizes (cap,), arena: open boxes; members of a box are a slice of the arena
``work``  WORK    scratch space, see `workspace`
"""

import numpy as np
from numba import njit

from certikmeans.kernels.pricing_boxes import (
    choose_axis,
    loosest_group,
    select_at,
    shrink_to_means,
    shrink_to_objective,
    worst_conflict,
)
from certikmeans.kernels.pricing_ranges import (
    OPEN,
    add_group,
    best_in_box,
    build_forest,
    keep_reachable,
    overestimate,
    tree_ranges,
)

# A box that contraction leaves smaller than this on some side is looked at again before a split.
WORTH_ANOTHER_LOOK = 0.75
MOST_LOOKS = 4
# With at most so many undecided groups, decide one instead of splitting the box.
FEW = 6


@njit(cache=True, nogil=True)
def workspace(most, d, n_linked):
    """Scratch space for boxes of up to ``most`` members."""
    return (
        np.empty(most, dtype=np.int32),  # ids
        np.empty(most),  # upper
        np.empty(most),  # lower
        np.empty(most),  # gain
        np.empty(most),  # share
        np.empty(most, dtype=np.int32),  # parent
        np.empty(most, dtype=np.int32),  # order
        np.empty(most, dtype=np.uint8),  # state
        np.empty(most, dtype=np.uint8),  # tangled
        np.empty(most, dtype=np.uint8),  # chosen
        np.full(n_linked, -1, dtype=np.int32),  # position
        np.empty((8, d + 2)),  # lo, hi, peak, y, score, sums, before, estimate
    )


@njit(cache=True, nogil=True)
def quadratic_at(sums, y):
    """Value of ``c + 2 b.y - A |y|^2``."""
    value = sums[0]
    for j in range(y.size):
        value += y[j] * (2.0 * sums[2 + j] - sums[1] * y[j])
    return value


@njit(cache=True, nogil=True)
def keep_open(ids, state, target):
    """Write the undecided groups to ``target``; returns how many."""
    kept = 0
    for i in range(ids.size):
        if state[i] == OPEN:
            target[kept] = ids[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def push_node(stack, node, lo, hi, sums, upper, start, size):
    """Write an open box to place ``node`` of the stack."""
    lows, highs, settled, uppers, starts, sizes, _ = stack
    lows[node] = lo
    highs[node] = hi
    settled[node] = sums
    uppers[node] = upper
    starts[node] = start
    sizes[node] = size


@njit(cache=True, nogil=True)
def look(data, members, work, error):
    """Bound the box in ``work``; returns ``(bound, n_ids, linked, n_tangled)``."""
    points, weights, lam, base, parents, cyclic, indptr, neighbors = data
    ids, upper, lower, gain, share, parent, order, state, tangled, _, position, rows = work
    d = points.shape[1]
    lo, hi, peak, y = rows[0, :d], rows[1, :d], rows[2, :d], rows[3, :d]
    sums, before, estimate = rows[5], rows[6], rows[7]
    m = keep_reachable(points, weights, lam, members, lo, hi, ids, upper, lower)
    linked, n_tangled = build_forest(
        ids[:m], parents.size, parents, cyclic, indptr, neighbors, position, parent, order, tangled
    )
    tree_ranges(linked, parent, order, upper, lower, gain, share)
    before[:] = sums
    overestimate(
        points, weights, base, ids[:m], linked, parent, order, tangled,
        upper, lower, state, share, sums, estimate,
    )  # fmt: skip
    return best_in_box(sums, estimate, lo, hi, peak, y) + error, m, linked, n_tangled


@njit(cache=True, nogil=True)
def examine(data, stack, work, node, error, slack, walls, cutoff):
    """Bound and shrink the box at ``node`` until neither helps.

    Returns ``(bound, start, size, n_ids, linked, n_tangled, looks, touched)``; a bound of
    minus infinity closes the box. The members left are at ``start`` in the arena, behind
    the ones the box came with; the box, its sums and its maximiser are in ``work``.
    """
    points, weights = data[0], data[1]
    lows, highs, settled, uppers, starts, sizes, arena = stack
    ids, state, rows = work[0], work[7], work[11]
    d = points.shape[1]
    lo, hi, peak, y, side = rows[0, :d], rows[1, :d], rows[2, :d], rows[3, :d], rows[4, :d]
    sums, estimate = rows[5], rows[7]
    lo[:] = lows[node]
    hi[:] = highs[node]
    sums[:] = settled[node]
    bound = uppers[node]
    start, size = starts[node], sizes[node]
    free = start + size
    looks, touched, m, linked, n_tangled = 0, 0.0, 0, 0, 0
    shrunk = 0.0
    while shrunk < WORTH_ANOTHER_LOOK and looks < MOST_LOOKS:
        looks += 1
        touched += (size + 1.0) * d
        own, m, linked, n_tangled = look(data, arena[start : start + size], work, error)
        bound = min(bound, own)
        if bound <= cutoff:
            return -np.inf, start, size, m, linked, n_tangled, looks, touched
        start, size = free, keep_open(ids[:m], state, arena[free:])
        side[:] = hi - lo
        mass = sums[1] + estimate[1]
        if mass > 0.0:
            shrink_to_objective(own - cutoff, mass, peak, y, slack, lo, hi)
        reachable = True
        for j in range(d):
            reachable = reachable and lo[j] <= hi[j]
        if reachable and sums[1] > 0.0:
            members = arena[start : start + size]
            reachable = shrink_to_means(points, weights, members, sums, slack, walls, lo, hi)
        if not reachable:
            return -np.inf, start, size, m, linked, n_tangled, looks, touched
        shrunk = 1.0
        for j in range(d):
            if side[j] > 0.0:
                shrunk = min(shrunk, (hi[j] - lo[j]) / side[j])
    return bound, start, size, m, linked, n_tangled, looks, touched


@njit(cache=True, nogil=True)
def probe(data, work, m, linked, n_tangled, cutoff):
    """Value of the forest's best set at the maximiser, moved into the box.

    Returns ``(value, conflict)``: where the value exceeds the cutoff, the place of a group that
    a cannot-link beyond the forest forbids in that set, or -1 if the set is proper.
    """
    points, weights, lam, _, _, _, indptr, neighbors = data
    ids, _, _, gain, _, parent, order, _, tangled, chosen, position, rows = work
    d = points.shape[1]
    lo, hi, y, before = rows[0, :d], rows[1, :d], rows[3, :d], rows[6]
    for j in range(d):
        y[j] = min(max(y[j], lo[j]), hi[j])
    value = quadratic_at(before, y) + select_at(
        points, weights, lam, ids[:m], linked, parent, order, y, gain, chosen
    )
    conflict = -1
    if value > cutoff and n_tangled > 0:
        conflict = worst_conflict(ids[:m], linked, tangled, chosen, indptr, neighbors, position)
    return value, conflict


@njit(cache=True, nogil=True)
def split_on_group(data, stack, work, place, n_ids, free, top, bound):
    """Push the two cases "this group is out" and "it is in": then its neighbours are out."""
    points, weights, base, indptr, neighbors = data[0], data[1], data[3], data[6], data[7]
    ids, state, rows = work[0], work[7], work[11]
    d = points.shape[1]
    lo, hi, sums = rows[0, :d], rows[1, :d], rows[5]
    arena = stack[6]
    v = ids[place]
    out = 0
    for i in range(n_ids):
        if state[i] == OPEN and i != place:
            arena[free + out] = ids[i]
            out += 1
    kept = 0
    for i in range(out):
        s = arena[free + i]
        apart = True
        for e in range(indptr[v], indptr[v + 1]):
            if neighbors[e] == s:
                apart = False
        if apart:
            arena[free + out + kept] = s
            kept += 1
    push_node(stack, top, lo, hi, sums, bound, free, out)
    add_group(points, weights, base, v, 1.0, sums)
    push_node(stack, top + 1, lo, hi, sums, bound, free + out, kept)


@njit(cache=True, nogil=True)
def split_on_axis(stack, work, axis, start, size, top, bound):
    """Push the two halves of the box, the one with the maximiser last, to be searched first."""
    lows, highs = stack[0], stack[1]
    rows = work[11]
    d = lows.shape[1]
    lo, hi, y, sums = rows[0, :d], rows[1, :d], rows[3, :d], rows[5]
    middle = 0.5 * (lo[axis] + hi[axis])
    below = 1 if y[axis] < middle else 0
    push_node(stack, top, lo, hi, sums, bound, start, size)
    push_node(stack, top + 1, lo, hi, sums, bound, start, size)
    highs[top + below, axis] = middle
    lows[top + 1 - below, axis] = middle


@njit(cache=True, nogil=True)
def search_boxes(
    data,  # IN   see above
    stack,  # IN/OUT see above; ``n_open`` boxes on it at the start
    n_open,
    error,  # IN   at least the rounding error of a computed upper bound
    slack,  # IN   (d,) at least the rounding error of a computed mean
    walls,  # IN   (2, d): the region of the whole search, of which all boxes are parts
    cutoff,  # IN   boxes that cannot exceed this are closed
    tolerance,  # IN   raise the cutoff to a better value plus this
    budget,  # IN   stop after about this many evaluations of a coordinate
    found,  # OUT  (finds, d): the last centres whose value exceeded the cutoff
    found_values,  # OUT  (finds,)
):
    """Close boxes depth first; returns ``(n_open, boxes, n_found, cutoff, stuck)``.

    Afterwards the best cluster is worth at most ``max(cutoff, stuck, uppers[:n_open])``: each
    box that left the stack was bounded by the cutoff or by ``stuck`` (too small to split),
    holds no mean of a set it allows (moved into the region), or was replaced by parts that
    cover what it may contain.
    """
    points, weights, parents = data[0], data[1], data[4]
    uppers, starts, sizes, arena = stack[3], stack[4], stack[5], stack[6]
    d = points.shape[1]
    most = 1
    for node in range(n_open):
        most = max(most, sizes[node])
    work = workspace(most, d, parents.size)
    ids, upper, lower, state, rows = work[0], work[1], work[2], work[7], work[11]
    lo, hi, y, score = rows[0, :d], rows[1, :d], rows[3, :d], rows[4, :d]
    boxes, touched, n_found, stuck = 0, 0.0, 0, -np.inf
    while n_open > 0 and touched < budget:
        node = n_open - 1
        free = starts[node] + sizes[node]  # what lies beyond belonged to boxes closed by now
        if node + 2 > uppers.size or free + 2 * sizes[node] > arena.size:
            break
        n_open = node
        if uppers[node] <= cutoff:
            continue
        bound, start, size, m, linked, n_tangled, looks, cost = examine(
            data, stack, work, node, error, slack, walls, cutoff
        )
        boxes += looks
        touched += cost
        if bound <= cutoff:
            continue
        value, conflict = probe(data, work, m, linked, n_tangled, cutoff)
        if value > cutoff and conflict < 0:
            found[n_found % found_values.size] = y
            found_values[n_found % found_values.size] = value
            n_found += 1
            cutoff = value + tolerance
        if conflict < 0 and size <= FEW:
            conflict = loosest_group(ids[:m], state, upper, lower)
        if conflict >= 0:
            # Smaller boxes alone cannot close this (the forest itself allows too much), or
            # only very small ones (a group is worth nothing right at the best centre).
            split_on_group(data, stack, work, conflict, m, free, n_open, bound)
        else:
            axis = choose_axis(points, weights, ids[:m], state, upper, lower, lo, hi, score)
            if hi[axis] - lo[axis] <= 4.0 * slack[axis]:
                stuck = max(stuck, bound)
                continue
            split_on_axis(stack, work, axis, start, size, n_open, bound)
        n_open += 2
    return n_open, boxes, n_found, cutoff, stuck
