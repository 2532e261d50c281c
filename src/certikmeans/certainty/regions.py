"""Boxes that hold every centre of every good labelling.

With ``F(y)`` the most that a cluster centred at ``y`` can be worth, every such centre lies in
``R = {y : F(y) >= cut}``: its cluster is worth as much. Boxes around the known centres are guessed,
and exact pricing shows that ``F < cut`` outside them, piece by piece; where it finds a place that
is worth more, a box is grown or added, and the piece is cut again. What was shown stays shown, for
boxes only grow.

**Guessing.** For a set ``I`` the places where it is worth ``cut`` form a ball: its mean, and
``sqrt((value - cut) / mass)``. From the farthest point of that ball along an axis, the best set
there has a ball that reaches at least as far. A few rounds of this lead to the ends of R.

**A ball in the box.** Over a box, pricing has one concave quadratic above ``F``. Where it is below
``cut``, so is ``F``: what is left is a ball, in many axes much smaller than the box.

**Rounding.** `Pricer.exact` returns an upper bound with its rounding included, and is asked to go
``4 error`` below the cut. The ball: with ``A, b, c`` the sums of the quadratic, evaluated at its
peak ``b / A`` with an error below ``error`` (`pricing_error`: a weighted mean of the points, so
inside their box), ``A |y - b/A|^2 <= value + 2 error - cut``; the peak errs by less than
`mean_slack` per axis, which is added to the radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing import Pricer, Region
from certikmeans.bounds.cluster.pricing_error import mean_slack
from certikmeans.certainty.level import Level
from certikmeans.kernels.pricing.instance import Instance
from certikmeans.kernels.pricing.search import look, workspace
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

# Boxes are this much wider than guessed: the wider, the easier it is to show that nothing is
# outside, and the less they say.
MARGIN = 0.06
ROUNDS = 12  # of the guess, at most
# Boxes that are grown or added, in all, for every cluster: beyond that R is too rugged.
MOST_GROWTHS = 12
MOST_PIECES = 400  # for every cluster, likewise


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

    regions: tuple[CenterRegion, ...] = ()
    failure: str | None = None


@final
@dataclass(slots=True, eq=False)
class _Search:
    """Boxes so far; they only grow, and never overlap."""

    pricer: Pricer
    level: Level
    stop: StopSignal
    boxes: list[tuple[Vector, Vector]] = field(default_factory=list)

    def add(self, starts: list[Vector]) -> None:
        """Put a box around what is worth ``cut`` near each of the starts.

        Where an ascent from the start ends in a box, that box is made to hold the new one, too: R
        reaches farther there than was guessed.
        """
        climb = self.pricer.climb
        for start, (low, high) in zip(
            starts, _extents(self.pricer, self.level, starts, self.stop), strict=True
        ):
            wider = MARGIN * (high - low) + 4.0 * mean_slack(self.pricer.reduced.points)
            low, high = low - wider, high + wider
            summit = climb(self.level.multipliers, [start.copy()])[0].centre
            for other_low, other_high in self.boxes:
                if np.all(other_low <= summit) and np.all(summit <= other_high):
                    low, high = np.minimum(low, other_low), np.maximum(high, other_high)
            self.boxes.append((low, high))
        self._merge()

    def _merge(self) -> None:
        """Two boxes that touch become the box that holds both."""
        waiting = self.boxes
        apart: list[tuple[Vector, Vector]] = []
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

    def holds(self, place: Vector) -> bool:
        """Whether a place is in a box already."""
        return any(np.all(low < place) and np.all(place < high) for low, high in self.boxes)

    def outside(self, low: Vector, high: Vector) -> list[tuple[Vector, Vector]]:
        """Cut a piece along the faces of the boxes: what is outside them all."""
        pieces = [(low, high)]
        for box in self.boxes:
            pieces = [part for piece in pieces for part in _without(piece, box)]
        return pieces


def enclose(
    pricer: Pricer, level: Level, centers: NDArray[np.float64], stop: StopSignal
) -> Enclosure:
    """Find boxes that hold every ``y`` with ``F(y) >= cut``, and show that they do."""
    reduced = pricer.reduced
    if level.cut <= 4.0 * level.error:
        return Enclosure(failure="a cluster may lose all it is worth: less slack says more")
    search = _Search(pricer, level, stop)
    search.add([place.copy() for place in centers])
    whole = pricer.everywhere
    waiting = search.outside(whole.low, whole.high)
    growths, pieces = MOST_GROWTHS * reduced.n_clusters, MOST_PIECES * reduced.n_clusters
    while waiting:
        pieces -= len(waiting)
        if growths < 0 or pieces < 0:
            return Enclosure(failure="good centres may be in too many places: less slack says more")
        found = pricer.exact_in(
            level.multipliers, level.cut - 4.0 * level.error, stop, _regions(pricer, waiting)
        )
        if found.left and not found.centres:
            return Enclosure(
                failure="it was not settled in time where good centres can be: "
                "less slack or a smaller gap is settled sooner"
            )
        for place in found.centres:
            if not search.holds(place):
                growths -= 1
                search.add([place])
        waiting = [part for i in found.left for part in search.outside(*waiting[i])]
    return _proven(pricer, level, search.boxes, stop)


def _regions(pricer: Pricer, boxes: list[tuple[Vector, Vector]]) -> list[Region]:
    return [pricer.everywhere.part(low, high) for low, high in boxes]


def _proven(
    pricer: Pricer, level: Level, boxes: list[tuple[Vector, Vector]], stop: StopSignal
) -> Enclosure:
    """Show ``sigma`` in the boxes, too, and add the balls."""
    found = pricer.exact_in(
        level.multipliers,
        level.sigma - 4.0 * level.error,
        stop,
        _regions(pricer, boxes),
    )
    if not found.upper <= level.sigma:
        return Enclosure(failure="the multipliers are not worth what was said")
    whole = pricer.everywhere
    return Enclosure(
        tuple(
            _with_ball(
                pricer.reduced, level, np.maximum(low, whole.low), np.minimum(high, whole.high)
            )
            for low, high in boxes
        )
    )


def _with_ball(reduced: ReducedProblem, level: Level, low: Vector, high: Vector) -> CenterRegion:
    """Keep the part of a box where pricing's quadratic reaches the cut."""
    n, d = reduced.points.shape
    instance = instance_of(reduced, level.multipliers)
    work = workspace(n, d, reduced.graph.n_linked)
    box = work.box
    box.lo[:], box.hi[:], box.sums[:] = low, high, 0.0
    members = np.flatnonzero(level.multipliers > 0.0).astype(np.int32)
    look(instance, members, work, level.error)
    sums = box.sums + box.estimate
    if not sums[1] > 0.0:
        return CenterRegion(low, high, 0.5 * (low + high), math.inf)
    peak = sums[2:] / sums[1]
    value = float(sums[0] + peak @ (2.0 * sums[2:] - sums[1] * peak))
    room = max(0.0, value + 2.0 * level.error - level.cut) / sums[1]
    drift = float(np.linalg.norm(mean_slack(reduced.points)))
    return CenterRegion(low, high, peak, math.sqrt(room) * (1.0 + 16.0 * EPS) + 2.0 * drift)


