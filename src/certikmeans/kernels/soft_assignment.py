"""Cheapest labels for a table of costs and bonuses of pairs that share a label. Compiled.

The objective is the sum of ``costs[v, labels[v]]`` and of ``|bonus|`` over violated pairs: those of
positive bonus with different labels and those of negative bonus with the same. A cannot-link has a
bonus of minus infinity. On a forest, messages from the leaves to the roots solve it: the message of
a child with minima ``D`` is, for every label of the parent,

    min(least of the other labels + max(bonus, 0), D[label] + max(-bonus, 0)),

which takes O(K) with the two least entries of ``D``. No term is negative, so nothing cancels.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

# A forest stops growing after this many vertices in a row that would close a cycle.
MAX_REJECTED = 64


class PairGraph(NamedTuple):
    """Pairs in compressed rows, both directions."""

    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64, ascending within a vertex
    bonus: np.ndarray  # float64; -inf for a cannot-link


class Forest(NamedTuple):
    """Vertices with parents first."""

    order: np.ndarray  # vertices
    parent: np.ndarray  # vertex, -1 at a root
    bonus: np.ndarray  # of the pair with the parent


class SoftLayout(NamedTuple):
    """Components of the pairs by the method that solves them."""

    graph: PairGraph
    trees: Forest  # components without cycles
    removed_start: np.ndarray  # (m + 1,) components that are forests without few vertices:
    removed: np.ndarray  # these vertices,
    rest_start: np.ndarray  # (m + 1,)
    rest: Forest  # and the forest of the others
    member_start: np.ndarray  # (m + 1,) other components
    spanning: Forest  # a spanning tree of each


class SweepWork(NamedTuple):
    """Arrays for forests with changing vertices."""

    table: np.ndarray  # (n, n_labels)
    root: np.ndarray  # (n,) union-find; -1 outside the forest
    stamp: np.ndarray  # (n,)
    members: np.ndarray  # (n,)
    before: np.ndarray  # (n,) labels before a step
    order: np.ndarray  # (n,)
    parent: np.ndarray  # (n,)
    bonus: np.ndarray  # (n,)


@njit(cache=True, nogil=True)
def _find(root, v):
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@njit(cache=True, nogil=True)
def _two_least(row):
    """Position of the least entry, it, and the second least."""
    at, least, second = 0, row[0], np.inf
    for k in range(1, len(row)):
        value = row[k]
        if value < least:
            at, least, second = k, value, least
        elif value < second:
            second = value
    return at, least, second


@njit(cache=True, nogil=True)
def _solve_forest(
    order,  # IN  vertices, parents first
    parent,  # IN
    bonus,  # IN
    first,  # IN  range of positions
    last,  # IN
    table,  # INOUT  costs; messages are added
    labels,  # OUT
):
    """Cheapest labels of a forest; returns their objective."""
    value = 0.0
    for position in range(last - 1, first - 1, -1):
        row = table[order[position]]
        at, least, second = _two_least(row)
        if parent[position] < 0:
            value += least
            continue
        above = table[parent[position]]
        apart, together = max(bonus[position], 0.0), max(-bonus[position], 0.0)
        for k in range(len(row)):
            other = second if k == at else least
            above[k] += min(other + apart, row[k] + together)
    for position in range(first, last):
        row, p = table[order[position]], parent[position]
        at, least, second = _two_least(row)
        if p >= 0:
            k = labels[p]
            apart, together = max(bonus[position], 0.0), max(-bonus[position], 0.0)
            if k != at:
                at = k if row[k] + together < least + apart else at
            elif row[k] + together > second + apart:
                at = _least_except(row, at)
        labels[order[position]] = at
    return value


@njit(cache=True, nogil=True)
def _least_except(row, excluded):
    at, least = excluded, np.inf
    for k in range(len(row)):
        if k != excluded and row[k] < least:
            at, least = k, row[k]
    return at


# Components that a few vertices turn into forests: every combination of their labels.


@njit(cache=True, nogil=True)
def _solve_conditioned(layout, number, costs, table, is_removed, labels):
    """Cheapest labels of a component, given those of its removed vertices."""
    graph, rest = layout.graph, layout.rest
    first, last = layout.rest_start[number], layout.rest_start[number + 1]
    for position in range(first, last):
        table[rest.order[position]] = costs[rest.order[position]]
    value = 0.0
    for v in layout.removed[layout.removed_start[number] : layout.removed_start[number + 1]]:
        k = labels[v]
        value += costs[v, k]
        for e in range(graph.indptr[v], graph.indptr[v + 1]):
            u, r = graph.neighbors[e], graph.bonus[e]
            if is_removed[u]:
                if u < v and (labels[u] == k) == (r < 0.0):
                    value += abs(r)
            elif r < 0.0:
                table[u, k] -= r
            else:
                for label in range(costs.shape[1]):
                    if label != k:
                        table[u, label] += r
    if not value < np.inf:
        return np.inf
    return value + _solve_forest(rest.order, rest.parent, rest.bonus, first, last, table, labels)


@njit(cache=True, nogil=True)
def _solve_by_conditioning(layout, number, costs, table, is_removed, labels):
    """Cheapest labels of a component; labels stay as they are if none are feasible."""
    removed = layout.removed[layout.removed_start[number] : layout.removed_start[number + 1]]
    first, last = layout.rest_start[number], layout.rest_start[number + 1]
    members = np.concatenate((removed, layout.rest.order[first:last]))
    n_labels, n_removed = costs.shape[1], len(removed)
    before = labels[members].copy()
    best, best_choice = np.inf, -1
    for v in removed:
        is_removed[v] = True
    for choice in range(n_labels**n_removed):
        digits = choice
        for v in removed:
            labels[v] = digits % n_labels
            digits //= n_labels
        value = _solve_conditioned(layout, number, costs, table, is_removed, labels)
        if value < best:
            best, best_choice = value, choice
    if best_choice < 0:
        for position in range(len(members)):
            labels[members[position]] = before[position]
    else:
        for v in removed:
            labels[v] = best_choice % n_labels
            best_choice //= n_labels
        _solve_conditioned(layout, number, costs, table, is_removed, labels)
    for v in removed:
        is_removed[v] = False


# Other components: induced forests are solved exactly while the other labels stay.


@njit(cache=True, nogil=True)
def _objective(graph, members, costs, labels):
    value = 0.0
    for v in members:
        value += costs[v, labels[v]]
        for e in range(graph.indptr[v], graph.indptr[v + 1]):
            u, r = graph.neighbors[e], graph.bonus[e]
            if u < v and (labels[u] == labels[v]) == (r < 0.0):
                value += abs(r)
    return value


@njit(cache=True, nogil=True)
def _solve_induced(graph, n_members, costs, labels, work):
    """Cheapest labels of the members, which induce a forest; returns the number of changes."""
    count = 0
    for start in work.members[:n_members]:
        if work.before[start] >= 0:
            continue
        work.before[start] = labels[start]
        work.order[count], work.parent[count], work.bonus[count] = start, -1, 0.0
        head = count
        count += 1
        while head < count:
            v = work.order[head]
            head += 1
            work.table[v] = costs[v]
            for e in range(graph.indptr[v], graph.indptr[v + 1]):
                u = graph.neighbors[e]
                if work.root[u] < 0:
                    work.table[v, labels[u]] -= graph.bonus[e]
                elif work.before[u] < 0:
                    work.before[u] = labels[u]
                    work.order[count], work.parent[count] = u, v
                    work.bonus[count] = graph.bonus[e]
                    count += 1
    value = _solve_forest(work.order, work.parent, work.bonus, 0, count, work.table, labels)
    changes = 0
    for v in work.order[:count]:
        if not value < np.inf:
            labels[v] = work.before[v]
        changes += labels[v] != work.before[v]
        work.before[v] = -1
    return changes


@njit(cache=True, nogil=True)
def _sweep(graph, pool, costs, labels, mark, work):
    """Solve induced forests until every vertex of the pool was in one; returns (changes, mark)."""
    n_left, changes = len(pool), 0
    while n_left > 0:
        n_members, n_kept, rejected = 0, 0, 0
        for position in range(n_left):
            v = pool[position]
            fits = rejected < MAX_REJECTED
            if fits:
                mark += 1
                for e in range(graph.indptr[v], graph.indptr[v + 1]):
                    u = graph.neighbors[e]
                    if work.root[u] >= 0:
                        top = _find(work.root, u)
                        if work.stamp[top] == mark:
                            fits = False
                            break
                        work.stamp[top] = mark
            if not fits:
                pool[n_kept] = v
                n_kept += 1
                rejected += 1
                continue
            work.root[v] = v
            for e in range(graph.indptr[v], graph.indptr[v + 1]):
                u = graph.neighbors[e]
                if work.root[u] >= 0:
                    work.root[_find(work.root, u)] = v
            work.members[n_members] = v
            n_members += 1
            rejected = 0
        changes += _solve_induced(graph, n_members, costs, labels, work)
        for v in work.members[:n_members]:
            work.root[v] = -1
        n_left = n_kept
    return changes, mark


@njit(cache=True, nogil=True)
def _improve(graph, members, costs, labels, max_sweeps, mark, work):
    """Sweep in random orders until a sweep changes nothing."""
    pool = np.empty(len(members), np.int64)
    state = 12345 + 7919 * len(members)
    for _ in range(max_sweeps):
        pool[:] = members
        for i in range(len(pool) - 1, 0, -1):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            j = (state >> 8) % (i + 1)
            pool[i], pool[j] = pool[j], pool[i]
        changes, mark = _sweep(graph, pool, costs, labels, mark, work)
        if changes == 0:
            break
    return mark


@njit(cache=True, nogil=True)
def assign_soft_pairs(
    layout,  # IN  SoftLayout
    costs,  # IN  (n, n_labels)
    labels,  # INOUT  start labels, or -1 everywhere
    max_sweeps,  # IN  over components that no exact method solves
):
    """Cheapest labels; with start labels, each component becomes no more expensive."""
    n = len(costs)
    graph, trees = layout.graph, layout.trees
    for v in range(n):
        if graph.indptr[v] == graph.indptr[v + 1]:
            labels[v] = np.argmin(costs[v])
    table = costs.copy()
    _solve_forest(trees.order, trees.parent, trees.bonus, 0, len(trees.order), table, labels)
    is_removed = np.zeros(n, np.bool_)
    for number in range(len(layout.removed_start) - 1):
        _solve_by_conditioning(layout, number, costs, table, is_removed, labels)
    n_others = len(layout.member_start) - 1
    if n_others == 0:
        return
    work = SweepWork(
        table,
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
        np.empty(n, np.int64),
        np.full(n, -1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.float64),
    )
    mark, spanning = 0, layout.spanning
    for number in range(n_others):
        first, last = layout.member_start[number], layout.member_start[number + 1]
        members = spanning.order[first:last]
        before = labels[members].copy()
        best = np.inf
        if before[0] >= 0:
            mark = _improve(graph, members, costs, labels, max_sweeps, mark, work)
            best = _objective(graph, members, costs, labels)
            before = labels[members].copy()
        for v in members:
            table[v] = costs[v]
        _solve_forest(spanning.order, spanning.parent, spanning.bonus, first, last, table, labels)
        value = _objective(graph, members, costs, labels)
        if value < np.inf:
            mark = _improve(graph, members, costs, labels, max_sweeps, mark, work)
            value = _objective(graph, members, costs, labels)
        if not value < best:
            for position in range(len(members)):
                labels[members[position]] = before[position]


@njit(cache=True, nogil=True)
def soft_objective(
    graph,  # IN  PairGraph
    costs,  # IN
    labels,  # IN
):
    """Costs of the labels and penalties of violated pairs."""
    return _objective(graph, np.arange(len(labels)), costs, labels)


# Layout.


@njit(cache=True, nogil=True)
def spanning_forest(
    graph,  # IN  PairGraph
    by_size,  # IN  entries of the graph, the largest bonus first
    tails,  # IN  tail of every entry
    forest,  # OUT  Forest over all vertices that have pairs
):
    """Spanning forest of largest absolute bonuses; returns first positions of the components."""
    n = len(graph.indptr) - 1
    root = np.arange(n)
    chosen = np.zeros(len(graph.neighbors), np.bool_)
    for e in by_size:
        u, v = tails[e], graph.neighbors[e]
        if u < v:
            a, b = _find(root, u), _find(root, v)
            if a != b:
                root[a] = b
                chosen[e] = True
    degree = np.zeros(n + 1, np.int64)
    for e in range(len(chosen)):
        if chosen[e]:
            degree[tails[e] + 1] += 1
            degree[graph.neighbors[e] + 1] += 1
    indptr = np.cumsum(degree)
    fill = indptr.copy()
    heads, values = np.empty(indptr[-1], np.int64), np.empty(indptr[-1])
    for e in range(len(chosen)):
        if chosen[e]:
            u, v = tails[e], graph.neighbors[e]
            heads[fill[u]], values[fill[u]] = v, graph.bonus[e]
            heads[fill[v]], values[fill[v]] = u, graph.bonus[e]
            fill[u] += 1
            fill[v] += 1
    seen = np.zeros(n, np.bool_)
    starts = np.empty(n + 1, np.int64)
    count, n_components = 0, 0
    for s in range(n):
        if seen[s] or indptr[s] == indptr[s + 1]:
            continue
        starts[n_components] = count
        n_components += 1
        seen[s] = True
        forest.order[count], forest.parent[count], forest.bonus[count] = s, -1, 0.0
        head = count
        count += 1
        while head < count:
            v = forest.order[head]
            head += 1
            for e in range(indptr[v], indptr[v + 1]):
                u = heads[e]
                if not seen[u]:
                    seen[u] = True
                    forest.order[count], forest.parent[count] = u, v
                    forest.bonus[count] = values[e]
                    count += 1
    starts[n_components] = count
    return starts[: n_components + 1]


@njit(cache=True, nogil=True)
def break_cycles(
    graph,  # IN  PairGraph
    members,  # IN  vertices of a component
    max_removed,  # IN
    removed,  # OUT  (max_removed,)
    forest,  # OUT  Forest over the other members
):
    """Vertices whose removal leaves a forest; returns their number, or -1 if it is too large.

    Vertices of degree 1 are peeled; while some are left, the one of the highest degree goes.
    """
    n = len(graph.indptr) - 1
    degree = np.zeros(n, np.int64)
    for v in members:
        degree[v] = graph.indptr[v + 1] - graph.indptr[v]
    gone = np.zeros(n, np.bool_)
    is_removed = np.zeros(n, np.bool_)
    stack = np.empty(len(members), np.int64)
    n_stack, n_removed, n_left = 0, 0, len(members)
    for v in members:
        if degree[v] <= 1:
            stack[n_stack] = v
            gone[v] = True
            n_stack += 1
    while True:
        while n_stack > 0:
            n_stack -= 1
            v = stack[n_stack]
            n_left -= 1
            for u in graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]]:
                if not gone[u]:
                    degree[u] -= 1
                    if degree[u] <= 1:
                        gone[u] = True
                        stack[n_stack] = u
                        n_stack += 1
        if n_left == 0:
            break
        if n_removed == max_removed:
            return -1
        top = -1
        for v in members:
            if not gone[v] and (top < 0 or degree[v] > degree[top]):
                top = v
        removed[n_removed] = top
        n_removed += 1
        is_removed[top] = gone[top] = True
        stack[n_stack] = top
        n_stack += 1
    seen = is_removed.copy()
    count = 0
    for s in members:
        if seen[s]:
            continue
        seen[s] = True
        forest.order[count], forest.parent[count], forest.bonus[count] = s, -1, 0.0
        head = count
        count += 1
        while head < count:
            v = forest.order[head]
            head += 1
            for e in range(graph.indptr[v], graph.indptr[v + 1]):
                u = graph.neighbors[e]
                if not seen[u]:
                    seen[u] = True
                    forest.order[count], forest.parent[count] = u, v
                    forest.bonus[count] = graph.bonus[e]
                    count += 1
    return n_removed
