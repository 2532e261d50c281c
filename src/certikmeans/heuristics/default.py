"""The default heuristic: a population, on a sample first where the data are large."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.population import Budget, Population
from certikmeans.heuristics.sampling import draw_sample
from certikmeans.news import Unheard
from certikmeans.problem import ReducedProblem
from certikmeans.streams import generator

# Above this many groups, centres are sought on a sample and polished on the whole.
LARGE = 40_000
SAMPLE_SIZE = 20_000
# On the whole only those are polished that the sample cannot tell from the best.
POLISHED = 4
CLOSE = 1.01
# The whole has local optima that the sample does not: the best centres are also tried slightly
# moved, by a few per cent of the points' spread.
JITTERED = 4
JITTER = 0.05
# Local searches are counted, not timed, so that a run repeats; a local search costs
# about LLOYD_STEPS assignment steps.
LLOYD_STEPS = 30
WORK = 6e9


def default_budget(workshop: Workshop) -> Budget:
    """More trials where they are cheap, and where more clusters make more local optima."""
    affordable = WORK / (LLOYD_STEPS * workshop.assigner.step_work)
    clusters = workshop.problem.n_clusters
    return Budget(
        starts=int(np.clip(affordable / 4, 4, 24)),
        offspring=int(np.clip(affordable, 8, 200 + 100 * clusters)),
        patience=int(np.clip(affordable / 2, 8, 60 + 20 * clusters)),
    )


@final
class DefaultSearch(AbstractHeuristic):
    """Trivial cases at once; otherwise `Population`, by way of a sample if need be."""

    name: ClassVar[str] = "default"

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found."""
        problem = workshop.problem
        if problem.n_clusters >= problem.n_groups:
            # Every group has a cluster to itself: nothing can cost less, no pair can object.
            labels = np.arange(problem.n_groups)
            workshop.news.offer(labels, "one group per cluster")
            return labels
        if problem.n_groups <= LARGE or workshop.finished():
            return Population(default_budget(workshop)).search(workshop)
        starts = (*workshop.starts, *self._centers_from_sample(workshop))
        return Population(Budget(0, 0, 0)).search(workshop.but(starts=starts))

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
        )
        optima = Population(default_budget(small)).best_of_run(small)
        rivals = [one.centers for one in optima if one.cost <= CLOSE * optima[0].cost]
        return rivals[:POLISHED] + _jittered(rivals[0], sample.problem, workshop.seed)


def _jittered(centers: Centers, problem: ReducedProblem, seed: int) -> list[Centers]:
    rng = generator(seed, "heuristics.jitter")
    scale = JITTER * problem.points.std(axis=0)
    return [centers + scale * rng.normal(size=centers.shape) for _ in range(JITTERED)]
