"""Cheapest labels of the members of one cannot-link set: a linear assignment. Compiled."""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def match_set(
    costs,  # IN   (m, k) float64, finite, m <= k
    labels,  # OUT  (m,) int64, all different
    prices,  # OUT  (k,) float64, <= 0: dual variables of the labels
):
    """Successive shortest augmenting paths (Jonker and Volgenant 1987)."""
    m, k = costs.shape
    owner = np.full(k, -1, np.int64)
    row_price = np.zeros(m)
    prices[:] = 0.0
    distance, previous = np.empty(k), np.empty(k, np.int64)
    closed = np.empty(k, np.bool_)
    for first in range(m):
        distance[:] = np.inf
        closed[:] = False
        row, reached, sink = first, 0.0, -1
        labels[first] = -1
        for c in range(k):
            previous[c] = first
        while sink < 0:
            nearest, column = np.inf, -1
            for c in range(k):
                if closed[c]:
                    continue
                value = reached + costs[row, c] - row_price[row] - prices[c]
                if value < distance[c]:
                    distance[c] = value
                    previous[c] = row
                if distance[c] < nearest or (distance[c] == nearest and owner[c] < 0):
                    nearest, column = distance[c], c
            reached = nearest
            closed[column] = True
            if owner[column] < 0:
                sink = column
            else:
                row = owner[column]
        row_price[first] += reached
        for c in range(k):
            if closed[c] and c != sink:
                row_price[owner[c]] += reached - distance[c]
                prices[c] -= reached - distance[c]
        while True:
            row = previous[sink]
            owner[sink] = row
            sink, labels[row] = labels[row], sink
            if row == first:
                break


@njit(cache=True, nogil=True)
def match_sets(
    costs,  # IN   (n, k) float64, finite
    set_indptr,  # IN   disjoint sets
    set_members,  # IN
    labels,  # IN/OUT  (n,) int64 cheapest labels; feasible after
):
    """Cheapest labels under disjoint sets, from the cheapest without them.

    Returns a lower bound on the sum of the costs of the members of clashing sets minus that of
    their least costs, and the sum of the sizes of its terms: its rounding error is proportional.
    """
    k = costs.shape[1]
    seen = np.full(k, -1, np.int64)
    prices = np.empty(k)
    bound, size = 0.0, 0.0
    for one in range(set_indptr.size - 1):
        first, last = set_indptr[one], set_indptr[one + 1]
        clash = False
        for at in range(first, last):
            c = labels[set_members[at]]
            clash = clash or seen[c] == one
            seen[c] = one
        if not clash:
            continue
        m = last - first
        table, own = np.empty((m, k)), np.empty(m, np.int64)
        for at in range(m):
            table[at] = costs[set_members[first + at]]
        match_set(table, own, prices)
        for c in range(k):
            bound += prices[c]
            size += abs(prices[c])
        for at in range(m):
            i = set_members[first + at]
            least = np.inf
            for c in range(k):
                least = min(least, table[at, c] - prices[c])
            bound += least - costs[i, labels[i]]
            size += abs(least) + costs[i, labels[i]]
            labels[i] = own[at]
    return bound, size
