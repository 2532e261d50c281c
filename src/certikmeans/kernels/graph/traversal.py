"""Breadth-first numbering of the linked part of a graph. Compiled; arrays in, arrays out."""

import numpy as np

from certikmeans.compiling.dispatch import njit


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
