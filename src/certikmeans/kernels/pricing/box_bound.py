"""Upper bound on the value of the best independent set over a box of centres.

For multipliers ``lam`` the value of a group ``s`` in a cluster centred at ``y`` is
``a_s(y) = lam_s - w_s |x_s - y|^2``. These functions bound, over a box of ``y``, the value of the
best set without a cannot-link inside by one concave quadratic ``c + 2 b.y - A |y|^2``.

Intervals are rounded outward, so that "never positive" and "never negative" hold in exact
arithmetic. The sums ``A, b, c`` are rounded to nearest: `bounds.cluster.pricing_error` bounds their
errors.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.rounding import EPS

OPEN, IN, OUT = 0, 1, 2  # a group over a box: undecided, in some best set, not needed in one
UNVISITED = -2


@njit(cache=True, nogil=True)
def filter_reachable(
    instance,  # IN
    members,  # IN   (size,) int32, ascending
    lo,  # IN   (d,) float64
    hi,  # IN   (d,) float64
    ids,  # OUT  (size,) int32: the groups that may have a positive value
    upper,  # OUT  (size,) float64: at least max of a over the box
    lower,  # OUT  (size,) float64: at most min of a over the box
):
    """Drop the groups without positive value anywhere in the box; returns how many remain.

    A coordinate difference, its square, the sum over ``d``, the product with the weight and the
    last subtraction err by less than ``(d + 6) EPS`` of ``|lam| + w r^2`` together.
    """
    points, weights, lam = instance.points, instance.weights, instance.lam
    d = points.shape[1]
    relative_error = (d + 6) * EPS
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
        up = lam[s] - near + relative_error * (size + near)
        if up > 0.0:
            ids[kept] = s
            upper[kept] = up
            lower[kept] = lam[s] - far - relative_error * (size + far)
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def span_component(
    instance,  # IN
    root,  # IN   index in ``ids`` to start from
    filled,  # IN   entries of ``order`` in use
    space,  # IN/OUT ``position`` is set, ``parent`` is UNVISITED for groups not yet reached
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
            if parent[q] == UNVISITED:
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

    Components that were trees remain forests without some of their groups, with the same parents.
    The others are searched again, since a cycle is broken once one of its groups is dropped.
    """
    parent, order = space.parent, space.order
    nontree, position = space.nontree, space.position
    parents, cyclic = instance.parents, instance.cyclic
    n_linked = parents.size
    linked = 0
    while linked < ids.size and ids[linked] < n_linked:
        position[ids[linked]] = linked
        linked += 1
    filled = np.int64(0)  # not a literal, see `kernels`
    n_nontree = 0
    for i in range(linked):
        v = ids[i]
        nontree[i] = 0
        if cyclic[v] == 0:
            up = parents[v]
            parent[i] = position[up] if up >= 0 else -1
            order[filled] = i
            filled += 1
        else:
            parent[i] = UNVISITED
    for i in range(linked):
        if parent[i] != UNVISITED:
            continue
        first = filled
        filled, degree = span_component(instance, i, filled, space)
        if degree > 2 * (filled - first - 1):
            n_nontree += filled - first
            for k in range(first, filled):
                nontree[order[k]] = 1
    for i in range(linked):
        position[ids[i]] = -1
    return Forest(ids, parent, order, nontree, linked, n_nontree)


