"""Guess boxes that hold every centre of every good labelling: around ours, as far as they reach.

For a set ``I`` the places where it is worth ``threshold`` form a ball: its mean, and
``sqrt((value - threshold) / mass)``. From the farthest point of that ball along an axis, the best set
there has a ball that reaches at least as far. A few rounds of this lead to the ends of R.

Guesses are made with the groups that matter; the proof, with all of them, is elsewhere.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import (
    BoxSearchResult,
    OpenBox,
    Pricer,
    no_excluded_box,
    search_box,
)
from certikmeans.bounds.cluster.pricing_error import mean_rounding_error
from certikmeans.certainty.dual_ascent import DualLevel, PricingGuide
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Box = tuple[Vector, Vector]

# Boxes are this much wider than guessed: the wider, the easier it is to show that nothing is
# outside, and the less they say.
BOX_MARGIN = 0.06
MAX_EXTENT_STEPS = 12  # of the guess, at most


@final
@dataclass(slots=True, eq=False)
class CandidateBoxes:
    """Boxes so far; they only grow, and never overlap."""

    guide: PricingGuide
    threshold: float
    stop: StopSignal
    boxes: list[Box] = field(default_factory=list)

    def boxes_of_known_columns(self) -> list[Box]:
        """Boxes around the balls of known clusters alone, for a first look at what they hold."""
        found = CandidateBoxes(self.guide, self.threshold, self.stop)
        for column in self.guide.columns:
            room = self.guide.value_of(column) - self.threshold
            if room >= 0.0:
                reach = math.sqrt(room / column.mass)
                found.boxes.append((column.center - reach, column.center + reach))
        found._merge()
        return found.boxes

    def add(self, starts: list[Vector]) -> None:
        """Put a box around what is worth ``threshold`` near each of the starts.

        Where an ascent from the start ends in a box, that box is made to hold the new one, too: R
        reaches farther there than was guessed.
        """
        pricer, lam = self.guide.pricer, self.guide.multipliers
        extents = _extents(self.guide, self.threshold, starts, self.stop)
        for start, (low, high) in zip(starts, extents, strict=True):
            padding = BOX_MARGIN * (high - low) + 4.0 * mean_rounding_error(pricer.reduced.points)
            low, high = low - padding, high + padding
            local_maximum = pricer.price_heuristic(lam, [start.copy()])[0].center
            for other_low, other_high in self.boxes:
                if np.all(other_low <= local_maximum) and np.all(local_maximum <= other_high):
                    low, high = np.minimum(low, other_low), np.maximum(high, other_high)
            self.boxes.append((low, high))
        self._merge()

    def add_known_columns(self) -> None:
        """Put boxes around known clusters that are good enough and not in a box yet."""
        guide = self.guide
        for column in guide.columns:
            if not self.contains(column.center) and guide.value_of(column) >= self.threshold:
                self.add([column.center])

    def _merge(self) -> None:
        """Two boxes that touch become the box that holds both."""
        waiting = self.boxes
        apart: list[Box] = []
        while waiting:
            low, high = waiting.pop()
            for i, (other_low, other_high) in enumerate(apart):
                if np.all(low <= other_high) and np.all(other_low <= high):
                    del apart[i]
                    both = (np.minimum(low, other_low), np.maximum(high, other_high))
                    waiting.append(both)
                    break
            else:
                apart.append((low, high))
        self.boxes = apart

    def contains(self, point: Vector) -> bool:
        """Whether a place is in a box already."""
        return any(np.all(low < point) and np.all(point < high) for low, high in self.boxes)


@final
@dataclass(slots=True, eq=False)
class _Ray:
    """One way out of a start, along an axis."""

    low: Vector  # of the start: shared with its other ways
    high: Vector
    axis: int
    sign: float
    reached: float

    def step(self, ball: tuple[Vector, float] | None) -> Vector | None:
        """Take in a ball; the place to go on from, None: no farther."""
        if ball is None:
            return None
        center, radius = ball
        np.minimum(self.low, center, out=self.low)
        np.maximum(self.high, center, out=self.high)
        end = center[self.axis] + self.sign * radius
        if self.sign * end <= self.reached + 0.01 * radius:
            return None
        self.reached = self.sign * end
        self.low[self.axis] = min(self.low[self.axis], end)
        self.high[self.axis] = max(self.high[self.axis], end)
        point = center.copy()
        point[self.axis] = end
        return point


def _extents(
    guide: PricingGuide, threshold: float, starts: list[Vector], stop: StopSignal
) -> list[Box]:
    """Guess, for every start, how far ``F >= threshold`` reaches along every axis."""
    found = [(start.copy(), start.copy()) for start in starts]
    active_rays: list[tuple[_Ray, Vector]] = []
    for start, (low, high), ball in zip(
        starts, found, _balls(guide, threshold, starts), strict=True
    ):
        for axis in range(len(start)):
            for sign in (-1.0, 1.0):
                ray = _Ray(low, high, axis, sign, sign * start[axis])
                point = ray.step(ball)
                if point is not None:
                    active_rays.append((ray, point))
    for _ in range(MAX_EXTENT_STEPS - 1):
        if not active_rays or stop.reason() is not None:
            break
        balls = _balls(guide, threshold, [point for _, point in active_rays])
        steps = [(ray, ray.step(ball)) for (ray, _), ball in zip(active_rays, balls, strict=True)]
        active_rays = [(ray, point) for ray, point in steps if point is not None]
    return found


def _balls(
    guide: PricingGuide, threshold: float, points: list[Vector]
) -> list[tuple[Vector, float] | None]:
    """For each place, where the best set there is worth ``threshold``; None: nowhere."""
    return [
        None
        if column.mass == 0.0 or column.value < threshold
        else (column.center, math.sqrt((column.value - threshold) / column.mass))
        for column in guide.pricer.best_columns_at(guide.multipliers, points)
    ]


# Show that nothing outside some boxes is worth as much as the cut.
#
# Space is cut by planes between the boxes, each part with the groups that can be worth something
# there, until a part holds one box at most. Exact pricing searches a part with the box as a hole in
# it: what comes to lie in the hole need not be shown. Where it finds a place that is worth more, a
# box is grown or added, and what is still open is cut again. What was shown stays shown, for boxes
# only grow.
#
# **Means.** Pricing may shrink a box to the means of sets that can be good there: places whose best
# set is better elsewhere *in the same part* are dropped. With a hole in the part that is not allowed
# (the better place may be in the hole), and a part without one, where it was done, has to be searched
# from the beginning when a box grows into it.
#
# **Rounding.** Pricing's bound of a box has its rounding included, and is asked to be ``2 error``
# below the cut. Groups are left out of a part where they are worth less than nothing, rounded
# outward as in `kernels.pricing.ranges`.

Members = NDArray[np.int32]

BATCH_SIZE = 16  # boxes searched between two looks at the clock
# Boxes that are grown or added, in all, for every cluster: beyond that R is too rugged.
MAX_GROWTHS = 12
MAX_PARTS = 400  # for every cluster, likewise
# With fewer members, it takes as long to look whether they can be worth something as to price them.
MIN_MEMBERS_TO_FILTER = 4_000

TOO_MANY_REGIONS = "good centres may be in too many places: less slack says more"
NOT_PROVEN_IN_TIME = (
    "it was not settled in time where good centres can be: "
    "less slack or a smaller gap is settled sooner"
)


@final
@dataclass(slots=True, eq=False)
class _ExclusionSearch:
    """What is left to be shown."""

    pricer: Pricer
    level: DualLevel
    candidates: CandidateBoxes
    parts: dict[int, OpenBox] = field(default_factory=dict)  # as they were at the beginning
    heap: list[OpenBox] = field(default_factory=list)
    n_parts: int = 0  # parts so far
    n_pushed: int = 0  # boxes so far

    def start(self) -> None:
        """Cut everything."""
        whole = self.pricer.full_region
        members = np.flatnonzero(self.level.multipliers > 0.0).astype(np.int32)
        d = len(whole.low)
        self._split(
            OpenBox(
                *(-np.inf, 0, whole.low, whole.high, np.zeros(d + 2), members),
                *(whole.active_faces, no_excluded_box(d), 0),
            )
        )

    def _split(self, box: OpenBox) -> None:
        """Cut a box into parts with one of the guessed boxes in it at most; wait for them."""
        for part in split_around_boxes(box, self.candidates.boxes, self._reachable):
            part.active_faces = self.pricer.full_region.subregion(part.low, part.high).active_faces
            part.region = self.n_parts
            self.parts[self.n_parts] = part
            self.n_parts += 1
            self.push(replace(part))

    def push(self, box: OpenBox) -> None:
        """Have a box searched."""
        box.number = self.n_pushed
        self.n_pushed += 1
        heapq.heappush(self.heap, box)

    def grow(self, improving_centers: list[tuple[float, Vector]], again: list[OpenBox]) -> int:
        """Grow boxes around places, and cut anew what they reach; search some boxes again.

        Returns how many were grown.
        """
        candidates, before, grown = self.candidates, self.candidates.boxes, 0
        for _, position in sorted(improving_centers, key=lambda find: -find[0]):
            if not candidates.contains(position):
                candidates.add([position])
                grown += 1
        new = [
            box for box in candidates.boxes if not any(np.array_equal(box, one) for one in before)
        ]
        waiting, self.heap = [*self.heap, *again], []
        restarted = set[int]()
        for box in sorted(waiting):
            part = self.parts[box.region]
            if not any(_overlaps(part, one) for one in new):
                self.push(box)
            elif part.excluded_box[0, 0] <= part.excluded_box[1, 0]:
                self._split(box)
            elif box.region not in restarted:
                restarted.add(box.region)
                self._split(part)
        return grown

    def _reachable(self, low: Vector, high: Vector, members: Members) -> Members:
        """Groups that can be worth something to a centre in a box."""
        if len(members) < MIN_MEMBERS_TO_FILTER:
            return members
        reduced, lam = self.pricer.reduced, self.level.multipliers[members]
        points = reduced.points[members]
        near = np.zeros(len(members))
        for j in range(reduced.n_dims):
            gap = points[:, j] - np.clip(points[:, j], low[j], high[j])
            near += gap * gap
        near *= reduced.weights[members]
        slack = 2.0 * (reduced.n_dims + 6) * EPS
        return members[lam - near + slack * (np.abs(lam) + near) > 0.0]


def prove_exclusion(
    pricer: Pricer, level: DualLevel, candidates: CandidateBoxes, stop: StopSignal
) -> str | None:
    """Show it, growing the boxes of the guess where needed; or return why it was not shown."""
    search = _ExclusionSearch(pricer, level, candidates)
    search.start()
    k, error = pricer.reduced.n_clusters, level.error
    cutoff = max(level.threshold - 4.0 * error, 0.0) + 2.0 * error
    look = partial(search_box, instance=pricer.instance(level.multipliers), cutoff=cutoff)
    growths, budget, boxes, stall_detector = (
        MAX_GROWTHS * k,
        pricer.params.min_budget,
        0,
        pricer.stall_detector(),
    )
    while search.heap:
        if growths < 0 or search.n_parts > MAX_PARTS * k:
            return TOO_MANY_REGIONS
        highest = -search.heap[0].neg_upper_bound
        if stop.reason() is not None or stall_detector.stalled(highest - cutoff, boxes):
            return NOT_PROVEN_IN_TIME
        batch = [heapq.heappop(search.heap) for _ in range(min(BATCH_SIZE, len(search.heap)))]
        search_params = pricer.search_params(error, 2.0 * error, budget)
        found: list[BoxSearchResult] = pricer.task_pool.map(
            partial(look, search_params=search_params), batch
        )
        boxes += sum(one.boxes for one in found)
        if any(one.unsplittable_bound > cutoff for one in found if not one.improving_centers):
            return NOT_PROVEN_IN_TIME
        again = [box for box, one in zip(batch, found, strict=True) if one.improving_centers]
        for one in found:
            for box in () if one.improving_centers else one.open_boxes:
                search.push(box)
        budget = pricer.next_budget(budget)
        if again:
            candidates.guide = PricingGuide(
                pricer, level.multipliers, ()
            )  # one of fewer groups was misleading
            growths -= search.grow([find for one in found for find in one.improving_centers], again)
    return None


def split_around_boxes(
    box: OpenBox,
    candidate_boxes: list[Box],
    reachable: Callable[[Vector, Vector, Members], Members],
) -> list[OpenBox]:
    """Cut by planes until every part has one of the guessed boxes in it at most, as a hole."""
    inside = [one for one in candidate_boxes if _overlaps(box, one)]
    if not inside:
        return [replace(box, excluded_box=no_excluded_box(len(box.low)))]
    if len(inside) == 1:
        low, high = inside[0]
        if np.all(low <= box.low) and np.all(box.high <= high):
            return []
        return [replace(box, excluded_box=np.stack([low, high]))]
    plane = _separating_plane(box, inside)
    if plane is None:
        sides = _box_difference((box.low, box.high), inside[0])
    else:
        axis, position = plane
        below, above = box.high.copy(), box.low.copy()
        below[axis] = above[axis] = position
        sides = [(box.low, below), (above, box.high)]
    parts: list[OpenBox] = []
    for low, high in sides:
        part = replace(box, low=low, high=high, members=reachable(low, high, box.members))
        parts += split_around_boxes(part, inside, reachable)
    return parts


def _overlaps(part: OpenBox, box: Box) -> bool:
    """Whether a box has more than a face in common with a part."""
    return bool(np.all(part.low < box[1]) and np.all(box[0] < part.high))


def _separating_plane(part: OpenBox, boxes: list[Box]) -> tuple[int, float] | None:
    """Axis and place of a plane in the widest gap between boxes; None: there is no gap."""
    best, found = 0.0, None
    sides = part.high - part.low
    for axis in np.flatnonzero(sides > 0.0).tolist():
        ends = sorted((float(box[0][axis]), float(box[1][axis])) for box in boxes)
        reached = ends[0][1]
        for low, high in ends[1:]:
            share = (low - reached) / float(sides[axis])
            if share > best:
                best, found = share, (axis, 0.5 * (low + reached))
            reached = max(reached, high)
    return found


def _box_difference(piece: Box, box: Box) -> list[Box]:
    """Return the parts of a piece that are outside a box; the piece itself if all of it is."""
    parts = []
    low, high = piece[0].copy(), piece[1].copy()
    for axis in range(len(low)):
        if low[axis] < box[0][axis]:
            side = high.copy()
            side[axis] = box[0][axis]
            parts.append((low.copy(), side))
            low[axis] = box[0][axis]
        if high[axis] > box[1][axis]:
            side = low.copy()
            side[axis] = box[1][axis]
            parts.append((side, high.copy()))
            high[axis] = box[1][axis]
    return parts
