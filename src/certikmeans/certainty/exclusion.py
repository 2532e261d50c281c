"""Candidate boxes of centers, and the proof that no good center lies outside of them.

For a set ``I`` the centers at which its value is at least ``threshold`` form a ball about its mean,
of radius ``sqrt((value - threshold) / mass)``. From the farthest point of that ball along an axis,
the best set there has a ball that extends at least as far. A few steps of this lead to the ends
of ``R``.

Candidates come from the guide, which may know fewer groups; the proof uses all groups.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats
from certikmeans.bounds.cluster.lagrangian_dual import Box, DualPoint, LagrangianDual
from certikmeans.bounds.cluster.pricing import OpenBox, no_excluded_box
from certikmeans.certainty.dual_ascent import DualLevel
from certikmeans.certainty.params import RegionParams
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


@final
@dataclass(slots=True, eq=False)
class CandidateBoxes:
    """Disjoint boxes; they only grow."""

    guide: DualPoint
    threshold: float
    stop: StopSignal
    params: RegionParams = field(default_factory=RegionParams)
    boxes: list[Box] = field(default_factory=list)

    def boxes_of_known_columns(self) -> list[Box]:
        """Boxes around the balls of the known clusters alone, for a first estimate of sigma."""
        found = CandidateBoxes(self.guide, self.threshold, self.stop, self.params)
        for column in self.guide.columns:
            excess = self.guide.value_of(column) - self.threshold
            if excess >= 0.0:
                reach = math.sqrt(excess / column.mass)
                found.boxes.append((column.center - reach, column.center + reach))
        found._merge()
        return found.boxes

    def add(self, starts: list[Floats]) -> None:
        """Add a box around the centers of value ``threshold`` near each of the starts.

        Where an ascent from the start ends in a box, the new box is enlarged to hold that one:
        ``R`` extends farther there than was estimated.
        """
        dual, lam, margin = self.guide.dual, self.guide.multipliers, self.params.box_margin
        extents = self._extents(starts)
        for start, (low, high) in zip(starts, extents, strict=True):
            padding = margin * (high - low) + 4.0 * dual.mean_error
            low, high = low - padding, high + padding
            local_maximum = dual.local_maximum(lam, start)
            for other_low, other_high in self.boxes:
                if np.all(other_low <= local_maximum) and np.all(local_maximum <= other_high):
                    low, high = np.minimum(low, other_low), np.maximum(high, other_high)
            self.boxes.append((low, high))
        self._merge()

    def add_known_columns(self) -> None:
        """Add boxes around known clusters of sufficient value that are in no box yet."""
        guide = self.guide
        for column in guide.columns:
            if not self.contains(column.center) and guide.value_of(column) >= self.threshold:
                self.add([column.center])

    def _merge(self) -> None:
        """Replace boxes that touch by the box that holds both."""
        pending = self.boxes
        disjoint: list[Box] = []
        while pending:
            low, high = pending.pop()
            for i, (other_low, other_high) in enumerate(disjoint):
                if np.all(low <= other_high) and np.all(other_low <= high):
                    del disjoint[i]
                    both = (np.minimum(low, other_low), np.maximum(high, other_high))
                    pending.append(both)
                    break
            else:
                disjoint.append((low, high))
        self.boxes = disjoint

    def contains(self, point: Floats) -> bool:
        """Whether a point is in the interior of a box."""
        return any(np.all(low < point) and np.all(point < high) for low, high in self.boxes)

    def _extents(self, starts: list[Floats]) -> list[Box]:
        """Estimate, for every start, the extent of ``F >= threshold`` along every axis."""
        found = [(start.copy(), start.copy()) for start in starts]
        active_rays: list[tuple[_Ray, Floats]] = []
        for start, (low, high), ball in zip(starts, found, self._balls(starts), strict=True):
            for axis in range(len(start)):
                for sign in (-1.0, 1.0):
                    ray = _Ray(low, high, axis, sign, sign * start[axis])
                    point = ray.step(ball)
                    if point is not None:
                        active_rays.append((ray, point))
        for _ in range(self.params.max_extent_steps - 1):
            if not active_rays or self.stop.reason() is not None:
                break
            balls = self._balls([point for _, point in active_rays])
            steps = [(ray, ray.step(b)) for (ray, _), b in zip(active_rays, balls, strict=True)]
            active_rays = [(ray, point) for ray, point in steps if point is not None]
        return found

    def _balls(self, points: list[Floats]) -> list[tuple[Floats, float] | None]:
        """Ball in which the best set at each point has the value ``threshold``, if there is one."""
        return [
            None
            if column.mass == 0.0 or column.value < self.threshold
            else (column.center, math.sqrt((column.value - self.threshold) / column.mass))
            for column in self.guide.dual.best_columns_at(self.guide.multipliers, points)
        ]


@final
@dataclass(slots=True, eq=False)
class _Ray:
    """Search direction from a start, along one axis."""

    low: Floats  # box of the start, shared by all its rays
    high: Floats
    axis: int
    sign: float
    reached: float

    def step(self, ball: tuple[Floats, float] | None) -> Floats | None:
        """Include a ball; return the point to continue from, None if there is no progress."""
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


# Proof that no cluster centered outside of the boxes reaches the threshold.
#
# Space is split by planes between the boxes, each part with the groups that can have a positive
# value there, until a part holds at most one box. Exact pricing searches a part with this box
# excluded from it. Where it finds a center of larger value, a box is enlarged or added, and the
# open parts are split again. What was proven remains proven, because boxes only grow.
#
# **Means.** Pricing may shrink a box to the means of sets that can be good there: centers whose
# best set is better elsewhere *in the same part* are dropped. With an excluded box in the part that
# is not allowed (the better center may be in the excluded box), and a part without one, where it
# was done, has to be searched from the beginning when a box grows into it.
#
# **Rounding.** Pricing's bound of a box has its rounding included, and is required to be ``2
# error`` below the threshold. Groups are left out of a part where their value is negative, rounded
# outward as in `kernels.pricing.ranges`.

Members = NDArray[np.int32]

TOO_MANY_REGIONS = "centres are possible in too many regions: use a smaller slack"
NOT_PROVEN_IN_TIME = (
    "regions of centres were not proven in time: use a smaller slack, a smaller gap or more time"
)


@final
@dataclass(slots=True, eq=False)
class _ExclusionSearch:
    """Parts of space and their open boxes."""

    dual: LagrangianDual
    level: DualLevel
    candidates: CandidateBoxes
    params: RegionParams
    parts: dict[int, OpenBox] = field(default_factory=dict)  # as created, before any search
    heap: list[OpenBox] = field(default_factory=list)
    n_parts: int = 0  # number of parts created
    n_pushed: int = 0  # number of boxes pushed

    def start(self) -> None:
        """Split the box of all points."""
        self._split(self.dual.root_box(self.level.multipliers))

    def _split(self, box: OpenBox) -> None:
        """Split a box into parts with at most one candidate box each, and push them."""
        for part in split_around_boxes(box, self.candidates.boxes, self._reachable):
            part.active_faces = self.dual.active_faces(part.low, part.high)
            part.region = self.n_parts
            self.parts[self.n_parts] = part
            self.n_parts += 1
            self.push(replace(part))

    def push(self, box: OpenBox) -> None:
        """Add a box to the queue."""
        box.number = self.n_pushed
        self.n_pushed += 1
        heapq.heappush(self.heap, box)

    def grow(self, improving_centers: list[tuple[float, Floats]], unfinished: list[OpenBox]) -> int:
        """Enlarge boxes to hold some centers and split again the parts that they reach.

        ``unfinished`` are boxes to be searched again. Returns the number of boxes grown or added.
        """
        candidates, before, grown = self.candidates, self.candidates.boxes, 0
        for _, position in sorted(improving_centers, key=lambda find: -find[0]):
            if not candidates.contains(position):
                candidates.add([position])
                grown += 1
        new = [
            box for box in candidates.boxes if not any(np.array_equal(box, one) for one in before)
        ]
        pending, self.heap = [*self.heap, *unfinished], []
        restarted = set[int]()
        for box in sorted(pending):
            part = self.parts[box.region]
            if not any(_overlaps(part, one) for one in new):
                self.push(box)
            elif part.excluded_box[0, 0] <= part.excluded_box[1, 0]:
                self._split(box)
            elif box.region not in restarted:
                restarted.add(box.region)
                self._split(part)
        return grown

    def _reachable(self, low: Floats, high: Floats, members: Members) -> Members:
        """Groups that can have a positive value for a center in a box."""
        if len(members) < self.params.min_members_to_filter:
            return members
        reduced, lam = self.dual.problem, self.level.multipliers[members]
        points = reduced.points[members]
        near = np.zeros(len(members))
        for j in range(reduced.n_dims):
            gap = points[:, j] - np.clip(points[:, j], low[j], high[j])
            near += gap * gap
        near *= reduced.weights[members]
        relative = 2.0 * (reduced.n_dims + 6) * EPS
        return members[lam - near + relative * (np.abs(lam) + near) > 0.0]


def prove_exclusion(
    dual: LagrangianDual,
    level: DualLevel,
    candidates: CandidateBoxes,
    stop: StopSignal,
    params: RegionParams,
) -> str | None:
    """Prove it, enlarging the candidate boxes where needed; else return why it failed."""
    search = _ExclusionSearch(dual, level, candidates, params)
    search.start()
    k, error = dual.problem.n_clusters, level.error
    cutoff = max(level.threshold - 4.0 * error, 0.0) + 2.0 * error
    pricing = dual.box_search(level.multipliers, cutoff, error)
    growths = params.max_growths * k
    while search.heap:
        if growths < 0 or search.n_parts > params.max_parts * k:
            return TOO_MANY_REGIONS
        highest = -search.heap[0].neg_upper_bound
        if stop.reason() is not None or pricing.stalled(highest - cutoff):
            return NOT_PROVEN_IN_TIME
        size = min(params.batch_size, len(search.heap))
        batch = [heapq.heappop(search.heap) for _ in range(size)]
        found = pricing.search(batch)
        if any(one.unsplittable_bound > cutoff for one in found if not one.improving_centers):
            return NOT_PROVEN_IN_TIME
        unfinished = [box for box, one in zip(batch, found, strict=True) if one.improving_centers]
        for one in found:
            for box in () if one.improving_centers else one.open_boxes:
                search.push(box)
        if unfinished:
            # A guide with fewer groups was wrong: use all groups from here on.
            candidates.guide = DualPoint(dual, level.multipliers, ())
            centers = [center for one in found for center in one.improving_centers]
            growths -= search.grow(centers, unfinished)
    return None


def split_around_boxes(
    box: OpenBox,
    candidate_boxes: list[Box],
    reachable: Callable[[Floats, Floats, Members], Members],
) -> list[OpenBox]:
    """Split by planes until every part holds at most one candidate box, as its excluded box."""
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
    """Whether a box and a part have more than a face in common."""
    return bool(np.all(part.low < box[1]) and np.all(box[0] < part.high))


def _separating_plane(part: OpenBox, boxes: list[Box]) -> tuple[int, float] | None:
    """Axis and position of a plane in the widest gap between boxes; None if there is no gap."""
    best, found = 0.0, None
    sides = part.high - part.low
    for axis in np.flatnonzero(sides > 0.0).tolist():
        ends = sorted((float(box[0][axis]), float(box[1][axis])) for box in boxes)
        reached = ends[0][1]
        for low, high in ends[1:]:
            width = (low - reached) / float(sides[axis])
            if width > best:
                best, found = width, (axis, 0.5 * (low + reached))
            reached = max(reached, high)
    return found


def _box_difference(piece: Box, box: Box) -> list[Box]:
    """Return the parts of a piece outside a box; the piece itself if they are disjoint."""
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
