"""A local search for trials among many clusters: what a trial takes hardly grows with them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.local_search import (
    LLOYD_ITERATIONS,
    LocalOptimum,
    chains_of,
    room_for_clusters,
)
from certikmeans.kernels.lloyd.near_moves import cost_of, improve_nearby, label_greedily
from certikmeans.problem import ReducedProblem
from certikmeans.problem.rules import refuse

# A group may move to so many clusters around its own.
NEAREST = 16
MANY_CENTERS, FEW_AXES = 1_000, 8
PASSES = 20
ROUNDS = 3
# Above so many multiplications in a pass, about 0.1 s, the time is looked at after each.
LONG_PASS = 50_000_000
LONG_CHAINS = 250  # a cannot-link takes as long as so many of them


def pass_work(problem: ReducedProblem) -> float:
    """About how many multiplications a pass of moves takes: for budgets that do not use a clock."""
    width = min(problem.n_clusters, NEAREST + 1)
    links = len(problem.graph.neighbors) // 2
    return problem.n_groups * problem.n_axes * width + LONG_CHAINS * links


@final
class QuickSearch:
    """Lloyd, then moves between neighbouring clusters until they are at rest.

    Where components of cannot-links take a search for their cheapest labels, any proper labels
    that are near will do: chain moves go on from there.
    """

    def __init__(self, problem: ReducedProblem, assigner: AbstractAssigner) -> None:
        self._problem = problem
        self._assigner = assigner
        chains = chains_of(problem, PASSES)
        if chains is None:
            refuse(problem.rules, "the search among many clusters")
        self._links, self._limits = chains
        self._is_long = pass_work(problem) > LONG_PASS

    def from_centers(self, centers: Centers, workshop: Workshop) -> LocalOptimum:
        """Descend from ``centers``; stops early, with a proper labelling, when asked to."""
        problem, assigner = self._problem, self._assigner
        labels = np.empty(problem.n_groups, dtype=np.int64)
        if assigner.searches and label_greedily(
            problem.points, self._links, problem.graph.n_linked, centers, labels
        ):
            return self._at_rest(labels, centers.copy(), 1, workshop)[0]
        rest = assigner.lloyd(
            centers,
            labels,
            1 if assigner.searches else LLOYD_ITERATIONS,
            executor=workshop.executor,
            stop=workshop.stop,
        )
        return self._at_rest(rest.labels, rest.centers, rest.iterations, workshop)[0]

    def patiently(self, found: LocalOptimum, workshop: Workshop) -> LocalOptimum:
        """Alternate cheapest labels, however long they take, with moves, until both are at rest."""
        for _ in range(ROUNDS):
            rest = self._assigner.lloyd(
                found.centers,
                found.labels.copy(),
                LLOYD_ITERATIONS,
                executor=workshop.executor,
                stop=workshop.stop,
            )
            better, moves = self._at_rest(rest.labels, rest.centers, rest.iterations, workshop)
            found = min(found, better, key=lambda one: one.cost)
            if moves == 0 or found is not better or workshop.stop.cause() is not None:
                break
        return found

    def _at_rest(
        self, labels: Labels, means: Centers, iterations: int, workshop: Workshop
    ) -> tuple[LocalOptimum, int]:
        """Move groups until no move gains; also returns how many moves that took."""
        problem = self._problem
        clusters = room_for_clusters(problem)
        total = 0
        limits = self._limits._replace(passes=1) if self._is_long else self._limits
        for _ in range(ROUNDS * (PASSES if self._is_long else 1)):
            if self._is_long and workshop.stop.cause() is not None:
                break
            moves = improve_nearby(
                problem.points, problem.weights, self._links, limits,
                _neighbours(means), clusters, means, labels,
            )  # fmt: skip
            total += moves
            if moves == 0:
                break
        costs = np.empty(problem.n_clusters)
        cost = cost_of(problem.points, problem.weights, means, labels, costs)
        return LocalOptimum(labels, means, float(cost), iterations), total


def _neighbours(centers: Centers) -> NDArray[np.int64]:
    """For every centre, the nearest ones, itself among them, in no order."""
    if len(centers) <= NEAREST + 1:
        return np.tile(np.arange(len(centers)), (len(centers), 1))
    if len(centers) > MANY_CENTERS and centers.shape[1] <= FEW_AXES:
        from scipy.spatial import KDTree  # where distances between all would take seconds

        return np.asarray(KDTree(centers).query(centers, NEAREST + 1)[1], dtype=np.int64)
    squares = np.einsum("ij,ij->i", centers, centers)
    apart = squares[:, None] + squares[None, :] - 2.0 * (centers @ centers.T)
    return np.ascontiguousarray(np.argpartition(apart, NEAREST, axis=1)[:, : NEAREST + 1])
