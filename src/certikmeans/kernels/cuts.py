"""Products with sparse rows, and their Gram matrix with weights. Compiled."""

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def combine_rows(
    starts,  # IN   (p + 1,) int64: row i has the entries starts[i] .. starts[i + 1]
    variables,  # IN   (nnz,) int32
    values,  # IN   (nnz,)
    weights,  # IN   (p,)
    total,  # IN/OUT (n,): ``sum_i weights_i row_i`` is added
):
    """Add up rows; those without weight cost nothing."""
    for i in range(weights.size):
        if weights[i] != 0.0:
            for e in range(starts[i], starts[i + 1]):
                total[variables[e]] += weights[i] * values[e]


@njit(cache=True, nogil=True)
def apply_rows(
    starts,  # IN   (p + 1,) int64
    variables,  # IN   (nnz,) int32
    values,  # IN   (nnz,)
    point,  # IN   (n,)
    products,  # OUT  (p,): ``row_i . point``
):
    """Multiply every row with a point."""
    for i in range(products.size):
        product = 0.0
        for e in range(starts[i], starts[i + 1]):
            product += values[e] * point[variables[e]]
        products[i] = product


@njit(cache=True, nogil=True)
def by_variable(
    starts,  # IN   (p + 1,) int64
    variables,  # IN   (nnz,) int32
    values,  # IN   (nnz,)
    firsts,  # OUT  (n + 1,) int64: variable j is in the entries firsts[j] .. firsts[j + 1]
    rows,  # OUT  (nnz,) int32, ascending for each variable
    entries,  # OUT  (nnz,)
):
    """Sort the entries of the rows by variable."""
    firsts[:] = 0
    for e in range(variables.size):
        firsts[variables[e] + 1] += 1
    for j in range(firsts.size - 1):
        firsts[j + 1] += firsts[j]
    cursor = firsts[:-1].copy()
    for i in range(starts.size - 1):
        for e in range(starts[i], starts[i + 1]):
            j = variables[e]
            rows[cursor[j]] = i
            entries[cursor[j]] = values[e]
            cursor[j] += 1


@njit(cache=True, nogil=True)
def weighted_gram(
    firsts,  # IN   (n + 1,) int64, as in `by_variable`
    rows,  # IN   (nnz,) int32
    entries,  # IN   (nnz,)
    weights,  # IN   (n,)
    gram,  # OUT  (p, p): lower half of ``sum_j weights_j row_ij row_kj``
):
    """Products of all pairs of rows; pairs without a common variable cost nothing."""
    gram[:] = 0.0
    for j in range(weights.size):
        for e in range(firsts[j], firsts[j + 1]):
            value = weights[j] * entries[e]
            i = rows[e]
            for f in range(firsts[j], e + 1):
                gram[i, rows[f]] += value * entries[f]
