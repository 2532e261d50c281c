"""The nearest point of a box that satisfies a few linear inequalities, or that there is none.

    min 1/2 |t - r|^2   subject to   R t >= c,   low <= t <= high        (R: few rows)

is solved through its dual, which has one variable ``mu >= 0`` per row: ``t = clip(r + R' mu)``.
The dual is concave and piecewise quadratic. Each step maximises its local quadratic, made
strictly concave by a term that fades as the solution nears, over ``mu >= 0`` exactly (a small
non-negative least squares problem), and is shortened until the dual has risen.

Feasibility is decided by the inequalities themselves: for any ``mu >= 0`` the largest value of
``mu.(R t - c)`` over the box is a sum of maxima, and where it is negative no ``t`` exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

NEWTON_STEPS = 40
# Damping, in units of the rows' mean square: at the start, and at the end.
DAMPING, MIN_DAMPING = 1e-2, 1e-9
ARMIJO = 1e-4
MIN_STEP = 1e-9
MAX_PIVOTING_ORDER = 16  # variables that numpy is good enough for
PIVOT_TOL = 1e-13
MAX_BLOCK_EXCHANGES = 3  # of many variables at once that need not help


@final
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A projection, or a proof that there is none.

    ``excess`` is, for the row weights in ``mu`` scaled to sum 1, the largest value of
    ``mu.(R t - c)`` over the box: negative means infeasible, and all of ``c`` must come down
    by at least that much. A caller that knows more about its rows may measure it otherwise.
    """

    point: Vector
    mu: Vector
    violation: float  # largest c - R t, at least 0
    excess: float
    steps: int

    @property
    def infeasible(self) -> bool:
        """Whether no point of the box satisfies all rows."""
        return self.excess < 0.0


def project(
    rows: Matrix,
    rhs: Vector,
    reference: Vector,
    low: Vector,
    high: Vector,
    tolerance: float,
    excess_of: Callable[[Vector], float] | None = None,
) -> Projection:
    """Project ``reference`` on ``rows @ t >= rhs`` within ``[low, high]``.

    Parameters
    ----------
    rows : ndarray of shape (p, n)
    needed : ndarray of shape (p,)
    reference, low, high : ndarray of shape (n,)
        All finite.
    tolerance : float
        Violation of a row that is accepted, > 0.
    excess_of : callable, optional
        Replaces the measure of infeasibility: negative for weights that prove it.

    Examples
    --------
    >>> found = project(
    ...     np.array([[1.0, 1.0]]), np.array([1.0]), np.zeros(2), np.zeros(2), np.ones(2), 1e-9
    ... )
    >>> np.round(found.point, 6)
    array([0.5, 0.5])
    """
    dual = _Dual(rows, rhs, reference, low, high)
    square = max(float(np.einsum("ij,ij->i", rows, rows).mean()), 1e-300)
    current = dual.at(np.zeros(len(rows)))
    first = _residual(current)
    excess = np.inf
    steps = 0
    while steps < NEWTON_STEPS:
        residual = _residual(current)
        if residual <= tolerance:
            break
        steps += 1
        fading = min((residual / first) ** 2, 0.4**steps)
        damping = square * max(MIN_DAMPING, DAMPING * fading)
        step = _newton_step(rows, current, low, high, damping)
        next_point = _line_search(dual, current, step)
        if next_point is None:
            break
        current = next_point
        excess = dual.excess(current) if excess_of is None else excess_of(current.mu)
        if excess < 0.0:
            break
    violation = max(0.0, float(current.dual_gradient.max()))
    return Projection(current.point, current.mu, violation, excess, steps)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _DualPoint:
    mu: Vector
    unclipped: Vector
    point: Vector
    dual_gradient: Vector  # needed - rows @ point: the slope of the dual
    value: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Dual:
    rows: Matrix
    rhs: Vector
    reference: Vector
    low: Vector
    high: Vector

    def at(self, mu: Vector) -> _DualPoint:
        unclipped = self.reference + mu @ self.rows
        point = np.clip(unclipped, self.low, self.high)
        dual_gradient = self.rhs - self.rows @ point
        move = point - self.reference
        return _DualPoint(
            mu,
            unclipped,
            point,
            dual_gradient,
            0.5 * float(move @ move) + float(mu @ dual_gradient),
        )

    def excess(self, position: _DualPoint) -> float:
        """Largest ``mu.(R t - c) / sum(mu)`` over the box."""
        total = float(position.mu.sum())
        if total <= 0.0:
            return np.inf
        direction = position.unclipped - self.reference
        reach = float(np.maximum(direction * self.low, direction * self.high).sum())
        return (reach - float(position.mu @ self.rhs)) / total


