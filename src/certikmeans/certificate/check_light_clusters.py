"""Bounds for labellings with small clusters, and the bound for soft pairs that uses them.

Weights are 1. Let R be the cluster of group i in a labelling, r its size, and A the other groups:
they are in K - 1 clusters.

**Two clusters.** With the mean m of all groups, the cost is ``T - n r / (n - r) |mean(R) - m|^2``,
T that of one cluster, and ``r^2 |mean(R) - c|^2 = sum over s, t in R of <x_s - c, x_t - c>``.

**More clusters.** A matrix S as of `check_sdp`, for K - 1 clusters and without limits, holds for
the labellings of every subset A: cuts and signs are those of its part. With ``M`` that of a
labelling of A, a projection of rank K - 1 at most with ``M 1 = 1``, and any y,

    cost(A) >= <S, M> = <S - y 1^T - 1 y^T, M> + 2 sum over A of y,

and the least eigenvalues of a part of a matrix are at least those of the matrix. So with e the sum
of the K - 1 least ones, where negative,

    cost >= 2 sum y + e - (2 sum over R of y - cost(R))
         = 2 sum y + e - 1/r sum over s, t in R of (y_s + y_t - |x_s - x_t|^2 / 2).

**Sums over R** of a symmetric matrix H: row s has at most ``rho_s``, H_si plus the r - 1 largest
other entries; row i and the r - 1 largest other ``rho_s`` bound the sum.

The bound for soft pairs names sizes ``m_i``. Labellings in which the cluster of some i has fewer
than m_i groups cost at least the least of these bounds over r < m_i; all others have these sizes,
and the semidefinite bound uses them. Penalties are not negative, so the former may ignore them.

**Rounding.** An entry of H errs by ``(d + 8) EPS`` of the sum of its absolute terms, at most B;
sums of r^2 entries by ``(2 r + 4) EPS r^2 B`` more.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    frobenius_norm,
    measured_eigenvalues,
    scatter,
    up,
)
from certikmeans.certificate.check_constraints import GroupConstraints
from certikmeans.certificate.check_sdp import (
    MAX_DUAL_ENTRY,
    MAX_MATRIX_ENTRY,
    MAX_MATRIX_GROUPS,
    dual_matrix_of,
    sdp_lower_bound,
)
from certikmeans.certificate.check_weight_limits import AssumedSizes
from certikmeans.certificate.format import Reason, Rejection


def soft_lower_bound(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    constraints: GroupConstraints | None,
) -> float:
    """Lower bound on the cost of every feasible labelling of the groups, for any row.

    The row is 0 and one of the semidefinite bound; or 1, whether no cluster is empty, the length of
    the row that proves sizes, the sizes, that row (none for two clusters), and one of the
    semidefinite bound.
    """
    n = len(points)
    if n > MAX_MATRIX_GROUPS:
        raise Rejection(Reason.LIMIT, f"more than {MAX_MATRIX_GROUPS} groups for a matrix")
    if row[0] == 0.0:
        return sdp_lower_bound(points, weights, edges, n_clusters, row[1:], constraints)
    if row[0] != 1.0 or len(row) < 3 + n or row[1] not in (0.0, 1.0):
        raise Rejection(Reason.BOUND, "the evidence about sizes is damaged")
    length, least, rest = row[2], row[3 : 3 + n], row[3 + n :]
    if not (0.0 <= length <= len(rest) and length == math.floor(length)):
        raise Rejection(Reason.BOUND, "the evidence about sizes is damaged")
    if not np.all((least >= 1.0) & (least <= n) & (least == np.floor(least))):
        raise Rejection(Reason.BOUND, "a size is not a number of groups")
    if not np.all(weights == 1.0) or not 2 <= n_clusters < n:
        raise Rejection(Reason.BOUND, "sizes need weights of 1, and from two clusters on")
    assumed = AssumedSizes(least, bool(row[1]))
    light, inner = rest[: int(length)], rest[int(length) :]
    found = sdp_lower_bound(points, weights, edges, n_clusters, inner, constraints, assumed)
    return min(found, _without_sizes(points, edges, n_clusters, light, constraints, assumed))


def _without_sizes(
    points: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    constraints: GroupConstraints | None,
    assumed: AssumedSizes,
) -> float:
    """Lower bound on the cost of labellings that do not have the sizes."""
    count = int(assumed.least.max()) - 1
    if n_clusters == 2:
        empty, values = _of_two_clusters(points, min(count, len(points) - 1))
    else:
        empty, values = _of_multipliers(points, edges, n_clusters - 1, row, constraints, count)
    bound = empty if assumed.nonempty else math.inf
    for i, least in enumerate(assumed.least.astype(np.int64).tolist()):
        if least > 1:
            bound = min(bound, float(values[i, : least - 1].min()))
    return bound


def _of_two_clusters(points: Floats, count: int) -> tuple[float, Floats]:
    """Bounds with an empty cluster, and where the cluster of a group has exactly r groups."""
    n, d = points.shape
    one_cluster = scatter(points, np.ones(n), np.zeros(n, dtype=np.int64), 1).below
    away = points - points.sum(axis=0) / n
    # The center is not the mean: |c - m| is at most the norm of the sum of differences over n.
    sums = np.abs(away.sum(axis=0)) + (n + 8) * EPS * np.abs(away).sum(axis=0)
    offset = up(math.sqrt(up(float(sums @ sums), d + 4)) / n, 8)
    largest = up(float((away * away).sum(axis=1).max()), d + 4)
    r = np.arange(1.0, count + 1.0)
    error = 1.1 * (2.0 * r + d + 20.0) * EPS * r * r * largest
    inner = np.maximum(_block_sums(away @ away.T, count) + error, 0.0)
    distance = np.sqrt(inner) / r * (1.0 + 8.0 * EPS) + offset
    loss = n * r / (n - r) * distance * distance * (1.0 + 32.0 * EPS)
    return one_cluster, one_cluster - loss - 8.0 * EPS * (one_cluster + loss)


def _of_multipliers(
    points: Floats,
    edges: Ints,
    rank: int,
    row: Floats,
    constraints: GroupConstraints | None,
    count: int,
) -> tuple[float, Floats]:
    """The same from multipliers, for labellings of subsets with ``rank`` clusters."""
    n, d = points.shape
    if constraints is not None:  # sizes and soft pairs are about all groups
        constraints = replace(
            constraints, demand=None, pairs=constraints.pairs[:0], bonus=constraints.bonus[:0]
        )
    dual = dual_matrix_of(points, np.ones(n), edges, row, constraints, None)
    if not float(dual.sizes.max()) <= MAX_DUAL_ENTRY:
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    pull = dual.entries.sum(axis=1)
    # Any y is valid; this one makes 1 an eigenvector, with about the mean of the others that count.
    y = pull / n - 0.5 * float(pull.sum()) / n / n
    plain = dual.entries - (y[:, None] + y[None, :])
    if not np.all(np.abs(plain) <= MAX_MATRIX_ENTRY):
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    others = np.sort(np.linalg.eigvalsh(plain))[: max(rank - 1, 1)]
    y = y + max(0.0, -float(others.mean())) / (2.0 * n)
    sums = y[:, None] + y[None, :]
    matrix = dual.entries - sums
    size = dual.sizes + np.abs(y)[:, None] + np.abs(y)[None, :]
    if not np.all(size <= MAX_MATRIX_ENTRY):
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    values, orthogonality_error, residual = measured_eigenvalues(matrix)
    perturbation = (dual.relative + 16.0 * EPS) * frobenius_norm(size)
    least = np.sort(values)[:rank]
    negative = (1.0 + orthogonality_error) * math.fsum(np.maximum(-least, 0.0).tolist())
    negative = up(negative + math.sqrt(rank) * up(perturbation + residual, 300), 16)
    terms = [*(2.0 * y).tolist(), -negative]
    value = math.fsum(terms)
    value -= 8.0 * EPS * (abs(value) + negative)

    costs = np.zeros((n, n))
    for column in points.T:
        difference = column[:, None] - column[None, :]
        costs += difference * difference
    costs *= 0.5
    r = np.arange(1.0, count + 1.0)
    largest = 2.0 * float(np.abs(y).max()) + float(costs.max())
    error = 1.1 * (2.0 * r + d + 20.0) * EPS * r * largest
    loss = _block_sums(sums - costs, count) / r
    return value, value - loss - error - 8.0 * EPS * (abs(value) + np.abs(loss))


def _block_sums(matrix: Floats, count: int) -> Floats:
    """Bounds on sums over r rows and the same columns, i among them: (n, count) for r >= 1."""
    n = len(matrix)
    ordered = np.sort(matrix, axis=1)[:, ::-1]
    found = np.empty((n, count))
    before = np.zeros(n)  # sum of the r - 1 largest entries of a row
    for r in range(1, count + 1):
        # Row s with column i: if H_si is not among the r - 1 largest, it replaces the r-th.
        rho = before[:, None] + np.minimum(matrix, ordered[:, r - 1][:, None])
        own = rho[np.arange(n), np.arange(n)]
        rho[np.arange(n), np.arange(n)] = -np.inf
        others = 0.0 if r == 1 else np.partition(rho, n - r + 1, axis=0)[n - r + 1 :].sum(axis=0)
        found[:, r - 1] = own + others
        before += ordered[:, r - 1]
    return found
