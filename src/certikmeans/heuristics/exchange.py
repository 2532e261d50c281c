"""Many clusters: a labelling improved by swaps and new neighbourhoods, region by region.

Every trial changes the best labelling in several places at once and descends; what became better
is taken over region by region (`regions`), so one trial tests many moves. When trials
lead nowhere, the same is done from other starts, and the two results are mixed: where that still
helps, it is done again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.local_search import LocalOptimum, means_of
from certikmeans.heuristics.offspring import child_of, crossed_by_a_line
from certikmeans.heuristics.quick_search import QuickSearch
from certikmeans.heuristics.regions import Piece, Pool
from certikmeans.heuristics.seeding import start_centers
from certikmeans.heuristics.swaps import (
    Landscape,
    survey,
    with_new_neighbourhoods,
    with_swaps,
)
from certikmeans.streams import generator

# Trials at a time: fixed, so that the answer does not depend on the threads.
BATCH = 4
# Places that one trial changes at most, as a part of the clusters.
PLACES = 0.1
# An attempt that ends at the best, though it began elsewhere, counts as so many in vain.
AGREEING = 4
# What is better by less than this part is the same.
SAME_COST = 1e-9
# Labellings kept to be crossed with the best.
ELITE = 10
# Where cheapest labels take a search, only results this close to the best get it.
CLOSE = 1.001
# Kinds of attempts: the first, another one, and a mixture of the best with that.
FIRST, OTHER, MIXED = "first", "other", "mixed"


@final
@dataclass(frozen=True, slots=True)
class Exertion:
    """How long to go on: numbers of local searches, not seconds, so that runs repeat."""

    starts: int  # of every attempt; with 0 there is one, from the given starts
    patience: int  # trials without improvement before an attempt ends
    trials: int  # in all
    attempts: int = 8  # after the first, in a row, that end above the best before the search ends


@final
@dataclass(slots=True, eq=False)
class Progress:
    """How far a search is, between two batches."""

    best: LocalOptimum  # of the attempts that have ended
    current: LocalOptimum  # of the one under way
    other: LocalOptimum  # mixed with the best, where a mixture is being improved
    kind: str = FIRST
    arrived: tuple[LocalOptimum, ...] = ()  # where given starts have led to
    given: int = 0  # of these, how many were tried
    drawn: int = 0  # random starts of this attempt
    improving: bool = False  # all starts of this attempt are done
    idle: int = 0  # trials since the last that helped
    in_vain: int = 0
    trials: int = 0
    starts: int = 0  # random ones, of all attempts before
    elite: tuple[LocalOptimum, ...] = ()
    aside: tuple[LocalOptimum, ...] = ()  # elite of the attempts before this one
    polished: frozenset[float] = frozenset()  # costs of what has been


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExchangeKept:
    """What a search needs to go on."""

    progress: Progress
    told: LocalOptimum
    pool: LocalOptimum | None  # what pieces are collected for, and these
    waiting: dict[tuple[int, tuple[int, ...]], Piece]
    tried: set[tuple[float, ...]]


@final
class Exchange(AbstractHeuristic):
    """Attempts from different starts, mixed by regions, for as long as they help."""

    name: ClassVar[str] = "exchange"

    def __init__(self, exertion: Exertion) -> None:
        self._exertion = exertion

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found; the witness if there was no time at all."""
        run = _Run(workshop, self._exertion)
        if isinstance(workshop.kept, ExchangeKept):
            run.go_on(workshop.kept)
        if workshop.starts or not workshop.finished():
            run.attempt_until_in_vain()
        return run.told.labels


