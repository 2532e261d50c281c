"""A local search for trials among many clusters: what a trial takes hardly grows with them."""

from __future__ import annotations

from typing import final

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.local_search import (
    LLOYD_ITERATIONS,
    LONGEST_CHAIN,
    ROUNDING_SHARE,
    LocalOptimum,
)
from certikmeans.kernels.graph.links import Links
from certikmeans.kernels.lloyd.chain_moves import ChainLimits, Clusters
from certikmeans.kernels.lloyd.near_moves import cost_of, improve_nearby, label_greedily
from certikmeans.problem import ReducedProblem

# A group may move to so many clusters around its own.
NEAREST = 16
PASSES = 20
ROUNDS = 4


@final
class QuickSearch:
    """Lloyd, then moves between neighbouring clusters until they are at rest.

    Where components of cannot-links take a search for their cheapest labels, Lloyd takes one
    step only, for proper labels: chain moves go on from there.
    """

    def __init__(self, problem: ReducedProblem, assigner: Assigner) -> None:
        self._problem = problem
        self._assigner = assigner
        scatter = problem.weights @ np.einsum("ij,ij->i", problem.points, problem.points)
        self._links = Links(problem.graph.indptr, problem.graph.neighbors)
        self._limits = ChainLimits(
            least_gain=ROUNDING_SHARE * float(scatter),
            longest=min(LONGEST_CHAIN, problem.n_groups),
            passes=PASSES,
        )

    def from_centers(self, centers: Centers, workshop: Workshop) -> LocalOptimum:
        """Descend from ``centers``; stops early, with a proper labelling, when asked to."""
        problem = self._problem
        n_clusters = problem.n_clusters
        labels, means, iterations = self._first(centers, workshop)
        clusters = Clusters(
            counts=np.empty(n_clusters, dtype=np.int64),
            masses=np.empty(n_clusters),
            sums=np.empty((n_clusters, problem.n_axes)),
        )
        for _ in range(ROUNDS):
            moves = improve_nearby(
                problem.points, problem.weights, self._links, self._limits,
                _neighbours(means), clusters, means, labels,
            )  # fmt: skip
            if moves == 0:
                break
        costs = np.empty(n_clusters)
        cost = cost_of(problem.points, problem.weights, means, labels, costs)
        return LocalOptimum(labels, means, float(cost), iterations)

    def _first(self, centers: Centers, workshop: Workshop) -> tuple[Labels, Centers, int]:
        """Proper labels for the centres, or for better ones."""
        problem, assigner = self._problem, self._assigner
        labels = np.empty(problem.n_groups, dtype=np.int64)
        if assigner.searches and label_greedily(
            problem.points, self._links, problem.graph.n_linked, centers, labels
        ):
            return labels, centers.copy(), 1
        rest = assigner.lloyd(
            centers,
            labels,
            1 if assigner.searches else LLOYD_ITERATIONS,
            executor=workshop.executor,
            stop=workshop.stop,
        )
        return rest.labels, rest.centers, rest.iterations


def _neighbours(centers: Centers) -> np.ndarray:
    """For every centre, the nearest ones, itself first."""
    squares = np.einsum("ij,ij->i", centers, centers)
    apart = squares[:, None] + squares[None, :] - 2.0 * (centers @ centers.T)
    np.fill_diagonal(apart, -np.inf)
    near: np.ndarray = np.argsort(apart, axis=1, kind="stable")[:, : NEAREST + 1]
    return np.ascontiguousarray(near)
