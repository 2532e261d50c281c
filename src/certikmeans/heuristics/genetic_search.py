"""Hybrid genetic search: a population of local optima, crossover of matched centres, mutation.

The models are HG-means (Gribel and Vidal 2019) and S-MDEClust (Mansueto and Schoen 2024):
two parents are paired centre by centre, each pair passes on one of its two, one centre
moves to a group drawn in proportion to cost, and a local search follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from certikmeans.heuristics.annealed_search import (
    AnyLocalSearch,
    first_centers,
    local_search,
    offspring_search,
)
from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.crossover import crossover_mutate
from certikmeans.heuristics.local_search import LocalOptimum, initial_centers
from certikmeans.random_streams import generator


@final
@dataclass(frozen=True, slots=True)
class GeneticParams:
    """Settings of the genetic search that do not depend on the problem."""

    batch_size: int = 4  # offspring per generation; fixed: results do not depend on threads
    max_population: int = 20  # members before selection
    selected_population: int = 10  # members after it
    cost_tolerance: float = 1e-9  # optima whose costs differ by a smaller fraction are equal
    # Multiplications of an assignment step below which threads take longer than they save.
    min_parallel_step_work: int = 10_000
    # Groups times clusters below which threads run trials; above, they share the groups of one.
    max_parallel_trial_size: int = 150_000

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size: expected a positive integer, got {self.batch_size}")
        if not 1 <= self.selected_population <= self.max_population:
            raise ValueError("selected_population must lie between 1 and max_population")


DEFAULT_PARAMS = GeneticParams()


@final
@dataclass(frozen=True, slots=True)
class GeneticBudget:
    """Effort in numbers of local searches, not seconds, so that runs repeat."""

    starts: int
    offspring: int
    max_no_improve: int  # offspring without improvement before the search ends

    @property
    def trials(self) -> int:
        """Maximum number of local searches."""
        return self.starts + self.offspring


@final
@dataclass(frozen=True, slots=True, eq=False)
class GeneticSearchState:
    """Checkpoint of the search between two batches."""

    members: tuple[LocalOptimum, ...]
    trials: int
    since_best: int
    n_given: int  # given starts descended from
    n_drawn: int  # random starts descended from
    n_offspring: int
    rng_state: dict[str, Any]


@final
class GeneticSearch(AbstractHeuristic):
    """Many starts, then a hybrid genetic search among the local optima they lead to."""

    name: ClassVar[str] = "population"

    def __init__(self, budget: GeneticBudget, params: GeneticParams = DEFAULT_PARAMS) -> None:
        self._budget = budget
        self._params = params

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found; ``ctx.feasible_labels`` if there was no time at all."""
        return self.local_optima(ctx)[0].labels

    def local_optima(self, ctx: HeuristicContext) -> list[LocalOptimum]:
        """Return the distinct local optima that survived, cheapest first."""
        run = _Run(ctx, self._budget, self._params)
        if isinstance(ctx.saved, GeneticSearchState):
            run.restore(ctx.saved)
        run.initialize()
        run.evolve()
        return run.survivors()


