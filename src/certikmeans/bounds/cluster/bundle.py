"""A level bundle: move the multipliers until the bound reaches its goal, or can rise no more.

Every round prices the current multipliers by local ascents, adds the clusters found as cuts
and projects the best position so far on "every cut reaches the level". The exact pricing,
which is what proves a bound, is called only when no ascent contradicts the goal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.pricing import DOUBT_AFTER, Column, Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_below, total_above
from certikmeans.stop import StopSignal
from certikmeans.streams import generator

Vector = NDArray[np.float64]

MOST_NEW_CUTS = 12
COLUMN_STARTS = 8  # ascents from known clusters in a round
SAMPLED_STARTS = (4, 24)  # and from groups: at least, at most
CLIMB_WORK = 2e7  # coordinates that these may touch, about, in
USUAL_STEPS = 8  # each
LEAST_GAIN = 1e-3  # a step that gains less ends an ascent, in units of the gap asked for
# A model optimum this close to the bound, in units of the gap asked for, ends the bundle.
CONVERGED = 0.1
# Before an exact pricing that may take long, ascents from everywhere: one per so many boxes.
BOXES_PER_START = 200
MOST_STARTS = 400
MOST_ROUNDS = 400
# Where the goal is out of reach, the bundle ends when what is left to gain is less than this
# part of what will be missing: a split gains more.
WORTH_WAITING = 0.25
# Without a bound yet, exact pricing gets at least this part of the time spent before.
RESERVED = 0.7


@dataclass(slots=True)
class BundleStatistics:
    """What the bundle did and where its time went."""

    rounds: int = 0
    exact_pricings: int = 0
    boxes: int = 0
    climb_seconds: float = 0.0
    exact_seconds: float = 0.0
    projection_seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Aim:
    """What to reach, in units of the reduced cost."""

    goal: float  # the bound asked for
    level: float  # what the cuts are asked for: a little more
    unit: float  # the gap asked for: goal is about the incumbent's cost minus this


class Outcome(StrEnum):
    """Why a bundle ended."""

    PROVEN = "the goal is proven"
    UNREACHABLE = "no multipliers in the incumbent's box reach the goal"
    EXHAUSTED = "the bound is as high as it gets"
    STOPPED = "time is up"


@final
class LevelBundle:
    """State of one run. Bounds that it proves only go up; `run` may be called again."""

    def __init__(
        self,
        pricer: Pricer,
        space: MultiplierSpace,
        families: Sequence[Family],
        incumbent: list[Column],
        seed: int = 0,
        on_bound: Callable[[float], None] = lambda value: None,
        columns: Sequence[Column] = (),
        doubt_after: float = DOUBT_AFTER,
    ) -> None:
        self.pricer = pricer
        self.space = space
        self.families = families
        self.model = CutModel(space, families)
        for number, family in enumerate(families):
            near = [c for c in (*incumbent, *columns) if family.holds(c.centre)]
            self.model.add([c for c in near if _allowed(c, family)], number)
        self.statistics = BundleStatistics()
        self.proven = -np.inf
        self.proven_lam = space.low
        self.ceiling = np.inf  # no multipliers in the box give more than this
        self._doubt_after = doubt_after
        self._incumbent = incumbent
        self._rng = generator(seed, "bounds.cluster.bundle")
        self._on_bound = on_bound
        self._position = space.start
        self._n_clusters = pricer.reduced.n_clusters
        self._centre = self._position  # the best position so far, by the model
        self._level = np.inf
        self._last_boxes = 0  # of an exact pricing
        self._lost = False  # exact pricing makes no progress here: no use in trying again

    def run(
        self,
        aim: Aim,
        stop: StopSignal,
        *,
        pause_if_unreachable: bool = False,
        most_rounds: int = MOST_ROUNDS,
    ) -> Outcome:
        """Raise the proven bound to ``aim.goal``, or as far as is worth while."""
        began = time.monotonic()
        self._level = min(self._level, aim.level)
        reserved = True
        outcome = None
        for _ in range(most_rounds):
            if stop.cause() is not None:
                outcome = Outcome.STOPPED
            if outcome is not None:
                break
            if self._lost:
                return Outcome.EXHAUSTED
            if pause_if_unreachable and self.ceiling < aim.goal:
                return Outcome.UNREACHABLE
            if reserved and stop.remaining < RESERVED * (time.monotonic() - began):
                reserved = False
                self._harvest(aim, stop)  # while there is time for it
            outcome = self._round(aim, stop)
        if outcome is not Outcome.PROVEN:
            self._harvest(aim, stop)
        return outcome or Outcome.EXHAUSTED

    def _harvest(self, aim: Aim, stop: StopSignal) -> None:
        """Prove what the best position is good for, unless that is known already."""
        if self.model.value(self._centre) > self.proven + 2.0 * CONVERGED * aim.unit:
            self._prove(self._centre, aim, stop, test=False)

    def _round(self, aim: Aim, stop: StopSignal) -> Outcome | None:
        """Price, cut, perhaps prove, and move."""
        self.statistics.rounds += 1
        position = self._position
        self._climb(position, aim, stop)
        reached = self.model.value(position)
        if reached >= aim.goal:
            reached = self._climb_harder(position, aim, stop)
        if reached >= aim.goal:
            self._prove(position, aim, stop, test=True)
            if self.proven >= aim.goal:
                return Outcome.PROVEN
            if self.model.value(position) >= reached:
                return Outcome.EXHAUSTED  # the cluster in the way cannot be found: nothing to cut
        if self.model.value(position) >= self.model.value(self._centre):
            self._centre = position
        best = self.model.value(self._centre)
        least = max(CONVERGED * aim.unit, WORTH_WAITING * (aim.goal - self.ceiling))
        if self.ceiling - best <= least:
            if self._climb_harder(self._centre, aim, stop) >= best:
                self._harvest(aim, stop)
            if self.model.value(self._centre) >= best:
                return Outcome.EXHAUSTED
        self._move(best, aim)
        return None

    def _climb_harder(self, position: Vector, aim: Aim, stop: StopSignal) -> float:
        """Climb from everywhere: cheaper than to search in vain. Returns the model's value."""
        if self._last_boxes >= BOXES_PER_START:
            self._climb(position, aim, stop, harder=True)
        return self.model.value(position)

    def _climb(self, position: Vector, aim: Aim, stop: StopSignal, *, harder: bool = False) -> None:
        """Climb from the clusters that are worth most now, and from some of the groups."""
        began = time.perf_counter()
        lam = self.space.multipliers(position)
        worth = self.model.worth_at(position)
        known = self.model.family_worth(position)
        # What the level leaves to a cluster; with several families, what is known already.
        even = (float(lam.sum()) - self._level) / self._n_clusters
        for number, family in enumerate(self.families):
            columns = self.pricer.climb(
                lam,
                self._many_starts(number) if harder else self._starts(number, worth),
                region=family.region,
                least_gain=LEAST_GAIN * aim.unit / self._n_clusters,
                stop=stop,
            )
            least = even if len(self.families) == 1 else known[number]
            self.model.add([c for c in columns[:MOST_NEW_CUTS] if c.value > least], number)
        self.statistics.climb_seconds += time.perf_counter() - began

    def _starts(self, number: int, worth: Vector) -> list[Vector]:
        """Places to climb from: the incumbent's, the best columns of the family, some groups."""
        reduced, family = self.pricer.reduced, self.families[number]
        affordable = CLIMB_WORK / (reduced.n_groups * reduced.n_axes * USUAL_STEPS)
        n_sampled = int(min(np.clip(affordable, *SAMPLED_STARTS), reduced.n_groups))
        n_sampled = -(-n_sampled // len(self.families))
        mine = self.model.columns_of(number)
        mine.sort(key=lambda i: -worth[i])
        starts = [column.centre for column in self._incumbent if family.holds(column.centre)]
        starts += [self.model.columns[i].centre for i in mine[:COLUMN_STARTS]]
        rows = self._rng.choice(reduced.n_groups, size=n_sampled, replace=False)
        starts += list(reduced.points[rows])
        return [family.region.clamp(start) for start in starts]

    def _many_starts(self, number: int) -> list[Vector]:
        """As many places as are worth a look before a search like the last one."""
        points, region = self.pricer.reduced.points, self.families[number].region
        count = int(min(self._last_boxes / BOXES_PER_START, MOST_STARTS))
        first, second = self._rng.integers(len(points), size=(2, count))
        share = self._rng.uniform(size=(count, 1))
        return list(region.clamp(points[first] + share * (points[second] - points[first])))

    def _prove(self, position: Vector, aim: Aim, stop: StopSignal, *, test: bool) -> None:
        """Price exactly; clusters that contradict the model become cuts.

        A test is about the goal: the first contradiction ends it. Otherwise the best bound
        at this position is wanted, within a small tolerance. What the model leaves between
        itself and the value wanted is shared out evenly among the clusters.
        """
        began = time.perf_counter()
        lam = self.space.multipliers(position)
        reached = self.model.value(position)
        slack = CONVERGED * aim.unit
        want = 0.9 * aim.goal + 0.1 * reached if test else min(reached - slack, aim.goal)
        known = self.model.family_worth(position)
        doubt_after, until = self._doubt_after, stop
        if np.isinf(doubt_after):
            # Half of the time left may go into one exact pricing; but something has to end it.
            limited = stop.remaining < np.inf
            doubt_after, until = (
                (np.inf, stop.within(0.5 * stop.remaining)) if limited else (DOUBT_AFTER, stop)
            )
        spent = 0.0
        for number, family in enumerate(self.families):
            priced = self.pricer.exact(
                lam,
                float(known[number]) + (reached - want) / self._n_clusters,
                until,
                tolerance=None if test else slack / self._n_clusters,
                region=family.region,
                doubt_after=doubt_after,
            )
            spent = total_above(spent, family.count, priced.upper)
            self.statistics.exact_pricings += 1
            self.statistics.boxes += priced.boxes
            self._last_boxes = priced.boxes
            self._lost |= not (priced.complete or priced.centres or stop.cause() is not None)
            if priced.centres:
                starts = priced.centres[:MOST_NEW_CUTS]
                self.model.add(self.pricer.climb(lam, starts, region=family.region), number)
                if test and number + 1 < len(self.families):
                    spent = np.inf  # refuted: the other families need not be priced
                    break
        bound = lagrangian_below(lam, spent)
        if bound > self.proven:
            self.proven, self.proven_lam = bound, lam
            self._on_bound(bound)
        self.statistics.exact_seconds += time.perf_counter() - began

    def _move(self, best: float, aim: Aim) -> None:
        """Project on the level; lower it when the cuts themselves say that it is too high."""
        began = time.perf_counter()
        least = CONVERGED * aim.unit
        if self._level <= best + 0.5 * least:
            self._level = best + 0.5 * (min(self.ceiling, aim.level) - best)
        while True:
            tolerance = 0.1 * max(min(aim.unit, self._level - best), 0.1 * least)
            moved = self.model.project(self._centre, self._level, tolerance)
            if not moved.infeasible(self._level):
                break
            self.ceiling = min(self.ceiling, moved.ceiling)
            if self.ceiling - best <= least:
                break
            self._level = best + 0.5 * (self.ceiling - best)
        self._position = moved.position
        self.model.forget(self._position)
        self.statistics.projection_seconds += time.perf_counter() - began


def _allowed(column: Column, family: Family) -> bool:
    """Whether the family may hold all groups of the column."""
    allowed = family.region.allowed
    return allowed is None or not bool((column.members.astype(bool) & ~allowed).any())
