"""Show that nothing outside some boxes is worth as much as the cut, piece by piece.

Space is cut by planes between the boxes first, each part with the groups that can be worth
something there, then along the faces of the box that is left in a part. Exact pricing searches the
pieces; where it finds a place that is worth more, a box is grown or added. What was shown stays
shown, for boxes only grow; only the pieces that a box has grown into are cut and searched again.

**Why whole pieces.** Pricing shrinks a box to the means of sets that can be good there, moved into
the piece. That drops places whose best set is found elsewhere *in the piece*: so a piece that loses
a part has to be searched from the beginning, with its own walls.

**Rounding.** Pricing's bound of a box has its rounding included, and is asked to be ``2 error``
below the cut. Groups are left out of a part where they are worth less than nothing, rounded
outward as in `kernels.pricing.ranges`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.box_search import SearchOutcome, WaitingBox, search_box
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
from certikmeans.kernels.pricing.search import Rules
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Members = NDArray[np.int32]

ROUND = 16  # boxes searched between two looks at the clock
# Boxes that are grown or added, in all, for every cluster: beyond that R is too rugged.
MOST_GROWTHS = 12
MOST_PIECES = 400  # for every cluster, likewise
# With fewer members, it takes as long to look whether they can be worth something as to price them.
FEW_MEMBERS = 4_000

TOO_RUGGED = "good centres may be in too many places: less slack says more"
NOT_SETTLED = (
    "it was not settled in time where good centres can be: "
    "less slack or a smaller gap is settled sooner"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A box without good centres, as is to be shown, and the groups that count there."""

    low: Vector
    high: Vector
    members: Members

    def within(self, low: Vector, high: Vector) -> Piece:
        """A part of it."""
        return Piece(low, high, self.members)


@final
@dataclass(slots=True, eq=False)
class _Search:
    """What is left to be shown."""

    pricer: Pricer
    level: Level
    guess: Guess
    pieces: dict[int, Piece] = field(default_factory=dict)
    heap: list[WaitingBox] = field(default_factory=list)
    made: int = 0  # pieces so far
    pushed: int = 0  # boxes so far

    def push(self, piece: Piece) -> None:
        """Have a piece searched."""
        region = self.pricer.everywhere.part(piece.low, piece.high)
        if np.any(region.low > region.high):
            return  # no mean is there
        self.pieces[self.made] = piece
        nothing = np.zeros(len(piece.low) + 2)
        self._wait(
            WaitingBox(
                -np.inf, 0, region.low, region.high, nothing, piece.members, region.walls, self.made
            )
        )
        self.made += 1

    def _wait(self, box: WaitingBox) -> None:
        box.number = self.pushed
        self.pushed += 1
        heapq.heappush(self.heap, box)

    def take(self, outcome: SearchOutcome) -> None:
        """Go on with what a search has left open."""
        for box in outcome.open_boxes:
            self._wait(box)

    def grow(self, places: list[tuple[float, Vector]], again: set[int]) -> int:
        """Grow boxes around places; cut pieces that they reach, and those to be searched again.

        Returns how many were grown.
        """
        before, guess, grown = self.guess.boxes, self.guess, 0
        for _, place in sorted(places, key=lambda find: -find[0]):
            if not guess.holds(place):
                guess.add([place])
                grown += 1
        new = [box for box in guess.boxes if not any(box is one for one in before)]
        waiting = again | {box.region for box in self.heap}
        cut = {i for i in waiting if i in again or any(_touch(self.pieces[i], box) for box in new)}
        self.heap = [box for box in self.heap if box.region not in cut]
        heapq.heapify(self.heap)
        for number in sorted(cut):
            for part in cut_apart(self.pieces.pop(number), guess.boxes, self._reachable):
                self.push(part)
        return grown

    def begin(self) -> None:
        """Cut everything."""
        whole = self.pricer.everywhere
        members = np.flatnonzero(self.level.multipliers > 0.0).astype(np.int32)
        piece = Piece(whole.low, whole.high, members)
        for part in cut_apart(piece, self.guess.boxes, self._reachable):
            self.push(part)

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
    k = pricer.reduced.n_clusters
    cutoff = max(level.cut - 4.0 * level.error, 0.0) + 2.0 * level.error
    look = partial(search_box, instance=pricer.instance(level.multipliers), cutoff=cutoff)
    growths, budget, boxes, progress = MOST_GROWTHS * k, LEAST_BUDGET, 0, Progress(DOUBT_AFTER)
    while search.heap:
        if growths < 0 or search.made > MOST_PIECES * k:
            return TOO_RUGGED
        highest = -search.heap[0].minus_upper
        if stop.cause() is not None or progress.is_lost(boxes, highest - cutoff):
            return NOT_SETTLED
        batch = [heapq.heappop(search.heap) for _ in range(min(ROUND, len(search.heap)))]
        rules = Rules(level.error, pricer.slack, pricer.everywhere.walls, 2.0 * level.error, budget)
        again, places = set[int](), list[tuple[float, Vector]]()
        for box, outcome in zip(batch, pricer.crew.map(partial(look, rules=rules), batch),
                                strict=True):  # fmt: skip
            boxes += outcome.boxes
            if outcome.finds:
                again.add(box.region)
                places += outcome.finds
            elif outcome.stuck > cutoff:
                return NOT_SETTLED
            else:
                search.take(outcome)
        budget = min(1.5 * budget, MOST_BUDGET)
        if again:
            guess.guide = Guide(pricer, level.multipliers, ())  # one of fewer groups was misleading
            growths -= search.grow(places, again)
    return None


def cut_apart(
    piece: Piece, boxes: list[Box], reachable: Callable[[Vector, Vector, Members], Members]
) -> list[Piece]:
    """What of a piece is outside all boxes: by planes between them, then along their faces."""
    inside = [box for box in boxes if _touch(piece, box)]
    if not inside:
        return [piece]
    plane = _plane_between(piece, inside) if len(inside) > 1 else None
    if plane is None:
        parts = [(piece.low, piece.high)]
        for box in inside:
            parts = [part for one in parts for part in _without(one, box)]
        return [piece.within(low, high) for low, high in parts]
    axis, place = plane
    below, above = piece.high.copy(), piece.low.copy()
    below[axis] = above[axis] = place
    found = []
    for low, high in ((piece.low, below), (above, piece.high)):
        part = Piece(low, high, reachable(low, high, piece.members))
        found += cut_apart(part, inside, reachable)
    return found


def _touch(piece: Piece, box: Box) -> bool:
    """Whether a box has more than a face in common with a piece."""
    return bool(np.all(piece.low < box[1]) and np.all(box[0] < piece.high))


def _plane_between(piece: Piece, boxes: list[Box]) -> tuple[int, float] | None:
    """Axis and place of a plane in the widest gap between boxes; None: there is no gap."""
    best, found = 0.0, None
    for axis in range(len(piece.low)):
        ends = sorted((float(box[0][axis]), float(box[1][axis])) for box in boxes)
        reached = ends[0][1]
        for low, high in ends[1:]:
            share = (low - reached) / float(piece.high[axis] - piece.low[axis])
            if share > best:
                best, found = share, (axis, 0.5 * (low + reached))
            reached = max(reached, high)
    return found


def _without(piece: Box, box: Box) -> list[Box]:
    """Return the parts of a piece that are outside a box; the piece itself if all of it is."""
    low, high = piece
    if np.any(high <= box[0]) or np.any(low >= box[1]):
        return [piece]
    parts = []
    low, high = low.copy(), high.copy()
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
