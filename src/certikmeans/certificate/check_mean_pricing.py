"""Verified upper bound on the value of a cluster under constraints of any kind.

Shown is: no admissible set with its mean in the region has a value above the cutoff. Boxes of the
mean are bounded (`check_mean_boxes`), then cut down to where means can be, and halved; or a group
is put in and out where halving cannot help. The order of the boxes does not affect what is proven.
"""

from __future__ import annotations

from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, sum_by
from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_mean_boxes import (
    Mask,
    MeanBounds,
    MeanBoxes,
    MeanData,
    PricedGroups,
)
from certikmeans.certificate.check_pricing import upper_root
from certikmeans.certificate.check_subdivision import BatchParams, BoxProof, Limits

MAX_DEPTH = 1000
MEAN_BATCHES = BatchParams(members=1 << 17, probe_interval=8)


@final
class MeanPricing(BoxProof):
    """Values of clusters under one vector of multipliers and any constraints."""

    def __init__(
        self,
        groups: PricedGroups,
        limits: Limits,
        evaluations: int = 0,
        batches: BatchParams = MEAN_BATCHES,
    ) -> None:
        super().__init__(limits, batches, evaluations)
        self._groups = groups
        self._partners: dict[int, dict[int, float]] | None = None

    def prove(self, region: CenterRegion, cutoff: float, allowed: Mask | None = None) -> None:
        """Prove that no set has a larger value, or raise `Rejection` or `CutoffExceeded`."""
        data = MeanData(self._groups, region)
        if not cutoff >= 0.0 and self._groups.may_be_empty:
            raise CutoffExceeded(0.0)
        self._subdivide(
            data.start(allowed),
            lambda batch: _bound_batch(data, batch, cutoff),
            max(data.n_linked, data.constraints.n_sets),
            lambda center: self._probe(data, cutoff, center, allowed),
        )

    def _probe(self, data: MeanData, cutoff: float, start: Floats, allowed: Mask | None) -> None:
        """Stop a proof that cannot succeed: some cluster has a larger value."""
        value = self.local_search(data.region, start, allowed, steps=2)
        error = float(data.error(np.zeros(1, dtype=np.int64))[0])
        if value > cutoff + 1e-12 * abs(cutoff) + error:
            raise CutoffExceeded(value)

    def local_search(
        self, region: CenterRegion, start: Floats, allowed: Mask | None, steps: int = 20
    ) -> float:
        """Value of a good set with its mean in the region. Guides the proof; is no part of it."""
        groups = self._groups
        best = 0.0 if groups.may_be_empty else -np.inf
        if self._partners is None:
            self._partners = _partners(groups)
        center = np.clip(start, region.low, region.high)
        for _ in range(steps):
            deviation = np.sum((groups.points - center) ** 2, axis=1)
            values = groups.multipliers - groups.weights * deviation
            if allowed is not None:
                values = np.where(allowed, values, -np.inf)
            chosen, bonuses = _select(groups, self._partners, values)
            if len(chosen) == 0:
                break
            mass = groups.weights[chosen]
            center = mass @ groups.points[chosen] / mass.sum()
            deviation = np.sum((groups.points[chosen] - center) ** 2, axis=1)
            value = float(np.sum(groups.multipliers[chosen] - mass * deviation)) + bonuses
            if np.any(center < region.low) or np.any(center > region.high) or value <= best:
                break
            best = value
        return best


def _select(
    groups: PricedGroups, partners: dict[int, dict[int, float]], values: Floats
) -> tuple[list[int], float]:
    """An admissible set of large values, greedily, and the sum of its bonuses."""
    c = groups.constraints
    demand = c.demand
    key = -values if demand is None else -values / np.maximum(demand, 1e-9 * demand.max() + 1e-300)
    order = np.argsort(key, kind="stable")
    if groups.may_be_empty:
        order = order[values[order] + _gains(c.n_groups, groups)[order] > 0.0]
    order = order[np.isfinite(values[order])]
    taken_sets = [set[int]() for _ in c.layers]
    chosen: list[int] = []
    inside = set[int]()
    size, bonuses = 0.0, 0.0
    for s in order.tolist():
        bonus = sum(partners[s][t] for t in inside & partners[s].keys()) if s in partners else 0.0
        required = not groups.may_be_empty and size < groups.lower
        if bonus == -np.inf or not (values[s] + bonus > 0.0 or required):
            continue
        if demand is not None and size + demand[s] > groups.upper:
            continue
        numbers = [int(layer[s]) for layer in c.layers]
        if any(k in taken for k, taken in zip(numbers, taken_sets, strict=True)):
            continue
        for k, taken in zip(numbers, taken_sets, strict=True):
            if k >= 0:
                taken.add(k)
        chosen.append(s)
        inside.add(s)
        bonuses += bonus
        size += 0.0 if demand is None else float(demand[s])
    if not groups.may_be_empty and size < groups.lower:
        return [], 0.0
    return chosen, bonuses


def _gains(n_groups: int, groups: PricedGroups) -> Floats:
    c = groups.constraints
    gains = np.where(c.bonus > 0.0, c.bonus, 0.0)
    found = sum_by(c.first, gains, n_groups) + sum_by(c.second, gains, n_groups)
    return np.asarray(found, dtype=np.float64)


def _partners(groups: PricedGroups) -> dict[int, dict[int, float]]:
    c = groups.constraints
    partners: dict[int, dict[int, float]] = {}
    for a, b, bonus in zip(c.first.tolist(), c.second.tolist(), c.bonus.tolist(), strict=True):
        partners.setdefault(a, {})[b] = bonus
        partners.setdefault(b, {})[a] = bonus
    return partners


