"""Many clusters: a labelling improved by swaps and new neighbourhoods, region by region.

Every trial changes the best labelling in several places at once and descends; what became better
is taken over region by region (`regions`), so one trial tests many moves. When trials
lead nowhere, the same is done from other starts, and the two results are mixed: where that still
helps, it is done again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.local_search import LocalOptimum, means_of
from certikmeans.heuristics.offspring import child_of, crossed_by_a_line
from certikmeans.heuristics.quick_search import QuickSearch
from certikmeans.heuristics.regions import Pool
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


@final
@dataclass(frozen=True, slots=True)
class Exertion:
    """How long to go on: numbers of local searches, not seconds, so that runs repeat."""

    starts: int  # of every attempt; with 0 there is one, from the given starts
    patience: int  # trials without improvement before an attempt ends
    trials: int  # in all
    attempts: int = 8  # after the first, in a row, that end above the best before the search ends


@final
class Exchange(AbstractHeuristic):
    """Attempts from different starts, mixed by regions, for as long as they help."""

    name: ClassVar[str] = "exchange"

    def __init__(self, exertion: Exertion) -> None:
        self._exertion = exertion

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found; the witness if there was no time at all."""
        run = _Run(workshop, self._exertion)
        if workshop.starts or not workshop.finished():
            run.attempt_until_in_vain()
        return run.told.labels


@final
class _Run:
    """One search: its best labelling and its count of trials."""

    def __init__(self, workshop: Workshop, exertion: Exertion) -> None:
        problem = workshop.problem
        self._workshop = workshop
        self._exertion = exertion
        self._quick = QuickSearch(problem, workshop.assigner)
        self._inner = workshop.but(executor=None) if _is_small(workshop) else workshop
        self._trials = 0
        self._starts = 0
        self._pool: Pool | None = None
        self._elite: list[LocalOptimum] = []
        self._polished: frozenset[float] = frozenset()  # costs of what has been
        witness = means_of(problem, workshop.witness)
        self._nothing = LocalOptimum(workshop.witness, witness, np.inf, 0)
        self.told = self._nothing  # the best of all

    def attempt_until_in_vain(self) -> None:
        """Make attempts and mix them, until enough of them in a row have not helped."""
        starts = self._workshop.starts[: 1 if self._workshop.finished() else None]
        given = list(starts) or [self._nothing.centers]
        best = self._improved(self._started(given))
        in_vain = 0 if self._exertion.starts else self._exertion.attempts
        while in_vain < self._exertion.attempts and not self._is_over():
            other = self._another()
            mixed = self._mixed(*sorted((best, other), key=lambda one: one.cost))
            if mixed.cost < min(best.cost, other.cost):
                mixed = self._improved(mixed)
            if mixed.cost < best.cost * (1.0 - SAME_COST):
                best, in_vain = mixed, 0
            else:
                in_vain += AGREEING if other.cost <= best.cost * (1.0 + SAME_COST) else 1

    def _another(self) -> LocalOptimum:
        """An attempt that knows nothing of those before, or it would end where they did."""
        before, self._elite = self._elite, []
        found = self._improved(self._started([]))
        for one in before:
            self._remember(one)
        return found

    def _is_over(self) -> bool:
        return self._workshop.finished() or self._trials >= self._exertion.trials

    def _started(self, given: list[Centers]) -> LocalOptimum:
        """Best mixture of what the given starts and some random ones lead to."""
        workshop, problem = self._workshop, self._workshop.problem
        best = self._nothing
        for found in self._descended(given, best):
            best = self._better(best, found)
        for first in range(0, self._exertion.starts, BATCH):
            if workshop.finished():
                return best
            numbers = range(first, min(first + BATCH, self._exertion.starts))
            starts = (
                start_centers(problem, workshop.seed, self._starts + number) for number in numbers
            )
            for found in self._descended(starts, best):
                best = self._better(best, found)
        self._starts += self._exertion.starts
        return best

    def _improved(self, best: LocalOptimum) -> LocalOptimum:
        """Change the best in a few places, for as long as that helps."""
        idle = 0
        land = None
        while idle < self._exertion.patience and not self._is_over():
            if land is None or land.optimum is not best:
                land = survey(self._workshop.problem, best)
            before = best.cost
            starts = [self._changed(land, self._trials + i) for i in range(BATCH)]
            for found in self._descended(starts, best):
                best = self._better(best, found)
            idle = 0 if best.cost < before * (1.0 - SAME_COST) else idle + BATCH
        return best

    def _changed(self, land: Landscape, trial: int) -> Centers:
        problem = self._workshop.problem
        rng = generator(self._workshop.seed, "heuristics.exchange", trial)
        count = 1 + int(rng.random() * PLACES * problem.n_clusters)
        kind = trial % 4
        if kind == 2 and self._elite:
            partner = self._elite[int(rng.integers(len(self._elite)))]
            return crossed_by_a_line(land.optimum.centers, partner.centers, rng)
        if kind == 3 and len(self._elite) > 1:
            # The best need not be a parent: with it in every trial, all end near the same optimum.
            ranked = (land.optimum, *self._elite)
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
        self._polished |= {cost for _, cost in found}
        self._trials += len(found)
        workshop.on_progress(self._trials, max(self._trials, self._exertion.trials))
        return [one for one, _ in found]

    def _descend(self, centers: Centers, best: float) -> tuple[LocalOptimum, float]:
        """Quickly; where labels take a search, again with it if that is promising and new.

        Also says at which cost the quick one ended.
        """
        found = self._quick.from_centers(centers, self._inner)
        if not self._workshop.assigner.searches or found.cost > CLOSE * best:
            return found, found.cost
        if found.cost in self._polished or self._workshop.finished():
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
        near = (abs(found.cost - one.cost) <= SAME_COST * one.cost for one in self._elite)
        if not any(near):
            self._elite = sorted([*self._elite, found], key=lambda one: one.cost)[:ELITE]

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
