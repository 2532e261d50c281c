"""Boxes that hold every centre of every good labelling.

With ``F(y)`` the most that a cluster centred at ``y`` can be worth, every such centre lies in
``R = {y : F(y) >= cut}``: its cluster is worth as much. Boxes around the known centres are guessed
(`guessing`). Exact pricing says what ``F`` is at most inside them, which is ``sigma`` then, and
shows that ``F < cut`` outside them (`outside`), growing them where that is not so.

**A ball in the box.** Over a box, pricing has one concave quadratic above ``F``. Where it is below
``cut``, so is ``F``: what is left is a ball, in many axes much smaller than the box.

**Rounding.** `Pricer.exact_in` returns an upper bound with its rounding included. The ball: with
``A, b, c`` the sums of the quadratic, evaluated at its peak ``b / A`` with an error below ``error``
(`pricing_error`: a weighted mean of the points, so inside their box),
``A |y - b/A|^2 <= value + 2 error - cut``; the peak errs by less than `mean_slack` per axis, which
is added to the radius.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import mean_slack
from certikmeans.certainty.guessing import Box, Guess
from certikmeans.certainty.level import Level, Scale
from certikmeans.certainty.outside import NOT_SETTLED, show_outside
from certikmeans.certainty.raising import Guide, Raised
from certikmeans.kernels.pricing.instance import Instance
from certikmeans.kernels.pricing.search import look, workspace
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

WORTH_LESS = "the multipliers are not worth what was said"
ALL_LOST = "a cluster may lose all it is worth: less slack says more"
# How closely it is found out what they are worth, as a share of what it is worth while to gain; and
# how much less that may be than was said.
TOLERANCE, ASTRAY = 0.02, 0.5
TRIES = 3  # each with the sigma that was found in the boxes of the one before


@final
@dataclass(frozen=True, slots=True, eq=False)
class CenterRegion:
    """A box of centres, and a ball: those of good labellings are in both."""

    low: Vector  # (n_axes,)
    high: Vector
    centre: Vector  # of the ball
    radius: float  # may be infinite


@final
@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """Disjoint regions; `failure` says why they do not hold every centre, where they do not."""

    level: Level
    regions: tuple[CenterRegion, ...] = ()
    failure: str | None = None


def enclose(
    pricer: Pricer,
    raised: Raised,
    most: float,
    centers: NDArray[np.float64],
    stop: StopSignal,
    sigma: float | None = None,
) -> Enclosure:
    """Find boxes that hold every ``y`` with ``F(y) >= cut``, and show that they do.

    ``most`` is above the reduced cost of all labellings that are spoken of. With ``sigma``, that is
    what clusters are taken to be worth at most; otherwise it is found out.
    """
    scale = Scale.of(pricer.reduced, raised.multipliers, most)
    unit = raised.unit / scale.n_clusters
    said = scale.sigma_of(raised.value) + 8.0 * scale.error
    step = TOLERANCE * unit + 8.0 * scale.error
    if sigma is None:
        sigma = min(_sigma_of_guide(raised.guide, scale, step, stop), said)
    level = scale.level(sigma)
    for _ in range(TRIES):
        guess = Guess(raised.guide, level.cut, stop)
        if level.cut <= 4.0 * level.error:
            return Enclosure(level, failure=ALL_LOST)
        guess.add([place.copy() for place in centers])
        guess.add_columns()
        failure = show_outside(pricer, level, guess, stop)
        if failure is not None:
            return Enclosure(level, failure=failure)
        upper = _highest(pricer, level, guess.boxes, step, stop)
        if upper <= level.sigma:
            return Enclosure(level, _with_balls(pricer, level, guess.boxes))
        if upper > said + ASTRAY * unit:
            break
        level = scale.level(upper + step)
    return Enclosure(level, failure=WORTH_LESS if stop.cause() is None else NOT_SETTLED)


def _sigma_of_guide(guide: Guide, scale: Scale, step: float, stop: StopSignal) -> float:
    """What a cluster near those that are known is worth at most, by the guide; and a step more."""
    known = max((guide.worth(column) for column in guide.columns), default=math.inf)
    if not math.isfinite(known):
        return known
    level = dataclasses.replace(scale.level(known + step), multipliers=guide.multipliers)
    boxes = Guess(guide, level.cut, stop).rough()
    return _highest(guide.pricer, level, boxes, step, stop) + step


def _highest(
    pricer: Pricer, level: Level, boxes: list[Box], tolerance: float, stop: StopSignal
) -> float:
    """What a cluster centred in the boxes is worth at most: sigma, or that to a tolerance."""
    regions = [pricer.everywhere.part(low, high) for low, high in boxes]
    cutoff = level.sigma - 4.0 * level.error
    return pricer.exact_in(level.multipliers, cutoff, stop, regions, tolerance).upper


def _with_balls(pricer: Pricer, level: Level, boxes: list[Box]) -> tuple[CenterRegion, ...]:
    least, most = pricer.everywhere.low, pricer.everywhere.high
    bounded = [(np.maximum(low, least), np.minimum(high, most)) for low, high in boxes]
    instance = pricer.instance(level.multipliers)
    ball = partial(_with_ball, reduced=pricer.reduced, instance=instance, level=level)
    return tuple(pricer.crew.map(ball, bounded))


def _with_ball(box: Box, reduced: ReducedProblem, instance: Instance, level: Level) -> CenterRegion:
    """Keep the part of a box where pricing's quadratic reaches the cut."""
    low, high = box
    n, d = reduced.points.shape
    work = workspace(n, d, reduced.graph.n_linked)
    here = work.box
    here.lo[:], here.hi[:], here.sums[:] = low, high, 0.0
    members = np.flatnonzero(level.multipliers > 0.0).astype(np.int32)
    look(instance, members, work, level.error)
    sums = here.sums + here.estimate
    if not sums[1] > 0.0:
        return CenterRegion(low, high, 0.5 * (low + high), math.inf)
    peak = sums[2:] / sums[1]
    value = float(sums[0] + peak @ (2.0 * sums[2:] - sums[1] * peak))
    room = max(0.0, value + 2.0 * level.error - level.cut) / sums[1]
    drift = float(np.linalg.norm(mean_slack(reduced.points)))
    return CenterRegion(low, high, peak, math.sqrt(room) * (1.0 + 16.0 * EPS) + 2.0 * drift)
