"""Limited-memory BFGS for smooth concave functions.

Implemented here instead of calling SciPy: the stopping criterion is tested between two evaluations
(one may take a tenth of a second), and SciPy takes twice as long for thirty steps at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Function = Callable[[Vector], tuple[float, Vector]]


@final
@dataclass(frozen=True, slots=True)
class LbfgsParams:
    """Settings of the method."""

    memory: int = 10  # pairs of step and change of gradient
    armijo: float = 1e-4  # sufficient increase, relative to the directional derivative
    curvature: float = 0.9  # largest directional derivative after a step, relative to before
    max_trials: int = 12  # evaluations of one line search
    min_curvature: float = 1e-10  # of a pair that is stored, relative to the lengths

    def __post_init__(self) -> None:
        if not 0.0 < self.armijo < self.curvature < 1.0:
            raise ValueError("0 < armijo < curvature < 1 is required")
        if self.memory < 1 or self.max_trials < 1:
            raise ValueError("memory and max_trials have to be positive")


DEFAULT_PARAMS = LbfgsParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class LbfgsResult:
    """Last iterate, the best one."""

    point: Vector
    value: float
    gain: float  # over the value at the start


def maximize(
    function: Function,
    start: Vector,
    first_step: float,
    steps: int,
    stop: StopSignal,
    params: LbfgsParams = DEFAULT_PARAMS,
) -> LbfgsResult:
    """Maximize a function by at most ``steps`` steps.

    Parameters
    ----------
    function : callable
        Returns value and gradient; concave, or nearly.
    start : ndarray of shape (n,)
    first_step : float
        Length of the first trial step, > 0.
    steps : int
    stop : StopSignal
        Ends the iteration early; the last iterate is returned.
    params : LbfgsParams

    Examples
    --------
    >>> bowl = lambda x: (-float(x @ x), -2.0 * x)
    >>> found = maximize(bowl, np.array([3.0, 4.0]), 0.1, 20, StopSignal())
    >>> round(found.value, 9) + 0.0, round(found.gain, 9)
    (0.0, 25.0)
    """
    memory: deque[tuple[Vector, Vector]] = deque(maxlen=params.memory)
    point = start
    value, gradient = function(point)
    initial_value = value
    for _ in range(steps):
        direction = _direction(gradient, memory, first_step)
        directional_derivative = float(gradient @ direction)
        if directional_derivative <= 0.0 or stop.reason() is not None:
            break
        found = _line_search(
            function, point, value, direction, directional_derivative, stop, params
        )
        if found is None:
            break
        size, new_value, new_gradient = found
        step, gradient_change = size * direction, gradient - new_gradient
        curvature = float(step @ gradient_change)
        lengths = float(step @ step) * float(gradient_change @ gradient_change)
        if curvature > params.min_curvature * np.sqrt(lengths):
            memory.append((step, gradient_change))
        point, value, gradient = point + step, new_value, new_gradient
    return LbfgsResult(point, value, value - initial_value)


def _line_search(
    function: Function,
    point: Vector,
    value: float,
    direction: Vector,
    directional_derivative: float,
    stop: StopSignal,
    params: LbfgsParams,
) -> tuple[float, float, Vector] | None:
    """Step size that satisfies the Wolfe conditions, or at least increases the value.

    Returns the size, with value and gradient there, or None if no trial increased the value.
    """
    size, shortest, longest = 1.0, 0.0, np.inf
    found = None
    for _ in range(params.max_trials):
        if stop.reason() is not None:
            break
        new_value, gradient = function(point + size * direction)
        if new_value < value + params.armijo * size * directional_derivative:
            longest = size
        else:
            found = size, new_value, gradient
            if float(gradient @ direction) <= params.curvature * directional_derivative:
                break
            shortest = size
        size = 2.0 * size if np.isinf(longest) else 0.5 * (shortest + longest)
    return found


def _direction(gradient: Vector, memory: deque[tuple[Vector, Vector]], first_step: float) -> Vector:
    """Quasi-Newton direction by the two-loop recursion."""
    if not memory:
        length = float(np.sqrt(gradient @ gradient))
        return gradient * (first_step / length) if length > 0.0 else gradient
    direction = gradient.copy()
    alphas = []
    for step, gradient_change in reversed(memory):
        alpha = float(step @ direction) / float(step @ gradient_change)
        direction -= alpha * gradient_change
        alphas.append(alpha)
    step, gradient_change = memory[-1]
    direction *= float(step @ gradient_change) / float(gradient_change @ gradient_change)
    for (step, gradient_change), alpha in zip(memory, reversed(alphas), strict=True):
        direction += (
            alpha - float(gradient_change @ direction) / float(step @ gradient_change)
        ) * step
    return direction