@final
class _Run:
    """One search: its best labelling and how far it is."""

    def __init__(self, workshop: Workshop, exertion: Exertion) -> None:
        problem = workshop.problem
        self._workshop = workshop
        self._exertion = exertion
        self._quick = QuickSearch(problem, workshop.assigner)
        self._inner = workshop.but(executor=None) if _is_small(workshop) else workshop
        self._pool: Pool | None = None
        witness = means_of(problem, workshop.witness)
        self._nothing = LocalOptimum(workshop.witness, witness, np.inf, 0)
        self._at = Progress(self._nothing, self._nothing, self._nothing)
        self.told = self._nothing  # the best of all

    def go_on(self, before: ExchangeKept) -> None:
        """Go on where a run before was."""
        self._at, self.told = replace(before.progress), before.told
        if before.pool is not None:
            self._pool = Pool(self._workshop.problem, before.pool)
            self._pool.go_on(before.waiting, before.tried)

    def _keep(self) -> None:
        pool = self._pool
        best = None if pool is None else pool.best
        pieces = ({}, set()) if pool is None else pool.kept()
        self._workshop.keep(ExchangeKept(replace(self._at), self.told, best, *pieces))

    def attempt_until_in_vain(self) -> None:
        """Make attempts and mix them, until enough of them in a row have not helped."""
        at = self._at
        while True:
            if not at.improving:
                self._start()
                at.improving, at.idle = True, 0
            self._improve()
            if at.kind == FIRST:
                at.best, at.in_vain = at.current, 0
                if not self._exertion.starts:
                    return
            elif at.kind == MIXED or not self._mix():
                self._judge(at.current)
            else:
                continue  # with the mixture
            if at.in_vain >= self._exertion.attempts or self._is_over():
                return
            # The next one knows nothing of those before, or it would end where they did.
            at.kind, at.improving, at.drawn = OTHER, False, 0
            at.aside, at.elite, at.current = at.elite, (), self._nothing

    def _mix(self) -> bool:
        """Mix the best with the attempt that has ended; whether that is worth improving."""
        at = self._at
        for one in at.aside:
            self._remember(one)
        at.other, at.aside = at.current, ()
        at.current = self._mixed(*sorted((at.best, at.other), key=lambda one: one.cost))
        if at.current.cost < min(at.best.cost, at.other.cost):
            at.kind, at.idle = MIXED, 0
            return True
        return False

    def _judge(self, mixed: LocalOptimum) -> None:
        """Whether the attempt has helped."""
        at = self._at
        if mixed.cost < at.best.cost * (1.0 - SAME_COST):
            at.best, at.in_vain = mixed, 0
        else:
            agreeing = at.other.cost <= at.best.cost * (1.0 + SAME_COST)
            at.in_vain += AGREEING if agreeing else 1

    def _is_over(self) -> bool:
        return self._workshop.finished() or self._at.trials >= self._exertion.trials

    def _start(self) -> None:
        """Best mixture of what the given starts and some random ones lead to."""
        at, workshop = self._at, self._workshop
        if at.kind == FIRST:
            starts = workshop.starts[: 1 if workshop.finished() else None]
            self._try_given(list(starts) or [self._nothing.centers])
        for first in range(at.drawn, self._exertion.starts, BATCH):
            if workshop.finished():
                return
            numbers = range(first, min(first + BATCH, self._exertion.starts))
            drawn = (
                start_centers(workshop.problem, workshop.seed, at.starts + number)
                for number in numbers
            )
            for found in self._descended(drawn, at.current):
                at.current = self._better(at.current, found)
            at.drawn = numbers.stop
            self._keep()
        at.starts += self._exertion.starts

    def _try_given(self, given: list[Centers]) -> None:
        """All at once, or where a start takes long, one after the other; then they are mixed."""
        at, workshop = self._at, self._workshop
        size = 1 if self._inner is workshop else len(given)
        for first in range(at.given, len(given), size):
            if first and workshop.stop.cause() is not None:
                break
            found = self._descended(given[first : first + size], self._nothing)
            at.arrived, at.given = (*at.arrived, *found), first + size
            self._keep()
        arrived, at.arrived = at.arrived, ()
        for one in arrived:
            at.current = self._better(at.current, one)

    def _improve(self) -> None:
        """Change the best in a few places, for as long as that helps."""
        at = self._at
        land = None
        while at.idle < self._exertion.patience and not self._is_over():
            if land is None or land.optimum is not at.current:
                land = survey(self._workshop.problem, at.current)
            before = at.current.cost
            starts = [self._changed(land, at.trials + i) for i in range(BATCH)]
            for found in self._descended(starts, at.current):
                at.current = self._better(at.current, found)
            at.idle = 0 if at.current.cost < before * (1.0 - SAME_COST) else at.idle + BATCH
            self._keep()

    def _changed(self, land: Landscape, trial: int) -> Centers:
        problem = self._workshop.problem
        rng = generator(self._workshop.seed, "heuristics.exchange", trial)
        count = 1 + int(rng.random() * PLACES * problem.n_clusters)
        kind = trial % 4
        elite = self._at.elite
        if kind == 2 and elite:
            partner = elite[int(rng.integers(len(elite)))]
            return crossed_by_a_line(land.optimum.centers, partner.centers, rng)
        if kind == 3 and len(elite) > 1:
            # The best need not be a parent: with it in every trial, all end near the same optimum.
            ranked = (land.optimum, *elite)
            first, second = rng.integers(len(ranked), size=(2, 2)).min(axis=1)
            return child_of(problem, ranked[first].centers, ranked[second].centers, rng)
        change = with_swaps if kind == 0 else with_new_neighbourhoods
        return change(problem, land, count, rng)

    def _descended(self, starts: Iterable[Centers], best: LocalOptimum) -> list[LocalOptimum]:
        """What the starts lead to, in order, as far as there is time."""
        workshop = self._workshop
        starts = workshop.in_time(starts)

        def work(centers: Centers) -> tuple[LocalOptimum, float]:
            return self._descend(centers, best.cost)

        small = self._inner is not workshop
        found = list(workshop.map(work, starts) if small else map(work, starts))
        at = self._at
        at.polished |= {cost for _, cost in found}
        at.trials += len(found)
        workshop.on_progress(at.trials, max(at.trials, self._exertion.trials))
        return [one for one, _ in found]

    def _descend(self, centers: Centers, best: float) -> tuple[LocalOptimum, float]:
        """Quickly; where labels take a search, again with it if that is promising and new.

        Also says at which cost the quick one ended.
        """
        found = self._quick.from_centers(centers, self._inner)
        if not self._workshop.assigner.searches or found.cost > CLOSE * best:
            return found, found.cost
        if found.cost in self._at.polished or self._workshop.finished():
            return found, found.cost
        return self._quick.patiently(found, self._inner), found.cost

    def _better(self, best: LocalOptimum, found: LocalOptimum) -> LocalOptimum:
        """The better one of two, with what is better in the other."""
        if found.cost < best.cost:
            best, found = found, best
        self._tell(best)
        self._remember(found)
        return self._mixed(best, found)

    def _remember(self, found: LocalOptimum) -> None:
        """Keep the best of what is not the best."""
        if not np.isfinite(found.cost):
            return
        at = self._at
        near = (abs(found.cost - one.cost) <= SAME_COST * one.cost for one in at.elite)
        if not any(near):
            at.elite = tuple(sorted([*at.elite, found], key=lambda one: one.cost)[:ELITE])

    def _mixed(self, best: LocalOptimum, other: LocalOptimum) -> LocalOptimum:
        """The best with what is better in the other, and with what was found before."""
        if not np.isfinite(other.cost) or self._workshop.finished():
            return best
        if self._pool is None or self._pool.best is not best:
            self._pool = Pool(self._workshop.problem, best)
        mixture = self._pool.mixture(other)
        if mixture is None:
            return best
        child = self._descended([mixture], best)[0]
        if child.cost < best.cost:
            self._tell(child)
            return child
        return best

    def _tell(self, found: LocalOptimum) -> None:
        if found.cost < self.told.cost:
            self.told = found
            self._workshop.news.offer(found.labels, "exchange", found.iterations)


def _is_small(workshop: Workshop) -> bool:
    return workshop.problem.n_groups * workshop.problem.n_clusters < 150_000
