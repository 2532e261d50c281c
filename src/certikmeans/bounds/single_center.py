"""Lower bound on the cost of a set about one centre in a box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.rounding import EPS


def cost_about_single_center(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    lower: NDArray[np.float64] | float = -np.inf,
    upper: NDArray[np.float64] | float = np.inf,
) -> float:
    """Lower bound on ``min over c in the box of sum w |x - c|^2``; by default all of space.

    Along one axis, with ``c`` any number in the interval and ``g = sum w (x - c)``, moving by
    ``t`` changes the cost by ``W t^2 - 2 g t``, which is at least ``- r^2 / W`` where ``r`` is the
    component of ``g`` that points into the interval. ``g`` errs by less than
    ``(m + 4) EPS sum w |x - c|`` and the sum of squares by its ``m d + 4`` roundings.

    >>> round(cost_about_single_center(np.array([[0.0], [2.0]]), np.ones(2)), 9)
    2.0
    >>> round(cost_about_single_center(np.array([[0.0], [2.0]]), np.ones(2), 2.0, 3.0), 9)
    4.0
    """
    mass = float(weights.sum())
    center = np.clip(weights @ points / mass, lower, upper)
    away = points - center
    weighted = weights[:, None] * away
    error = 2.0 * (len(points) + 8) * EPS
    slope = weighted.sum(axis=0)
    slope_error = error * np.abs(weighted).sum(axis=0)
    upward = np.where(center < upper, np.maximum(slope + slope_error, 0.0), 0.0)
    downward = np.where(center > lower, np.maximum(slope_error - slope, 0.0), 0.0)
    max_decrease = float(np.sum(np.maximum(upward, downward) ** 2)) / mass * (1.0 + error)
    square = float(np.sum(weighted * away)) * (1.0 - 2.0 * (away.size + 8) * EPS)
    return max(0.0, square - max_decrease)
