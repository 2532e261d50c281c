"""Boxes that hold every center of every labelling within the slack.

With ``F(y)`` the largest value of a cluster centered at ``y``, every such center lies in
``R = {y : F(y) >= threshold}``, because its cluster has at least this value. Candidate boxes are
placed around the known centers (`exclusion.CandidateBoxes`). Exact pricing bounds ``F`` inside
them, which gives ``sigma``, and proves ``F < threshold`` outside (`exclusion.prove_exclusion`),
enlarging the boxes where that is false.

**A ball in the box.** Over a box, pricing has one concave quadratic above ``F``. Where it is below
``threshold``, so is ``F``: what remains is a ball, with many dimensions much smaller than the box.

**Rounding.** `LagrangianDual.max_value` returns an upper bound with its rounding included. The
ball: with ``A, b, c`` the sums of the quadratic, evaluated at its peak ``b / A`` with an error
below ``error`` (`pricing_error`: a weighted mean of the points, so inside their box),
``A |y - b/A|^2 <= value + 2 error - threshold``; the peak errs by less than `mean_rounding_error`
per axis, which is added to the radius.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.bounds.cluster.lagrangian_dual import (
    Box,
    DualPoint,
    LagrangianDual,
    QuadraticBound,
)
from certikmeans.certainty.dual_ascent import DualLevel, DualScale, StrengthenedDual
from certikmeans.certainty.exclusion import NOT_PROVEN_IN_TIME, CandidateBoxes, prove_exclusion
from certikmeans.certainty.params import RegionParams
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.arrays import SMALL_BLOCK, column_ranges, iter_row_blocks
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

OVERSTATED_BOUND = "the multipliers do not prove the bound reported for them"
BUDGET_TOO_LARGE = "a cluster may be empty within this slack: use a smaller slack"


@final
@dataclass(frozen=True, slots=True, eq=False)
class CenterRegion:
    """A box and a ball: centers of labellings within the slack lie in both."""

    low: Floats  # (n_dims,)
    high: Floats
    center: Floats  # of the ball
    radius: float  # may be infinite


@final
@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Disjoint regions that hold every center, or the reason why none were proven."""

    level: DualLevel
    regions: tuple[CenterRegion, ...] = ()
    failure: str | None = None


def enclose(
    dual: LagrangianDual,
    found: StrengthenedDual,
    most: float,
    centers: Floats,
    stop: StopSignal,
    params: RegionParams,
    sigma: float | None = None,
) -> Enclosure:
    """Find boxes that hold every ``y`` with ``F(y) >= threshold``, and prove that they do.

    Parameters
    ----------
    dual : LagrangianDual
    found : StrengthenedDual
        Multipliers, and where to look for good clusters.
    most : float
        Above the reduced cost of all labellings considered.
    centers : ndarray of shape (m, n_dims)
        Known centers.
    stop : StopSignal
    params : RegionParams
    sigma : float, optional
        Upper bound on the value of clusters to use; by default it is computed.
    """
    scale = DualScale.of(dual, found.multipliers, most)
    target_gain = found.target_gain / scale.n_clusters
    reported_sigma = scale.sigma_for(found.bound) + 8.0 * scale.error
    step = params.sigma_tolerance * target_gain + 8.0 * scale.error
    if sigma is None:
        sigma = min(_estimate_sigma(found.guide, scale, step, stop, params), reported_sigma)
    level = scale.level(sigma)
    for _ in range(params.max_attempts):
        candidates = CandidateBoxes(found.guide, level.threshold, stop, params)
        if level.threshold <= 4.0 * level.error:
            return Enclosure(level, failure=BUDGET_TOO_LARGE)
        candidates.add([center.copy() for center in centers])
        candidates.add_known_columns()
        failure = prove_exclusion(dual, level, candidates, stop, params)
        if failure is not None:
            return Enclosure(level, failure=failure)
        upper = _max_cluster_value(dual, level, candidates.boxes, step, stop)
        if upper <= level.sigma:
            return Enclosure(level, _regions_of_boxes(dual, level, candidates.boxes))
        if upper > reported_sigma + params.max_overstatement * target_gain:
            break
        level = scale.level(upper + step)
    return Enclosure(
        level, failure=OVERSTATED_BOUND if stop.reason() is None else NOT_PROVEN_IN_TIME
    )