@njit(cache=True, nogil=True)
def tree_ranges(
    forest,  # IN
    upper,  # IN/OUT (m,) float64: of a, then of delta
    lower,  # IN/OUT (m,) float64
    gain_high,  # WORK (m,) float64
    gain_low,  # WORK (m,) float64
):
    """Ranges of ``delta_v = a_v - sum over children of max(delta_c, 0)``, rounded outward.

    The best independent set of a tree has the value ``sum_v max(delta_v, 0)``: ``delta_v`` is
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
    upper,  # IN   (m,): of delta in the forest, of a for other groups
    lower,  # IN   (m,)
    state,  # OUT  (m,) uint8
    coefficient,  # OUT  (m,) float64: weight of a_s in the estimate
    fixed_sums,  # IN/OUT (d + 2,): groups that are in for the whole box
    estimate,  # OUT  (d + 2,): quadratic of the undecided groups
):
    """Decide groups where possible, and bound the others by chords from the root down.

    On ``[l, u]`` the convex ``max(t, 0)`` is below its chord, ``slope * (t - l)``. With
    ``kappa`` the weight of ``max(delta_v, 0)``, the chord puts ``kappa * slope`` on ``a_v``
    and leaves ``1 - kappa * slope >= 0`` to each child: every weight stays in [0, 1].

    A root with ``delta >= 0`` everywhere is in and its children are out; a group with
    ``delta <= 0`` everywhere is out. Both only if the forest has all the cannot-links of the
    component (not ``nontree``): otherwise the forest's best set need not be independent.
    """
    ids, parent, order, nontree = forest.ids, forest.parent, forest.order, forest.nontree
    linked = forest.linked
    points, weights, base = instance.points, instance.weights, instance.base
    estimate[:] = 0.0
    for q in range(ids.size):
        i = order[q] if q < linked else q
        p = parent[i] if q < linked else -1
        exact = q >= linked or nontree[i] == 0
        if p >= 0 and state[p] == IN:
            state[i] = OUT
            coefficient[i] = 0.0
            continue
        kappa = 1.0 - coefficient[p] if p >= 0 else 1.0
        if exact and upper[i] <= 0.0:
            state[i] = OUT
            coefficient[i] = 0.0
            continue
        if exact and lower[i] >= 0.0 and (p < 0 or state[p] == OUT):
            state[i] = IN
            coefficient[i] = 1.0
            add_group(points, weights, base, ids[i], 1.0, fixed_sums)
            continue
        state[i] = OPEN
        if upper[i] <= 0.0:
            coefficient[i] = 0.0
        elif lower[i] >= 0.0:
            coefficient[i] = kappa
        else:
            slope = upper[i] / (upper[i] - lower[i])
            coefficient[i] = kappa * slope
            estimate[0] -= coefficient[i] * lower[i]
        if coefficient[i] > 0.0:
            add_group(points, weights, base, ids[i], coefficient[i], estimate)


@njit(cache=True, nogil=True)
def maximize_in_box(
    fixed_sums,  # IN   (d + 2,)
    estimate,  # IN   (d + 2,)
    lo,  # IN   (d,)
    hi,  # IN   (d,)
    peak,  # OUT  (d,): maximiser without the box
    y,  # OUT  (d,): maximiser in the box
):
    """Maximum of the sum of two quadratics over the box: clip the weighted mean."""
    mass = fixed_sums[1] + estimate[1]
    value = fixed_sums[0] + estimate[0]
    for j in range(lo.size):
        pull = fixed_sums[2 + j] + estimate[2 + j]
        peak[j] = pull / mass if mass > 0.0 else 0.5 * (lo[j] + hi[j])
        y[j] = min(max(peak[j], lo[j]), hi[j])
        value += y[j] * (2.0 * pull - mass * y[j])
    return value


class Instance(NamedTuple):
    """The groups, their multipliers and the cannot-links between them. Read only."""

    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    lam: np.ndarray  # (n,) multipliers
    base: np.ndarray  # (n,) lam - w |x|^2
    parents: np.ndarray  # (n_linked,) int64: breadth-first tree of the whole graph, -1 at a root
    cyclic: np.ndarray  # (n_linked,) uint8: 1 in components with a cycle
    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64


class ForestWorkspace(NamedTuple):
    """Workspace of a forest over up to ``m`` groups."""

    ids: np.ndarray  # (m,) int32: the groups, ascending
    parent: np.ndarray  # (m,) int32
    order: np.ndarray  # (m,) int32
    nontree: np.ndarray  # (m,) uint8
    position: np.ndarray  # (n_linked,) int32: index of a group in ``ids``; all -1 between calls


class Forest(NamedTuple):
    """A spanning forest of the cannot-links among some groups, by indices in ``ids``."""

    ids: np.ndarray  # (m,) int32: the groups, ascending
    parent: np.ndarray  # (>= m,) int32: index of the parent, -1 at a root
    order: np.ndarray  # (>= m,) int32: indices, parents before children
    nontree: np.ndarray  # (>= m,) uint8: 1 in components with cannot-links beyond the forest
    linked: int  # indices below this have cannot-links and are in the forest
    n_nontree: int


@njit(cache=True, nogil=True)
def forest_workspace(
    capacity,  # IN  largest number of groups
    position,  # IN  (n_linked,) int32, all -1
):
    """Allocate the workspace of forests over up to ``capacity`` groups."""
    return ForestWorkspace(
        ids=np.empty(capacity, dtype=np.int32),
        parent=np.empty(capacity, dtype=np.int32),
        order=np.empty(capacity, dtype=np.int32),
        nontree=np.empty(capacity, dtype=np.uint8),
        position=position,
    )


@njit(cache=True, nogil=True)
def add_group(
    points,  # IN   (n, d); arrays of the instance, which is slow to pass for every group
    weights,  # IN   (n,)
    base,  # IN   (n,)
    s,  # IN   group
    coefficient,  # IN   between 0 and 1
    sums,  # IN/OUT (d + 2,): c, A, b of ``c + 2 b.y - A |y|^2``
):
    """Add ``coefficient * a_s`` to a quadratic."""
    mass = coefficient * weights[s]
    sums[0] += coefficient * base[s]
    sums[1] += mass
    for j in range(points.shape[1]):
        sums[2 + j] += mass * points[s, j]