@final
class _Run:
    """One search: its population, trial counters and random generator."""

    def __init__(self, ctx: HeuristicContext, budget: GeneticBudget, params: GeneticParams) -> None:
        self._ctx = ctx
        self._budget = budget
        self._params = params
        self._local = local_search(ctx.problem, ctx.assigner, many_clusters=False)
        self._offspring = offspring_search(self._local)
        self._rng = generator(ctx.seed, "heuristics.population", budget.starts)
        self._members: list[LocalOptimum] = []
        self._trials = 0
        self._since_best = 0
        self._n_given = self._n_drawn = self._n_offspring = 0
        # Small instances: one trial per thread. Large ones: one trial at a time, and the
        # threads share its groups (the assigner cuts them into chunks). Very small ones: a trial
        # ends before another thread has started.
        size = ctx.problem.n_groups * ctx.problem.n_clusters
        parallel = size < params.max_parallel_trial_size
        self._trial_ctx = ctx.replace(executor=None) if parallel else ctx
        if ctx.assigner.step_work < params.min_parallel_step_work:
            self._ctx = self._trial_ctx

    def restore(self, state: GeneticSearchState) -> None:
        """Continue from a checkpoint."""
        self._members = list(state.members)
        self._trials, self._since_best = state.trials, state.since_best
        self._n_given, self._n_drawn = state.n_given, state.n_drawn
        self._n_offspring = state.n_offspring
        self._rng.bit_generator.state = state.rng_state

    def _save(self) -> None:
        # Without offspring only the best member is used afterwards.
        members = self._members if self._budget.offspring else self.survivors()[:1]
        counts = self._trials, self._since_best, self._n_given, self._n_drawn, self._n_offspring
        rng_state = self._rng.bit_generator.state
        self._ctx.checkpoint(GeneticSearchState(tuple(members), *counts, dict(rng_state)))

    def initialize(self) -> None:
        """Fill the population from the given starts (or the feasible labels) and random starts."""
        ctx, batch_size = self._ctx, self._params.batch_size
        feasible_centers = ctx.problem.cluster_means(ctx.feasible_labels)
        if ctx.finished():
            if not self._members:
                self._members = [LocalOptimum(ctx.feasible_labels, feasible_centers, np.inf, 0)]
            if not self._n_given:
                self._descend(list(ctx.starts[:1]))  # one or two Lloyd steps already help much
            return
        usual = first_centers(self._local, ctx.problem, feasible_centers, ctx.seed)
        self._descend_from_given(list(ctx.starts) or [usual])
        for first in range(self._n_drawn, self._budget.starts, batch_size):
            if ctx.finished():
                return
            numbers = range(first, min(first + batch_size, self._budget.starts))
            self._descend(initial_centers(ctx.problem, ctx.seed, number) for number in numbers)
            self._n_drawn = numbers.stop
            self._save()

    def _descend_from_given(self, starts: list[Centers]) -> None:
        """Descend from all starts at once, or one by one where a trial takes long."""
        size = 1 if self._trial_ctx is self._ctx else max(1, len(starts))
        for first in range(self._n_given, len(starts), size):
            if first and self._ctx.stop.reason() is not None:
                return
            search = self._local if self._budget.starts else self._offspring
            self._descend(starts[first : first + size], search)
            self._n_given = first + size
            self._save()

    def evolve(self) -> None:
        """Breed until the budget is spent or the offspring no longer improve."""
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
            children = [self._child() for _ in range(self._params.batch_size)]
            self._descend(children, self._offspring)
            self._n_offspring += self._params.batch_size
            self._save()

    def survivors(self) -> list[LocalOptimum]:
        """Members of distinct cost, cheapest first."""
        distinct: list[LocalOptimum] = []
        for member in sorted(self._members, key=lambda optimum: optimum.cost):
            threshold = 1.0 + self._params.cost_tolerance
            if not distinct or member.cost > distinct[-1].cost * threshold:
                distinct.append(member)
        return distinct

    def _descend(self, starts: Iterable[Centers], search: AnyLocalSearch | None = None) -> None:
        """Run a local search from the starts, until the deadline, and insert the results."""
        ctx, local = self._ctx, self._local if search is None else search
        starts = ctx.until_deadline(starts)

        def work(centers: Centers) -> LocalOptimum:
            return local.from_centers(centers, self._trial_ctx)

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
        if found.cost < best * (1.0 - self._params.cost_tolerance):
            self._since_best = 0
        if len(self._members) > self._params.max_population:
            self._members = self.survivors()[: self._params.selected_population]

    def _child(self) -> Centers:
        first, second = self._parent(), self._parent()
        return crossover_mutate(self._ctx.problem, first.centers, second.centers, self._rng)

    def _parent(self) -> LocalOptimum:
        """Binary tournament."""
        first, second = self._rng.integers(len(self._members), size=2)
        one, other = self._members[int(first)], self._members[int(second)]
        return one if one.cost <= other.cost else other