def _estimate_sigma(
    guide: DualPoint, scale: DualScale, step: float, stop: StopSignal, params: RegionParams
) -> float:
    """Largest value of a cluster near the known ones, according to the guide, plus a step."""
    known = max((guide.value_of(column) for column in guide.columns), default=math.inf)
    if not math.isfinite(known):
        return known
    level = dataclasses.replace(scale.level(known + step), multipliers=guide.multipliers)
    boxes = CandidateBoxes(guide, level.threshold, stop, params).boxes_of_known_columns()
    return _max_cluster_value(guide.dual, level, boxes, step, stop) + step


def _max_cluster_value(
    dual: LagrangianDual, level: DualLevel, boxes: list[Box], tolerance: float, stop: StopSignal
) -> float:
    """Upper bound on the value of clusters centered in the boxes: sigma, or to a tolerance."""
    cutoff = level.sigma - 4.0 * level.error
    return dual.max_value(level.multipliers, cutoff, boxes, tolerance, stop)


def _regions_of_boxes(
    dual: LagrangianDual, level: DualLevel, boxes: list[Box]
) -> tuple[CenterRegion, ...]:
    least, most = dual.data_box
    bounded = [(np.maximum(low, least), np.minimum(high, most)) for low, high in boxes]
    bounds = dual.quadratic_bounds(level.multipliers, bounded, level.error)
    mean_error = float(np.linalg.norm(dual.mean_error))
    return tuple(
        _region_of_box(box, bound, level, mean_error)
        for box, bound in zip(bounded, bounds, strict=True)
    )


def _region_of_box(
    box: Box, bound: QuadraticBound, level: DualLevel, mean_error: float
) -> CenterRegion:
    """Keep the part of a box where the quadratic of pricing reaches the threshold."""
    if not bound.mass > 0.0:
        return CenterRegion(*box, bound.peak, math.inf)
    squared_radius = max(0.0, bound.value + 2.0 * level.error - level.threshold) / bound.mass
    radius = math.sqrt(squared_radius) * (1.0 + 16.0 * EPS) + 2.0 * mean_error
    return CenterRegion(*box, bound.peak, radius)


# Range of the value of every group for a center in a region.
#
# **Rounding.** As in `kernels.pricing.ranges`: a difference, its square, the sum over ``d`` axes,
# the product with the weight and the last subtraction err by less than ``(d + 6) EPS`` of ``|lam| +
# w r^2`` together; twice that is taken. The distance to the middle of the ball, a square root more,
# errs by less than ``(d + 4) EPS`` of itself.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValueRanges:
    """Bounds on the group values ``a_s(y)`` for ``y`` in each of several sets of centers."""

    low: Floats  # (n_groups, n_sets), column by column
    high: Floats

    def union(self, sets: Sequence[int]) -> tuple[Floats, Floats]:
        """Bounds over the union of some of the sets."""
        low, high = self.low[:, sets[0]], self.high[:, sets[0]]
        for k in sets[1:]:
            low, high = np.minimum(low, self.low[:, k]), np.maximum(high, self.high[:, k])
        return low, high


def value_ranges(
    reduced: ReducedProblem, multipliers: Floats, regions: tuple[CenterRegion, ...]
) -> ValueRanges:
    """Bound the value of every group for a center in every region."""
    shape = (reduced.n_groups, len(regions))
    low, high = np.empty(shape, order="F"), np.empty(shape, order="F")
    for rows in iter_row_blocks(reduced.points, SMALL_BLOCK):
        columns = [column.copy() for column in reduced.points[rows].T]
        weights, lam = reduced.weights[rows], multipliers[rows]
        for k, region in enumerate(regions):
            low[rows, k], high[rows, k] = _ranges_over_region(columns, weights, lam, region)
    return ValueRanges(low, high)


def _ranges_over_region(
    columns: list[Floats], weights: Floats, lam: Floats, region: CenterRegion
) -> tuple[Floats, Floats]:
    n, d = len(lam), len(columns)
    near, far, middle = np.zeros(n), np.zeros(n), np.zeros(n)
    for j, column in enumerate(columns):
        below, above = region.low[j] - column, column - region.high[j]
        gap = np.maximum(0.0, np.maximum(below, above))
        reach = np.maximum(-below, -above)
        near += gap * gap
        far += reach * reach
        middle += (column - region.center[j]) ** 2
    if math.isfinite(region.radius):
        distance, relative = np.sqrt(middle), (d + 4) * EPS
        inner = np.maximum(0.0, distance * (1.0 - relative) - region.radius)
        outer = distance * (1.0 + relative) + region.radius
        near, far = np.maximum(near, inner * inner), np.minimum(far, outer * outer)
    near, far = weights * near, weights * far
    relative, size = 2.0 * (d + 8) * EPS, np.abs(lam)
    return lam - far - relative * (size + far), lam - near + relative * (size + near)


