"""Overestimate the value of the best independent set over a box. Compiled; arrays in and out.

For multipliers ``lam`` a group ``s`` is worth ``a_s(y) = lam_s - w_s |x_s - y|^2`` to a cluster
centred at ``y``. These functions bound, over a box of ``y``, the value of the best set
without a cannot-link inside by one concave quadratic ``c + 2 b.y - A |y|^2``.

Intervals are rounded outward, so "never positive" and "never negative" are facts about real
numbers. The sums ``A, b, c`` are plain: `bounds.cluster.pricing_error` says how far they can err.
"""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.pricing.instance import Forest, add_group
from certikmeans.rounding import EPS

OPEN, IN, OUT = 0, 1, 2  # a group over a box: undecided, in some best set, not needed in one
UNSEEN = -2


@njit(cache=True, nogil=True)
def keep_reachable(
    instance,  # IN
    members,  # IN   (size,) int32, ascending
    lo,  # IN   (d,) float64
    hi,  # IN   (d,) float64
    ids,  # OUT  (size,) int32: the groups that may be worth something
    upper,  # OUT  (size,) float64: at least max of a over the box
    lower,  # OUT  (size,) float64: at most min of a over the box
):
    """Drop the groups that are worth nothing anywhere in the box; returns how many stay.

    A coordinate difference, its square, the sum over ``d``, the product with the weight and the
    last subtraction err by less than ``(d + 6) EPS`` of ``|lam| + w r^2`` together.
    """
    points, weights, lam = instance.points, instance.weights, instance.lam
    d = points.shape[1]
    slack = (d + 6) * EPS
    kept = 0
    for s in members:
        near = 0.0
        far = 0.0
        for j in range(d):
            x = points[s, j]
            below = lo[j] - x
            above = x - hi[j]
            gap = max(0.0, max(below, above))
            reach = max(-below, -above)
            near += gap * gap
            far += reach * reach
        near *= weights[s]
        far *= weights[s]
        size = abs(lam[s])
        up = lam[s] - near + slack * (size + near)
        if up > 0.0:
            ids[kept] = s
            upper[kept] = up
            lower[kept] = lam[s] - far - slack * (size + far)
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def span_component(
    instance,  # IN
    root,  # IN   place in ``ids`` to start from
    filled,  # IN   places of ``order`` in use
    space,  # IN/OUT ``position`` is filled in, ``parent`` UNSEEN where nothing is known
):
    """Breadth-first tree from ``root``; returns ``(filled, sum of degrees)``."""
    indptr, neighbors = instance.indptr, instance.neighbors
    ids, parent, order, position = space.ids, space.parent, space.order, space.position
    head = filled
    parent[root] = -1
    order[filled] = root
    filled += 1
    degree = 0
    while head < filled:
        p = order[head]
        v = ids[p]
        for e in range(indptr[v], indptr[v + 1]):
            q = position[neighbors[e]]
            if q < 0:
                continue
            degree += 1
            if parent[q] == UNSEEN:
                parent[q] = p
                order[filled] = q
                filled += 1
        head += 1
    return filled, degree


@njit(cache=True, nogil=True)
def build_forest(
    instance,  # IN
    ids,  # IN   (m,) int32, ascending: the first of ``space.ids``
    space,  # IN/OUT
):
    """Span the cannot-links among ``ids`` by a forest, written into ``space``.

    Components that were trees stay forests when groups drop out, with the same parents. The
    others are searched again, for a cycle opens as soon as one of its groups is gone.
    """
    parent, order = space.parent, space.order
    tangled, position = space.tangled, space.position
    parents, cyclic = instance.parents, instance.cyclic
    n_linked = parents.size
    linked = 0
    while linked < ids.size and ids[linked] < n_linked:
        position[ids[linked]] = linked
        linked += 1
    filled = np.int64(0)  # see `kernels`: not a literal
    n_tangled = 0
    for i in range(linked):
        v = ids[i]
        tangled[i] = 0
        if cyclic[v] == 0:
            up = parents[v]
            parent[i] = position[up] if up >= 0 else -1
            order[filled] = i
            filled += 1
        else:
            parent[i] = UNSEEN
    for i in range(linked):
        if parent[i] != UNSEEN:
            continue
        first = filled
        filled, degree = span_component(instance, i, filled, space)
        if degree > 2 * (filled - first - 1):
            n_tangled += filled - first
            for k in range(first, filled):
                tangled[order[k]] = 1
    for i in range(linked):
        position[ids[i]] = -1
    return Forest(ids, parent, order, tangled, linked, n_tangled)


