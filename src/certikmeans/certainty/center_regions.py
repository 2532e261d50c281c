"""Boxes that hold every centre of every good labelling.

With ``F(y)`` the most that a cluster centred at ``y`` can be worth, every such centre lies in
``R = {y : F(y) >= threshold}``: its cluster is worth as much. Boxes around the known centres are guessed
(`guessing`). Exact pricing says what ``F`` is at most inside them, which is ``sigma`` then, and
shows that ``F < threshold`` outside them (`outside`), growing them where that is not so.

**A ball in the box.** Over a box, pricing has one concave quadratic above ``F``. Where it is below
``threshold``, so is ``F``: what is left is a ball, in many axes much smaller than the box.

**Rounding.** `Pricer.price_regions` returns an upper bound with its rounding included. The ball: with
``A, b, c`` the sums of the quadratic, evaluated at its peak ``b / A`` with an error below ``error``
(`pricing_error`: a weighted mean of the points, so inside their box),
``A |y - b/A|^2 <= value + 2 error - threshold``; the peak errs by less than `mean_rounding_error` per axis, which
is added to the radius.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import mean_rounding_error
from certikmeans.certainty.dual_ascent import DualLevel, DualScale, PricingGuide, StrengthenedDual
from certikmeans.certainty.exclusion import NOT_PROVEN_IN_TIME, Box, CandidateBoxes, prove_exclusion
from certikmeans.kernels.pricing.box_bound import Instance
from certikmeans.kernels.pricing.search import bound_box, make_workspace
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.arrays import SMALL_BLOCK, column_ranges, iter_row_blocks
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

OVERSTATED_BOUND = "the multipliers are not worth what was said"
BUDGET_TOO_LARGE = "a cluster may lose all it is worth: less slack says more"
# How closely it is found out what they are worth, as a share of what it is worth while to gain; and
# how much less that may be than was said.
SIGMA_TOLERANCE, MAX_OVERSTATEMENT = 0.02, 0.5
MAX_ATTEMPTS = 3  # each with the sigma that was found in the boxes of the one before


@final
@dataclass(frozen=True, slots=True, eq=False)
class CenterRegion:
    """A box of centres, and a ball: those of good labellings are in both."""

    low: Vector  # (n_axes,)
    high: Vector
    center: Vector  # of the ball
    radius: float  # may be infinite


@final
@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Disjoint regions; `failure` says why they do not hold every centre, where they do not."""

    level: DualLevel
    regions: tuple[CenterRegion, ...] = ()
    failure: str | None = None


def enclose(
    pricer: Pricer,
    dual: StrengthenedDual,
    most: float,
    centers: NDArray[np.float64],
    stop: StopSignal,
    sigma: float | None = None,
) -> Enclosure:
    """Find boxes that hold every ``y`` with ``F(y) >= threshold``, and show that they do.

    ``most`` is above the reduced cost of all labellings that are spoken of. With ``sigma``, that is
    what clusters are taken to be worth at most; otherwise it is found out.
    """
    scale = DualScale.of(pricer.reduced, dual.multipliers, most)
    target_gain = dual.target_gain / scale.n_clusters
    claimed_sigma = scale.sigma_for(dual.value) + 8.0 * scale.error
    step = SIGMA_TOLERANCE * target_gain + 8.0 * scale.error
    if sigma is None:
        sigma = min(_estimate_sigma(dual.guide, scale, step, stop), claimed_sigma)
    level = scale.level(sigma)
    for _ in range(MAX_ATTEMPTS):
        candidates = CandidateBoxes(dual.guide, level.threshold, stop)
        if level.threshold <= 4.0 * level.error:
            return Enclosure(level, failure=BUDGET_TOO_LARGE)
        candidates.add([place.copy() for place in centers])
        candidates.add_known_columns()
        failure = prove_exclusion(pricer, level, candidates, stop)
        if failure is not None:
            return Enclosure(level, failure=failure)
        upper = _max_cluster_value(pricer, level, candidates.boxes, step, stop)
        if upper <= level.sigma:
            return Enclosure(level, _regions_of_boxes(pricer, level, candidates.boxes))
        if upper > claimed_sigma + MAX_OVERSTATEMENT * target_gain:
            break
        level = scale.level(upper + step)
    return Enclosure(
        level, failure=OVERSTATED_BOUND if stop.reason() is None else NOT_PROVEN_IN_TIME
    )


