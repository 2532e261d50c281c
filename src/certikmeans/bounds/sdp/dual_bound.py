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

**Limits on sizes.** If ``1 / W`` is known to be in ``[l_s, h_s]`` for the cluster of every group s
(`SdpModel.limits`), then ``l_s <= Z_ss <= h_s`` and ``0 <= Z_st <= min(h_s, h_t)``, and L may have
any sign everywhere, at the price

    <L, Z> >= sum_s min(L_ss l_s, L_ss h_s) + sum over s != t of min(L_st, 0) min(h_s, h_t).

If at least k clusters cannot be empty, N has a rank of at least ``r = k - 1``, and

    <T', N> >= sum of the m smallest eigenvalues of T', where negative,
               + sum of the r smallest ones, where positive.

Any y is valid; with ``y - tau v / (2 W)`` the matrix is ``T' + tau v v^T / W``, so v, whose
eigenvalue is 0 otherwise, is not among them. Size cuts ``<a a^T, Z> <= b`` (`size_cuts`) add
``beta a a^T`` to S and ``- beta b`` to the value. Soft pairs are a part of C, up to a constant
(`penalties`).

**Rounding.** ``EPS = 2 u``; d, n, and k for the numbers of axes, groups, and cuts in one entry.

* ``C`` errs by ``(d + 5) u`` of itself, penalties by as many u as an entry has terms, the sums of
  multipliers by ``k u``, where a size cut counts three times, and four more operations lead to S:
  entrywise, S errs by ``g B``, ``g = (d + k + 16) EPS``,
  ``B = C + |L| + sum_c mu_c |A_c| + sum beta a a^T``, penalties in C with absolute values.
* ``sum S / W``: rows of n terms, then one sum rounded once; W errs by ``n u`` of itself. In all by
  ``(g + (n + 8) EPS) sum B / W``.
* Prices of limits: products rounded once, rows of n terms: ``(n + 8) EPS`` of absolute values.
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
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.bounds.sdp.model import CutTable, MatrixMultipliers, SdpModel, cut_table
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
    finite = np.isfinite(multipliers.entries).all()
    if not (finite and np.isfinite(multipliers.cut_multipliers).all()):
        return 0.0
    if not np.isfinite(multipliers.size_cuts[1]).all():
        return 0.0
    # Overflow makes the error infinite or the value NaN: the bound is 0 then.
    with np.errstate(over="ignore", invalid="ignore"):
        value = _value(model, multipliers)
    return value if 0.0 < value < math.inf else 0.0


def _value(model: SdpModel, multipliers: MatrixMultipliers) -> float:
    n = model.n_groups
    dual = _dual_matrix(model, multipliers)
    g = (model.problem.n_dims + dual.n_terms + 16) * EPS
    if not float(dual.magnitude.max()) < MAX_ENTRY:
        return 0.0
    rank_one_term = math.fsum(dual.matrix.sum(axis=1).tolist()) / model.mass
    rank_one_error = (g + (n + 8) * EPS) * NORM_SAFETY * float(dual.magnitude.sum()) / model.mass
    rank = min(model.n_clusters, n) - 1
    eigenvalue_term, eigenvalue_error = (
        (0.0, 0.0) if rank == 0 else _eigenvalue_term(model, dual.matrix, dual.magnitude, g, rank)
    )
    error = rank_one_error + eigenvalue_error + dual.price_error
    terms = [rank_one_term, -eigenvalue_term, dual.price, model.constant]
    value = math.fsum(terms) - error * NORM_SAFETY - TINY
    return value - 4.0 * EPS * math.fsum(map(abs, terms))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _DualMatrix:
    matrix: Floats  # S
    magnitude: Floats  # B
    n_terms: int  # largest number of rounded terms in an entry beyond those of a plain problem
    price: float  # of limits and of the right sides of size cuts
    price_error: float


def _dual_matrix(model: SdpModel, multipliers: MatrixMultipliers) -> _DualMatrix:
    """``S``, ``B``, and what does not depend on ``Z``."""
    n = model.n_groups
    upper = np.triu(multipliers.entries)
    if model.limits is None:
        upper = np.where(model.zero_mask, upper, np.maximum(upper, 0.0))
    entries = upper + np.triu(upper, 1).T
    dual_matrix = model.costs - entries
    magnitude = np.abs(model.costs) + np.abs(entries)
    price, price_error = _price_of_limits(model, entries)
    right_sides: list[float] = []
    n_terms = 0
    if model.penalties is not None:
        magnitude += 2.0 * model.penalties.magnitude
        n_terms += model.penalties.n_terms
    if model.size_rule is not None:
        sets, betas = multipliers.size_cuts
        for inside, beta in zip(sets, betas.tolist(), strict=True):
            if beta <= 0.0:
                continue
            a = np.where(inside, model.problem.weights, 0.0)
            term = beta * np.outer(a, a)
            dual_matrix, magnitude = dual_matrix + term, magnitude + term
            n_terms += 3
            right_sides.append(beta * model.size_rule.right_side(int(a.sum())))
    price = math.fsum([price, *(-right for right in right_sides)])
    price_error += 4.0 * EPS * (abs(price) + math.fsum(right_sides))
    cut_multipliers = np.maximum(multipliers.cut_multipliers, 0.0)
    if not cut_multipliers.any():
        return _DualMatrix(dual_matrix, magnitude, n_terms, price, price_error)
    table = cut_table(multipliers.cuts, n)
    negative_sum, negative_count = _sum_cut_matrices(
        table, cut_multipliers, np.maximum(-table.symmetric_factors, 0.0), n
    )
    positive_sum, positive_count = _sum_cut_matrices(
        table, cut_multipliers, np.maximum(table.symmetric_factors, 0.0), n
    )
    return _DualMatrix(
        dual_matrix + (positive_sum - negative_sum),
        magnitude + (positive_sum + negative_sum),
        n_terms + negative_count + positive_count,
        price,
        price_error,
    )


