"""Linear-time parts of graph coloring: parity, peeling, greedy, subgraphs. Compiled.

Graphs are in compressed form: the neighbours of ``v`` are
``neighbors[indptr[v] : indptr[v + 1]]``, both directions stored, no loops, no repetitions.
"""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def two_color(
    indptr,  # IN   (n_vertices + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    starts,  # IN   (n_components + 1,) int64, vertices of a component are contiguous
    parents,  # IN   (n_linked,) int64, smaller than the vertex; -1 at a root
    n_extra_edges,  # IN   (n_components,) int64, 0 for a tree
    labels,  # OUT  (n_vertices,) int64, parity of the depth in the spanning forest
    odd,  # OUT  (n_components,) bool, True where an edge joins equal parities
):
    """Color every component by parity, which is proper unless it has an odd cycle.

    The spanning tree forces a two-coloring up to a swap, so an edge between equal parities
    proves that the component is not bipartite. Returns the first such component, or -1.
    """
    first = -1
    for c in range(starts.size - 1):
        odd[c] = False
        for v in range(starts[c], starts[c + 1]):
            labels[v] = 0 if parents[v] < 0 else 1 - labels[parents[v]]
        if n_extra_edges[c] == 0:
            continue
        for v in range(starts[c], starts[c + 1]):
            for e in range(indptr[v], indptr[v + 1]):
                if labels[neighbors[e]] == labels[v]:
                    odd[c] = True
        if odd[c] and first < 0:
            first = c
    return first


@njit(cache=True, nogil=True)
def peel(
    indptr,  # IN   (n_vertices + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    n_colors,  # IN   int
    alive,  # IN/OUT (n_vertices,) bool: the vertices in play; afterwards the core
    order,  # OUT  (n_vertices,) int64: the peeled vertices, first peeled first
):
    """Take away, again and again, vertices with fewer than ``n_colors`` neighbours left.

    Whatever colors the rest gets, such a vertex finds one: so the graph is colorable if and
    only if its core is. Vertices are colored last that were peeled first. Returns their number.
    """
    n = indptr.size - 1
    degree = np.zeros(n, dtype=np.int64)
    n_peeled = 0
    for v in range(n):
        if not alive[v]:
            continue
        for e in range(indptr[v], indptr[v + 1]):
            if alive[neighbors[e]]:
                degree[v] += 1
        if degree[v] < n_colors:
            order[n_peeled] = v
            n_peeled += 1
    for i in range(n_peeled):
        alive[order[i]] = False
    head = 0
    while head < n_peeled:
        v = order[head]
        head += 1
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            degree[u] -= 1
            if alive[u] and degree[u] < n_colors:
                alive[u] = False
                order[n_peeled] = u
                n_peeled += 1
    return n_peeled


@njit(cache=True, nogil=True)
def color_peeled(
    indptr,  # IN   (n_vertices + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    n_colors,  # IN   int
    peeled,  # IN   (m,) int64, in the order of `peel`
    labels,  # IN/OUT (n_vertices,) int64: the core is colored, the peeled become so
):
    """Give every peeled vertex the smallest color that its colored neighbours leave free."""
    taken_by = np.full(n_colors, -1, dtype=np.int64)
    for v in peeled:
        labels[v] = -1
    for i in range(peeled.size - 1, -1, -1):
        v = peeled[i]
        for e in range(indptr[v], indptr[v + 1]):
            c = labels[neighbors[e]]
            if c >= 0:
                taken_by[c] = v
        c = 0
        while taken_by[c] == v:
            c += 1
        labels[v] = c


@njit(cache=True, nogil=True)
def _link(v, s, head, after, before):
    after[v] = head[s]
    before[v] = -1
    if head[s] >= 0:
        before[head[s]] = v
    head[s] = v


@njit(cache=True, nogil=True)
def _unlink(v, s, head, after, before):
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        head[s] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]


@njit(cache=True, nogil=True)
def dsatur(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    n_colors,  # IN   int
    by_degree,  # IN   (n,) int64, vertices of small degree first
    labels,  # OUT  (n,) int64, -1 where no color was left
):
    """Color greedily, always the vertex that sees most colors. Returns how many failed.

    Vertices wait in one doubly linked list per number of colors seen, so the whole pass is
    linear in the size of the graph plus ``n * n_colors`` (in a core: at most twice the edges).
    """
    n = indptr.size - 1
    seen_colors = np.zeros((n, n_colors), dtype=np.bool_)
    saturation = np.zeros(n, dtype=np.int64)
    head = np.full(n_colors + 1, -1, dtype=np.int64)
    after = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    done = np.zeros(n, dtype=np.bool_)
    for v in by_degree:
        _link(v, 0, head, after, before)
    top, n_failed = 0, 0
    for _ in range(n):
        while head[top] < 0:
            top -= 1
        v = head[top]
        _unlink(v, top, head, after, before)
        done[v] = True
        if top == n_colors:
            labels[v] = -1
            n_failed += 1
            continue
        c = 0
        while seen_colors[v, c]:
            c += 1
        labels[v] = c
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            if done[u] or seen_colors[u, c]:
                continue
            seen_colors[u, c] = True
            _unlink(u, saturation[u], head, after, before)
            saturation[u] += 1
            _link(u, saturation[u], head, after, before)
            top = max(top, saturation[u])
    return n_failed


@njit(cache=True, nogil=True)
def induced_subgraph(
    indptr,  # IN   (n_vertices + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    vertices,  # IN   (m,) int64, distinct
):
    """Return ``(indptr, neighbors)`` of the subgraph on ``vertices``, numbered as listed."""
    position = np.full(indptr.size - 1, -1, dtype=np.int64)
    for i in range(vertices.size):
        position[vertices[i]] = i
    sub_indptr = np.zeros(vertices.size + 1, dtype=np.int64)
    for i in range(vertices.size):
        kept = 0
        for e in range(indptr[vertices[i]], indptr[vertices[i] + 1]):
            kept += position[neighbors[e]] >= 0
        sub_indptr[i + 1] = sub_indptr[i] + kept
    sub_neighbors = np.empty(sub_indptr[-1], dtype=np.int64)
    at = 0
    for i in range(vertices.size):
        for e in range(indptr[vertices[i]], indptr[vertices[i] + 1]):
            j = position[neighbors[e]]
            if j >= 0:
                sub_neighbors[at] = j
                at += 1
    return sub_indptr, sub_neighbors


@njit(cache=True, nogil=True)
def bfs_ball(
    indptr,  # IN   (n_vertices + 1,) int64
    neighbors,  # IN   (2 n_edges,) int64
    seed,  # IN   int, the centre
    limit,  # IN   int, most vertices wanted
    reached,  # IN/OUT (n_vertices,) bool: skipped if True; set for those gathered
    ball,  # OUT  (>= limit,) int64
):
    """Breadth-first search from ``seed``; returns how many vertices were gathered."""
    ball[0] = seed
    reached[seed] = True
    head, tail = 0, 1
    while head < tail and tail < limit:
        v = ball[head]
        head += 1
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            if not reached[u] and tail < limit:
                reached[u] = True
                ball[tail] = u
                tail += 1
    return tail
