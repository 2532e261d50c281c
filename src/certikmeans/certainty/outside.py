"""Show that nothing outside some boxes is worth as much as the cut.

Space is cut by planes between the boxes, each part with the groups that can be worth something
there, until a part holds one box at most. Exact pricing searches a part with the box as a hole in
it: what comes to lie in the hole need not be shown. Where it finds a place that is worth more, a
box is grown or added, and what is still open is cut again. What was shown stays shown, for boxes
only grow.

**Means.** Pricing may shrink a box to the means of sets that can be good there: places whose best
set is better elsewhere *in the same part* are dropped. With a hole in the part that is not allowed
(the better place may be in the hole), and a part without one, where it was done, has to be searched
from the beginning when a box grows into it.

**Rounding.** Pricing's bound of a box has its rounding included, and is asked to be ``2 error``
below the cut. Groups are left out of a part where they are worth less than nothing, rounded
outward as in `kernels.pricing.ranges`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.box_search import SearchOutcome, WaitingBox, no_hole, search_box
from certikmeans.bounds.cluster.pricing import (
    DOUBT_AFTER,
    LEAST_BUDGET,
    MOST_BUDGET,
    Pricer,
    Progress,
)
from certikmeans.certainty.guessing import Box, Guess
from certikmeans.certainty.level import Level
from certikmeans.certainty.raising import Guide
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Members = NDArray[np.int32]

ROUND = 16  # boxes searched between two looks at the clock
# Boxes that are grown or added, in all, for every cluster: beyond that R is too rugged.
MOST_GROWTHS = 12
MOST_PARTS = 400  # for every cluster, likewise
# With fewer members, it takes as long to look whether they can be worth something as to price them.
FEW_MEMBERS = 4_000

TOO_RUGGED = "good centres may be in too many places: less slack says more"
NOT_SETTLED = (
    "it was not settled in time where good centres can be: "
    "less slack or a smaller gap is settled sooner"
)


@final
@dataclass(slots=True, eq=False)
class _Search:
    """What is left to be shown."""

    pricer: Pricer
    level: Level
    guess: Guess
    parts: dict[int, WaitingBox] = field(default_factory=dict)  # as they were at the beginning
    heap: list[WaitingBox] = field(default_factory=list)
    made: int = 0  # parts so far
    pushed: int = 0  # boxes so far

    def begin(self) -> None:
        """Cut everything."""
        whole = self.pricer.everywhere
        members = np.flatnonzero(self.level.multipliers > 0.0).astype(np.int32)
        d = len(whole.low)
        self._cut(
            WaitingBox(
                *(-np.inf, 0, whole.low, whole.high, np.zeros(d + 2), members),
                *(whole.walls, no_hole(d), 0),
            )
        )

    def _cut(self, box: WaitingBox) -> None:
        """Cut a box into parts with one of the guessed boxes in it at most; wait for them."""
        for part in cut_apart(box, self.guess.boxes, self._reachable):
            part.walls = self.pricer.everywhere.part(part.low, part.high).walls
            part.region = self.made
            self.parts[self.made] = part
            self.made += 1
            self.wait(replace(part))

    def wait(self, box: WaitingBox) -> None:
        """Have a box searched."""
        box.number = self.pushed
        self.pushed += 1
        heapq.heappush(self.heap, box)

    def grow(self, places: list[tuple[float, Vector]], again: list[WaitingBox]) -> int:
        """Grow boxes around places, and cut anew what they reach; search some boxes again.

        Returns how many were grown.
        """
        guess, before, grown = self.guess, self.guess.boxes, 0
        for _, place in sorted(places, key=lambda find: -find[0]):
            if not guess.holds(place):
                guess.add([place])
                grown += 1
        new = [box for box in guess.boxes if not any(np.array_equal(box, one) for one in before)]
        waiting, self.heap = [*self.heap, *again], []
        restarted = set[int]()
        for box in sorted(waiting):
            part = self.parts[box.region]
            if not any(_touch(part, one) for one in new):
                self.wait(box)
            elif part.hole[0, 0] <= part.hole[1, 0]:
                self._cut(box)
            elif box.region not in restarted:
                restarted.add(box.region)
                self._cut(part)
        return grown

    def _reachable(self, low: Vector, high: Vector, members: Members) -> Members:
        """Groups that can be worth something to a centre in a box."""
        if len(members) < FEW_MEMBERS:
            return members
        reduced, lam = self.pricer.reduced, self.level.multipliers[members]
        points = reduced.points[members]
        near = np.zeros(len(members))
        for j in range(reduced.n_axes):
            gap = points[:, j] - np.clip(points[:, j], low[j], high[j])
            near += gap * gap
        near *= reduced.weights[members]
        slack = 2.0 * (reduced.n_axes + 6) * EPS
        return members[lam - near + slack * (np.abs(lam) + near) > 0.0]


def show_outside(pricer: Pricer, level: Level, guess: Guess, stop: StopSignal) -> str | None:
    """Show it, growing the boxes of the guess where needed; or return why it was not shown."""
    search = _Search(pricer, level, guess)
    search.begin()
    k, error = pricer.reduced.n_clusters, level.error
    cutoff = max(level.cut - 4.0 * error, 0.0) + 2.0 * error
    look = partial(search_box, instance=pricer.instance(level.multipliers), cutoff=cutoff)
    growths, budget, boxes, progress = MOST_GROWTHS * k, LEAST_BUDGET, 0, Progress(DOUBT_AFTER)
    while search.heap:
        if growths < 0 or search.made > MOST_PARTS * k:
            return TOO_RUGGED
        highest = -search.heap[0].minus_upper
        if stop.cause() is not None or progress.is_lost(boxes, highest - cutoff):
            return NOT_SETTLED
        batch = [heapq.heappop(search.heap) for _ in range(min(ROUND, len(search.heap)))]
        rules = pricer.rules(error, 2.0 * error, budget)
        found: list[SearchOutcome] = pricer.crew.map(partial(look, rules=rules), batch)
        boxes += sum(one.boxes for one in found)
        if any(one.stuck > cutoff for one in found if not one.finds):
            return NOT_SETTLED
        again = [box for box, one in zip(batch, found, strict=True) if one.finds]
        for one in found:
            for box in () if one.finds else one.open_boxes:
                search.wait(box)
        budget = min(1.5 * budget, MOST_BUDGET)
        if again:
            guess.guide = Guide(pricer, level.multipliers, ())  # one of fewer groups was misleading
            growths -= search.grow([find for one in found for find in one.finds], again)
    return None


def cut_apart(
    box: WaitingBox, guessed: list[Box], reachable: Callable[[Vector, Vector, Members], Members]
) -> list[WaitingBox]:
    """Cut by planes until every part has one of the guessed boxes in it at most, as a hole."""
    inside = [one for one in guessed if _touch(box, one)]
    if not inside:
        return [replace(box, hole=no_hole(len(box.low)))]
    if len(inside) == 1:
        low, high = inside[0]
        if np.all(low <= box.low) and np.all(box.high <= high):
            return []
        return [replace(box, hole=np.stack([low, high]))]
    plane = _plane_between(box, inside)
    if plane is None:
        sides = _without((box.low, box.high), inside[0])
    else:
        axis, place = plane
        below, above = box.high.copy(), box.low.copy()
        below[axis] = above[axis] = place
        sides = [(box.low, below), (above, box.high)]
    parts: list[WaitingBox] = []
    for low, high in sides:
        part = replace(box, low=low, high=high, members=reachable(low, high, box.members))
        parts += cut_apart(part, inside, reachable)
    return parts


def _touch(part: WaitingBox, box: Box) -> bool:
    """Whether a box has more than a face in common with a part."""
    return bool(np.all(part.low < box[1]) and np.all(box[0] < part.high))


def _plane_between(part: WaitingBox, boxes: list[Box]) -> tuple[int, float] | None:
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


def _without(piece: Box, box: Box) -> list[Box]:
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
