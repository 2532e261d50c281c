"""Verified upper bound on the value of a cluster, by subdivision of the space of centers.

``V(y) <= cutoff`` is proven for every ``y`` of a region: boxes are bounded, then shrunk or split,
until all of them are closed. The order of the boxes does not affect what is proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    max_independent_set_on_forest,
)
from certikmeans.certificate.check_boxes import (
    UNDECIDED,
    BoxBatch,
    BoxBounds,
    CenterRegion,
    CutoffExceeded,
    PricingData,
)
from certikmeans.certificate.check_subdivision import BatchParams, BoxProof, Limits

MAX_SHRINK_RATIO = 0.7


def split(bounds: BoxBounds, open_boxes: NDArray[np.bool_]) -> list[BoxBatch]:
    """Shrink the boxes that are left; split those that did not shrink much."""
    boxes = bounds.boxes
    low, high = boxes.low.copy(), boxes.high.copy()
    _shrink_by_objective(bounds, low, high)
    open_boxes &= ~np.any(low > high, axis=1)
    undecided = bounds.undecided[open_boxes[bounds.box[bounds.undecided]]]
    open_boxes &= _shrink_to_means(bounds, undecided, low, high)
    side = boxes.high - boxes.low
    ratio = np.where(side > 0.0, (high - low) / np.where(side > 0.0, side, 1.0), 1.0)
    shrunk = open_boxes & (ratio.min(axis=1) < MAX_SHRINK_RATIO)
    entries = undecided[open_boxes[bounds.box[undecided]]]
    left = BoxBatch(
        low, high, bounds.fixed_sums, boxes.depth + 1,
        np.bincount(bounds.box[entries], minlength=bounds.count),
        bounds.ids[entries].astype(np.int32),
    )  # fmt: skip
    parts = [left.take(shrunk)]
    halved = open_boxes & ~shrunk
    if bounds.has_cycle.any():
        group = _conflicts(bounds, np.clip(bounds.best, low, high), halved)
        halved &= group < 0
        parts += _branch_on_group(bounds, left, entries, group)
    parts += _halves(bounds, left, entries, halved)
    return [part for part in parts if len(part.sizes)]


def _shrink_by_objective(bounds: BoxBounds, low: Floats, high: Floats) -> None:
    """Keep the part of a box where the quadratic can reach the cutoff.

    There ``mass |z - peak|^2 <= mass |best - peak|^2 + excess``, and no coordinate of ``z`` is
    closer to the peak than that of ``best``: one interval per coordinate.
    """
    heavy = bounds.heavy
    excess = np.maximum(bounds.upper - bounds.cutoff + bounds.error, 0.0)
    excess /= np.where(heavy, bounds.mass, 1.0)
    peak, best = bounds.peak, bounds.best
    reach = np.sqrt((best - peak) ** 2 + excess[:, None]) * (1.0 + 16.0 * EPS) + 1e-100
    reach += 16.0 * EPS * (np.abs(peak) + np.abs(low) + np.abs(high))
    low[heavy] = np.maximum(low, peak - reach)[heavy]
    high[heavy] = np.minimum(high, peak + reach)[heavy]


def _shrink_to_means(
    bounds: BoxBounds, undecided: Ints, low: Floats, high: Floats
) -> NDArray[np.bool_]:
    """Keep where means of (included groups + any undecided ones) can be; False if nowhere.

    The largest mean along an axis is the root of the convex, decreasing
    ``g(t) = sum_in w (x - t) + sum_undecided w max(x - t, 0)``; where g < 0, no mean is. A
    secant of g lies above g. On a face created by a split the condition towards the
    outside does not hold, so there a box shrinks to its face instead of vanishing.
    """
    pricing = bounds.pricing
    some, mass = np.ones(bounds.count, dtype=bool), bounds.fixed_sums[:, 1]
    helps = mass > 0.0
    loose = bounds.entries(undecided[helps[bounds.box[undecided]]])
    undecided_mass = loose.sum(loose.weight)
    for j in range(pricing.r if helps.any() else 0):
        x, a, c = pricing.x[j].take(loose.ids), low[:, j].copy(), high[:, j].copy()
        slack = 4.0 * (pricing.n + bounds.boxes.depth + 16) * EPS * pricing.size[j] + 1e-100
        safe = slack * (mass + undecided_mass)
        first = bounds.fixed_sums[:, 2 + j]
        every = first + loose.sum(loose.weight * x)
        positions = (a, 0.5 * (a + c), c)
        above = [loose.sum(np.maximum(x - loose.spread(t), 0.0) * loose.weight) for t in positions]
        g = [first - t * mass + over + safe for t, over in zip(positions, above, strict=True)]
        f = [
            every - t * (mass + undecided_mass) - over - safe
            for t, over in zip(positions, above, strict=True)
        ]
        top = upper_root(positions, g, slack)
        bottom = -upper_root([-t for t in positions[::-1]], [-value for value in f[::-1]], slack)
        top = np.where(
            (g[0] < 0.0) & bounds.region.cut_low[j] & (a <= bounds.region.low[j]), a, top
        )
        bottom = np.where(
            (f[2] > 0.0) & bounds.region.cut_high[j] & (c >= bounds.region.high[j]), c, bottom
        )
        low[:, j] = np.where(helps, np.maximum(a, bottom), a)
        high[:, j] = np.where(helps, np.minimum(c, top), c)
        some &= ~(low[:, j] > high[:, j])
    return some


def _halves(
    bounds: BoxBounds, left: BoxBatch, entries: Ints, chosen: NDArray[np.bool_]
) -> list[BoxBatch]:
    """Bisect boxes along the axis on which the chords are loosest."""
    at = entries[chosen[bounds.box[entries]]]
    loose, share = bounds.entries(at), bounds.share[at]
    values = loose.weight * share * (1.0 - share)
    middle = 0.5 * (left.low + left.high)
    side = np.where(chosen[:, None], left.high - left.low, 0.0)
    score = side * loose.sum(values)[:, None]
    for j, x in enumerate(bounds.pricing.x):
        score[:, j] += loose.sum(np.abs(x.take(loose.ids) - loose.spread(middle[:, j])) * values)
    score = np.where(side > 16.0 * EPS * bounds.pricing.size, side * (score + 1e-290), 0.0)
    unsplittable = chosen & ~score.any(axis=1)
    if unsplittable.any():  # at the size of rounding errors: no smaller box helps
        raise CutoffExceeded(float(bounds.upper[unsplittable].max()))
    axis = score.argmax(axis=1)[chosen]
    first, second = left.take(chosen), left.take(chosen)
    rows = np.arange(len(axis))
    first.high[rows, axis] = second.low[rows, axis] = middle[chosen][rows, axis]
    return [first, second]


def _conflicts(bounds: BoxBounds, positions: Floats, eligible: NDArray[np.bool_]) -> Ints:
    """For each box, an entry that a cannot-link beyond the forest forbids, or -1.

    Only selects where to split: nothing depends on it but the number of boxes.
    """
    pricing, linked = bounds.pricing, bounds.linked
    conflict = np.full(bounds.count, -1)
    values = pricing.lam[bounds.ids].copy()
    for j in range(pricing.r):
        values -= bounds.weight * (pricing.x[j][bounds.ids] - positions[bounds.box, j]) ** 2
    values[bounds.state != UNDECIDED] = -1.0
    chosen, values[linked] = max_independent_set_on_forest(
        values[linked], bounds.parent, bounds.levels
    )
    value = np.bincount(bounds.box, np.maximum(values, 0.0), bounds.count) + bounds.fixed_sums[:, 0]
    mass = bounds.fixed_sums[:, 1:2]
    value += np.sum(positions * (2.0 * bounds.fixed_sums[:, 2:] - mass * positions), axis=1)
    tail, head = bounds.edges.T
    both = chosen[tail] & chosen[head]
    n_conflicts = np.bincount(tail[both], minlength=len(linked))
    order = np.argsort(n_conflicts, kind="stable")
    order = order[n_conflicts[order] > 0]
    conflict[bounds.box[linked[order]]] = order  # the last one written has the most conflicts
    return np.where(eligible & (value > bounds.cutoff), conflict, -1)


def _branch_on_group(
    bounds: BoxBounds, left: BoxBatch, entries: Ints, conflict: Ints
) -> list[BoxBatch]:
    """Two cases for a group: excluded; or included, with its neighbors excluded."""
    pricing = bounds.pricing
    chosen = conflict >= 0
    if not chosen.any():
        return []
    picked = np.zeros(len(bounds.linked), dtype=bool)
    picked[conflict[chosen]] = True
    barred = np.zeros(len(bounds.linked), dtype=bool)
    barred[bounds.edges[picked[bounds.edges[:, 0]], 1]] = True
    gone = np.zeros(len(bounds.ids), dtype=bool)
    gone[bounds.linked[picked]] = True
    cases = []
    for case in ("out", "in"):
        if case == "in":
            gone[bounds.linked[barred]] = True
        kept = entries[~gone[entries]]
        sizes = np.bincount(bounds.box[kept], minlength=bounds.count)
        ids = bounds.ids[kept].astype(np.int32)
        part = BoxBatch(left.low, left.high, left.fixed_sums, left.depth, sizes, ids)
        cases.append(part.take(chosen))
    group = bounds.ids[bounds.linked[conflict[chosen]]]
    mass = pricing.w[group]
    cases[1].fixed_sums[:, 0] += pricing.base[group]
    cases[1].fixed_sums[:, 1] += mass
    cases[1].fixed_sums[:, 2:] += mass[:, None] * pricing.x[:, group].T
    return cases


def upper_root(positions: Sequence[Floats], values: Sequence[Floats], slack: Floats) -> Floats:
    """Upper bound on the root of a convex decreasing function, given at three points; or -inf."""
    a, b, c = positions
    ga, gb, gc = values
    early = (ga >= 0.0) & (gb < 0.0)
    late = (gb >= 0.0) & (gc < 0.0)
    start, stop = np.where(early, a, b), np.where(early, b, c)
    from_value, to_value = np.where(early, ga, gb), np.where(early, gb, gc)
    fall = np.where(early | late, from_value - to_value, 1.0)
    root = start + (stop - start) * (from_value / fall) + slack
    return np.where(ga < 0.0, -np.inf, np.where(early | late, root, np.inf))


MAX_DEPTH = 600
PRICING_BATCHES = BatchParams()


@final
class Pricing(BoxProof):
    """Values of clusters under one vector of multipliers."""

    def __init__(
        self,
        points: Floats,
        weights: Floats,
        edges: Ints,
        multipliers: Floats,
        limits: Limits,
        batches: BatchParams = PRICING_BATCHES,
    ) -> None:
        super().__init__(limits, batches, 0)
        self._data = PricingData(points, weights, edges, multipliers)

    def prove(
        self, region: CenterRegion, cutoff: float, allowed: NDArray[np.bool_] | None = None
    ) -> None:
        """Prove ``V(y) <= cutoff`` in the region, or raise `Rejection` or `CutoffExceeded`."""
        self._subdivide(
            self._data.start(region, allowed),
            lambda batch: _bound_batch(self._data, batch, region, cutoff),
            self._data.n_linked,  # columns of `check_boxes._EntryIndex`
            lambda center: self._probe(region, cutoff, center, allowed),
        )

    def _probe(
        self, region: CenterRegion, cutoff: float, start: Floats, allowed: NDArray[np.bool_] | None
    ) -> None:
        """Stop a proof that cannot succeed: some cluster has a larger value."""
        value = self.local_search(region, start, allowed, steps=2)
        if value > cutoff * (1.0 + 1e-12) + float(self._data.error(np.zeros(1, dtype=np.int64))[0]):
            raise CutoffExceeded(value)

    def local_search(
        self,
        region: CenterRegion,
        start: Floats,
        allowed: NDArray[np.bool_] | None,
        steps: int = 20,
    ) -> float:
        """Value of a good cluster near ``start``. Guides the proof; is no part of it."""
        w = self._data
        center, best = np.clip(start, region.low, region.high), 0.0
        useful = w.lam > 0.0 if allowed is None else allowed & (w.lam > 0.0)
        linked = np.flatnonzero(w.linked_index >= 0)
        for _ in range(steps):
            deviation = np.sum((w.x - center[:, None]) ** 2, axis=0)
            values = np.where(useful, w.lam - w.w * deviation, 0.0)
            chosen = values > 0.0
            chosen[linked] = self._select_linked(values[linked])
            value = float(values[chosen].sum())
            if value <= best * (1.0 + 1e-9):
                break
            best = value
            center = np.clip(
                w.x[:, chosen] @ w.w[chosen] / w.w[chosen].sum(), region.low, region.high
            )
        return best

    def _select_linked(self, values: Floats) -> NDArray[np.bool_]:
        """A good choice of groups with cannot-links; optimal on trees."""
        w = self._data
        chosen, _ = max_independent_set_on_forest(values, w.parent, w.levels)
        conflict = chosen[w.tail] & chosen[w.neighbors]
        worse = values[w.tail] <= values[w.neighbors]
        chosen[w.tail[conflict & worse]] = False
        return chosen


def _bound_batch(
    data: PricingData, batch: BoxBatch, region: CenterRegion, cutoff: float
) -> tuple[list[BoxBatch], Floats]:
    """Return the boxes that remain open, and a center where a good cluster may be."""
    bounds = BoxBounds(data, batch, region, cutoff)
    open_boxes = ~(bounds.upper <= cutoff)  # NaN proves nothing
    best = bounds.best[bounds.upper.argmax()]
    if not open_boxes.any():
        return [], best
    if int(batch.depth.max()) >= MAX_DEPTH:
        raise CutoffExceeded(float(bounds.upper.max()))
    return split(bounds, open_boxes), best
