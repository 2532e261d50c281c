"""Contraction, branching and evaluation of boxes in the pricing search."""

import math

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance_to
from certikmeans.kernels.pricing.box_bound import OPEN
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def shrink_to_objective(
    excess,  # IN   upper bound of the box minus cutoff, > 0, rounding included
    mass,  # IN   A of the quadratic, > 0
    peak,  # IN   (d,) its maximiser
    y,  # IN   (d,) its maximiser in the box
    mean_error,  # IN   (d,) at least the rounding error of a computed mean
    lo,  # IN/OUT (d,)
    hi,  # IN/OUT (d,)
):
    """Contract the box to where the quadratic reaches the cutoff.

    There ``A |z - peak|^2 <= A |y - peak|^2 + excess``; the other coordinates of ``z`` are no
    closer to the peak than those of ``y``, which leaves one interval per coordinate.
    """
    for j in range(lo.size):
        away = y[j] - peak[j]
        reach = math.sqrt(away * away + excess / mass) * (1.0 + 16.0 * EPS)
        reach += mean_error[j] + 4.0 * EPS * abs(peak[j])
        lo[j] = max(lo[j], peak[j] - reach)
        hi[j] = min(hi[j], peak[j] + reach)


@njit(cache=True, nogil=True)
def shrink_to_means(
    instance,  # IN
    open_ids,  # IN   (m,) int32: undecided groups
    fixed_sums,  # IN   (d + 2,)
    mean_error,  # IN   (d,)
    active_faces,  # IN   (2, d): the region of the whole search
    lo,  # IN/OUT (d,)
    hi,  # IN/OUT (d,)
):
    """Contract the box to reachable means of (fixed + any undecided) groups; False if empty.

    A best pair (y, I) has ``y`` at the mean of ``I``, moved into the region coordinate by
    coordinate: if the mean lies beyond an active face, ``y`` is on the face. So a box that no
    mean can reach is dropped, unless it touches the face on that side: then only the face is left.

    The largest mean ``t`` of coordinate j solves
    ``g(t) = sum_fixed w (x - t) + sum_open w max(x - t, 0) = 0``, ``g`` convex and decreasing, so
    the root of a secant over a sign change lies at or above it; likewise below for the smallest.
    ``g`` is evaluated at both ends and the middle of the side, and raised (lowered) by
    ``mean_error`` times the total weight, more than its rounding error.
    """
    points, weights = instance.points, instance.weights
    for j in range(lo.size):
        a, c = lo[j], hi[j]
        b = 0.5 * (a + c)
        mass = fixed_sums[1]
        first = fixed_sums[2 + j]
        open_mass = 0.0
        open_first = 0.0
        pa = 0.0
        pb = 0.0
        pc = 0.0
        for s in open_ids:
            w = weights[s]
            x = points[s, j]
            open_mass += w
            open_first += w * x
            pa += w * max(x - a, 0.0)
            pb += w * max(x - b, 0.0)
            pc += w * max(x - c, 0.0)
        margin = mean_error[j] * (mass + open_mass)
        ga = first - a * mass + pa + margin
        gb = first - b * mass + pb + margin
        gc = first - c * mass + pc + margin
        if ga < 0.0:
            if a > active_faces[0, j]:
                return False
            hi[j] = a
            continue
        if gb < 0.0:
            hi[j] = min(c, a + (b - a) * (ga / (ga - gb)) + mean_error[j])
        elif gc < 0.0:
            hi[j] = min(c, b + (c - b) * (gb / (gb - gc)) + mean_error[j])
        total = first + open_first
        both = mass + open_mass
        fa = total - a * both - pa - margin
        fb = total - b * both - pb - margin
        fc = total - c * both - pc - margin
        if fc > 0.0:
            if c < active_faces[1, j]:
                return False
            lo[j] = c
            hi[j] = c
            continue
        if fb > 0.0:
            lo[j] = max(a, b + (c - b) * (fb / (fb - fc)) - mean_error[j])
        elif fa > 0.0:
            lo[j] = max(a, a + (b - a) * (fa / (fa - fb)) - mean_error[j])
        if lo[j] > hi[j]:
            return False
    return True


@njit(cache=True, nogil=True)
def choose_axis(
    instance,  # IN
    ids,  # IN   (m,) int32
    state,  # IN   (m,) uint8
    upper,  # IN   (m,)
    lower,  # IN   (m,)
    lo,  # IN   (d,)
    hi,  # IN   (d,)
    score,  # WORK (d,)
):
    """Axis along which the undecided groups vary most, weighted by the error of their chords."""
    points, weights = instance.points, instance.weights
    d = lo.size
    score[:] = 0.0
    for i in range(ids.size):
        if state[i] != OPEN or upper[i] <= 0.0 or lower[i] >= 0.0:
            continue
        s = ids[i]
        # The product of the two slopes; that of upper and lower could overflow or underflow.
        slope = upper[i] / (upper[i] - lower[i])
        scaled_weight = weights[s] * slope * (1.0 - slope)
        for j in range(d):
            below = lo[j] - points[s, j]
            above = points[s, j] - hi[j]
            gap = max(0.0, max(below, above))
            reach = max(-below, -above)
            score[j] += scaled_weight * (reach * reach - gap * gap)
    best = 0
    for j in range(1, d):
        if score[j] > score[best]:
            best = j
    if score[best] <= 0.0:
        for j in range(d):
            if hi[j] - lo[j] > hi[best] - lo[best]:
                best = j
    return best


