"""Graph kernels: compressed rows, peeling, breadth-first order, connected components. Compiled."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

# A graph for compiled code.


class CsrGraph(NamedTuple):
    """The neighbours of ``v`` are ``neighbors[indptr[v] : indptr[v + 1]]``, in both directions."""

    indptr: np.ndarray  # (n + 1,) int64
    neighbors: np.ndarray  # int64


# Peeling a component with cycles: vertices of degree 1 go, one after the other.


@njit(cache=True, nogil=True)
def peel_component(
    indptr,  # IN  (n_vertices + 1,) int64
    neighbors,  # IN
    first,  # IN  first vertex of the component
    last,  # IN  one past its last
):
    """Remove vertices of degree 1 until none is left.

    Returns ``(peeled, anchors)``: vertices, numbered from ``first``, in the order they go, and the
    one neighbour that each had left. What stays is the 2-core; it is not empty if there is a cycle.
    """
    n = last - first
    degree = np.empty(n, np.int64)
    gone = np.zeros(n, np.bool_)
    peeled = np.empty(n, np.int64)
    anchors = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        degree[v] = indptr[first + v + 1] - indptr[first + v]
        if degree[v] == 1:
            peeled[count] = v
            count += 1
    head = 0
    while head < count:
        v = peeled[head]
        gone[v] = True
        for e in range(indptr[first + v], indptr[first + v + 1]):
            u = neighbors[e] - first
            if not gone[u]:
                anchors[head] = u
                degree[u] -= 1
                if degree[u] == 1:
                    peeled[count] = u
                    count += 1
        head += 1
    return peeled[:count], anchors[:count]


# Breadth-first numbering of the linked part of a graph. Compiled; arrays in, arrays out.


@njit(cache=True, nogil=True)
def breadth_first_order(
    indptr,  # IN   (n + 1,) int64
    neighbors,  # IN   (2 m,) int64
    order,  # OUT  (n,) int64: vertex at each position; only the first n_linked are set
    parents,  # OUT  (n,) int64: position of the parent, -1 at a root; same extent as order
    starts,  # OUT  (n // 2 + 1,) int64: first position of each component
):
    """Number every vertex of degree >= 1, component by component, parents first.

    Returns ``(n_linked, n_components)``.
    """
    n = indptr.size - 1
    position = np.full(n, -1, dtype=np.int64)
    filled = 0
    n_components = 0
    for root in range(n):
        if position[root] >= 0 or indptr[root] == indptr[root + 1]:
            continue
        starts[n_components] = filled
        n_components += 1
        order[filled] = root
        parents[filled] = -1
        position[root] = filled
        head = filled
        filled += 1
        while head < filled:
            vertex = order[head]
            for e in range(indptr[vertex], indptr[vertex + 1]):
                other = neighbors[e]
                if position[other] < 0:
                    position[other] = filled
                    order[filled] = other
                    parents[filled] = head
                    filled += 1
            head += 1
    starts[n_components] = filled
    return filled, n_components


# Connected components from a list of pairs. Compiled.


@njit(cache=True, nogil=True)
def number_components(
    pairs,  # IN   (m, 2) int64
    component,  # OUT  (n,) int64: components numbered by their smallest member
):
    """Join the two ends of every pair; returns the number of components.

    Links always lead to a smaller member, so the root of a component is its smallest one, and
    one pass in order numbers them all.
    """
    for v in range(component.size):
        component[v] = v
    for i in range(pairs.shape[0]):
        a, b = pairs[i, 0], pairs[i, 1]
        while component[a] != a:
            component[a] = component[component[a]]
            a = component[a]
        while component[b] != b:
            component[b] = component[component[b]]
            b = component[b]
        if a < b:
            component[b] = a
        else:
            component[a] = b
    count = 0
    for v in range(component.size):
        if component[v] == v:
            component[v] = count
            count += 1
        else:
            component[v] = component[component[v]]
    return count


# Regions in which two labellings differ.


@njit(cache=True, nogil=True)
def overlap_components(
    overlap,  # IN   (k, k) float64: weight common to cluster a of the first and b of the second
    min_fraction,  # IN   of the smaller cluster, from which on an overlap is an edge
    region,  # OUT  (2 k,) int64: component of every cluster, first labelling first
):
    """Connected components of the overlap graph of two labellings. Returns their number."""
    k = overlap.shape[0]
    first, second = np.zeros(k), np.zeros(k)
    for a in range(k):
        for b in range(k):
            first[a] += overlap[a, b]
            second[b] += overlap[a, b]
    region[:] = -1
    stack = np.empty(2 * k, dtype=np.int64)
    count = 0
    for start in range(2 * k):
        if region[start] >= 0:
            continue
        region[start] = count
        stack[0] = start
        top = 1
        while top > 0:
            top -= 1
            v = stack[top]
            for u in range(k):
                a, b, other = (v, u, k + u) if v < k else (u, v - k, u)
                enough = min_fraction * min(first[a], second[b])
                if region[other] < 0 and 0.0 < overlap[a, b] >= enough:
                    region[other] = count
                    stack[top] = other
                    top += 1
        count += 1
    return count
