"""Local ascent of pricing: alternate between selecting groups and moving to their mean."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.pricing.box_bound import (
    ForestWorkspace,
    add_group,
    build_forest,
    forest_workspace,
)
from certikmeans.kernels.pricing.boxes import select_at, value_at, worst_conflict

# Components of cannot-links with cycles, at a fixed centre, are solved exactly up to this size and
# number of branches.
MAX_EXACT_COMPONENT = 300
MAX_COMPONENT_BRANCHES = 500


class SelectionWorkspace(NamedTuple):
    """Workspace of one selection among the linked groups."""

    space: ForestWorkspace
    chosen: np.ndarray  # (n_linked,) uint8
    delta: np.ndarray  # (n_linked,)


@njit(cache=True, nogil=True)
def select_linked(
    instance,  # IN
    y,  # IN   (d,)
    work,  # WORK SelectionWorkspace
    members,  # OUT  (n,) uint8, of the linked groups
):
    """Best independent set at ``y``; a good one if that takes too long."""
    points, weights, lam = instance.points, instance.weights, instance.lam
    ids, chosen = work.space.ids, work.chosen
    m = 0
    for s in range(instance.parents.size):
        members[s] = 0
        r = 0.0  # inlined: a function call costs as much as the sum
        for j in range(y.size):
            away = points[s, j] - y[j]
            r += away * away
        if lam[s] > weights[s] * r:
            ids[m] = s
            m += 1
    forest = build_forest(instance, ids[:m], work.space)
    select_at(instance, forest, y, work.delta, chosen)
    for i in range(m):
        members[ids[i]] = chosen[i]
    linked, parent, order, nontree = forest.linked, forest.parent, forest.order, forest.nontree
    first = 0
    while forest.n_nontree > 0 and first < linked:
        last = first + 1
        while last < linked and parent[order[last]] >= 0 and nontree[order[first]] == 1:
            last += 1
        if nontree[order[first]] == 1:
            component = ids[order[first:last]]
            repair_independent_set(instance, component, y, work.delta, members)
            if component.size <= MAX_EXACT_COMPONENT:
                solve_component(instance, component, y, work.space.position, members)
        first = last


@njit(cache=True, nogil=True)
def repair_independent_set(
    instance,  # IN
    component,  # IN   (m,) int32: linked groups of positive value
    y,  # IN   (d,)
    value,  # WORK (>= m,)
    members,  # IN/OUT (n,) uint8
):
    """Make ``members`` independent within the component, then maximal by descending value."""
    points, weights, lam = instance.points, instance.weights, instance.lam
    indptr, neighbors = instance.indptr, instance.neighbors
    for i in range(component.size):
        value[i] = value_at(points, weights, lam, component[i], y)
    rank = np.argsort(value[: component.size])
    for k in range(rank.size):  # worst first: remove a group that has a neighbour in the set
        s = component[rank[k]]
        if members[s] == 0:
            continue
        for e in range(indptr[s], indptr[s + 1]):
            if members[neighbors[e]] == 1:
                members[s] = 0
    for k in range(rank.size - 1, -1, -1):
        s = component[rank[k]]
        fits = True
        for e in range(indptr[s], indptr[s + 1]):
            fits = fits and members[neighbors[e]] == 0
        if fits:
            members[s] = 1


@njit(cache=True, nogil=True)
def solve_component(
    instance,  # IN
    component,  # IN   (m,) int32: linked groups of positive value
    y,  # IN   (d,)
    position,  # WORK (n_linked,) int32, all -1
    members,  # IN/OUT (n,) uint8: an independent set; then a best one of the component
):
    """Best independent set of the component, by branching: exclude a group or its neighbours.

    Best sets of spanning forests bound each branch. At most ``MAX_COMPONENT_BRANCHES`` branches.
    """
    points, weights, lam = instance.points, instance.weights, instance.lam
    indptr, neighbors = instance.indptr, instance.neighbors
    m = component.size
    space = forest_workspace(m, position)
    ids = space.ids
    chosen, delta = np.empty(m, dtype=np.uint8), np.empty(m)
    stack = np.zeros((m + 2, m), dtype=np.uint8)  # 1 for excluded groups
    best = 0.0
    for i in range(m):
        if members[component[i]] == 1:
            best += value_at(points, weights, lam, component[i], y)
    excluded = np.empty(m, dtype=np.uint8)
    top = 1
    for _ in range(MAX_COMPONENT_BRANCHES):
        if top == 0:
            break
        top -= 1
        excluded[:] = stack[top]
        k = 0
        for i in range(m):
            if excluded[i] == 0:
                ids[k] = component[i]
                k += 1
        forest = build_forest(instance, ids[:k], space)
        value = select_at(instance, forest, y, delta, chosen)
        if value <= best * (1.0 + 1e-14):
            continue
        conflict = worst_conflict(instance, forest, chosen, position)
        if conflict < 0:
            best = value
            members[component] = 0
            for i in range(k):
                members[ids[i]] = chosen[i]
            continue
        v = ids[conflict]
        for i in range(m):
            adjacent = False
            for e in range(indptr[v], indptr[v + 1]):
                adjacent = adjacent or neighbors[e] == component[i]
            stack[top, i] = 1 if excluded[i] == 1 or component[i] == v else 0
            stack[top + 1, i] = 1 if excluded[i] == 1 or adjacent else 0
        top += 2
    # The depth is at most m, since every branch excludes one more group: the stack suffices.


@njit(cache=True, nogil=True)
def select_and_update_center(
    instance,  # IN
    active_faces,  # IN   (2, d): bounds on ``y``
    y,  # IN/OUT (d,): then the mean of the members, clipped to the faces
    sums,  # OUT  (d + 2,): of the members
    work,  # WORK SelectionWorkspace
    members,  # OUT  (n,) uint8
):
    """Select at ``y``, move ``y`` to the mean; returns ``sum lam - cost`` of the members there.

    ``cost`` about the mean is ``sum w |x|^2 - |sum w x|^2 / sum w``: points are centred, and no
    proof depends on values of columns.
    """
    points, weights, base = instance.points, instance.weights, instance.base
    n_linked = instance.parents.size
    n, d = points.shape
    norm = 0.0
    for j in range(d):
        norm += y[j] * y[j]
    sums[:] = 0.0
    for s in range(n_linked, n):
        dot = 0.0
        for j in range(d):
            dot += points[s, j] * y[j]
        w = weights[s]
        inside = base[s] + w * (2.0 * dot - norm) > 0.0
        members[s] = inside
        if inside:
            add_group(points, weights, base, s, 1.0, sums)
    if n_linked > 0:
        select_linked(instance, y, work, members)
        for s in range(n_linked):
            if members[s] == 1:
                add_group(points, weights, base, s, 1.0, sums)
    if sums[1] == 0.0:
        return 0.0
    value = sums[0]
    for j in range(d):
        y[j] = min(max(sums[2 + j] / sums[1], active_faces[0, j]), active_faces[1, j])
        value += y[j] * (2.0 * sums[2 + j] - sums[1] * y[j])
    return value


@njit(cache=True, nogil=True)
def ascend(
    instance,  # IN
    active_faces,  # IN   (2, d): bounds on ``y``
    y,  # IN/OUT (d,): start, then the mean of ``members``, clipped to the faces
    best_sums,  # OUT  (d + 2,): of ``members``
    members,  # OUT  (n,) uint8
    max_steps,  # IN
    min_gain,  # IN   stop at a step that gains less
):
    """Alternate selection and mean until the value converges; returns ``(value, steps)``."""
    n, d = instance.points.shape
    n_linked = instance.parents.size
    work = SelectionWorkspace(
        space=forest_workspace(n_linked, np.full(n_linked, -1, dtype=np.int32)),
        chosen=np.empty(n_linked, dtype=np.uint8),
        delta=np.empty(n_linked),
    )
    sums, center = np.empty(d + 2), y.copy()
    trial = np.empty(n, dtype=np.uint8)
    best = 0.0
    best_sums[:] = 0.0
    members[:] = 0
    for step in range(max_steps):
        value = select_and_update_center(instance, active_faces, center, sums, work, trial)
        gain = value - best
        if step > 0 and gain <= 1e-12 * abs(best):
            return best, step
        best = value
        members[:] = trial
        best_sums[:] = sums
        y[:] = center
        if step > 0 and gain < min_gain:
            return best, step
    return best, max_steps
