"""Local searches: Lloyd with Kempe-chain moves, and a variant restricted to neighboring clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.heuristics.base import Centers, HeuristicContext, Labels
from certikmeans.kernels.graph import CsrGraph
from certikmeans.kernels.lloyd.kempe_moves import ChainLimits, ClusterSums, improve_by_chains
from certikmeans.kernels.lloyd.neighborhood_moves import (
    improve_by_neighborhood_moves,
    label_greedily,
    sum_of_squares,
)
from certikmeans.problem import ReducedProblem
from certikmeans.problem.label_constraints import raise_unsupported

LLOYD_ITERATIONS = 300
MAX_ROUNDS = 50
MAX_CHAIN_LENGTH = 64
# Gains below this share of the total scatter are rounding, not progress.
ROUNDING_FRACTION = 1e-13


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalOptimum:
    """A labelling at rest, with its means. ``cost`` ranks candidates; it proves nothing."""

    labels: Labels
    centers: Centers
    cost: float
    iterations: int


class ChainMoveSetup(NamedTuple):
    """What chain moves need to know of a problem."""

    links: CsrGraph
    limits: ChainLimits


def chain_move_setup(problem: ReducedProblem, max_passes: int) -> ChainMoveSetup | None:
    """Prepare chain moves; None: there are rules that they do not keep to."""
    if not problem.label_constraints.is_cannot_link_only:
        return None
    scatter = problem.weights @ np.einsum("ij,ij->i", problem.points, problem.points)
    limits = ChainLimits(
        min_gain=ROUNDING_FRACTION * float(scatter),
        max_length=min(MAX_CHAIN_LENGTH, problem.n_groups),
        max_passes=max_passes,
    )
    return ChainMoveSetup(CsrGraph(problem.graph.indptr, problem.graph.neighbors), limits)


def cluster_workspace(problem: ReducedProblem) -> ClusterSums:
    """Arrays that moves keep their books in."""
    k = problem.n_clusters
    return ClusterSums(np.empty(k, dtype=np.int64), np.empty(k), np.empty((k, problem.n_dims)))


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
        self._chains = chain_move_setup(problem, max_passes=2)

    def from_centers(self, centers: Centers, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from ``centers``; stops early, with a proper labelling, when asked to."""
        problem = self._problem
        labels = np.full(problem.n_groups, -1, dtype=np.int64)
        clusters = cluster_workspace(problem)
        iterations = 0
        for _ in range(MAX_ROUNDS):
            result = self._assigner.lloyd(
                centers, labels, LLOYD_ITERATIONS, executor=ctx.executor, stop=ctx.stop
            )
            iterations += result.iterations
            labels = result.labels
            best = LocalOptimum(labels.copy(), result.centers, result.cost, iterations)
            if ctx.stop.reason() is not None or self._chains is None:
                return best
            moves = improve_by_chains(
                problem.points, problem.weights, *self._chains, clusters, labels
            )
            if moves == 0:
                return best
            centers = _means(clusters.sums, clusters.masses, result.centers)
        return best

    def from_labels(self, labels: Labels, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from the means of a labelling."""
        return self.from_centers(means_of(self._problem, labels), ctx)


def means_of(problem: ReducedProblem, labels: Labels) -> Centers:
    """Weighted means of the clusters; an empty cluster sits at the origin, the overall mean."""
    sums, masses = problem.cluster_sums(labels)
    return _means(sums, masses, np.zeros_like(sums))


def _means(
    sums: NDArray[np.float64], masses: NDArray[np.float64], default: NDArray[np.float64]
) -> Centers:
    filled = masses > 0.0
    means = default.copy()
    means[filled] = sums[filled] / masses[filled, None]
    return means


# A local search for trials among many clusters: what a trial takes hardly grows with them.

# A group may move to so many clusters around its own.
N_NEIGHBOR_CLUSTERS = 16
KDTREE_MIN_CENTERS, KDTREE_MAX_DIMS = 1_000, 8
MAX_PASSES = 20
MAX_NEIGHBORHOOD_ROUNDS = 3
# Above so many multiplications in a pass, about 0.1 s, the time is looked at after each.
LONG_PASS_WORK = 50_000_000
LINK_WORK = 250  # a cannot-link takes as long as so many of them


def pass_work(problem: ReducedProblem) -> float:
    """About how many multiplications a pass of moves takes: for budgets that do not use a clock."""
    width = min(problem.n_clusters, N_NEIGHBOR_CLUSTERS + 1)
    links = len(problem.graph.neighbors) // 2
    return problem.n_groups * problem.n_dims * width + LINK_WORK * links


@final
class NeighborhoodSearch:
    """Lloyd, then moves between neighbouring clusters until they are at rest.

    Where components of cannot-links take a search for their cheapest labels, any proper labels
    that are near will do: chain moves go on from there.
    """

    def __init__(self, problem: ReducedProblem, assigner: AbstractAssigner) -> None:
        self._problem = problem
        self._assigner = assigner
        chains = chain_move_setup(problem, MAX_PASSES)
        if chains is None:
            raise_unsupported(problem.label_constraints, "the search among many clusters")
        self._links, self._limits = chains
        self._is_long = pass_work(problem) > LONG_PASS_WORK

    def from_centers(self, centers: Centers, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from ``centers``; stops early, with a proper labelling, when asked to."""
        problem, assigner = self._problem, self._assigner
        labels = np.empty(problem.n_groups, dtype=np.int64)
        if assigner.needs_search and label_greedily(
            problem.points, self._links, problem.graph.n_linked, centers, labels
        ):
            return self._descend_by_moves(labels, centers.copy(), 1, ctx)[0]
        result = assigner.lloyd(
            centers,
            labels,
            1 if assigner.needs_search else LLOYD_ITERATIONS,
            executor=ctx.executor,
            stop=ctx.stop,
        )
        return self._descend_by_moves(result.labels, result.centers, result.iterations, ctx)[0]

    def with_exact_assignment(self, found: LocalOptimum, ctx: HeuristicContext) -> LocalOptimum:
        """Alternate cheapest labels, however long they take, with moves, until both are at rest."""
        for _ in range(MAX_NEIGHBORHOOD_ROUNDS):
            result = self._assigner.lloyd(
                found.centers,
                found.labels.copy(),
                LLOYD_ITERATIONS,
                executor=ctx.executor,
                stop=ctx.stop,
            )
            better, moves = self._descend_by_moves(
                result.labels, result.centers, result.iterations, ctx
            )
            found = min(found, better, key=lambda one: one.cost)
            if moves == 0 or found is not better or ctx.stop.reason() is not None:
                break
        return found

    def _descend_by_moves(
        self, labels: Labels, means: Centers, iterations: int, ctx: HeuristicContext
    ) -> tuple[LocalOptimum, int]:
        """Move groups until no move gains; also returns how many moves that took."""
        problem = self._problem
        clusters = cluster_workspace(problem)
        total = 0
        limits = self._limits._replace(max_passes=1) if self._is_long else self._limits
        for _ in range(MAX_NEIGHBORHOOD_ROUNDS * (MAX_PASSES if self._is_long else 1)):
            if self._is_long and ctx.stop.reason() is not None:
                break
            moves = improve_by_neighborhood_moves(
                problem.points, problem.weights, self._links, limits,
                _neighbor_clusters(means), clusters, means, labels,
            )  # fmt: skip
            total += moves
            if moves == 0:
                break
        costs = np.empty(problem.n_clusters)
        cost = sum_of_squares(problem.points, problem.weights, means, labels, costs)
        return LocalOptimum(labels, means, float(cost), iterations), total


def _neighbor_clusters(centers: Centers) -> NDArray[np.int64]:
    """For every centre, the nearest ones, itself among them, in no order."""
    if len(centers) <= N_NEIGHBOR_CLUSTERS + 1:
        return np.tile(np.arange(len(centers)), (len(centers), 1))
    if len(centers) > KDTREE_MIN_CENTERS and centers.shape[1] <= KDTREE_MAX_DIMS:
        from scipy.spatial import KDTree  # where distances between all would take seconds

        return np.asarray(
            KDTree(centers).query(centers, N_NEIGHBOR_CLUSTERS + 1)[1], dtype=np.int64
        )
    squares = np.einsum("ij,ij->i", centers, centers)
    distances = squares[:, None] + squares[None, :] - 2.0 * (centers @ centers.T)
    return np.ascontiguousarray(
        np.argpartition(distances, N_NEIGHBOR_CLUSTERS, axis=1)[:, : N_NEIGHBOR_CLUSTERS + 1]
    )
