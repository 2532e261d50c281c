"""The largest eigenvalues of a small matrix, from above, whatever the eigensolver says.

**Sums of eigenvalues.** Let T be symmetric, ``0 <= T <= I``, of trace at most m (so
``|T|_F <= sqrt(m)``), A symmetric, A' what was computed of it, ``|A - A'|_F <= astray``; ``Q`` and
``lam`` what the eigensolver returns, ``|Q^T Q - I|_F <= delta``,
``|A' - Q diag(lam) Q^T|_F <= rho``. ``Q^T T Q`` lies between 0 and ``(1 + delta) I`` and has trace
at most ``(1 + delta) m``, so

    <A, T> <= (1 + delta) (sum of the m largest lam, as far as positive) + sqrt(m) (rho + astray).

A product of matrices, in any order of summation, errs entrywise by ``(r + 2) u`` of the product of
absolute values; for ``Q^T Q`` the norm of that is at most ``|Q|_F^2``, and for
``Q diag(lam) Q^T`` at most ``sum_i |lam_i| |q_i|^2 <= (1 + delta) sum |lam_i|``.

With axes that are principal already, the matrix is diagonal up to rounding: then ``Q = I`` will do.

**A root.** For H' with ones (or less) on the diagonal and ``|H - H'|_F <= error`` a triangular R
with ``R^T R >= H`` is found: Cholesky of ``H' + lift I``, whose residual is measured; if it is at
most ``lift - error``, ``R^T R - H >= lift - residual - error >= 0``. Else lift is raised.

Norms that only enter error terms are raised by 1 %, far more than their own rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
GENEROUS = 1.01
TINY_NORM = 1e-150  # per row: what squares lose that underflow
LIFTS = 8
NEGLIGIBLE = 1e-11


def largest_sum(matrix: Matrix, astray: float, rank: int) -> float:
    """At least ``<A, T>`` for every T above; infinite if nothing can be said."""
    if rank == 0:
        return 0.0
    if not (np.isfinite(matrix).all() and math.isfinite(astray)):
        return math.inf
    values = np.diagonal(matrix)
    beside = GENEROUS * norm(matrix - np.diag(values))
    if beside <= NEGLIGIBLE * float(np.abs(values).sum()):
        return _raised(values, 0.0, beside + astray, rank)
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        return math.inf
    r = len(matrix)
    square = GENEROUS * float(np.sum(vectors * vectors))
    delta = GENEROUS * (norm(vectors.T @ vectors - np.eye(r)) + (r + 4) * EPS * square)
    spread = (r + 4) * EPS * (1.0 + delta) * float(np.abs(values).sum())
    rho = GENEROUS * (norm(matrix - (vectors * values) @ vectors.T) + spread)
    return _raised(values, delta, rho + astray, rank)


def _raised(values: Matrix, delta: float, missed: float, rank: int) -> float:
    largest = np.sort(values)[::-1][:rank]
    spent = (1.0 + delta) * math.fsum(np.maximum(largest, 0.0).tolist())
    value = spent * (1.0 + 4.0 * EPS) + GENEROUS * math.sqrt(rank) * missed
    return value if math.isfinite(value) else math.inf


def root_above(matrix: Matrix, error: float) -> Matrix | None:
    """An upper triangular R, not singular, with ``R^T R >= H``; None if there is no hope."""
    if not (np.isfinite(matrix).all() and math.isfinite(error)):
        return None
    r = len(matrix)
    lift = 2.0 * error + 4.0 * (r + 4) * EPS * r
    for _ in range(LIFTS):
        raised = matrix + lift * np.eye(r)
        try:
            root = np.linalg.cholesky(raised).T
        except np.linalg.LinAlgError:
            lift *= 8.0
            continue
        square = GENEROUS * float(np.sum(root * root))
        # ``raised`` itself is rounded once more on the diagonal: that is in r EPS.
        missed = norm(root.T @ root - raised) + (r + 4) * EPS * (square + r)
        if GENEROUS * missed + error <= lift and float(np.diagonal(root).min()) > 0.0:
            return np.asarray(root)
        lift *= 8.0
    return None


def norm(matrix: Matrix) -> float:
    """Frobenius norm, with what underflow may take away."""
    return float(np.linalg.norm(matrix)) + len(matrix) * TINY_NORM
