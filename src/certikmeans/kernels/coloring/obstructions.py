"""Small obstructions in graphs: cliques and odd cycles. Compiled.

Graphs are in compressed form, as in `coloring.greedy`.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

FOUND, ABSENT, GAVE_UP = 1, 0, -1


class OddCycleScan(NamedTuple):
    """How far a scan for odd cycles has come, and what it found."""

    next_root: int
    length: int  # of the shortest cycle known
    root: int  # of the cycle found, -1 if none was
    u: int  # its two vertices farthest from the root, linked to each other
    v: int


@njit(cache=True, nogil=True)
def smallest_last_order(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    rank,  # OUT  (n,) int64: when the vertex was removed
):
    """Remove a vertex of smallest remaining degree at a time; returns the largest such degree."""
    n = indptr.size - 1
    degree = indptr[1:] - indptr[:-1]
    head = np.full(n + 1, -1, dtype=np.int64)
    after = np.empty(n, dtype=np.int64)
    before = np.full(n, -1, dtype=np.int64)
    for v in range(n):
        after[v] = head[degree[v]]
        if head[degree[v]] >= 0:
            before[head[degree[v]]] = v
        head[degree[v]] = v
        rank[v] = -1
    low, degeneracy = 0, 0
    for i in range(n):
        while head[low] < 0:
            low += 1
        degeneracy = max(degeneracy, low)
        v = head[low]
        head[low] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        rank[v] = i
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            if rank[u] >= 0:
                continue
            if before[u] >= 0:
                after[before[u]] = after[u]
            else:
                head[degree[u]] = after[u]
            if after[u] >= 0:
                before[after[u]] = before[u]
            degree[u] -= 1
            after[u] = head[degree[u]]
            before[u] = -1
            if head[degree[u]] >= 0:
                before[head[degree[u]]] = u
            head[degree[u]] = u
            low = min(low, degree[u])
    return degeneracy


@njit(cache=True, nogil=True)
def later_neighbors(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    rank,  # IN   (n,) int64
):
    """Return ``(indptr, neighbors)`` with only the neighbours of higher rank."""
    n = indptr.size - 1
    later_indptr = np.zeros(n + 1, dtype=np.int64)
    later = np.empty(neighbors.size // 2, dtype=np.int64)
    at = 0
    for v in range(n):
        for e in range(indptr[v], indptr[v + 1]):
            if rank[neighbors[e]] > rank[v]:
                later[at] = neighbors[e]
                at += 1
        later_indptr[v + 1] = at
    return later_indptr, later


@njit(cache=True, nogil=True)
def _prune_low_degree(adjacent, inside, degree, need):
    """Drop from ``inside`` vertices with fewer than ``need - 1`` neighbours there.

    Returns how many are left and one of smallest degree among them.
    """
    m = inside.size
    left = 0
    for i in range(m):
        degree[i] = 0
        if inside[i]:
            left += 1
            for j in range(m):
                degree[i] += inside[j] and adjacent[i, j]
    changed = True
    while changed:
        changed = False
        for i in range(m):
            if inside[i] and degree[i] < need - 1:
                inside[i] = False
                left -= 1
                changed = True
                for j in range(m):
                    degree[j] -= adjacent[i, j]
    pick = -1
    for i in range(m):
        if inside[i] and (pick < 0 or degree[i] < degree[pick]):
            pick = i
    return left, pick


@njit(cache=True, nogil=True)
def _clique_inside(
    adjacent,  # IN   (m, m) bool
    size,  # IN   int >= 1, wanted
    stack,  # OUT  (size, m) bool: candidates at each depth; scratch
    degree,  # OUT  (m,) int64: scratch
    chosen,  # OUT  (size,) int64
    max_work,  # IN   int
):
    """Search exhaustively for a clique of ``size``. Returns ``(answer, work)``."""
    m = adjacent.shape[0]
    depth, work = 0, 0
    stack[0, :] = True
    while depth >= 0:
        need = size - depth
        left, pick = _prune_low_degree(adjacent, stack[depth], degree, need)
        work += m * m
        if left < need:
            depth -= 1
            continue
        if left == need or need == 1:
            # Each of the ``need`` vertices left has ``need - 1`` neighbours among them.
            at = depth
            for i in range(m):
                if stack[depth, i] and at < size:
                    chosen[at] = i
                    at += 1
            return FOUND, work
        if work > max_work:
            return GAVE_UP, work
        chosen[depth] = pick
        stack[depth, pick] = False
        for i in range(m):
            stack[depth + 1, i] = stack[depth, i] and adjacent[pick, i]
        depth += 1
    return ABSENT, work


@njit(cache=True, nogil=True)
def scan_for_clique(
    later_indptr,  # IN   (n + 1,) int64, from `later_neighbors`
    later,  # IN   (n_edges,) int64
    size,  # IN   int >= 2, wanted
    first,  # IN   int, vertex to begin with
    position,  # IN/OUT (n,) int64: scratch, all -1 between calls
    max_work,  # IN   int, per call and per neighbourhood, which is then given up
    clique,  # OUT  (size,) int64
):
    """Search for a clique among each vertex and its later neighbours.

    A clique's first vertex in the order has all others among its later neighbours, so no clique
    is missed unless its neighbourhood is given up. Returns ``(answer, next vertex)``; the answer
    is GAVE_UP, too, when the work ran out before the last vertex.
    """
    n = later_indptr.size - 1
    outcome, work = ABSENT, 0
    for v in range(first, n):
        begin, m = later_indptr[v], later_indptr[v + 1] - later_indptr[v]
        work += 1
        if m < size - 1:
            continue
        if work > max_work:
            return GAVE_UP, v
        if m * m > max_work:
            outcome = GAVE_UP
            continue
        neighborhood = later[begin : begin + m]
        adjacent = np.zeros((m, m), dtype=np.bool_)
        for i in range(m):
            position[neighborhood[i]] = i
        for i in range(m):
            for e in range(later_indptr[neighborhood[i]], later_indptr[neighborhood[i] + 1]):
                j = position[later[e]]
                if j >= 0:
                    adjacent[i, j] = True
                    adjacent[j, i] = True
                work += 1
        for i in range(m):
            position[neighborhood[i]] = -1
        stack = np.empty((size - 1, m), dtype=np.bool_)
        degree = np.empty(m, dtype=np.int64)
        answer, spent = _clique_inside(
            adjacent, size - 1, stack, degree, clique[: size - 1], max_work
        )
        work += spent
        if answer == FOUND:
            for i in range(size - 1):
                clique[i] = neighborhood[clique[i]]
            clique[size - 1] = v
            return FOUND, v
        if answer == GAVE_UP:
            outcome = GAVE_UP
    return outcome, n


@njit(cache=True, nogil=True)
def greedy_clique(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    seeds,  # IN   (s,) int64, where to begin
    largest,  # IN   int, size that is enough
    clique,  # OUT  (largest,) int64
):
    """Grow a clique from each seed by the candidate of highest degree; returns the best size."""
    n = indptr.size - 1
    hits = np.zeros(n, dtype=np.int64)
    trial = np.empty(largest, dtype=np.int64)
    best = 0
    for seed in seeds:
        trial[0] = seed
        size = 1
        latest = seed
        while size < largest:
            for e in range(indptr[latest], indptr[latest + 1]):
                hits[neighbors[e]] += 1
            latest = -1
            for e in range(indptr[seed], indptr[seed + 1]):
                u = neighbors[e]
                if hits[u] == size and (
                    latest < 0 or indptr[u + 1] - indptr[u] > indptr[latest + 1] - indptr[latest]
                ):
                    latest = u
            if latest < 0:
                break
            trial[size] = latest
            size += 1
        for i in range(size):
            for e in range(indptr[trial[i]], indptr[trial[i] + 1]):
                hits[neighbors[e]] = 0
        if size > best:
            best = size
            clique[:size] = trial[:size]
        if best == largest:
            break
    return best


@njit(cache=True, nogil=True)
def scan_for_odd_cycle(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    first,  # IN   int, root to begin with
    length,  # IN   int, shortest known; n + 2 if none
    parent,  # OUT  (n,) int64: scratch
    distance,  # IN/OUT (n,) int64: scratch, all -1 between calls
    queue,  # OUT  (n,) int64: scratch
    max_work,  # IN   int
):
    """Look for a shorter odd cycle from each root in turn.

    An edge between vertices at the same distance ``d`` from the root closes a walk of odd length
    ``2 d + 1``; the least over all roots is the length of a shortest odd cycle, and is simple.
    Returns after the first improvement or when the work ran out; after an improvement ``parent``
    leads from ``u`` and ``v`` to the root.
    """
    n = indptr.size - 1
    work = 0
    for root in range(first, n):
        if work > max_work:
            return OddCycleScan(root, length, -1, -1, -1)
        queue[0], parent[root], distance[root] = root, -1, 0
        head, tail = 0, 1
        found_u, found_v = -1, -1
        while head < tail and found_u < 0:
            u = queue[head]
            head += 1
            if 2 * distance[u] + 1 >= length:
                break
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                if distance[v] < 0:
                    distance[v], parent[v] = distance[u] + 1, u
                    queue[tail] = v
                    tail += 1
                elif distance[v] == distance[u]:
                    found_u, found_v = u, v
                    break
            work += indptr[u + 1] - indptr[u]
        found_length = 2 * distance[found_u] + 1 if found_u >= 0 else length
        for i in range(tail):
            distance[queue[i]] = -1
        work += tail
        if found_u >= 0:
            return OddCycleScan(root + 1, found_length, root, found_u, found_v)
    return OddCycleScan(n, length, -1, -1, -1)
