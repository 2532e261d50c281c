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

from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.crossover import crossover_mutate
from certikmeans.heuristics.local_search import LocalOptimum, LocalSearch, means_of
from certikmeans.heuristics.seeding import initial_centers
from certikmeans.random_streams import generator

# Offspring per generation: fixed, so that the answer does not depend on the threads.
BATCH_SIZE = 4
MAX_POPULATION = 20
SELECTED_POPULATION = 10
# Multiplications of an assignment step below which threads take longer.
MIN_PARALLEL_STEP_WORK = 10_000
# Two optima whose costs differ by less are taken for the same one.
COST_TOLERANCE = 1e-9


@final
@dataclass(frozen=True, slots=True)
class GeneticBudget:
    """How long to go on: numbers of local searches, not seconds, so that runs repeat."""

    starts: int
    offspring: int
    max_no_improve: int  # offspring without improvement before giving up

    @property
    def trials(self) -> int:
        """Local searches at the most."""
        return self.starts + self.offspring


@final
@dataclass(frozen=True, slots=True, eq=False)
class GeneticSearchState:
    """A population between two batches."""

    members: tuple[LocalOptimum, ...]
    trials: int
    since_best: int
    n_given: int  # starts of others that were descended from,
    n_drawn: int  # random ones,
    n_offspring: int  # and offspring
    rng_state: dict[str, Any]  # state of the generator


@final
class GeneticSearch(AbstractHeuristic):
    """Many starts, then a hybrid genetic search among the local optima they lead to."""

    name: ClassVar[str] = "population"

    def __init__(self, budget: GeneticBudget) -> None:
        self._budget = budget

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found; the witness if there was no time at all."""
        return self.local_optima(ctx)[0].labels

    def local_optima(self, ctx: HeuristicContext) -> list[LocalOptimum]:
        """Return the distinct local optima that survived, cheapest first."""
        run = _Run(ctx, self._budget)
        if isinstance(ctx.saved, GeneticSearchState):
            run.restore(ctx.saved)
        run.initialize()
        run.evolve()
        return run.survivors()


@final
class _Run:
    """One search: its members, its clock of trials, its random generator."""

    def __init__(self, ctx: HeuristicContext, budget: GeneticBudget) -> None:
        self._ctx = ctx
        self._budget = budget
        self._local = LocalSearch(ctx.problem, ctx.assigner)
        self._rng = generator(ctx.seed, "heuristics.population", budget.starts)
        self._members: list[LocalOptimum] = []
        self._trials = 0
        self._since_best = 0
        self._n_given = self._n_drawn = self._n_offspring = 0
        # Small instances: one trial per thread. Large ones: one trial at a time, and the
        # threads share its groups (the assigner cuts them into chunks). Very small ones: a trial
        # is done before another thread has begun.
        self._trial_ctx = ctx.replace(executor=None) if _runs_trials_in_parallel(ctx) else ctx
        if ctx.assigner.step_work < MIN_PARALLEL_STEP_WORK:
            self._ctx = self._trial_ctx

    def restore(self, before: GeneticSearchState) -> None:
        """Go on where a run before was."""
        self._members = list(before.members)
        self._trials, self._since_best = before.trials, before.since_best
        self._n_given, self._n_drawn, self._n_offspring = (
            before.n_given,
            before.n_drawn,
            before.n_offspring,
        )
        self._rng.bit_generator.state = before.rng_state

    def _save(self) -> None:
        # Without offspring nobody but the best will be asked for.
        members = self._members if self._budget.offspring else _distinct(self._members)[:1]
        counts = self._trials, self._since_best, self._n_given, self._n_drawn, self._n_offspring
        rng_state = self._rng.bit_generator.state
        self._ctx.checkpoint(GeneticSearchState(tuple(members), *counts, dict(rng_state)))

    def initialize(self) -> None:
        """Fill the population from the given starts (or the witness) and random starts."""
        ctx = self._ctx
        feasible_labels = means_of(ctx.problem, ctx.feasible_labels)
        if ctx.finished():
            if not self._members:
                self._members = [LocalOptimum(ctx.feasible_labels, feasible_labels, np.inf, 0)]
            if not self._n_given:
                self._descend(list(ctx.starts[:1]))  # a step or two: far better than nothing
            return
        self._descend_from_given(list(ctx.starts) or [feasible_labels])
        for first in range(self._n_drawn, self._budget.starts, BATCH_SIZE):
            if ctx.finished():
                return
            numbers = range(first, min(first + BATCH_SIZE, self._budget.starts))
            self._descend(initial_centers(ctx.problem, ctx.seed, number) for number in numbers)
            self._n_drawn = numbers.stop
            self._save()

    def _descend_from_given(self, starts: list[Centers]) -> None:
        """All at once, or where a start takes long, one after the other."""
        size = 1 if self._trial_ctx is self._ctx else max(1, len(starts))
        for first in range(self._n_given, len(starts), size):
            if first and self._ctx.stop.reason() is not None:
                return
            self._descend(starts[first : first + size])
            self._n_given = first + size
            self._save()

    def evolve(self) -> None:
        """Breed until the budget or the patience is used up."""
        if self._ctx.problem.n_clusters == 1:
            return
        if not self._n_offspring:
            self._since_best = 0
        while (
            self._n_offspring < self._budget.offspring
            and self._since_best < self._budget.max_no_improve
        ):
            if self._ctx.finished():
                return
            self._descend([self._child() for _ in range(BATCH_SIZE)])
            self._n_offspring += BATCH_SIZE
            self._save()

    def survivors(self) -> list[LocalOptimum]:
        """Distinct members, cheapest first."""
        return _distinct(self._members)

    def _descend(self, starts: Iterable[Centers]) -> None:
        """Run the local search from the starts and admit what it finds, as far as there is time."""
        ctx = self._ctx
        starts = ctx.until_deadline(starts)

        def work(centers: Centers) -> LocalOptimum:
            return self._local.from_centers(centers, self._trial_ctx)

        parallel = self._trial_ctx is not ctx
        for found in ctx.map(work, starts) if parallel else map(work, starts):
            self._insert(found)
        ctx.on_progress(self._trials, self._budget.trials)

    def _insert(self, found: LocalOptimum) -> None:
        best = min((member.cost for member in self._members), default=np.inf)
        self._trials += 1
        self._since_best += 1
        self._members.append(found)
        if found.cost < best:
            self._ctx.incumbent.update_incumbent(found.labels, "population", found.iterations)
        if found.cost < best * (1.0 - COST_TOLERANCE):
            self._since_best = 0
        if len(self._members) > MAX_POPULATION:
            self._members = _distinct(self._members)[:SELECTED_POPULATION]

    def _child(self) -> Centers:
        first, second = self._parent(), self._parent()
        return crossover_mutate(self._ctx.problem, first.centers, second.centers, self._rng)

    def _parent(self) -> LocalOptimum:
        """Binary tournament."""
        first, second = self._rng.integers(len(self._members), size=2)
        one, other = self._members[int(first)], self._members[int(second)]
        return one if one.cost <= other.cost else other


def _runs_trials_in_parallel(ctx: HeuristicContext) -> bool:
    return ctx.problem.n_groups * ctx.problem.n_clusters < 150_000


def _distinct(members: list[LocalOptimum]) -> list[LocalOptimum]:
    """One member per cost, cheapest first."""
    saved: list[LocalOptimum] = []
    for member in sorted(members, key=lambda m: m.cost):
        if not saved or member.cost > saved[-1].cost * (1.0 + COST_TOLERANCE):
            saved.append(member)
    return saved