def _residual(position: _DualPoint) -> float:
    """Distance from the maximum: the largest slope that ``mu >= 0`` does not excuse."""
    slope = position.dual_gradient
    return float(np.where(position.mu > 0.0, np.abs(slope), np.maximum(slope, 0.0)).max())


def _newton_step(
    rows: Matrix, position: _DualPoint, low: Vector, high: Vector, damping: float
) -> Vector:
    """Maximise slope and curvature over ``mu + step >= 0``.

    Variables on a bound count as free: at the start all of them are, and want to move.
    """
    mu, slope = position.mu, position.dual_gradient
    moving = (mu > 0.0) | (slope > 0.0)
    free = (position.unclipped >= low) & (position.unclipped <= high)
    active = rows[moving]
    curvature = (active * free) @ active.T
    curvature[np.diag_indices_from(curvature)] += damping
    step = np.zeros(len(mu))
    step[moving] = (
        _nonneg_quadratic_min(curvature, slope[moving] + curvature @ mu[moving]) - mu[moving]
    )
    return step


def _nonneg_quadratic_min(matrix: Matrix, linear: Vector) -> Vector:
    """The least of ``1/2 x' matrix x - linear' x`` over ``x >= 0``; the matrix is positive."""
    if len(linear) <= MAX_PIVOTING_ORDER:
        found = _block_pivoting(matrix, linear)
        if found is not None:
            return found
    # Loaded where it is needed: that takes longer than a small run.
    from scipy.linalg import cho_factor, solve_triangular
    from scipy.optimize import nnls

    factor = np.tril(cho_factor(matrix, lower=True)[0])
    transformed = solve_triangular(factor, linear, lower=True)
    return np.asarray(nnls(factor.T, transformed, maxiter=10 * len(linear) + 30)[0])


def _block_pivoting(matrix: Matrix, linear: Vector) -> Vector | None:
    """The same by exchanging all variables that are on the wrong side at once.

    Where that does not bring their number down, one at a time (Júdice and Pires 1994): few
    systems are solved, and none twice. None where rounding keeps it from ending.
    """
    np.linalg.cholesky(matrix)  # raises where the matrix is not positive
    pivot_tol = PIVOT_TOL * float(np.abs(linear).max(initial=0.0))
    free = linear > 0.0
    fewest, block_exchanges_left = len(linear) + 1, MAX_BLOCK_EXCHANGES
    for _ in range(3 * len(linear) + 10):
        rows = np.flatnonzero(free)
        x = np.zeros(len(linear))
        x[rows] = np.linalg.solve(matrix[rows[:, None], rows], linear[rows])
        wrong = np.flatnonzero(np.where(free, x <= 0.0, linear - matrix @ x > pivot_tol))
        if len(wrong) == 0:
            return x
        if len(wrong) < fewest:
            fewest, block_exchanges_left = len(wrong), MAX_BLOCK_EXCHANGES
        elif block_exchanges_left > 0:
            block_exchanges_left -= 1
        else:
            wrong = wrong[-1:]
        free[wrong] = ~free[wrong]
    return None


def _line_search(dual: _Dual, current: _DualPoint, step: Vector) -> _DualPoint | None:
    """Shorten the step until the dual has risen enough; None when rounding hides any rise."""
    directional_derivative = float(current.dual_gradient @ step)
    size = 1.0
    while size > MIN_STEP and directional_derivative > 0.0:
        trial = dual.at(np.maximum(current.mu + size * step, 0.0))
        if trial.value >= current.value + ARMIJO * size * directional_derivative:
            return trial
        size *= 0.3
    return None
