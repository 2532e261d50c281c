"""Climb a smooth concave function of many variables: BFGS with limited memory.

Written out, because it has to look at the clock between two values of the function (one of them
may take a tenth of a second), and because calling SciPy's for thirty steps at a time takes twice
as long.
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
SUFFICIENT, FLATTER = 1e-4, 0.9
TRIALS = 12
# A pair of changes with less curvature than this, relative to their lengths, is not remembered.
LEAST_CURVATURE = 1e-10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Climbed:
    """The highest point reached."""

    point: Vector
    value: float
    gain: float  # since the start


def climb(
    function: Function, start: Vector, first_step: float, steps: int, stop: StopSignal
) -> Climbed:
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
    >>> found = climb(bowl, np.array([3.0, 4.0]), 0.1, 20, StopSignal())
    >>> round(found.value, 9) + 0.0, round(found.gain, 9)
    (0.0, 25.0)
    """
    memory: deque[tuple[Vector, Vector]] = deque(maxlen=MEMORY)
    point = start
    value, slope = function(point)
    begun = value
    for _ in range(steps):
        direction = _direction(slope, memory, first_step)
        rise = float(slope @ direction)
        if rise <= 0.0 or stop.cause() is not None:
            break
        found = _along(function, point, value, direction, rise, stop)
        if found is None:
            break
        size, after, slope_after = found
        move, change = size * direction, slope - slope_after
        bend = float(move @ change)
        if bend > LEAST_CURVATURE * np.sqrt(float(move @ move) * float(change @ change)):
            memory.append((move, change))
        point, value, slope = point + move, after, slope_after
    return Climbed(point, value, value - begun)


def _along(
    function: Function,
    point: Vector,
    value: float,
    direction: Vector,
    rise: float,
    stop: StopSignal,
) -> tuple[float, float, Vector] | None:
    """Length of a step that gains enough, with value and slope there; None: nothing is gained."""
    size, shortest, longest = 1.0, 0.0, np.inf
    found = None
    for _ in range(TRIALS):
        if stop.cause() is not None:
            break
        after, slope = function(point + size * direction)
        if after < value + SUFFICIENT * size * rise:
            longest = size
        else:
            found = size, after, slope
            if float(slope @ direction) <= FLATTER * rise:
                break
            shortest = size
        size = 2.0 * size if np.isinf(longest) else 0.5 * (shortest + longest)
    return found


def _direction(slope: Vector, memory: deque[tuple[Vector, Vector]], first_step: float) -> Vector:
    """Newton's direction, as far as the changes of the last steps tell it."""
    if not memory:
        length = float(np.sqrt(slope @ slope))
        return slope * (first_step / length) if length > 0.0 else slope
    direction = slope.copy()
    shares = []
    for move, change in reversed(memory):
        share = float(move @ direction) / float(move @ change)
        direction -= share * change
        shares.append(share)
    move, change = memory[-1]
    direction *= float(move @ change) / float(change @ change)
    for (move, change), share in zip(memory, reversed(shares), strict=True):
        direction += (share - float(change @ direction) / float(move @ change)) * move
    return direction
