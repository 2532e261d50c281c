"""Lower bound of the SDP relaxation, valid for any multipliers, rounding included.

**The bound.** Take a labelling, ``Z`` and ``M = D^(1/2) Z D^(1/2)`` as in `SdpModel`, and any
multipliers: ``L`` symmetric, non-negative except at cannot-links, and ``mu >= 0`` for cuts
``<A_c, Z> <= 0``. With ``S = C - L + sum_c mu_c A_c``,

    cost = <C, Z> >= <S, Z>          because  <L, Z> >= 0  and  <A_c, Z> <= 0.

``M`` is a projection of rank at most K with ``M v = v``, so ``M = v v^T / W + N`` with ``W`` the
total weight and N a projection of rank at most ``m = K - 1`` with ``N v = 0``. Let
``T = D^(-1/2) S D^(-1/2)``, so that ``<S, Z> = <T, M>``; then for any vector y

    <S, Z> = sum_st S_st / W  +  <T', N>,      T' = T - y v^T - v y^T,
    <T', N> >= sum of the m smallest eigenvalues of T', where negative.

The multipliers of ``Z w = 1`` and of the trace are eliminated: y only removes v from T, and the
best choice is known in closed form. Status and objective of a solver are not used.

**Rounding.** ``EPS = 2 u``; d, n, and k for the numbers of axes, groups, and cuts in one entry.

* ``C`` errs by ``(d + 5) u`` of itself, the sums of multipliers by ``k u``, and four more
  operations lead to S: entrywise, S errs by ``g B``, ``g = (d + k + 16) EPS``,
  ``B = C + |L| + sum_c mu_c |A_c|``.
* ``sum S / W``: rows of n terms, then one sum rounded once; W errs by ``n u`` of itself. In all by
  ``(g + (n + 8) EPS) sum B / W``.
* ``T'``: with v rounded, S divided by two of its entries, and the outer products, at most
  ``h F`` entrywise, ``h = g + 8 EPS``, ``F = D^(-1/2) B D^(-1/2) + |y| v^T + v |y|^T``.
  ``|N|_F <= sqrt(m)``, so ``<T', N>`` moves by at most ``sqrt(m) h |F|_F``.
* Eigenvalues of T' as computed: `verified_eigen`, with ``T = N`` and ``-T'`` for A.

Norms and sums of non-negative terms that only enter error terms are raised by 1 %, far more than
their own rounding. Underflow: entries of matrices lose less than ``TINY`` in all; norms:
`frobenius_norm`. Overflow ends in a bound of 0.
"""

from __future__ import annotations

import math

import numpy as np

from certikmeans.bounds.sdp.model import (
    CutTable,
    Matrix,
    MatrixMultipliers,
    SdpModel,
    Vector,
    cut_table,
)
from certikmeans.bounds.verified_eigen import (
    NORM_SAFETY,
    frobenius_norm,
    verified_eigenvalues,
)
from certikmeans.rounding import EPS

TINY = 1e-280
MAX_ENTRY = 1e200


def safe_bound(model: SdpModel, multipliers: MatrixMultipliers) -> float:
    """Lower bound on the reduced cost of every labelling, valid for any multipliers.

    Multipliers of the wrong sign count as 0; if one is not finite, the bound is 0.

    Examples
    --------
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.stop import StopSignal
    >>> done = presolve(Problem.from_data([[0.0], [2.0], [9.0]], 2), StopSignal())
    >>> model = SdpModel.of(done.reduced)
    >>> 0.0 <= safe_bound(model, MatrixMultipliers.zeros(3)) <= 2.0  # the optimum is {0, 2}, {9}
    True
    """
    if not (
        np.isfinite(multipliers.entries).all() and np.isfinite(multipliers.cut_multipliers).all()
    ):
        return 0.0
    # Overflow makes the error infinite or the value NaN: the bound is 0 then.
    with np.errstate(over="ignore", invalid="ignore"):
        value = _value(model, multipliers)
    return value if 0.0 < value < math.inf else 0.0