def _estimate_sigma(guide: PricingGuide, scale: DualScale, step: float, stop: StopSignal) -> float:
    """What a cluster near those that are known is worth at most, by the guide; and a step more."""
    known = max((guide.value_of(column) for column in guide.columns), default=math.inf)
    if not math.isfinite(known):
        return known
    level = dataclasses.replace(scale.level(known + step), multipliers=guide.multipliers)
    boxes = CandidateBoxes(guide, level.threshold, stop).boxes_of_known_columns()
    return _max_cluster_value(guide.pricer, level, boxes, step, stop) + step


def _max_cluster_value(
    pricer: Pricer, level: DualLevel, boxes: list[Box], tolerance: float, stop: StopSignal
) -> float:
    """What a cluster centred in the boxes is worth at most: sigma, or that to a tolerance."""
    regions = [pricer.full_region.subregion(low, high) for low, high in boxes]
    cutoff = level.sigma - 4.0 * level.error
    return pricer.price_regions(level.multipliers, cutoff, stop, regions, tolerance).upper


def _regions_of_boxes(
    pricer: Pricer, level: DualLevel, boxes: list[Box]
) -> tuple[CenterRegion, ...]:
    least, most = pricer.full_region.low, pricer.full_region.high
    bounded = [(np.maximum(low, least), np.minimum(high, most)) for low, high in boxes]
    instance = pricer.instance(level.multipliers)
    ball = partial(_region_of_box, reduced=pricer.reduced, instance=instance, level=level)
    return tuple(pricer.task_pool.map(ball, bounded))


def _region_of_box(
    box: Box, reduced: ReducedProblem, instance: Instance, level: DualLevel
) -> CenterRegion:
    """Keep the part of a box where pricing's quadratic reaches the cut."""
    low, high = box
    n, d = reduced.points.shape
    work = make_workspace(n, d, reduced.graph.n_linked)
    here = work.box
    here.lo[:], here.hi[:], here.sums[:] = low, high, 0.0
    members = np.flatnonzero(level.multipliers > 0.0).astype(np.int32)
    bound_box(instance, members, work, level.error)
    sums = here.sums + here.estimate
    if not sums[1] > 0.0:
        return CenterRegion(low, high, 0.5 * (low + high), math.inf)
    peak = sums[2:] / sums[1]
    value = float(sums[0] + peak @ (2.0 * sums[2:] - sums[1] * peak))
    squared_radius = max(0.0, value + 2.0 * level.error - level.threshold) / sums[1]
    mean_error = float(np.linalg.norm(mean_rounding_error(reduced.points)))
    return CenterRegion(
        low, high, peak, math.sqrt(squared_radius) * (1.0 + 16.0 * EPS) + 2.0 * mean_error
    )


# What every group is worth to a centre in a region, at least and at most.
#
# **Rounding.** As in `kernels.pricing.ranges`: a difference, its square, the sum over ``d`` axes, the
# product with the weight and the last subtraction err by less than ``(d + 6) EPS`` of
# ``|lam| + w r^2`` together; twice that is taken. The distance to the middle of the ball, a square
# root more, errs by less than ``(d + 4) EPS`` of itself.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ValueRanges:
    """Bounds on ``a_s(y)`` for ``y`` in each of some sets of centres."""

    low: NDArray[np.float64]  # (n_groups, n_sets), set after set
    high: NDArray[np.float64]

    def union(self, sets: Sequence[int]) -> tuple[Vector, Vector]:
        """Least and most over some of the sets together."""
        low, high = self.low[:, sets[0]], self.high[:, sets[0]]
        for k in sets[1:]:
            low, high = np.minimum(low, self.low[:, k]), np.maximum(high, self.high[:, k])
        return low, high


