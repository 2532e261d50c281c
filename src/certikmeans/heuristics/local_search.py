"""From centres to a labelling that neither Lloyd nor chain moves can improve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.kernels.graph.links import Links
from certikmeans.kernels.lloyd.chain_moves import improve_by_chains
from certikmeans.kernels.lloyd.chains import ChainLimits, Clusters
from certikmeans.problem import ReducedProblem

LLOYD_ITERATIONS = 300
ROUNDS = 50
LONGEST_CHAIN = 64
# Gains below this share of the total scatter are rounding, not progress.
ROUNDING_SHARE = 1e-13


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalOptimum:
    """A labelling at rest, with its means. ``cost`` ranks candidates; it proves nothing."""

    labels: Labels
    centers: Centers
    cost: float
    iterations: int


class Chains(NamedTuple):
    """What chain moves need to know of a problem."""

    links: Links
    limits: ChainLimits


def chains_of(problem: ReducedProblem, passes: int) -> Chains | None:
    """Prepare chain moves; None: there are rules that they do not keep to."""
    if not problem.rules.only_apart:
        return None
    scatter = problem.weights @ np.einsum("ij,ij->i", problem.points, problem.points)
    limits = ChainLimits(
        least_gain=ROUNDING_SHARE * float(scatter),
        longest=min(LONGEST_CHAIN, problem.n_groups),
        passes=passes,
    )
    return Chains(Links(problem.graph.indptr, problem.graph.neighbors), limits)


def room_for_clusters(problem: ReducedProblem) -> Clusters:
    """Arrays that moves keep their books in."""
    k = problem.n_clusters
    return Clusters(np.empty(k, dtype=np.int64), np.empty(k), np.empty((k, problem.n_axes)))


@final
class LocalSearch:
    """Lloyd with the exact assignment, alternating with chain moves until both are at rest.

    Lloyd moves all groups at once for fixed centres; a chain move changes the centres with
    the group, so it leaves stable points that Lloyd cannot. Where there are other rules than
    cannot-links, Lloyd is alone: its labels keep to any.
    """

    def __init__(self, problem: ReducedProblem, assigner: AbstractAssigner) -> None:
        self._problem = problem
        self._assigner = assigner
        self._chains = chains_of(problem, passes=2)

    def from_centers(self, centers: Centers, workshop: Workshop) -> LocalOptimum:
        """Descend from ``centers``; stops early, with a proper labelling, when asked to."""
        problem = self._problem
        labels = np.full(problem.n_groups, -1, dtype=np.int64)
        clusters = room_for_clusters(problem)
        iterations = 0
        for _ in range(ROUNDS):
            rest = self._assigner.lloyd(
                centers, labels, LLOYD_ITERATIONS, executor=workshop.executor, stop=workshop.stop
            )
            iterations += rest.iterations
            labels = rest.labels
            best = LocalOptimum(labels.copy(), rest.centers, rest.cost, iterations)
            if workshop.stop.cause() is not None or self._chains is None:
                return best
            moves = improve_by_chains(
                problem.points, problem.weights, *self._chains, clusters, labels
            )
            if moves == 0:
                return best
            centers = _means(clusters.sums, clusters.masses, rest.centers)
        return best

    def from_labels(self, labels: Labels, workshop: Workshop) -> LocalOptimum:
        """Descend from the means of a labelling."""
        return self.from_centers(means_of(self._problem, labels), workshop)


def means_of(problem: ReducedProblem, labels: Labels) -> Centers:
    """Weighted means of the clusters; an empty cluster sits at the origin, the overall mean."""
    sums, masses = problem.cluster_sums(labels)
    return _means(sums, masses, np.zeros_like(sums))


def _means(
    sums: NDArray[np.float64], masses: NDArray[np.float64], otherwise: NDArray[np.float64]
) -> Centers:
    filled = masses > 0.0
    means = otherwise.copy()
    means[filled] = sums[filled] / masses[filled, None]
    return means
