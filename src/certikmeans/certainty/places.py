"""From boxes of centres in working coordinates to boxes in those of the user.

Presolve turns a row ``x`` to about ``(x - c) Q``. Write ``m_s`` for the exact mean of group ``s``
less ``c``, ``W_s`` for its exact weight, ``p_s`` and ``w_s`` for the place and the weight that
pricing works with, ``r_s = m_s - Q p_s``. The mean of a cluster is

    c + Q y' + r',   y' = sum W_s p_s / sum W_s,   r' = sum W_s r_s / sum W_s,

and ``r'`` lies between the least and the largest ``r_s`` of every feature. A box holds
``y = sum w_s p_s / sum w_s``; where weights differ by a factor up to ``1 + eta``, ``y'`` is within
``2 eta`` of the range of the points of it.

**Rounding.** A sum of ``m`` weights errs by less than ``m EPS`` of itself, so ``eta`` is
``2 m EPS``, ``m`` the largest group. The computed ``r_s`` errs by less than ``(m + 8) EPS`` of the
largest ``|x - c|`` of the feature (the mean) and ``(d + 8) EPS`` of ``|Q| |p_s|`` (the product),
with the difference ``x - c``. All of that is doubled, and 8 EPS of every end is added at last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.regions import CenterRegion
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import Problem
from certikmeans.problem.tables import column_ranges
from certikmeans.rounding import EPS

Boxes = NDArray[np.float64]  # (n, n_features, 2)


def stated_boxes(
    problem: Problem, presolved: Presolved, regions: tuple[CenterRegion, ...]
) -> Boxes:
    """Boxes, in the coordinates of the problem as stated, for the means of stated clusters."""
    reduced, axes, centre = presolved.reduced, presolved.axes, presolved.centre
    group, weight, points = presolved.row_of_point, problem.weights, problem.points
    kept = group < reduced.n_groups
    if not kept.all():
        group, weight, points = group[kept], weight[kept], points[kept]
    largest = int(np.bincount(group, minlength=reduced.n_groups).max())
    masses = np.bincount(group, weight, reduced.n_groups)
    eta = 2.0 * largest * EPS if largest > 1 else 0.0
    least_place, most_place = column_ranges(reduced.points)
    wide = most_place - least_place
    extra = 4.0 * eta * wide
    boxes = np.empty((len(regions), problem.n_features, 2))
    turned = np.abs(axes) @ np.maximum(-least_place, most_place)
    weighs = weight > 0.0  # means are of these
    held = points if weighs.all() else points[weighs]
    smallest, greatest = column_ranges(held)
    for j in range(problem.n_features):
        away = points[:, j] - centre[j]
        means = np.bincount(group, weight * away, reduced.n_groups) / masses
        rest = means - reduced.points @ axes[j]
        error = (
            2.0
            * EPS
            * ((largest + 8) * float(np.abs(away).max()) + (len(wide) + 8) * float(turned[j]))
        )
        least, most = float(rest.min()) - error, float(rest.max()) + error
        for i, region in enumerate(regions):
            low, high = _ball_and_box(region)
            ends = np.stack([axes[j] * (low - extra), axes[j] * (high + extra)])
            below, above = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
            reach = _along(region, axes[j])
            if reach is not None:
                spread = float(np.abs(axes[j]) @ extra)
                below, above = max(below, reach[0] - spread), min(above, reach[1] + spread)
            size = 2.0 * (len(wide) + 8) * EPS * float(turned[j] + np.abs(ends).sum())
            size += 8.0 * EPS * (abs(centre[j]) + abs(least) + abs(most))
            boxes[i, j, 0] = max(centre[j] + below + least - size, smallest[j])
            boxes[i, j, 1] = min(centre[j] + above + most + size, greatest[j])
    # A mean of equal numbers may be computed a rounding beyond them: that is the user's rounding.
    return boxes


def _ball_and_box(region: CenterRegion) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The box, cut to what holds the ball."""
    reach = region.radius * (1.0 + 4.0 * EPS)
    low = np.maximum(region.low, region.centre - reach - 4.0 * EPS * np.abs(region.centre))
    high = np.minimum(region.high, region.centre + reach + 4.0 * EPS * np.abs(region.centre))
    return low, high


def _along(region: CenterRegion, direction: NDArray[np.float64]) -> tuple[float, float] | None:
    """How far the ball reaches along a direction."""
    if not np.isfinite(region.radius):
        return None
    middle = float(direction @ region.centre)
    reach = region.radius * float(np.linalg.norm(direction)) * (1.0 + 8.0 * EPS)
    return middle - reach, middle + reach
