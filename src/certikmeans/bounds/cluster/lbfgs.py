"""Limited-memory BFGS for smooth concave functions.

Written out instead of calling SciPy: the stopping criterion is tested between two evaluations (one may
take a tenth of a second), and SciPy takes twice as long for thirty steps at a time.
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

MEMORY = 10
# A step has to gain this part of what the slope promises, and to leave no more than that of it.
ARMIJO, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 12
# A pair of changes with less curvature than this, relative to their lengths, is not remembered.
MIN_CURVATURE = 1e-10


@final
@dataclass(frozen=True, slots=True, eq=False)
class LbfgsResult:
    """The highest point reached."""

    point: Vector
    value: float
    gain: float  # since the start


def maximize(
    function: Function, start: Vector, first_step: float, steps: int, stop: StopSignal
) -> LbfgsResult:
    """Take at most ``steps`` steps up, the first one of about the length ``first_step``.

    Parameters
    ----------
    function : callable
        Returns value and slope; concave, or nearly.
    start : ndarray of shape (n,)
    first_step : float
        > 0.
    steps : int
    stop : StopSignal
        Where it comes first, the point reached by then is returned.

    Examples
    --------
    >>> bowl = lambda x: (-float(x @ x), -2.0 * x)
    >>> found = maximize(bowl, np.array([3.0, 4.0]), 0.1, 20, StopSignal())
    >>> round(found.value, 9) + 0.0, round(found.gain, 9)
    (0.0, 25.0)
    """
    memory: deque[tuple[Vector, Vector]] = deque(maxlen=MEMORY)
    point = start
    value, gradient = function(point)
    initial_value = value
    for _ in range(steps):
        direction = _direction(gradient, memory, first_step)
        directional_derivative = float(gradient @ direction)
        if directional_derivative <= 0.0 or stop.reason() is not None:
            break
        found = _line_search(function, point, value, direction, directional_derivative, stop)
        if found is None:
            break
        size, new_value, new_gradient = found
        step, gradient_change = size * direction, gradient - new_gradient
        curvature = float(step @ gradient_change)
        if curvature > MIN_CURVATURE * np.sqrt(
            float(step @ step) * float(gradient_change @ gradient_change)
        ):
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
) -> tuple[float, float, Vector] | None:
    """Length of a step that gains enough, with value and slope there; None: nothing is gained."""
    size, shortest, longest = 1.0, 0.0, np.inf
    found = None
    for _ in range(MAX_TRIALS):
        if stop.reason() is not None:
            break
        new_value, gradient = function(point + size * direction)
        if new_value < value + ARMIJO * size * directional_derivative:
            longest = size
        else:
            found = size, new_value, gradient
            if float(gradient @ direction) <= CURVATURE * directional_derivative:
                break
            shortest = size
        size = 2.0 * size if np.isinf(longest) else 0.5 * (shortest + longest)
    return found


def _direction(gradient: Vector, memory: deque[tuple[Vector, Vector]], first_step: float) -> Vector:
    """Newton's direction, as far as the changes of the last steps tell it."""
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