@njit(cache=True, nogil=True)
def loosest_group(
    ids,  # IN   (m,) int32
    state,  # IN   (m,) uint8
    upper,  # IN   (m,)
    lower,  # IN   (m,)
):
    """Index of the undecided group whose chord is farthest from ``max(a, 0)``; -1 if none."""
    best = 0.0
    index = -1
    for i in range(ids.size):
        if state[i] == OPEN and upper[i] > 0.0 and lower[i] < 0.0:
            away = upper[i] * (-lower[i] / (upper[i] - lower[i]))
            if away > best:
                best = away
                index = i
    return index


@njit(cache=True, nogil=True)
def value_at(
    points,  # IN   (n, d); arrays of the instance, which is slow to pass for every group
    weights,  # IN   (n,)
    lam,  # IN   (n,)
    s,  # IN   group
    y,  # IN   (d,)
):
    """Value of group ``s`` in a cluster centred at ``y``."""
    r = squared_distance_to(points, s, y)
    return lam[s] - weights[s] * r


@njit(cache=True, nogil=True)
def select_at(
    instance,  # IN
    forest,  # IN
    y,  # IN   (d,)
    delta,  # WORK (m,)
    chosen,  # OUT  (m,) uint8: a best set of the forest at y
):
    """Value of a best set of the forest's groups at ``y``, ignoring other cannot-links."""
    points, weights, lam = instance.points, instance.weights, instance.lam
    ids, linked, parent, order = forest.ids, forest.linked, forest.parent, forest.order
    for i in range(ids.size):
        s = ids[i]
        r = 0.0  # inlined, as in `select_linked`
        for j in range(y.size):
            away = points[s, j] - y[j]
            r += away * away
        delta[i] = lam[s] - weights[s] * r
    for q in range(linked - 1, -1, -1):
        i = order[q]
        p = parent[i]
        if p >= 0 and delta[i] > 0.0:
            delta[p] -= delta[i]
    value = 0.0
    for q in range(ids.size):
        i = order[q] if q < linked else q
        chosen[i] = 0
        if delta[i] > 0.0:
            value += delta[i]
            if q >= linked or parent[i] < 0 or chosen[parent[i]] == 0:
                chosen[i] = 1
    return value


@njit(cache=True, nogil=True)
def worst_conflict(
    instance,  # IN
    forest,  # IN
    chosen,  # IN   (m,) uint8
    position,  # WORK (n_linked,) int32, all -1; all -1 again on return
):
    """Index of the chosen group with the most chosen neighbours; -1 if there is no conflict."""
    ids, linked, nontree = forest.ids, forest.linked, forest.nontree
    indptr, neighbors = instance.indptr, instance.neighbors
    for i in range(linked):
        if nontree[i] == 1 and chosen[i] == 1:
            position[ids[i]] = i
    worst = -1
    most = 0
    for i in range(linked):
        if nontree[i] == 0 or chosen[i] == 0:
            continue
        count = 0
        v = ids[i]
        for e in range(indptr[v], indptr[v + 1]):
            if position[neighbors[e]] >= 0:
                count += 1
        if count > most:
            most = count
            worst = i
    for i in range(linked):
        if nontree[i] == 1:
            position[ids[i]] = -1
    return worst


# Distance from the excluded box of a centre moved out of it, in units of its side.
OUTSIDE_STEP = 0.02


@njit(cache=True, nogil=True)
def has_excluded_box(
    excluded_box,  # IN   (2, d)
):
    """Whether the excluded box is not empty."""
    return excluded_box[0, 0] <= excluded_box[1, 0]


@njit(cache=True, nogil=True)
def is_inside(
    low,  # IN   (d,)
    high,  # IN   (d,)
    excluded_box,  # IN   (2, d)
):
    """Whether a box lies in the excluded box."""
    inside = True
    for j in range(low.size):
        inside = inside and excluded_box[0, j] <= low[j] and high[j] <= excluded_box[1, j]
    return inside


@njit(cache=True, nogil=True)
def leave_excluded_box(
    lo,  # IN   (d,): of a box
    hi,  # IN   (d,)
    excluded_box,  # IN   (2, d)
    y,  # IN/OUT (d,): a point of the box
):
    """Move a point out of the excluded box, by the shortest way along an axis within the box."""
    if not is_inside(y, y, excluded_box):
        return
    axis = 0
    coordinate = 0.0
    best = np.inf
    for j in range(y.size):
        offset = OUTSIDE_STEP * (excluded_box[1, j] - excluded_box[0, j])
        if lo[j] < excluded_box[0, j]:
            outside = excluded_box[0, j] - min(offset, 0.5 * (excluded_box[0, j] - lo[j]))
            if y[j] - outside < best:
                best, axis, coordinate = y[j] - outside, j, outside
        if hi[j] > excluded_box[1, j]:
            outside = excluded_box[1, j] + min(offset, 0.5 * (hi[j] - excluded_box[1, j]))
            if outside - y[j] < best:
                best, axis, coordinate = outside - y[j], j, outside
    if best < np.inf:
        y[axis] = coordinate