# From boxes of centers in the coordinates of presolve to boxes in those of the user.
#
# Presolve maps a row ``x`` to about ``(x - c) Q``. Write ``m_s`` for the exact mean of group ``s``
# less ``c``, ``W_s`` for its exact weight, ``p_s`` and ``w_s`` for the coordinates and the weight
# that pricing works with, ``r_s = m_s - Q p_s``. The mean of a cluster is
#
#     c + Q y' + r',   y' = sum W_s p_s / sum W_s,   r' = sum W_s r_s / sum W_s,
#
# and ``r'`` lies between the least and the largest ``r_s`` of every feature. A box holds ``y = sum
# w_s p_s / sum w_s``; where weights differ by a factor up to ``1 + eta``, ``y'`` is within ``2
# eta`` of the range of the points of it.
#
# **Rounding.** A sum of ``m`` weights errs by less than ``m EPS`` of itself, so ``eta`` is ``2 m
# EPS``, ``m`` the largest group. The computed ``r_s`` errs by less than ``(m + 8) EPS`` of the
# largest ``|x - c|`` of the feature (the mean) and ``(d + 8) EPS`` of ``|Q| |p_s|`` (the product),
# with the difference ``x - c``. All of that is doubled, and 8 EPS of every end is added at last.

Boxes = Floats  # (n, n_features, 2)


def boxes_in_user_coordinates(
    problem: Problem, presolved: PresolvedProblem, regions: tuple[CenterRegion, ...]
) -> Boxes:
    """Boxes, in the coordinates of the original problem, for the means of its clusters."""
    reduced, axes, center = presolved.reduced, presolved.axes, presolved.center
    group, weight, points = presolved.group_of_point, problem.weights, problem.points
    kept = group < reduced.n_groups
    if not kept.all():
        group, weight, points = group[kept], weight[kept], points[kept]
    largest = int(np.bincount(group, minlength=reduced.n_groups).max())
    masses = np.bincount(group, weight, reduced.n_groups)
    eta = 2.0 * largest * EPS if largest > 1 else 0.0
    low_corner, high_corner = column_ranges(reduced.points)
    widths = high_corner - low_corner
    extra = 4.0 * eta * widths
    boxes = np.empty((len(regions), problem.n_features, 2))
    rotated_extent = np.abs(axes) @ np.maximum(-low_corner, high_corner)
    has_weight = weight > 0.0  # only these enter means
    held = points if has_weight.all() else points[has_weight]
    smallest, greatest = column_ranges(held)
    for j in range(problem.n_features):
        deviation = points[:, j] - center[j]
        means = np.bincount(group, weight * deviation, reduced.n_groups) / masses
        rest = means - reduced.points @ axes[j]
        size = (largest + 8) * float(np.abs(deviation).max())
        error = 2.0 * EPS * (size + (len(widths) + 8) * float(rotated_extent[j]))
        least, most = float(rest.min()) - error, float(rest.max()) + error
        for i, region in enumerate(regions):
            low, high = _box_around_ball(region)
            ends = np.stack([axes[j] * (low - extra), axes[j] * (high + extra)])
            below, above = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
            reach = _ball_extent(region, axes[j])
            if reach is not None:
                spread = float(np.abs(axes[j]) @ extra)
                below, above = max(below, reach[0] - spread), min(above, reach[1] + spread)
            size = 2.0 * (len(widths) + 8) * EPS * float(rotated_extent[j] + np.abs(ends).sum())
            size += 8.0 * EPS * (abs(center[j]) + abs(least) + abs(most))
            boxes[i, j, 0] = max(center[j] + below + least - size, smallest[j])
            boxes[i, j, 1] = min(center[j] + above + most + size, greatest[j])
    # A mean of equal numbers may be computed a rounding beyond them: that is rounding of the user.
    return boxes


def _box_around_ball(region: CenterRegion) -> tuple[Floats, Floats]:
    """Intersect the box with the bounding box of the ball."""
    reach = region.radius * (1.0 + 4.0 * EPS)
    low = np.maximum(region.low, region.center - reach - 4.0 * EPS * np.abs(region.center))
    high = np.minimum(region.high, region.center + reach + 4.0 * EPS * np.abs(region.center))
    return low, high


def _ball_extent(region: CenterRegion, direction: Floats) -> tuple[float, float] | None:
    """Extent of the ball along a direction; None if it is unbounded."""
    if not np.isfinite(region.radius):
        return None
    middle = float(direction @ region.center)
    reach = region.radius * float(np.linalg.norm(direction)) * (1.0 + 8.0 * EPS)
    return middle - reach, middle + reach
