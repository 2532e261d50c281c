"""What is left of boxes that their bounds did not close: smaller boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, best_on_forest
from certikmeans.certificate.check_box_bounds import OPEN, BoxBounds
from certikmeans.certificate.check_boxes import Boxes, Exceeded

WORTH_ANOTHER_LOOK = 0.7


def split(bounds: BoxBounds, alive: NDArray[np.bool_]) -> list[Boxes]:
    """Shrink the boxes that are left; divide those that did not shrink much."""
    boxes = bounds.boxes
    low, high = boxes.low.copy(), boxes.high.copy()
    _shrink_to_objective(bounds, low, high)
    alive &= ~np.any(low > high, axis=1)
    undecided = bounds.undecided[alive[bounds.box[bounds.undecided]]]
    alive &= _shrink_to_means(bounds, undecided, low, high)
    side = boxes.high - boxes.low
    ratio = np.where(side > 0.0, (high - low) / np.where(side > 0.0, side, 1.0), 1.0)
    again = alive & (ratio.min(axis=1) < WORTH_ANOTHER_LOOK)
    entries = undecided[alive[bounds.box[undecided]]]
    left = Boxes(
        low, high, bounds.settled, boxes.depth + 1,
        np.bincount(bounds.box[entries], minlength=bounds.count),
        bounds.ids[entries].astype(np.int32),
    )  # fmt: skip
    parts = [left.take(again)]
    halved = alive & ~again
    if bounds.tangled.any():
        group = _conflicts(bounds, np.clip(bounds.best, low, high), halved)
        halved &= group < 0
        parts += _split_on_group(bounds, left, entries, group)
    parts += _halves(bounds, left, entries, halved)
    return [part for part in parts if len(part.sizes)]


def _shrink_to_objective(bounds: BoxBounds, low: Floats, high: Floats) -> None:
    """Keep where the quadratic can reach the cutoff.

    There ``mass |z - peak|^2 <= mass |best - peak|^2 + room``, and no coordinate of ``z`` is
    closer to the peak than that of ``best``: one interval per coordinate.
    """
    heavy = bounds.heavy
    room = np.maximum(bounds.upper - bounds.cutoff + bounds.error, 0.0) / np.where(
        heavy, bounds.mass, 1.0
    )
    peak, best = bounds.peak, bounds.best
    reach = np.sqrt((best - peak) ** 2 + room[:, None]) * (1.0 + 16.0 * EPS) + 1e-100
    reach += 16.0 * EPS * (np.abs(peak) + np.abs(low) + np.abs(high))
    low[heavy] = np.maximum(low, peak - reach)[heavy]
    high[heavy] = np.minimum(high, peak + reach)[heavy]


def _shrink_to_means(
    bounds: BoxBounds, undecided: Ints, low: Floats, high: Floats
) -> NDArray[np.bool_]:
    """Keep where means of (groups that are in + any undecided) can be; False: nowhere.

    The largest mean along an axis is the root of the convex, decreasing
    ``g(t) = sum_in w (x - t) + sum_undecided w max(x - t, 0)``; where g < 0, no mean is. A
    secant of g lies above g. On a face cut by the tree the condition towards the
    outside does not hold, so there a box shrinks to its face instead of vanishing.
    """
    pricing = bounds.pricing
    some, mass = np.ones(bounds.count, dtype=bool), bounds.settled[:, 1]
    helps = mass > 0.0
    loose = bounds.entries(undecided[helps[bounds.box[undecided]]])
    doubtful = loose.sum(loose.weight)
    for j in range(pricing.r if helps.any() else 0):
        x, a, c = pricing.x[j].take(loose.ids), low[:, j].copy(), high[:, j].copy()
        slack = 4.0 * (pricing.n + bounds.boxes.depth + 16) * EPS * pricing.size[j] + 1e-100
        safe = slack * (mass + doubtful)
        first = bounds.settled[:, 2 + j]
        every = first + loose.sum(loose.weight * x)
        places = (a, 0.5 * (a + c), c)
        above = [loose.sum(np.maximum(x - loose.spread(t), 0.0) * loose.weight) for t in places]
        g = [first - t * mass + over + safe for t, over in zip(places, above, strict=True)]
        f = [
            every - t * (mass + doubtful) - over - safe
            for t, over in zip(places, above, strict=True)
        ]
        top = _root(places, g, slack)
        bottom = -_root([-t for t in places[::-1]], [-value for value in f[::-1]], slack)
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
    bounds: BoxBounds, left: Boxes, entries: Ints, chosen: NDArray[np.bool_]
) -> list[Boxes]:
    """Halve boxes along the axis on which the chords are loosest."""
    at = entries[chosen[bounds.box[entries]]]
    loose, share = bounds.entries(at), bounds.share[at]
    worth = loose.weight * share * (1.0 - share)
    middle = 0.5 * (left.low + left.high)
    side = np.where(chosen[:, None], left.high - left.low, 0.0)
    score = side * loose.sum(worth)[:, None]
    for j, x in enumerate(bounds.pricing.x):
        score[:, j] += loose.sum(np.abs(x.take(loose.ids) - loose.spread(middle[:, j])) * worth)
    score = np.where(side > 16.0 * EPS * bounds.pricing.size, side * (score + 1e-290), 0.0)
    stuck = chosen & ~score.any(axis=1)
    if stuck.any():  # as small as rounding, so no smaller box will help
        raise Exceeded(float(bounds.upper[stuck].max()))
    axis = score.argmax(axis=1)[chosen]
    first, second = left.take(chosen), left.take(chosen)
    rows = np.arange(len(axis))
    first.high[rows, axis] = second.low[rows, axis] = middle[chosen][rows, axis]
    return [first, second]


def _conflicts(bounds: BoxBounds, places: Floats, asked: NDArray[np.bool_]) -> Ints:
    """For each box, an entry that a cannot-link beyond the forest forbids; -1: none.

    Only a choice of where to divide: nothing depends on it but the number of boxes.
    """
    pricing, linked = bounds.pricing, bounds.linked
    conflict = np.full(bounds.count, -1)
    worth = pricing.lam[bounds.ids].copy()
    for j in range(pricing.r):
        worth -= bounds.weight * (pricing.x[j][bounds.ids] - places[bounds.box, j]) ** 2
    worth[bounds.state != OPEN] = -1.0
    chosen, worth[linked] = best_on_forest(worth[linked], bounds.parent, bounds.levels)
    value = np.bincount(bounds.box, np.maximum(worth, 0.0), bounds.count) + bounds.settled[:, 0]
    mass = bounds.settled[:, 1:2]
    value += np.sum(places * (2.0 * bounds.settled[:, 2:] - mass * places), axis=1)
    tail, head = bounds.edges.T
    both = chosen[tail] & chosen[head]
    clashes = np.bincount(tail[both], minlength=len(linked))
    order = np.argsort(clashes, kind="stable")
    order = order[clashes[order] > 0]
    conflict[bounds.box[linked[order]]] = order  # the last one written has most clashes
    return np.where(asked & (value > bounds.cutoff), conflict, -1)


def _split_on_group(bounds: BoxBounds, left: Boxes, entries: Ints, conflict: Ints) -> list[Boxes]:
    """Two cases for a group: it is out; or it is in, and its neighbours are out."""
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
        part = Boxes(left.low, left.high, left.settled, left.depth, sizes, ids)
        cases.append(part.take(chosen))
    group = bounds.ids[bounds.linked[conflict[chosen]]]
    mass = pricing.w[group]
    cases[1].settled[:, 0] += pricing.base[group]
    cases[1].settled[:, 1] += mass
    cases[1].settled[:, 2:] += mass[:, None] * pricing.x[:, group].T
    return cases


def _root(places: Sequence[Floats], values: Sequence[Floats], slack: Floats) -> Floats:
    """At least where a convex decreasing function vanishes, given at three places; -inf: before."""
    a, b, c = places
    ga, gb, gc = values
    early = (ga >= 0.0) & (gb < 0.0)
    late = (gb >= 0.0) & (gc < 0.0)
    start, stop = np.where(early, a, b), np.where(early, b, c)
    from_value, to_value = np.where(early, ga, gb), np.where(early, gb, gc)
    fall = np.where(early | late, from_value - to_value, 1.0)
    root = start + (stop - start) * (from_value / fall) + slack
    return np.where(ga < 0.0, -np.inf, np.where(early | late, root, np.inf))
