"""Guess boxes that hold every centre of every good labelling: around ours, as far as they reach.

For a set ``I`` the places where it is worth ``cut`` form a ball: its mean, and
``sqrt((value - cut) / mass)``. From the farthest point of that ball along an axis, the best set
there has a ball that reaches at least as far. A few rounds of this lead to the ends of R.

Guesses are made with the groups that matter; the proof, with all of them, is elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing_error import mean_slack
from certikmeans.certainty.raising import Guide
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]
Box = tuple[Vector, Vector]

# Boxes are this much wider than guessed: the wider, the easier it is to show that nothing is
# outside, and the less they say.
MARGIN = 0.06
ROUNDS = 12  # of the guess, at most


@final
@dataclass(slots=True, eq=False)
class Guess:
    """Boxes so far; they only grow, and never overlap."""

    guide: Guide
    cut: float
    stop: StopSignal
    boxes: list[Box] = field(default_factory=list)

    def rough(self) -> list[Box]:
        """Boxes around the balls of known clusters alone, for a first look at what they hold."""
        found = Guess(self.guide, self.cut, self.stop)
        for column in self.guide.columns:
            room = self.guide.worth(column) - self.cut
            if room >= 0.0:
                reach = math.sqrt(room / column.mass)
                found.boxes.append((column.centre - reach, column.centre + reach))
        found._merge()
        return found.boxes

    def add(self, starts: list[Vector]) -> None:
        """Put a box around what is worth ``cut`` near each of the starts.

        Where an ascent from the start ends in a box, that box is made to hold the new one, too: R
        reaches farther there than was guessed.
        """
        pricer, lam = self.guide.pricer, self.guide.multipliers
        extents = _extents(self.guide, self.cut, starts, self.stop)
        for start, (low, high) in zip(starts, extents, strict=True):
            wider = MARGIN * (high - low) + 4.0 * mean_slack(pricer.reduced.points)
            low, high = low - wider, high + wider
            summit = pricer.climb(lam, [start.copy()])[0].centre
            for other_low, other_high in self.boxes:
                if np.all(other_low <= summit) and np.all(summit <= other_high):
                    low, high = np.minimum(low, other_low), np.maximum(high, other_high)
            self.boxes.append((low, high))
        self._merge()

    def add_columns(self) -> None:
        """Put boxes around known clusters that are good enough and not in a box yet."""
        guide = self.guide
        for column in guide.columns:
            if not self.holds(column.centre) and guide.worth(column) >= self.cut:
                self.add([column.centre])

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

    def holds(self, place: Vector) -> bool:
        """Whether a place is in a box already."""
        return any(np.all(low < place) and np.all(place < high) for low, high in self.boxes)


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


def _extents(guide: Guide, cut: float, starts: list[Vector], stop: StopSignal) -> list[Box]:
    """Guess, for every start, how far ``F >= cut`` reaches along every axis."""
    found = [(start.copy(), start.copy()) for start in starts]
    going: list[tuple[_Way, Vector]] = []
    for start, (low, high), ball in zip(starts, found, _balls(guide, cut, starts), strict=True):
        for axis in range(len(start)):
            for sign in (-1.0, 1.0):
                way = _Way(low, high, axis, sign, sign * start[axis])
                place = way.step(ball)
                if place is not None:
                    going.append((way, place))
    for _ in range(ROUNDS - 1):
        if not going or stop.cause() is not None:
            break
        balls = _balls(guide, cut, [place for _, place in going])
        steps = [(way, way.step(ball)) for (way, _), ball in zip(going, balls, strict=True)]
        going = [(way, place) for way, place in steps if place is not None]
    return found


def _balls(guide: Guide, cut: float, places: list[Vector]) -> list[tuple[Vector, float] | None]:
    """For each place, where the best set there is worth ``cut``; None: nowhere."""
    return [
        None
        if column.mass == 0.0 or column.value < cut
        else (column.centre, math.sqrt((column.value - cut) / column.mass))
        for column in guide.pricer.best_sets(guide.multipliers, places)
    ]