def instance_of(reduced: ReducedProblem, lam: Vector) -> Instance:
    """What the kernels of pricing work on."""
    graph = reduced.graph
    cyclic = np.repeat(graph.extra_edges > 0, np.diff(graph.starts)).astype(np.uint8)
    squares = np.einsum("ij,ij->i", reduced.points, reduced.points)
    return Instance(
        points=reduced.points,
        weights=reduced.weights,
        lam=lam,
        base=lam - reduced.weights * squares,
        parents=graph.parents,
        cyclic=cyclic,
        indptr=graph.indptr,
        neighbors=graph.neighbors,
    )


@final
@dataclass(slots=True, eq=False)
class _Way:
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
        centre, radius = ball
        np.minimum(self.low, centre, out=self.low)
        np.maximum(self.high, centre, out=self.high)
        end = centre[self.axis] + self.sign * radius
        if self.sign * end <= self.reached + 0.01 * radius:
            return None
        self.reached = self.sign * end
        self.low[self.axis] = min(self.low[self.axis], end)
        self.high[self.axis] = max(self.high[self.axis], end)
        place = centre.copy()
        place[self.axis] = end
        return place


def _extents(
    pricer: Pricer, level: Level, starts: list[Vector], stop: StopSignal
) -> list[tuple[Vector, Vector]]:
    """Guess, for every start, how far ``F >= cut`` reaches along every axis."""
    found = [(start.copy(), start.copy()) for start in starts]
    going: list[tuple[_Way, Vector]] = []
    for start, (low, high), ball in zip(starts, found, _balls(pricer, level, starts), strict=True):
        for axis in range(pricer.reduced.n_axes):
            for sign in (-1.0, 1.0):
                way = _Way(low, high, axis, sign, sign * start[axis])
                place = way.step(ball)
                if place is not None:
                    going.append((way, place))
    for _ in range(ROUNDS - 1):
        if not going or stop.cause() is not None:
            break
        balls = _balls(pricer, level, [place for _, place in going])
        steps = [(way, way.step(ball)) for (way, _), ball in zip(going, balls, strict=True)]
        going = [(way, place) for way, place in steps if place is not None]
    return found


def _balls(pricer: Pricer, level: Level, places: list[Vector]) -> list[tuple[Vector, float] | None]:
    """For each place, where the best set there is worth ``cut``; None: nowhere."""
    return [
        None
        if column.mass == 0.0 or column.value < level.cut
        else (column.centre, math.sqrt((column.value - level.cut) / column.mass))
        for column in pricer.best_sets(level.multipliers, places)
    ]


def _without(
    piece: tuple[Vector, Vector], box: tuple[Vector, Vector]
) -> list[tuple[Vector, Vector]]:
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