@njit(cache=True, nogil=True)
def tree_ranges(
    forest,  # IN
    upper,  # IN/OUT (m,) float64: of a, then of delta
    lower,  # IN/OUT (m,) float64
    gain_high,  # WORK (m,) float64
    gain_low,  # WORK (m,) float64
):
    """Ranges of ``delta_v = a_v - sum over children of max(delta_c, 0)``, rounded outward.

    The best independent set of a tree is worth ``sum_v max(delta_v, 0)``: ``delta_v`` is
    what ``v`` adds to its subtree beyond the best set without it.
    """
    linked, parent, order = forest.linked, forest.parent, forest.order
    for i in range(linked):
        gain_high[i] = 0.0
        gain_low[i] = 0.0
    for q in range(linked - 1, -1, -1):
        i = order[q]
        up = upper[i] - gain_low[i]
        low = lower[i] - gain_high[i]
        up += 2.0 * EPS * (abs(upper[i]) + gain_low[i])
        low -= 2.0 * EPS * (abs(lower[i]) + gain_high[i])
        upper[i] = up
        lower[i] = low
        p = parent[i]
        if p >= 0:
            if up > 0.0:
                gain_high[p] = (gain_high[p] + up) * (1.0 + 2.0 * EPS)
            if low > 0.0:
                gain_low[p] = (gain_low[p] + low) * (1.0 - 2.0 * EPS)


@njit(cache=True, nogil=True)
def overestimate(
    instance,  # IN
    forest,  # IN
    upper,  # IN   (m,): of delta in the forest, of a elsewhere
    lower,  # IN   (m,)
    state,  # OUT  (m,) uint8
    share,  # OUT  (m,) float64: weight of a_s in the estimate
    settled,  # IN/OUT (d + 2,): groups that are in, here and in every part of the box
    estimate,  # OUT  (d + 2,): quadratic of the undecided groups
):
    """Decide what can be decided, and bound the rest by chords from the root down.

    On ``[l, u]`` the convex ``max(t, 0)`` is below its chord, ``slope * (t - l)``. With
    ``kappa`` the weight of ``max(delta_v, 0)``, the chord puts ``kappa * slope`` on ``a_v``
    and leaves ``1 - kappa * slope >= 0`` to each child: every weight stays in [0, 1].

    A root that never loses by coming in is settled and its children are out; a group with
    ``delta <= 0`` everywhere is out. Both only where the forest has all the cannot-links
    (not ``tangled``): elsewhere the forest's best set need not be a set of ours.
    """
    ids, parent, order, tangled = forest.ids, forest.parent, forest.order, forest.tangled
    linked = forest.linked
    points, weights, base = instance.points, instance.weights, instance.base
    estimate[:] = 0.0
    for q in range(ids.size):
        i = order[q] if q < linked else q
        p = parent[i] if q < linked else -1
        exact = q >= linked or tangled[i] == 0
        if p >= 0 and state[p] == IN:
            state[i] = OUT
            share[i] = 0.0
            continue
        kappa = 1.0 - share[p] if p >= 0 else 1.0
        if exact and upper[i] <= 0.0:
            state[i] = OUT
            share[i] = 0.0
            continue
        if exact and lower[i] >= 0.0 and (p < 0 or state[p] == OUT):
            state[i] = IN
            share[i] = 1.0
            add_group(points, weights, base, ids[i], 1.0, settled)
            continue
        state[i] = OPEN
        if upper[i] <= 0.0:
            share[i] = 0.0
        elif lower[i] >= 0.0:
            share[i] = kappa
        else:
            slope = upper[i] / (upper[i] - lower[i])
            share[i] = kappa * slope
            estimate[0] -= share[i] * lower[i]
        if share[i] > 0.0:
            add_group(points, weights, base, ids[i], share[i], estimate)


@njit(cache=True, nogil=True)
def best_in_box(
    settled,  # IN   (d + 2,)
    estimate,  # IN   (d + 2,)
    lo,  # IN   (d,)
    hi,  # IN   (d,)
    peak,  # OUT  (d,): maximiser without the box
    y,  # OUT  (d,): maximiser in the box
):
    """Maximum of the sum of two quadratics over the box: clamp the weighted mean."""
    mass = settled[1] + estimate[1]
    value = settled[0] + estimate[0]
    for j in range(lo.size):
        pull = settled[2 + j] + estimate[2 + j]
        peak[j] = pull / mass if mass > 0.0 else 0.5 * (lo[j] + hi[j])
        y[j] = min(max(peak[j], lo[j]), hi[j])
        value += y[j] * (2.0 * pull - mass * y[j])
    return value
