"""A population of local optima: crossover by matching centres, mutation by moving one.

The models are HG-means (Gribel and Vidal 2019) and S-MDEClust (Mansueto and Schoen 2024):
two parents are paired centre by centre, each pair passes on one of its two, one centre
is moved to where the cost is, and a local search does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.local_search import LocalOptimum, LocalSearch, means_of
from certikmeans.heuristics.offspring import child_of
from certikmeans.heuristics.seeding import start_centers
from certikmeans.streams import generator

# Offspring per generation: fixed, so that the answer does not depend on the threads.
BATCH = 4
LARGEST_POPULATION = 20
SURVIVORS = 10
# Multiplications of an assignment step below which threads take longer.
SHORT_STEP = 10_000
# Two optima whose costs differ by less are taken for the same one.
SAME_COST = 1e-9


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """How long to go on: numbers of local searches, not seconds, so that runs repeat."""

    starts: int
    offspring: int
    patience: int  # offspring without improvement before giving up

    @property
    def trials(self) -> int:
        """Local searches at the most."""
        return self.starts + self.offspring


@final
@dataclass(frozen=True, slots=True, eq=False)
class PopulationKept:
    """A population between two batches."""

    members: tuple[LocalOptimum, ...]
    trials: int
    since_best: int
    given: int  # starts of others that were descended from,
    drawn: int  # random ones,
    bred: int  # and offspring
    random: dict[str, Any]  # state of the generator


@final
class Population(AbstractHeuristic):
    """Many starts, then a hybrid genetic search among the local optima they lead to."""

    name: ClassVar[str] = "population"

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found; the witness if there was no time at all."""
        return self.best_of_run(workshop)[0].labels

    def best_of_run(self, workshop: Workshop) -> list[LocalOptimum]:
        """Return the distinct local optima that survived, cheapest first."""
        run = _Run(workshop, self._budget)
        if isinstance(workshop.kept, PopulationKept):
            run.go_on(workshop.kept)
        run.begin()
        run.evolve()
        return run.survivors()


@final
class _Run:
    """One search: its members, its clock of trials, its random generator."""

    def __init__(self, workshop: Workshop, budget: Budget) -> None:
        self._workshop = workshop
        self._budget = budget
        self._local = LocalSearch(workshop.problem, workshop.assigner)
        self._rng = generator(workshop.seed, "heuristics.population", budget.starts)
        self._members: list[LocalOptimum] = []
        self._trials = 0
        self._since_best = 0
        self._given = self._drawn = self._bred = 0
        # Small instances: one trial per thread. Large ones: one trial at a time, and the
        # threads share its groups (the assigner cuts them into chunks). Very small ones: a trial
        # is done before another thread has begun.
        self._inner = workshop.but(executor=None) if _is_small(workshop) else workshop
        if workshop.assigner.step_work < SHORT_STEP:
            self._workshop = self._inner

    def go_on(self, before: PopulationKept) -> None:
        """Go on where a run before was."""
        self._members = list(before.members)
        self._trials, self._since_best = before.trials, before.since_best
        self._given, self._drawn, self._bred = before.given, before.drawn, before.bred
        self._rng.bit_generator.state = before.random

    def _keep(self) -> None:
        # Without offspring nobody but the best will be asked for.
        members = self._members if self._budget.offspring else _distinct(self._members)[:1]
        counts = self._trials, self._since_best, self._given, self._drawn, self._bred
        random = self._rng.bit_generator.state
        self._workshop.keep(PopulationKept(tuple(members), *counts, dict(random)))

    def begin(self) -> None:
        """Fill the population from the given starts (or the witness) and random starts."""
        workshop = self._workshop
        witness = means_of(workshop.problem, workshop.witness)
        if workshop.finished():
            if not self._members:
                self._members = [LocalOptimum(workshop.witness, witness, np.inf, 0)]
            if not self._given:
                self._descend(list(workshop.starts[:1]))  # a step or two: far better than nothing
            return
        self._descend_from_given(list(workshop.starts) or [witness])
        for first in range(self._drawn, self._budget.starts, BATCH):
            if workshop.finished():
                return
            numbers = range(first, min(first + BATCH, self._budget.starts))
            self._descend(
                start_centers(workshop.problem, workshop.seed, number) for number in numbers
            )
            self._drawn = numbers.stop
            self._keep()

    def _descend_from_given(self, starts: list[Centers]) -> None:
        """All at once, or where a start takes long, one after the other."""
        size = 1 if self._inner is self._workshop else max(1, len(starts))
        for first in range(self._given, len(starts), size):
            if first and self._workshop.stop.cause() is not None:
                return
            self._descend(starts[first : first + size])
            self._given = first + size
            self._keep()

    def evolve(self) -> None:
        """Breed until the budget or the patience is used up."""
        if self._workshop.problem.n_clusters == 1:
            return
        if not self._bred:
            self._since_best = 0
        while self._bred < self._budget.offspring and self._since_best < self._budget.patience:
            if self._workshop.finished():
                return
            self._descend([self._child() for _ in range(BATCH)])
            self._bred += BATCH
            self._keep()

    def survivors(self) -> list[LocalOptimum]:
        """Distinct members, cheapest first."""
        return _distinct(self._members)

    def _descend(self, starts: Iterable[Centers]) -> None:
        """Run the local search from the starts and admit what it finds, as far as there is time."""
        workshop = self._workshop
        starts = workshop.in_time(starts)

        def work(centers: Centers) -> LocalOptimum:
            return self._local.from_centers(centers, self._inner)

        beside = self._inner is not workshop
        for found in workshop.map(work, starts) if beside else map(work, starts):
            self._admit(found)
        workshop.on_progress(self._trials, self._budget.trials)

    def _admit(self, found: LocalOptimum) -> None:
        best = min((member.cost for member in self._members), default=np.inf)
        self._trials += 1
        self._since_best += 1
        self._members.append(found)
        if found.cost < best:
            self._workshop.news.offer(found.labels, "population", found.iterations)
        if found.cost < best * (1.0 - SAME_COST):
            self._since_best = 0
        if len(self._members) > LARGEST_POPULATION:
            self._members = _distinct(self._members)[:SURVIVORS]

    def _child(self) -> Centers:
        first, second = self._parent(), self._parent()
        return child_of(self._workshop.problem, first.centers, second.centers, self._rng)

    def _parent(self) -> LocalOptimum:
        """Binary tournament."""
        first, second = self._rng.integers(len(self._members), size=2)
        one, other = self._members[int(first)], self._members[int(second)]
        return one if one.cost <= other.cost else other


def _is_small(workshop: Workshop) -> bool:
    return workshop.problem.n_groups * workshop.problem.n_clusters < 150_000


def _distinct(members: list[LocalOptimum]) -> list[LocalOptimum]:
    """One member per cost, cheapest first."""
    kept: list[LocalOptimum] = []
    for member in sorted(members, key=lambda m: m.cost):
        if not kept or member.cost > kept[-1].cost * (1.0 + SAME_COST):
            kept.append(member)
    return kept
