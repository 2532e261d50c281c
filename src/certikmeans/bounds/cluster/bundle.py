"""A level bundle: move the multipliers until the bound reaches its goal, or can rise no more.

Every round prices the current multipliers by local ascents, adds the clusters found as cuts
and projects the best position so far on "every cut reaches the level". The exact pricing,
which is what proves a bound, is called only when no ascent contradicts the goal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.model import CutModel
from certikmeans.bounds.cluster.multipliers import MultiplierSpace
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.rounding import lagrangian_below
from certikmeans.stop import StopSignal

Vector = NDArray[np.float64]

MOST_NEW_CUTS = 12
COLUMN_STARTS = 8  # ascents from known clusters in a round
SAMPLED_STARTS = (4, 24)  # and from groups: at least, at most
CLIMB_WORK = 2e7  # coordinates that these may touch, about, in
USUAL_STEPS = 8  # each
LEAST_GAIN = 1e-3  # a step that gains less ends an ascent, in units of the gap asked for
# A model optimum this close to the bound, in units of the gap asked for, ends the bundle.
CONVERGED = 0.1
MOST_ROUNDS = 400
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
        incumbent: list[Column],
        seed: int = 0,
        on_bound: Callable[[float], None] = lambda value: None,
    ) -> None:
        self.pricer = pricer
        self.space = space
        self.model = CutModel(space, pricer.reduced.n_clusters)
        self.model.add(incumbent)
        self.statistics = BundleStatistics()
        self.proven = -np.inf
        self.proven_lam = space.low
        self.ceiling = np.inf  # no multipliers in the box give more than this
        self._incumbent = incumbent
        self._rng = np.random.default_rng([seed, 3])
        self._on_bound = on_bound
        self._position = space.start
        self._centre = self._position  # the best position so far, by the model
        self._level = np.inf

    def run(self, aim: Aim, stop: StopSignal, *, pause_if_unreachable: bool = False) -> Outcome:
        """Raise the proven bound to ``aim.goal``, or as far as the relaxation allows."""
        began = time.monotonic()
        self._level = min(self._level, aim.level)
        reserved = True
        outcome = None
        for _ in range(MOST_ROUNDS):
            if stop.cause() is not None:
                outcome = Outcome.STOPPED
            if outcome is not None:
                break
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
            self._prove(position, aim, stop, test=True)
            if self.proven >= aim.goal:
                return Outcome.PROVEN
            if self.model.value(position) >= reached:
                return Outcome.EXHAUSTED  # the cluster in the way cannot be found: nothing to cut
        if self.model.value(position) >= self.model.value(self._centre):
            self._centre = position
        best = self.model.value(self._centre)
        if self.ceiling - best <= CONVERGED * aim.unit:
            self._harvest(aim, stop)
            if self.model.value(self._centre) >= best:
                return Outcome.EXHAUSTED
        self._move(best, aim)
        return None

    def _climb(self, position: Vector, aim: Aim, stop: StopSignal) -> None:
        """Climb from the clusters that are worth most now, and from some of the groups."""
        began = time.perf_counter()
        reduced = self.pricer.reduced
        lam = self.space.multipliers(position)
        affordable = CLIMB_WORK / (reduced.n_groups * reduced.n_axes * USUAL_STEPS)
        n_sampled = int(min(np.clip(affordable, *SAMPLED_STARTS), reduced.n_groups))
        best_first = np.argsort(self.model.cuts_at(position), kind="stable")[:COLUMN_STARTS]
        starts = [column.centre for column in self._incumbent]
        starts += [self.model.columns[i].centre for i in best_first]
        rows = self._rng.choice(reduced.n_groups, size=n_sampled, replace=False)
        starts += list(reduced.points[rows])
        columns = self.pricer.climb(
            lam, starts, least_gain=LEAST_GAIN * aim.unit / reduced.n_clusters, stop=stop
        )
        cutoff = (float(lam.sum()) - self._level) / reduced.n_clusters
        self.model.add([c for c in columns[:MOST_NEW_CUTS] if c.value > cutoff])
        self.statistics.climb_seconds += time.perf_counter() - began

    def _prove(self, position: Vector, aim: Aim, stop: StopSignal, *, test: bool) -> None:
        """Price exactly; clusters that contradict the model become cuts.

        A test is about the goal: the first contradiction ends it. Otherwise the best bound
        at this position is wanted, within a small tolerance.
        """
        began = time.perf_counter()
        lam = self.space.multipliers(position)
        reached = self.model.value(position)
        n_clusters = self.pricer.reduced.n_clusters
        slack = CONVERGED * aim.unit
        want = 0.9 * aim.goal + 0.1 * reached if test else min(reached - slack, aim.goal)
        priced = self.pricer.exact(
            lam,
            (float(lam.sum()) - want) / n_clusters,
            stop,
            tolerance=None if test else slack / n_clusters,
        )
        self.statistics.exact_pricings += 1
        self.statistics.boxes += priced.boxes
        bound = lagrangian_below(lam, n_clusters, priced.upper)
        if bound > self.proven:
            self.proven, self.proven_lam = bound, lam
            self._on_bound(bound)
        if priced.centres:
            self.model.add(self.pricer.climb(lam, priced.centres[:MOST_NEW_CUTS]))
        self.statistics.exact_seconds += time.perf_counter() - began

    def _move(self, best: float, aim: Aim) -> None:
        """Project on the level; lower it when the cuts themselves say that it is too high."""
        began = time.perf_counter()
        least = CONVERGED * aim.unit
        if self._level <= best + 0.5 * least:
            self._level = best + 0.5 * (min(self.ceiling, aim.level) - best)
        while True:
            tolerance = 0.1 * max(min(aim.unit, self._level - best), 0.1 * least)
            position, found = self.model.project(self._centre, self._level, tolerance)
            if not found.infeasible:
                break
            self.ceiling = min(self.ceiling, self._level + found.excess)
            if self.ceiling - best <= least:
                break
            self._level = best + 0.5 * (self.ceiling - best)
        self._position = position
        self.model.forget(position, found.mu)
        self.statistics.projection_seconds += time.perf_counter() - began
