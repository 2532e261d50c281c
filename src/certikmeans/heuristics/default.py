"""Default heuristic: choice of the search, subsampling of large data, final polish."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from certikmeans.assignment import AbstractAssigner, make_assigner
from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.genetic_search import GeneticBudget, GeneticSearch
from certikmeans.heuristics.local_search import LocalSearch, means_of, pass_work
from certikmeans.heuristics.seeding import draw_sample, initial_centers
from certikmeans.heuristics.swap_search import SwapBudget, SwapSearch
from certikmeans.incumbent import NullIncumbent
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator

# Above this many groups, centres are sought on a sample and polished on the whole.
MAX_DIRECT_GROUPS = 40_000
SAMPLE_SIZE = 20_000
# Of the time that there is; what is found on a sample is worth nothing before the whole has it.
SAMPLE_TIME_FRACTION = 0.5
# On the whole only those are polished that the sample cannot tell from the best.
MAX_SAMPLE_CANDIDATES = 4
CANDIDATE_COST_RATIO = 1.01
# The whole has local optima that the sample does not: the best centres are also tried slightly
# moved, by a few per cent of the points' spread.
N_JITTERED = 4
JITTER_SCALE = 0.05
# Stages that a search is saved in; and how the seed of the second sample differs.
SECOND_SAMPLE, FULL_PROBLEM = "another sample", "whole"
SECOND_SAMPLE_SEED_OFFSET = 1_000_003
# Local searches are counted, not timed, so that a run repeats; a local search costs
# about MAX_LLOYD_STEPS assignment steps.
STEPS_PER_LOCAL_SEARCH = 30
WORK_BUDGET = 6e9
# From here on, a population of whole labellings takes longer than swaps and regions: with more
# clusters, and with some where a local search takes milliseconds.
MAX_CLUSTERS_GENETIC = 10
MAX_CLUSTERS_GENETIC_SLOW = 5
SLOW_STEP_WORK = 300_000
# Where cannot-links tie many clusters to each other, a trial that helps is so much rarer.
LINKED_BUDGET_FACTOR = 3


def default_genetic_budget(ctx: HeuristicContext) -> GeneticBudget:
    """More trials where they are cheap, and where more clusters make more local optima."""
    affordable = WORK_BUDGET / (STEPS_PER_LOCAL_SEARCH * ctx.assigner.step_work)
    clusters = ctx.problem.n_clusters
    return GeneticBudget(
        starts=int(np.clip(affordable / 4, 4, 24)),
        offspring=int(np.clip(affordable, 8, 200 + 100 * clusters)),
        max_no_improve=int(np.clip(affordable / 2, 8, 60 + 20 * clusters)),
    )


def default_swap_budget(ctx: HeuristicContext) -> SwapBudget:
    """More patience where trials are cheap, and where there are more clusters to try."""
    affordable = WORK_BUDGET / (STEPS_PER_LOCAL_SEARCH * pass_work(ctx.problem))
    usual = 60 + 4 * ctx.problem.n_clusters
    most = usual * (LINKED_BUDGET_FACTOR if ctx.assigner.needs_search else 1)
    max_no_improve = int(np.clip(affordable / 4, 16, most))
    return SwapBudget(
        starts=int(np.clip(affordable / 16, 4, 8)),
        max_no_improve=max_no_improve,
        trials=100 * max_no_improve,
        max_failed_restarts=int(min(affordable / 40, 8)),
    )


def has_many_clusters(ctx: HeuristicContext) -> bool:
    """Whether swaps find more than a population in the same time, and keep to the rules."""
    n_clusters = ctx.problem.n_clusters
    if not ctx.problem.label_constraints.is_cannot_link_only:
        return False
    return n_clusters > MAX_CLUSTERS_GENETIC or (
        n_clusters > MAX_CLUSTERS_GENETIC_SLOW and ctx.assigner.step_work > SLOW_STEP_WORK
    )


@final
class DefaultSearch(AbstractHeuristic):
    """Trivial cases at once; else `GeneticSearch` or `SwapSearch`, by way of a sample if need be."""

    name: ClassVar[str] = "default"

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
        problem = ctx.problem
        if problem.n_clusters >= problem.n_groups:
            # Every group has a cluster to itself: nothing can cost less, no pair can object.
            labels = np.arange(problem.n_groups)
            if problem.label_constraints.satisfied_by(labels):
                ctx.incumbent.update_incumbent(labels, "one group per cluster")
                return labels
        if problem.n_groups <= MAX_DIRECT_GROUPS or ctx.incumbent.gap_reached():
            if ctx.finished() and not ctx.starts:  # a few steps, however late it is
                ctx = ctx.replace(starts=(initial_centers(problem, ctx.seed, 0),))
            if has_many_clusters(ctx):
                return SwapSearch(default_swap_budget(ctx)).search(ctx)
            return GeneticSearch(default_genetic_budget(ctx)).search(ctx)
        if ctx.saved_in(FULL_PROBLEM):
            starts = ctx.saved.results
        else:
            starts = (*ctx.starts, *self._sample_candidates(ctx))
        full = ctx.for_stage(FULL_PROBLEM, *starts).replace(starts=starts)
        if not ctx.saved_in(FULL_PROBLEM):
            full.checkpoint(None)
        if has_many_clusters(ctx):
            return SwapSearch(SwapBudget(0, 0, 0)).search(full)
        return GeneticSearch(GeneticBudget(0, 0, 0)).search(full)

    def _sample_candidates(self, ctx: HeuristicContext) -> list[Centers]:
        """Of one sample; with many clusters of another, too, which chance has not made the same."""
        if ctx.saved_in(SECOND_SAMPLE):
            found = list(ctx.saved.results)
        else:
            found = self._candidates_of_sample(ctx.for_stage("sample"))
        if has_many_clusters(ctx):
            second = ctx.for_stage(SECOND_SAMPLE, *found).replace(
                seed=ctx.seed + SECOND_SAMPLE_SEED_OFFSET
            )
            if not ctx.saved_in(SECOND_SAMPLE):
                second.checkpoint(None)
            found += self._candidates_of_sample(second)
        return found

    def _candidates_of_sample(self, ctx: HeuristicContext) -> list[Centers]:
        sample = draw_sample(ctx.problem, SAMPLE_SIZE, generator(ctx.seed, "heuristics.sample"))
        feasible_labels = ctx.feasible_labels[sample.rows]
        small = ctx.replace(
            problem=sample.problem,
            assigner=make_assigner(sample.problem, feasible_labels, exact_time_limit=0.0),
            feasible_labels=feasible_labels,
            incumbent=NullIncumbent(),
            starts=(initial_centers(sample.problem, ctx.seed, 0),),  # however short the time
            stop=ctx.stop.with_time_limit(SAMPLE_TIME_FRACTION * ctx.stop.remaining),
        )
        if has_many_clusters(small):
            candidates = [
                means_of(sample.problem, SwapSearch(default_swap_budget(small)).search(small))
            ]
        else:
            optima = GeneticSearch(default_genetic_budget(small)).local_optima(small)
            candidates = [
                one.centers for one in optima if one.cost <= CANDIDATE_COST_RATIO * optima[0].cost
            ]
        return candidates[:MAX_SAMPLE_CANDIDATES] + _jittered(
            candidates[0], sample.problem, ctx.seed
        )


def _jittered(centers: Centers, problem: ReducedProblem, seed: int) -> list[Centers]:
    rng = generator(seed, "heuristics.jitter")
    scale = JITTER_SCALE * problem.points.std(axis=0)
    return [centers + scale * rng.normal(size=centers.shape) for _ in range(N_JITTERED)]


# The stage: the default heuristic within its share of the time, then a patient polish.

# Of a time limit, heuristics get at most this much, so that there is time for a proof.
HEURISTICS_TIME_FRACTION = 0.2
POLISH = "polish"


def run_heuristics(
    ctx: HeuristicContext, exact_assigner: AbstractAssigner, starts: tuple[Centers, ...]
) -> None:
    """Tell the workshop's news of the best labelling that can be found.

    ``exact_assigner`` takes its time for components that a short search does not finish: seconds would
    make the answer depend on the machine, and add up over many trials.
    """
    stop = ctx.stop.with_time_limit(HEURISTICS_TIME_FRACTION * ctx.stop.remaining)
    limited = ctx.replace(starts=starts, stop=stop)
    if ctx.saved_in(POLISH):
        found = ctx.saved.results[0]
    else:
        found = DefaultSearch().search(limited.for_stage("search"))
        ctx.incumbent.update_incumbent(found, "heuristics")
        limited.for_stage(POLISH, found).checkpoint(None)
    if not limited.finished():
        local = LocalSearch(ctx.problem, exact_assigner)
        polished = local.from_labels(found, limited.replace(assigner=exact_assigner))
        ctx.incumbent.update_incumbent(polished.labels, "polish", polished.iterations)
