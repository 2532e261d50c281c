"""Default heuristic: choice of the search, subsampling of large data, final polish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from certikmeans.assignment import AbstractAssigner, make_assigner
from certikmeans.assignment.label_search import feasible_labels_near
from certikmeans.heuristics.annealed_search import AnnealedSearch, is_entangled
from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.genetic_search import GeneticBudget, GeneticSearch
from certikmeans.heuristics.local_search import (
    LocalSearch,
    draw_sample,
    initial_centers,
    pass_work,
)
from certikmeans.heuristics.swap_search import SwapBudget, SwapSearch
from certikmeans.incumbent import NullIncumbent
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator


@final
@dataclass(frozen=True, slots=True)
class HeuristicParams:
    """Settings of the heuristic stage."""

    time_fraction: float = 0.2  # of the time limit; the rest is for the proof
    # Budgets count local searches, so that runs repeat: work, in multiplications, divided by that
    # of a local search.
    work_budget: float = 6e9
    steps_per_local_search: int = 30  # assignment steps
    # With more clusters, or with some where a local search takes milliseconds, the genetic search
    # takes longer than the swap search for the same cost.
    max_clusters_genetic: int = 10
    max_clusters_genetic_slow: int = 5
    slow_step_work: float = 300_000
    # Where cannot-links couple many clusters, improving trials are rarer by about this factor.
    linked_budget_factor: int = 3
    # Above this many groups, centres are searched on a sample and polished on all groups.
    max_direct_groups: int = 40_000
    sample_size: int = 20_000
    sample_time_fraction: float = 0.5  # of the remaining time; the rest is for the polish
    # Candidates of a sample that are polished: those within this ratio of the best, since costs on
    # a sample do not separate them.
    max_sample_candidates: int = 4
    candidate_cost_ratio: float = 1.01
    # All groups have local optima that the sample does not have: the best centres are also tried
    # with noise, as a fraction of the standard deviation of the points.
    n_jittered: int = 4
    jitter_scale: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 < self.time_fraction <= 1.0 or not 0.0 < self.sample_time_fraction <= 1.0:
            raise ValueError("time fractions must lie in (0, 1]")
        if not 1 <= self.sample_size <= self.max_direct_groups:
            raise ValueError("sample_size must lie between 1 and max_direct_groups")


DEFAULT_PARAMS = HeuristicParams()

# Stages that a search is saved in. Their text is part of checkpoints.
SEARCH, SAMPLE, SECOND_SAMPLE = "search", "sample", "another sample"
FULL_PROBLEM, POLISH = "whole", "polish"
SECOND_SAMPLE_SEED_OFFSET = 1_000_003
# Without this, entangled problems would get fewer trials than improve them.
ENTANGLED_BUDGET_FACTOR = 4.0


@final
class DefaultSearch(AbstractHeuristic):
    """`GeneticSearch` or `SwapSearch`, on a sample first if there are many groups."""

    name: ClassVar[str] = "default"

    def __init__(self, params: HeuristicParams | None = None) -> None:
        self._params = DEFAULT_PARAMS if params is None else params

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
        problem = ctx.problem
        if problem.n_clusters >= problem.n_groups:
            # One cluster per group: cost 0, and no cannot-link is violated.
            labels = np.arange(problem.n_groups)
            if problem.label_constraints.satisfied_by(labels):
                ctx.incumbent.update_incumbent(labels, "one group per cluster")
                return labels
        direct = problem.n_groups <= self._params.max_direct_groups
        # A sample of entangled constraints has few of them: its optima are others.
        if direct or ctx.incumbent.gap_reached() or is_entangled(problem, ctx.assigner):
            if ctx.finished() and not ctx.starts:  # a few steps even without time
                ctx = ctx.replace(starts=(initial_centers(problem, ctx.seed, 0),))
            if self.has_many_clusters(ctx):
                return SwapSearch(self.swap_budget(ctx)).search(ctx)
            return GeneticSearch(self.genetic_budget(ctx)).search(ctx)
        return self._search_by_sample(ctx)

    def has_many_clusters(self, ctx: HeuristicContext) -> bool:
        """Whether the swap search supports the problem and outperforms the genetic search."""
        params, n_clusters = self._params, ctx.problem.n_clusters
        constraints = ctx.problem.label_constraints
        if not constraints.is_cannot_link_only or is_entangled(ctx.problem, ctx.assigner):
            return n_clusters > params.max_clusters_genetic
        return n_clusters > params.max_clusters_genetic or (
            n_clusters > params.max_clusters_genetic_slow
            and ctx.assigner.step_work > params.slow_step_work
        )

    def genetic_budget(self, ctx: HeuristicContext) -> GeneticBudget:
        """More trials where they are cheap, and where more clusters make more local optima."""
        affordable = self._n_affordable(ctx, ctx.assigner.step_work)
        clusters = ctx.problem.n_clusters
        return GeneticBudget(
            starts=int(np.clip(affordable / 4, 4, 24)),
            offspring=int(np.clip(affordable, 8, 200 + 100 * clusters)),
            max_no_improve=int(np.clip(affordable / 2, 8, 60 + 20 * clusters)),
        )

    def swap_budget(self, ctx: HeuristicContext) -> SwapBudget:
        """More trials where they are cheap, and where there are more clusters to perturb."""
        linked_only = ctx.problem.label_constraints.is_cannot_link_only
        work = pass_work(ctx.problem) if linked_only else ctx.assigner.step_work
        affordable = self._n_affordable(ctx, work)
        usual = 60 + 4 * ctx.problem.n_clusters
        most = usual * (self._params.linked_budget_factor if ctx.assigner.needs_search else 1)
        max_no_improve = int(np.clip(affordable / 4, 16, most))
        return SwapBudget(
            starts=int(np.clip(affordable / 16, 4, 8)),
            max_no_improve=max_no_improve,
            trials=100 * max_no_improve,
            max_failed_restarts=int(min(affordable / 40, 8)),
        )

    def _n_affordable(self, ctx: HeuristicContext, step_work: float) -> float:
        """Number of local searches in the work budget."""
        work = self._params.steps_per_local_search * step_work
        if is_entangled(ctx.problem, ctx.assigner):
            work = AnnealedSearch(ctx.problem).work / ENTANGLED_BUDGET_FACTOR
        return self._params.work_budget / work

    def _search_by_sample(self, ctx: HeuristicContext) -> Labels:
        """Search on one or two samples, then polish their candidates on all groups."""
        if ctx.saved_in(FULL_PROBLEM):
            starts = ctx.saved.results
        else:
            starts = (*ctx.starts, *self._sample_candidates(ctx))
        full = ctx.for_stage(FULL_PROBLEM, *starts).replace(starts=starts)
        if not ctx.saved_in(FULL_PROBLEM):
            full.checkpoint(None)
        if self.has_many_clusters(ctx):
            return SwapSearch(SwapBudget(0, 0, 0)).search(full)
        return GeneticSearch(GeneticBudget(0, 0, 0)).search(full)

    def _sample_candidates(self, ctx: HeuristicContext) -> list[Centers]:
        """Candidates of one sample; with many clusters of two, because one may mislead."""
        if ctx.saved_in(SECOND_SAMPLE):
            found = list(ctx.saved.results)
        else:
            found = self._candidates_of_sample(ctx.for_stage(SAMPLE))
        if self.has_many_clusters(ctx) and ctx.stop.reason() is None:
            second = ctx.for_stage(SECOND_SAMPLE, *found).replace(
                seed=ctx.seed + SECOND_SAMPLE_SEED_OFFSET
            )
            if not ctx.saved_in(SECOND_SAMPLE):
                second.checkpoint(None)
            found += self._candidates_of_sample(second)
        return found

    def _candidates_of_sample(self, ctx: HeuristicContext) -> list[Centers]:
        params = self._params
        rng = generator(ctx.seed, "heuristics.sample")
        sample = draw_sample(ctx.problem, params.sample_size, rng)
        feasible_labels = feasible_labels_near(
            sample.problem, ctx.feasible_labels[sample.rows], ctx.stop
        )
        if feasible_labels is None:
            return list(ctx.starts) or [initial_centers(ctx.problem, ctx.seed, 0)]
        small = ctx.replace(
            problem=sample.problem,
            assigner=make_assigner(sample.problem, feasible_labels, exact_time_limit=0.0),
            feasible_labels=feasible_labels,
            incumbent=NullIncumbent(),
            starts=(initial_centers(sample.problem, ctx.seed, 0),),  # used even without time
            stop=ctx.stop.with_time_limit(params.sample_time_fraction * ctx.stop.remaining),
        )
        if self.has_many_clusters(small):
            labels = SwapSearch(self.swap_budget(small)).search(small)
            candidates = [sample.problem.cluster_means(labels)]
        else:
            optima = GeneticSearch(self.genetic_budget(small)).local_optima(small)
            max_cost = params.candidate_cost_ratio * optima[0].cost
            candidates = [optimum.centers for optimum in optima if optimum.cost <= max_cost]
        jittered = self._jittered(candidates[0], sample.problem, ctx.seed)
        return candidates[: params.max_sample_candidates] + jittered

    def _jittered(self, centers: Centers, problem: ReducedProblem, seed: int) -> list[Centers]:
        rng = generator(seed, "heuristics.jitter")
        scale = self._params.jitter_scale * problem.points.std(axis=0)
        n_copies = self._params.n_jittered
        return [centers + scale * rng.normal(size=centers.shape) for _ in range(n_copies)]


def run_heuristics(
    ctx: HeuristicContext,
    exact_assigner: AbstractAssigner,
    starts: tuple[Centers, ...],
    params: HeuristicParams | None = None,
) -> None:
    """Run the heuristic stage; improvements go to ``ctx.incumbent``.

    The default search within its fraction of the time, then a local search with
    ``exact_assigner``, which has a time limit per hard component. The searches do not use it:
    limits in seconds would make their result depend on the machine, and add up over many trials.
    """
    params = DEFAULT_PARAMS if params is None else params
    stop = ctx.stop.with_time_limit(params.time_fraction * ctx.stop.remaining)
    limited = ctx.replace(starts=starts, stop=stop)
    if ctx.saved_in(POLISH):
        found = ctx.saved.results[0]
    else:
        found = DefaultSearch(params).search(limited.for_stage(SEARCH))
        ctx.incumbent.update_incumbent(found, "heuristics")
        limited.for_stage(POLISH, found).checkpoint(None)
    if not limited.finished():
        entangled = is_entangled(ctx.problem, exact_assigner)
        local = (
            AnnealedSearch(ctx.problem) if entangled else LocalSearch(ctx.problem, exact_assigner)
        )
        polished = local.from_labels(found, limited.replace(assigner=exact_assigner))
        ctx.incumbent.update_incumbent(polished.labels, "polish", polished.iterations)
