"""Rigorous eigenvalue sums and Cholesky factors of floating-point matrices.

Nothing an eigensolver or a Cholesky routine returns is trusted: the residuals of its output are
computed, bounded from above, and enter the result.

**Sums of eigenvalues.** Let T be symmetric, ``0 <= T <= I``, of trace at most m (so
``|T|_F <= sqrt(m)``), and A a symmetric matrix of floats. Let ``Q`` and ``lam`` be what the
eigensolver returns for A, ``|Q^T Q - I|_F <= delta`` and ``|A - Q diag(lam) Q^T|_F <= rho``. Then
``H = Q^T T Q`` has ``0 <= H <= (1 + delta) I`` and trace at most ``(1 + delta) m``, so

    <A, T> <= <diag(lam), H> + rho |T|_F
           <= (1 + delta) (sum of the m largest lam, where positive) + rho sqrt(m),

and, for ``-A``, the same with the m smallest ``lam`` and their signs changed. If A is only known
up to a matrix E with ``|E|_F <= perturbation``, ``perturbation sqrt(m)`` is added.

**Least sums of projections of rank at least r.** Q is square, so ``|Q Q^T - I|`` is at most delta,
too, and the trace of H is ``<T, Q Q^T> >= (1 - delta) r`` if T has a trace of at least r. Then
``H / (1 + delta)`` has eigenvalues in [0, 1] and a trace of at least ``(1 - 2 delta) r``, and

    <A, T> >= (1 + delta) (sum of the negative ones among the m smallest lam)
              + (sum of the positive ones among the r smallest lam)
              - 2 delta r max(0, r-th smallest lam) - rho sqrt(m).

A product of matrices of order r, in any order of summation, errs entrywise by ``(r + 2) u`` of
the product of absolute values (``EPS = 2 u``). For ``Q^T Q`` the norm of that is at most
``|Q|_F^2``, and for ``Q diag(lam) Q^T`` at most
``sum_i |lam_i| |q_i|^2 <= (1 + delta) sum |lam_i|``.

A matrix that is diagonal up to rounding, as in principal axes, needs no eigensolver: ``Q = I``,
``delta = 0``, and ``rho`` is the norm of the off-diagonal part.

**Cholesky factor from above.** For H' with diagonal entries of at most about 1 and
``|H - H'|_F <= error``, a triangular R with ``R^T R >= H`` is the Cholesky factor of
``H' + shift I``, provided that its residual, as measured, is at most ``shift - error``: then
``R^T R - H >= shift - residual - error >= 0``. Otherwise the shift is increased.

**Norms** that only enter error terms are raised by 1 % (`NORM_SAFETY`), far more than their own
rounding. A square that underflows loses less than 2.3e-308, so the norm of a matrix of order r
loses less than ``1.5e-154 r``, which `frobenius_norm` adds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.rounding import EPS

NORM_SAFETY = 1.01
UNDERFLOW_PER_ROW = 1.5e-154
MAX_SHIFTS = 8
OFF_DIAGONAL_TOL = 1e-11


@final
@dataclass(frozen=True, slots=True, eq=False)
class VerifiedEigenvalues:
    """Approximate eigenvalues of a matrix with bounds on the errors of the decomposition."""

    values: Floats
    orthogonality_error: float  # delta: at least |Q^T Q - I|_F
    residual: float  # rho: at least |A - Q diag(values) Q^T|_F

    def positive_sum(self, rank: int, sign: float = 1.0) -> float:
        """``(1 + delta)`` times the sum of the ``rank`` largest ``sign * values``, if positive.

        The sum itself is rounded once; the product with ``1 + delta`` is rounded again.
        """
        largest = np.sort(sign * self.values)[::-1][:rank]
        return (1.0 + self.orthogonality_error) * math.fsum(np.maximum(largest, 0.0).tolist())

    def positive_least_sum(self, rank: int) -> float:
        """Sum of the positive ones among the ``rank`` smallest values, less its error by delta.

        For projections of at least this rank. Rounded down; at least 0, as what it bounds.
        """
        least = np.maximum(np.sort(self.values)[:rank], 0.0)
        if rank == 0 or least[-1] == 0.0:
            return 0.0
        loss = 2.0 * self.orthogonality_error * rank * float(least[-1])
        return max(0.0, math.fsum(least.tolist()) * (1.0 - 4.0 * EPS) - loss * (1.0 + 8.0 * EPS))


def verified_eigenvalues(matrix: Floats) -> VerifiedEigenvalues | None:
    """Eigenvalues of a finite symmetric matrix, or None if the eigensolver fails."""
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        return None
    r = len(matrix)
    square = NORM_SAFETY * float(np.sum(vectors * vectors))
    delta = NORM_SAFETY * (frobenius_norm(vectors.T @ vectors - np.eye(r)) + (r + 4) * EPS * square)
    spread = (r + 4) * EPS * (1.0 + delta) * float(np.abs(values).sum())
    rho = NORM_SAFETY * (frobenius_norm(matrix - (vectors * values) @ vectors.T) + spread)
    return VerifiedEigenvalues(values, delta, rho)


def largest_eigenvalue_sum(matrix: Floats, perturbation: float, rank: int) -> float:
    """Upper bound on ``<A, T>`` for all ``0 <= T <= I`` of trace at most ``rank``.

    ``matrix`` is A as computed, in error by at most ``perturbation`` in norm. Infinite if the
    matrix is not finite or the eigensolver fails.

    >>> largest_eigenvalue_sum(np.diag([3.0, -1.0, 2.0]), 0.0, 2) >= 5.0
    True
    """
    if rank == 0:
        return 0.0
    if not (np.isfinite(matrix).all() and math.isfinite(perturbation)):
        return math.inf
    diagonal = np.diagonal(matrix)
    off_diagonal = NORM_SAFETY * frobenius_norm(matrix - np.diag(diagonal))
    eigen: VerifiedEigenvalues | None
    if off_diagonal <= OFF_DIAGONAL_TOL * float(np.abs(diagonal).sum()):
        eigen = VerifiedEigenvalues(diagonal, 0.0, off_diagonal)
    else:
        eigen = verified_eigenvalues(matrix)
    if eigen is None:
        return math.inf
    value = eigen.positive_sum(rank) * (1.0 + 4.0 * EPS)
    value += NORM_SAFETY * math.sqrt(rank) * (eigen.residual + perturbation)
    return value if math.isfinite(value) else math.inf


def cholesky_above(matrix: Floats, error: float) -> Floats | None:
    """Upper triangular, nonsingular R with ``R^T R >= H``, or None if none was found."""
    if not (np.isfinite(matrix).all() and math.isfinite(error)):
        return None
    r = len(matrix)
    shift = 2.0 * error + 4.0 * (r + 4) * EPS * r
    for _ in range(MAX_SHIFTS):
        shifted = matrix + shift * np.eye(r)
        try:
            root = np.linalg.cholesky(shifted).T
        except np.linalg.LinAlgError:
            shift *= 8.0
            continue
        square = NORM_SAFETY * float(np.sum(root * root))
        # The diagonal of ``shifted`` is rounded once more: that is covered by r EPS.
        residual = frobenius_norm(root.T @ root - shifted) + (r + 4) * EPS * (square + r)
        if NORM_SAFETY * residual + error <= shift and float(np.diagonal(root).min()) > 0.0:
            return np.asarray(root)
        shift *= 8.0
    return None


def frobenius_norm(matrix: Floats) -> float:
    """Frobenius norm as computed, plus the most that underflow of squares can take off."""
    return float(np.linalg.norm(matrix)) + len(matrix) * UNDERFLOW_PER_ROW