def value_ranges(
    reduced: ReducedProblem, multipliers: Vector, regions: tuple[CenterRegion, ...]
) -> ValueRanges:
    """Bound what every group is worth to a centre in every region."""
    shape = (reduced.n_groups, len(regions))
    low, high = np.empty(shape, order="F"), np.empty(shape, order="F")
    for rows in iter_row_blocks(reduced.points, SMALL_BLOCK):
        columns = [column.copy() for column in reduced.points[rows].T]
        weights, lam = reduced.weights[rows], multipliers[rows]
        for k, region in enumerate(regions):
            low[rows, k], high[rows, k] = _ranges_over_region(columns, weights, lam, region)
    return ValueRanges(low, high)


def _ranges_over_region(
    columns: list[Vector], weights: Vector, lam: Vector, region: CenterRegion
) -> tuple[Vector, Vector]:
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
        away, slack = np.sqrt(middle), (d + 4) * EPS
        inner = np.maximum(0.0, away * (1.0 - slack) - region.radius)
        outer = away * (1.0 + slack) + region.radius
        near, far = np.maximum(near, inner * inner), np.minimum(far, outer * outer)
    near, far = weights * near, weights * far
    slack, size = 2.0 * (d + 8) * EPS, np.abs(lam)
    return lam - far - slack * (size + far), lam - near + slack * (size + near)


# From boxes of centres in working coordinates to boxes in those of the user.
#
# Presolve turns a row ``x`` to about ``(x - c) Q``. Write ``m_s`` for the exact mean of group ``s``
# less ``c``, ``W_s`` for its exact weight, ``p_s`` and ``w_s`` for the place and the weight that
# pricing works with, ``r_s = m_s - Q p_s``. The mean of a cluster is
#
#     c + Q y' + r',   y' = sum W_s p_s / sum W_s,   r' = sum W_s r_s / sum W_s,
#
# and ``r'`` lies between the least and the largest ``r_s`` of every feature. A box holds
# ``y = sum w_s p_s / sum w_s``; where weights differ by a factor up to ``1 + eta``, ``y'`` is within
# ``2 eta`` of the range of the points of it.
#
# **Rounding.** A sum of ``m`` weights errs by less than ``m EPS`` of itself, so ``eta`` is
# ``2 m EPS``, ``m`` the largest group. The computed ``r_s`` errs by less than ``(m + 8) EPS`` of the
# largest ``|x - c|`` of the feature (the mean) and ``(d + 8) EPS`` of ``|Q| |p_s|`` (the product),
# with the difference ``x - c``. All of that is doubled, and 8 EPS of every end is added at last.

Boxes = NDArray[np.float64]  # (n, n_features, 2)


def boxes_in_user_coordinates(
    problem: Problem, presolved: PresolvedProblem, regions: tuple[CenterRegion, ...]
) -> Boxes:
    """Boxes, in the coordinates of the problem as stated, for the means of stated clusters."""
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
    has_weight = weight > 0.0  # means are of these
    held = points if has_weight.all() else points[has_weight]
    smallest, greatest = column_ranges(held)
    for j in range(problem.n_features):
        away = points[:, j] - center[j]
        means = np.bincount(group, weight * away, reduced.n_groups) / masses
        rest = means - reduced.points @ axes[j]
        error = (
            2.0
            * EPS
            * (
                (largest + 8) * float(np.abs(away).max())
                + (len(widths) + 8) * float(rotated_extent[j])
            )
        )
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
    # A mean of equal numbers may be computed a rounding beyond them: that is the user's rounding.
    return boxes


def _box_around_ball(region: CenterRegion) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The box, cut to what holds the ball."""
    reach = region.radius * (1.0 + 4.0 * EPS)
    low = np.maximum(region.low, region.center - reach - 4.0 * EPS * np.abs(region.center))
    high = np.minimum(region.high, region.center + reach + 4.0 * EPS * np.abs(region.center))
    return low, high


def _ball_extent(
    region: CenterRegion, direction: NDArray[np.float64]
) -> tuple[float, float] | None:
    """How far the ball reaches along a direction."""
    if not np.isfinite(region.radius):
        return None
    middle = float(direction @ region.center)
    reach = region.radius * float(np.linalg.norm(direction)) * (1.0 + 8.0 * EPS)
    return middle - reach, middle + reach