def _value(model: SdpModel, multipliers: MatrixMultipliers) -> float:
    dual_matrix, magnitude, cuts_per_entry = _dual_matrix(model, multipliers)
    n = model.n_groups
    g = (model.problem.n_dims + cuts_per_entry + 16) * EPS
    if not float(magnitude.max()) < MAX_ENTRY:
        return 0.0
    rank_one_term = math.fsum(dual_matrix.sum(axis=1).tolist()) / model.mass
    rank_one_error = (g + (n + 8) * EPS) * NORM_SAFETY * float(magnitude.sum()) / model.mass
    rank = min(model.n_clusters, n) - 1
    eigenvalue_term, eigenvalue_error = (
        (0.0, 0.0) if rank == 0 else _eigenvalue_term(model, dual_matrix, magnitude, g, rank)
    )
    value = (
        rank_one_term - eigenvalue_term - (rank_one_error + eigenvalue_error) * NORM_SAFETY - TINY
    )
    return value - 4.0 * EPS * (abs(rank_one_term) + eigenvalue_term)


def _dual_matrix(model: SdpModel, multipliers: MatrixMultipliers) -> tuple[Matrix, Matrix, int]:
    """``S``, ``B``, and the largest number of cuts in an entry."""
    n = model.n_groups
    upper = np.triu(multipliers.entries)
    upper = np.where(model.zero_mask, upper, np.maximum(upper, 0.0))
    entries = upper + np.triu(upper, 1).T
    dual_matrix = model.costs - entries
    magnitude = model.costs + np.abs(entries)
    cut_multipliers = np.maximum(multipliers.cut_multipliers, 0.0)
    if not cut_multipliers.any():
        return dual_matrix, magnitude, 0
    table = cut_table(multipliers.cuts, n)
    negative_sum, negative_count = _sum_cut_matrices(
        table, cut_multipliers, np.maximum(-table.symmetric_factors, 0.0), n
    )
    positive_sum, positive_count = _sum_cut_matrices(
        table, cut_multipliers, np.maximum(table.symmetric_factors, 0.0), n
    )
    return (
        dual_matrix + (positive_sum - negative_sum),
        magnitude + (positive_sum + negative_sum),
        negative_count + positive_count,
    )


def _sum_cut_matrices(
    table: CutTable, cut_multipliers: Vector, symmetric_factors: Vector, n: int
) -> tuple[Matrix, int]:
    """Sum of the cut matrices with their multipliers; factors are halves and ones: exact."""
    used = symmetric_factors.ravel() > 0.0
    entry_indices = table.entry_indices.ravel()[used]
    terms = (cut_multipliers[:, None] * symmetric_factors).ravel()[used]
    upper = np.bincount(entry_indices, terms, n * n).astype(np.float64).reshape(n, n)
    return upper + np.triu(upper, 1).T, int(np.bincount(entry_indices, minlength=1).max())


def _eigenvalue_term(
    model: SdpModel, dual_matrix: Matrix, magnitude: Matrix, g: float, rank: int
) -> tuple[float, float]:
    """Minus the sum of the smallest eigenvalues of ``T'``, and an upper bound on its error."""
    v, mass = model.sqrt_weights, model.mass
    scale = np.outer(v, v)
    t = dual_matrix / scale
    pull = t @ v
    y = pull / mass - (0.5 * float(v @ pull) / mass / mass) * v
    outer = np.outer(y, v)
    a = t - (outer + outer.T)
    if not np.isfinite(a).all():
        return math.inf, 0.0
    outer = np.abs(outer)
    error_terms = magnitude / scale + (outer + outer.T)
    perturbation = (g + 8.0 * EPS) * NORM_SAFETY * frobenius_norm(error_terms)
    eigen = verified_eigenvalues(a)
    if eigen is None:
        return math.inf, 0.0
    eigenvalue_term = eigen.positive_sum(rank, sign=-1.0)
    error = math.sqrt(rank) * (perturbation + eigen.residual)
    return eigenvalue_term, error + 4.0 * EPS * eigenvalue_term
