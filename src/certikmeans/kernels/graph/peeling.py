"""Peeling a component with cycles: vertices of degree 1 go, one after the other."""

import numpy as np

from certikmeans.compiling.dispatch import njit


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
