"""Row operations: two smallest values, products with sparse rows."""

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def two_smallest(
    values,  # IN  (n,) float64
):
    """Smallest and second smallest value, and the index of the smallest; -1 if all are inf."""
    best, second, where = np.inf, np.inf, -1
    for k in range(values.size):
        if values[k] < best:
            best, second, where = values[k], best, k
        elif values[k] < second:
            second = values[k]
    return best, second, where


@njit(cache=True, nogil=True)
def add_weighted_rows(
    starts,  # IN   (p + 1,) int64: row i has the entries starts[i] .. starts[i + 1]
    variables,  # IN   (nnz,) int32
    values,  # IN   (nnz,)
    weights,  # IN   (p,)
    total,  # IN/OUT (n,): ``sum_i weights_i row_i`` is added
):
    """Weighted sum of rows; rows of weight 0 are skipped."""
    for i in range(weights.size):
        if weights[i] != 0.0:
            for e in range(starts[i], starts[i + 1]):
                total[variables[e]] += weights[i] * values[e]


@njit(cache=True, nogil=True)
def row_products(
    starts,  # IN   (p + 1,) int64
    variables,  # IN   (nnz,) int32
    values,  # IN   (nnz,)
    point,  # IN   (n,)
    products,  # OUT  (p,): ``row_i . point``
):
    """Product of every row with a vector."""
    for i in range(products.size):
        product = 0.0
        for e in range(starts[i], starts[i + 1]):
            product += values[e] * point[variables[e]]
        products[i] = product
