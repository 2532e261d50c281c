"""Projection on the intersection of a box with a few half-spaces, or a proof that it is empty.

    min 1/2 |t - r|^2   subject to   R t >= c,   low <= t <= high        (R: few rows)

is solved through its dual, which has one variable ``mu >= 0`` per row: ``t = clip(r + R' mu)``.
The dual is concave and piecewise quadratic. Each Newton step maximizes its local quadratic, with
a damping term that vanishes towards the solution, over ``mu >= 0`` exactly (a small non-negative
least squares problem), and is shortened until the dual has increased.

Infeasibility is proven by the inequalities themselves: for any ``mu >= 0`` the largest value of
``mu.(R t - c)`` over the box is a sum of maxima, and if it is negative no feasible ``t`` exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class ProjectionParams:
    """Settings of the dual Newton method."""

    newton_steps: int = 40
    # Damping, in units of the mean square of the rows: at the start, and at the end.
    damping: float = 1e-2
    min_damping: float = 1e-9
    armijo: float = 1e-4  # sufficient increase, relative to the directional derivative
    step_reduction: float = 0.3  # factor of the line search
    min_step: float = 1e-9
    max_pivoting_order: int = 16  # with more variables, non-negative least squares of SciPy
    pivot_tol: float = 1e-13  # relative to the linear term
    max_block_exchanges: int = 3  # exchanges of many variables at once without progress

    def __post_init__(self) -> None:
        if not 0.0 < self.step_reduction < 1.0 or self.min_step <= 0.0:
            raise ValueError("step_reduction has to be in (0, 1), min_step positive")
        if self.min_damping <= 0.0:
            raise ValueError("min_damping has to be positive: rows may be linearly dependent")


DEFAULT_PARAMS = ProjectionParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A projection, or a proof of infeasibility.

    ``excess`` is, for ``mu`` scaled to sum 1, the largest value of ``mu.(R t - c)`` over the box:
    negative means infeasible, and all of ``c`` have to decrease by at least that much. Callers
    with more structure in their rows may replace this measure.
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
    params: ProjectionParams = DEFAULT_PARAMS,
    stop: StopSignal | None = None,
) -> Projection:
    """Project ``reference`` on ``rows @ t >= rhs`` within ``[low, high]``.

    Parameters
    ----------
    rows : ndarray of shape (p, n)
    rhs : ndarray of shape (p,)
    reference, low, high : ndarray of shape (n,)
        All finite.
    tolerance : float
        Accepted violation of a row, > 0.
    excess_of : callable, optional
        Replaces the measure of infeasibility of ``mu``: negative if it proves infeasibility.
    params : ProjectionParams
    stop : StopSignal, optional
        Ends the method early; the point is in the box, and may violate rows.

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
    while steps < params.newton_steps:
        residual = _residual(current)
        if residual <= tolerance or (stop is not None and stop.reason() is not None):
            break
        steps += 1
        fading = min((residual / first) ** 2, 0.4**steps)
        damping = square * max(params.min_damping, params.damping * fading)
        step = _newton_step(rows, current, low, high, damping, params)
        next_point = _line_search(dual, current, step, params)
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
    dual_gradient: Vector  # rhs - rows @ point
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
    """Violation of the optimality conditions of the dual over ``mu >= 0``."""
    slope = position.dual_gradient
    return float(np.where(position.mu > 0.0, np.abs(slope), np.maximum(slope, 0.0)).max())


def _newton_step(
    rows: Matrix,
    position: _DualPoint,
    low: Vector,
    high: Vector,
    damping: float,
    params: ProjectionParams,
) -> Vector:
    """Maximize the quadratic model of the dual over ``mu + step >= 0``.

    Variables on a bound count as free: at the start many are on a bound and will leave it.
    """
    mu, slope = position.mu, position.dual_gradient
    moving = (mu > 0.0) | (slope > 0.0)
    free = (position.unclipped >= low) & (position.unclipped <= high)
    active = rows[moving]
    curvature = (active * free) @ active.T
    curvature[np.diag_indices_from(curvature)] += damping
    step = np.zeros(len(mu))
    linear = slope[moving] + curvature @ mu[moving]
    step[moving] = _nonneg_quadratic_min(curvature, linear, params) - mu[moving]
    return step


def _nonneg_quadratic_min(matrix: Matrix, linear: Vector, params: ProjectionParams) -> Vector:
    """Minimizer of ``1/2 x' matrix x - linear' x`` over ``x >= 0``, matrix positive definite."""
    if len(linear) <= params.max_pivoting_order:
        found = _block_pivoting(matrix, linear, params)
        if found is not None:
            return found
    # Imported late: loading takes longer than a small run.
    from scipy.linalg import cho_factor, solve_triangular
    from scipy.optimize import nnls

    factor = np.tril(cho_factor(matrix, lower=True)[0])
    transformed = solve_triangular(factor, linear, lower=True)
    return np.asarray(nnls(factor.T, transformed, maxiter=10 * len(linear) + 30)[0])


def _block_pivoting(
    matrix: Matrix, linear: Vector, params: ProjectionParams = DEFAULT_PARAMS
) -> Vector | None:
    """The same minimizer by block principal pivoting (Júdice and Pires 1994).

    All infeasible variables are exchanged at once; if that does not reduce their number, one at a
    time. None if rounding errors keep the method from terminating.
    """
    np.linalg.cholesky(matrix)  # raises if the matrix is not positive definite
    pivot_tol = params.pivot_tol * float(np.abs(linear).max(initial=0.0))
    free = linear > 0.0
    fewest, block_exchanges_left = len(linear) + 1, params.max_block_exchanges
    for _ in range(3 * len(linear) + 10):
        rows = np.flatnonzero(free)
        x = np.zeros(len(linear))
        x[rows] = np.linalg.solve(matrix[rows[:, None], rows], linear[rows])
        wrong = np.flatnonzero(np.where(free, x <= 0.0, linear - matrix @ x > pivot_tol))
        if len(wrong) == 0:
            return x
        if len(wrong) < fewest:
            fewest, block_exchanges_left = len(wrong), params.max_block_exchanges
        elif block_exchanges_left > 0:
            block_exchanges_left -= 1
        else:
            wrong = wrong[-1:]
        free[wrong] = ~free[wrong]
    return None


def _line_search(
    dual: _Dual, current: _DualPoint, step: Vector, params: ProjectionParams
) -> _DualPoint | None:
    """Backtracking line search; None if no step increases the dual beyond rounding."""
    directional_derivative = float(current.dual_gradient @ step)
    size = 1.0
    while size > params.min_step and directional_derivative > 0.0:
        trial = dual.at(np.maximum(current.mu + size * step, 0.0))
        if trial.value >= current.value + params.armijo * size * directional_derivative:
            return trial
        size *= params.step_reduction
    return None