def _bound_batch(data: MeanData, batch: MeanBoxes, cutoff: float) -> tuple[list[MeanBoxes], Floats]:
    """Return the boxes that remain open, and a center where a good cluster may be."""
    bounds = MeanBounds(data, batch, cutoff)
    best = bounds.middle[bounds.upper.argmax()]
    if not bounds.open.any():
        return [], best
    if int(batch.depth.max()) >= MAX_DEPTH:
        raise CutoffExceeded(float(bounds.upper.max()))
    return _split(bounds), best


def _split(bounds: MeanBounds) -> list[MeanBoxes]:
    """Halve the open boxes, or put a group in and out."""
    boxes, included, excluded = bounds.boxes, bounds.included, bounds.excluded
    is_point: Mask = np.logical_not(_sides(boxes, bounds.data).any(axis=1))
    group = _group_to_branch(bounds, is_point)
    branched = bounds.open & (group >= 0)
    decided = np.bincount(bounds.box[included | excluded], minlength=boxes.count) > 0
    kept = bounds.open & is_point & ~branched & decided
    halved = bounds.open & ~branched & ~is_point
    undecidable = bounds.open & ~(branched | kept | halved)
    if undecidable.any():
        raise CutoffExceeded(float(bounds.upper[undecidable].max()))
    parts = []
    if branched.any():
        picked = np.zeros(len(included), dtype=bool)
        picked[group[branched]] = True
        parts.append(bounds.descend(branched, included, excluded | picked))
        parts.append(bounds.descend(branched, included | picked, excluded))
    if kept.any():
        parts.append(bounds.descend(kept, included, excluded))
    if halved.any():
        parts += _halves(bounds.descend(halved, included, excluded), bounds.data)
    shrunk = [_shrink_to_means(part, bounds.data) for part in parts]
    return [part for part in shrunk if part.count]


def _group_to_branch(bounds: MeanBounds, is_point: Mask) -> Ints:
    """For each box an undecided entry, where the box is so small that halving cannot help; or -1.

    It is the one whose reduced value is nearest to 0: the prices do not settle it.
    """
    small = bounds.open & (bounds.settled | is_point)
    chosen = np.full(bounds.boxes.count, -1)
    at = np.flatnonzero(~(bounds.included | bounds.excluded) & small[bounds.box])
    if len(at):
        order = np.lexsort((-np.abs(bounds.reduced[at]), bounds.box[at]))
        chosen[bounds.box[at][order]] = at[order]  # the last one written is the nearest
    return chosen


def _sides(boxes: MeanBoxes, data: MeanData) -> Floats:
    """Sides of the boxes; 0 at the size of rounding errors, where no smaller box helps."""
    side = boxes.high - boxes.low
    return np.where(side > 16.0 * EPS * data.size, side, 0.0)


def _halves(boxes: MeanBoxes, data: MeanData) -> list[MeanBoxes]:
    """Bisect boxes along their longest side."""
    middle = 0.5 * (boxes.low + boxes.high)
    axis = _sides(boxes, data).argmax(axis=1)
    first, second = boxes, boxes.take(np.ones(boxes.count, dtype=bool))
    first.high, second.low = boxes.high.copy(), boxes.low.copy()
    rows = np.arange(len(axis))
    first.high[rows, axis] = second.low[rows, axis] = middle[rows, axis]
    return [first, second]


def _shrink_to_means(boxes: MeanBoxes, data: MeanData) -> MeanBoxes:
    """Cut boxes to where means of (groups that are in + any undecided ones) can be.

    The largest mean along an axis is the root of the convex, decreasing
    ``g(t) = sum_in w (x - t) + sum_undecided w max(x - t, 0)``; where g < 0, no mean is. A secant
    of g lies above g.
    """
    mass = boxes.sums[:, 1]
    if not mass.any():
        return boxes
    helps = mass > 0.0
    box = np.repeat(np.arange(boxes.count), boxes.sizes)
    ids = boxes.ids.astype(np.intp)
    weight = data.w.take(ids)

    def total(values: Floats) -> Floats:
        return sum_by(box, values, boxes.count)

    undecided_mass = total(weight)
    low, high = boxes.low.copy(), boxes.high.copy()
    some = np.ones(boxes.count, dtype=bool)
    for j in range(data.r):
        x, a, c = data.x[j].take(ids), boxes.low[:, j], boxes.high[:, j]
        slack = 4.0 * (data.n + boxes.depth + 16) * EPS * data.size[j] + 1e-100
        safe = slack * (mass + undecided_mass)
        first = boxes.sums[:, 2 + j]
        every = first + total(weight * x)
        positions = (a, 0.5 * (a + c), c)
        above = [total(np.maximum(x - t[box], 0.0) * weight) for t in positions]
        g = [first - t * mass + over + safe for t, over in zip(positions, above, strict=True)]
        f = [
            every - t * (mass + undecided_mass) - over - safe
            for t, over in zip(positions, above, strict=True)
        ]
        top = upper_root(positions, g, slack)
        negated = [-t for t in positions[::-1]]
        bottom = -upper_root(negated, [-value for value in f[::-1]], slack)
        low[:, j] = np.where(helps, np.maximum(a, bottom), a)
        high[:, j] = np.where(helps, np.minimum(c, top), c)
        some &= ~(low[:, j] > high[:, j])
    boxes.low, boxes.high = low, high
    return boxes if some.all() else boxes.take(some)
