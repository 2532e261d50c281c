"""Cheapest assignment of rows to distinct columns (Hungarian method), with a proof by prices."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def _augment(costs, row, row_price, column_price, owner, way, distance, done):
    """Add ``row`` (1-based) by a shortest augmenting path. False if there is no finite one."""
    n_columns = costs.shape[1]
    owner[0] = row
    column = 0
    for j in range(n_columns + 1):
        distance[j] = np.inf
        done[j] = False
    while owner[column] != 0:
        done[column] = True
        at, delta, following = owner[column], np.inf, 0
        for j in range(1, n_columns + 1):
            if done[j]:
                continue
            reduced = costs[at - 1, j - 1] - row_price[at] - column_price[j]
            if reduced < distance[j]:
                distance[j], way[j] = reduced, column
            if distance[j] < delta:
                delta, following = distance[j], j
        if delta == np.inf:
            return False
        for j in range(n_columns + 1):
            if done[j]:
                row_price[owner[j]] += delta
                column_price[j] -= delta
            else:
                distance[j] -= delta
        column = following
    while column != 0:
        before = way[column]
        owner[column] = owner[before]
        column = before
    return True


@njit(cache=True, nogil=True)
def cheapest_matching(
    costs,  # IN   (n_rows, n_columns) float64 >= 0, inf = forbidden; n_rows <= n_columns
    column_of,  # OUT  (n_rows,) int64
    prices,  # OUT  (n_columns,) float64 >= 0; see `matching_bound`
):
    """Match every row to its own column at least cost. False if no finite matching exists.

    Whether a finite matching exists is decided without arithmetic: the path search fails only if
    no column outside the searched ones is allowed for any row inside (Hall's condition).
    """
    n_rows, n_columns = costs.shape
    row_price = np.zeros(n_rows + 1)
    column_price = np.zeros(n_columns + 1)
    owner = np.zeros(n_columns + 1, np.int64)
    way = np.zeros(n_columns + 1, np.int64)
    distance = np.empty(n_columns + 1)
    done = np.empty(n_columns + 1, np.bool_)
    for row in range(1, n_rows + 1):
        if not _augment(costs, row, row_price, column_price, owner, way, distance, done):
            return False
    for j in range(1, n_columns + 1):
        prices[j - 1] = max(0.0, -column_price[j])
        if owner[j] > 0:
            column_of[owner[j] - 1] = j - 1
    return True


@njit(cache=True, nogil=True)
def matching_bound(
    costs,  # IN  (n_rows, n_columns) float64 >= 0
    prices,  # IN  (n_columns,) float64 >= 0, any
):
    """Lower bound on every matching: ``sum_i min_j (c_ij + p_j) - sum_j p_j``, rounded down.

    Valid for any prices, because a matching pays each price at most once.
    """
    n_rows, n_columns = costs.shape
    gained, paid = 0.0, 0.0
    for i in range(n_rows):
        least = np.inf
        for j in range(n_columns):
            least = min(least, costs[i, j] + prices[j])
        gained += least
    for j in range(n_columns):
        paid += prices[j]
    return gained - paid - (n_rows + n_columns + 4) * EPS * (gained + paid)
