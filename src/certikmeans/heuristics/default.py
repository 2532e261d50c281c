"""The default heuristic: few or many clusters, on a sample first where the data are large."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.exchange import Exchange, Exertion
from certikmeans.heuristics.local_search import means_of
from certikmeans.heuristics.population import Budget, Population
from certikmeans.heuristics.quick_search import pass_work
from certikmeans.heuristics.sampling import draw_sample
from certikmeans.heuristics.seeding import start_centers
from certikmeans.news import Unheard
from certikmeans.problem import ReducedProblem
from certikmeans.streams import generator

# Above this many groups, centres are sought on a sample and polished on the whole.
LARGE = 40_000
SAMPLE_SIZE = 20_000
# Of the time that there is; what is found on a sample is worth nothing before the whole has it.
SAMPLE_SHARE = 0.5
# On the whole only those are polished that the sample cannot tell from the best.
POLISHED = 4
CLOSE = 1.01
# The whole has local optima that the sample does not: the best centres are also tried slightly
# moved, by a few per cent of the points' spread.
JITTERED = 4
JITTER = 0.05
# Stages that a search is saved in; and how the seed of the second sample differs.
ANOTHER, WHOLE = "another sample", "whole"
ANOTHER_SEED = 1_000_003
# Local searches are counted, not timed, so that a run repeats; a local search costs
# about LLOYD_STEPS assignment steps.
LLOYD_STEPS = 30
WORK = 6e9
# From here on, a population of whole labellings takes longer than swaps and regions: with more
# clusters, and with some where a local search takes milliseconds.
FEW_CLUSTERS = 10
FEWER_CLUSTERS = 5
LONG_STEP = 300_000
# Where cannot-links tie many clusters to each other, a trial that helps is so much rarer.
ENTANGLED = 3


def default_budget(workshop: Workshop) -> Budget:
    """More trials where they are cheap, and where more clusters make more local optima."""
    affordable = WORK / (LLOYD_STEPS * workshop.assigner.step_work)
    clusters = workshop.problem.n_clusters
    return Budget(
        starts=int(np.clip(affordable / 4, 4, 24)),
        offspring=int(np.clip(affordable, 8, 200 + 100 * clusters)),
        patience=int(np.clip(affordable / 2, 8, 60 + 20 * clusters)),
    )


def default_exertion(workshop: Workshop) -> Exertion:
    """More patience where trials are cheap, and where there are more clusters to try."""
    affordable = WORK / (LLOYD_STEPS * pass_work(workshop.problem))
    usual = 60 + 4 * workshop.problem.n_clusters
    most = usual * (ENTANGLED if workshop.assigner.searches else 1)
    patience = int(np.clip(affordable / 4, 16, most))
    return Exertion(
        starts=int(np.clip(affordable / 16, 4, 8)),
        patience=patience,
        trials=100 * patience,
        attempts=int(min(affordable / 40, 8)),
    )


def has_many_clusters(workshop: Workshop) -> bool:
    """Whether swaps find more than a population in the same time, and keep to the rules."""
    n_clusters = workshop.problem.n_clusters
    if not workshop.problem.rules.only_apart:
        return False
    return n_clusters > FEW_CLUSTERS or (
        n_clusters > FEWER_CLUSTERS and workshop.assigner.step_work > LONG_STEP
    )


@final
class DefaultSearch(AbstractHeuristic):
    """Trivial cases at once; else `Population` or `Exchange`, by way of a sample if need be."""

    name: ClassVar[str] = "default"

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found."""
        problem = workshop.problem
        if problem.n_clusters >= problem.n_groups:
            # Every group has a cluster to itself: nothing can cost less, no pair can object.
            labels = np.arange(problem.n_groups)
            if problem.rules.respected_by(labels):
                workshop.news.offer(labels, "one group per cluster")
                return labels
        if problem.n_groups <= LARGE or workshop.news.gap_reached():
            if workshop.finished() and not workshop.starts:  # a few steps, however late it is
                workshop = workshop.but(starts=(start_centers(problem, workshop.seed, 0),))
            if has_many_clusters(workshop):
                return Exchange(default_exertion(workshop)).search(workshop)
            return Population(default_budget(workshop)).search(workshop)
        if workshop.was_in(WHOLE):
            starts = workshop.kept.known
        else:
            starts = (*workshop.starts, *self._centers_from_samples(workshop))
        whole = workshop.within(WHOLE, *starts).but(starts=starts)
        if not workshop.was_in(WHOLE):
            whole.keep(None)
        if has_many_clusters(workshop):
            return Exchange(Exertion(0, 0, 0)).search(whole)
        return Population(Budget(0, 0, 0)).search(whole)

    def _centers_from_samples(self, workshop: Workshop) -> list[Centers]:
        """Of one sample; with many clusters of another, too, which chance has not made the same."""
        if workshop.was_in(ANOTHER):
            found = list(workshop.kept.known)
        else:
            found = self._centers_from_sample(workshop.within("sample"))
        if has_many_clusters(workshop):
            another = workshop.within(ANOTHER, *found).but(seed=workshop.seed + ANOTHER_SEED)
            if not workshop.was_in(ANOTHER):
                another.keep(None)
            found += self._centers_from_sample(another)
        return found

    def _centers_from_sample(self, workshop: Workshop) -> list[Centers]:
        sample = draw_sample(
            workshop.problem, SAMPLE_SIZE, generator(workshop.seed, "heuristics.sample")
        )
        witness = workshop.witness[sample.rows]
        small = workshop.but(
            problem=sample.problem,
            assigner=assigner_for(sample.problem, witness, hard_seconds=0.0),
            witness=witness,
            news=Unheard(),
            starts=(start_centers(sample.problem, workshop.seed, 0),),  # however short the time
            stop=workshop.stop.within(SAMPLE_SHARE * workshop.stop.remaining),
        )
        if has_many_clusters(small):
            rivals = [means_of(sample.problem, Exchange(default_exertion(small)).search(small))]
        else:
            optima = Population(default_budget(small)).best_of_run(small)
            rivals = [one.centers for one in optima if one.cost <= CLOSE * optima[0].cost]
        return rivals[:POLISHED] + _jittered(rivals[0], sample.problem, workshop.seed)


def _jittered(centers: Centers, problem: ReducedProblem, seed: int) -> list[Centers]:
    rng = generator(seed, "heuristics.jitter")
    scale = JITTER * problem.points.std(axis=0)
    return [centers + scale * rng.normal(size=centers.shape) for _ in range(JITTERED)]