def _price_of_limits(model: SdpModel, entries: Floats) -> tuple[float, float]:
    """Lower bound on ``<L, Z>`` by the limits of the entries, and an upper bound on its error."""
    if model.limits is None:
        return 0.0, 0.0
    n = model.n_groups
    low, high = model.limits.diagonal(model.problem.weights)
    prices = np.minimum(entries, 0.0) * np.minimum.outer(high, high)
    prices[model.zero_mask] = 0.0
    diagonal = np.diagonal(entries)
    np.fill_diagonal(prices, np.minimum(diagonal * low, diagonal * high))
    error = (n + 8) * EPS * NORM_SAFETY * float(np.abs(prices).sum())
    return math.fsum(prices.sum(axis=1).tolist()), error


def _sum_cut_matrices(
    table: CutTable, cut_multipliers: Floats, symmetric_factors: Floats, n: int
) -> tuple[Floats, int]:
    """Sum of the cut matrices with their multipliers; factors are halves and ones: exact."""
    used = symmetric_factors.ravel() > 0.0
    entry_indices = table.entry_indices.ravel()[used]
    terms = (cut_multipliers[:, None] * symmetric_factors).ravel()[used]
    upper = np.bincount(entry_indices, terms, n * n).astype(np.float64).reshape(n, n)
    return upper + np.triu(upper, 1).T, int(np.bincount(entry_indices, minlength=1).max())


def _eigenvalue_term(
    model: SdpModel, dual_matrix: Floats, magnitude: Floats, g: float, rank: int
) -> tuple[float, float]:
    """Minus the lower bound on ``<T', N>``, and an upper bound on its error."""
    v, mass = model.sqrt_weights, model.mass
    scale = np.outer(v, v)
    t = dual_matrix / scale
    pull = t @ v
    y = pull / mass - (0.5 * float(v @ pull) / mass / mass) * v
    outer = np.outer(y, v)
    a = t - (outer + outer.T)
    if not np.isfinite(a).all():
        return math.inf, 0.0
    min_rank = 0 if model.limits is None else min(rank, model.limits.min_clusters - 1)
    if min_rank:
        y = y - (0.5 * float(np.linalg.norm(a)) / mass) * v
        outer = np.outer(y, v)
        a = t - (outer + outer.T)
    outer = np.abs(outer)
    error_terms = magnitude / scale + (outer + outer.T)
    perturbation = (g + 8.0 * EPS) * NORM_SAFETY * frobenius_norm(error_terms)
    eigen = verified_eigenvalues(a)
    if eigen is None:
        return math.inf, 0.0
    negative = eigen.positive_sum(rank, sign=-1.0)
    positive = eigen.positive_least_sum(min_rank)
    error = math.sqrt(rank) * (perturbation + eigen.residual)
    return negative - positive, error + 4.0 * EPS * (negative + abs(positive))


def subset_bound(model: SdpModel, multipliers: MatrixMultipliers) -> tuple[float, Floats] | None:
    """Bound for every subset of the groups of a plain model with weights 1.

    For a labelling of a subset A with K clusters, ``M`` restricted to A is a projection of rank K
    at most, and ``M 1 = 1`` on A. With any y and ``T' = S - y 1^T - 1 y^T``,

        cost >= <S, M> = <T', M> + 2 sum over A of y
             >= 2 sum of all y + sum of the K smallest eigenvalues of T', where negative,
                - 2 sum of y outside A,

    because the eigenvalues of a principal submatrix are at least those of the matrix, in order.
    ``y`` is that of `safe_bound` with ``theta 1 / (2 n)`` added, which makes 1 an eigenvector with
    the eigenvalue ``- theta``: with the mean of the other eigenvalues in use nothing is lost.

    Returns
    -------
    value : float
        The first two terms, rounded down.
    y : ndarray of shape (n,)
    """
    n, rank = model.n_groups, model.n_clusters
    if model.limits is not None or model.penalties is not None or rank >= n:
        return None
    if not (model.problem.weights == 1.0).all():
        return None
    dual = _dual_matrix(model, multipliers)
    t, one = dual.matrix, np.ones(n)
    pull = t @ one
    y = pull / n - 0.5 * float(pull.sum()) / n / n
    outer = np.outer(y, one)
    if not float(dual.magnitude.max()) < MAX_ENTRY:
        return None
    others = np.sort(np.linalg.eigvalsh(t - (outer + outer.T)))[: max(rank - 1, 1)]
    y = y + max(0.0, -float(others.mean())) / (2.0 * n)
    outer = np.outer(y, one)
    a = t - (outer + outer.T)
    g = (model.problem.n_dims + dual.n_terms + 24) * EPS
    magnitude = dual.magnitude + np.abs(outer) + np.abs(outer.T)
    eigen = verified_eigenvalues(a) if np.isfinite(a).all() else None
    if eigen is None:
        return None
    negative = eigen.positive_sum(rank, sign=-1.0)
    perturbation = g * NORM_SAFETY * frobenius_norm(magnitude)
    error = math.sqrt(rank) * (perturbation + eigen.residual) + 4.0 * EPS * negative
    terms = [*(2.0 * y).tolist(), -negative]
    value = math.fsum(terms) - NORM_SAFETY * error - TINY
    value -= 4.0 * EPS * (abs(value) + negative)
    return (value, y) if math.isfinite(value) else None
