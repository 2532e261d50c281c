"""Local searches: Lloyd with Kempe-chain moves, and a variant for many clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner, LloydRun
from certikmeans.assignment.label_search import Labelling, LabelSearch
from certikmeans.assignment.sizes import SizeAssigner
from certikmeans.assignment.soft import pair_graph
from certikmeans.constraint_model.model import raise_unsupported
from certikmeans.heuristics.base import Centers, HeuristicContext, Labels
from certikmeans.kernels.assignment import label_greedily
from certikmeans.kernels.costs import cluster_costs
from certikmeans.kernels.graph import CsrGraph
from certikmeans.kernels.lloyd.kempe_moves import (
    ChainLimits,
    ClusterSums,
    improve_by_chains,
    improve_by_neighborhood_moves,
)
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.kernels.lloyd.soft_moves import improve_by_soft_moves
from certikmeans.kernels.soft_assignment import PairGraph
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator

# Distances computed by one seeding, as far as fewer trials per seed allow.
MAX_SEEDING_DISTANCES = 2e8


def kmeanspp_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007), with weights."""
    affordable = int(MAX_SEEDING_DISTANCES / (problem.n_groups * problem.n_clusters))
    n_trials = max(1, min(2 + int(math.log(problem.n_clusters)), affordable))
    uniforms = rng.random((problem.n_clusters, n_trials))
    seeds = np.empty(problem.n_clusters, dtype=np.int64)
    kmeanspp_seeds(problem.points, problem.weights, uniforms, seeds)
    return problem.points[seeds]


def weighted_random_centers(problem: ReducedProblem, rng: np.random.Generator) -> Centers:
    """Draw distinct groups with probability proportional to weight."""
    # Exponential keys: the K smallest are a weighted sample without replacement.
    keys = rng.exponential(size=problem.n_groups) / problem.weights
    count = min(problem.n_clusters, problem.n_groups)
    chosen = np.argpartition(keys, count - 1)[:count]
    return problem.points[np.resize(np.sort(chosen), problem.n_clusters)]


def initial_centers(problem: ReducedProblem, seed: int, number: int) -> Centers:
    """Start ``number`` of a run: three in four by k-means++, the rest by weight."""
    rng = generator(seed, "heuristics.start", number)
    if number % 4 == 3:
        return weighted_random_centers(problem, rng)
    return kmeanspp_centers(problem, rng)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Subsample of a reduced problem; ``rows[i]`` is the original row of row ``i``."""

    problem: ReducedProblem
    rows: NDArray[np.int64]


def draw_sample(problem: ReducedProblem, size: int, rng: np.random.Generator) -> Sample:
    """Draw about ``size`` groups: whole components of the constraints, and free groups.

    So the sample has every constraint of its groups. Components larger than ``size`` are left out.
    """
    sizes = np.diff(problem.label_constraints.component_starts())
    kept = (rng.random(len(sizes)) < size / problem.n_groups) & (sizes <= size)
    rows = np.flatnonzero(np.repeat(kept, sizes))
    if len(rows) < problem.n_clusters:
        rows = np.arange(problem.n_groups)
    sample = ReducedProblem(
        points=np.ascontiguousarray(problem.points[rows]),
        weights=problem.weights[rows],
        label_constraints=problem.label_constraints.subset(rows),
        n_clusters=problem.n_clusters,
        offset=0.0,
    )
    return Sample(sample, rows)


@final
@dataclass(frozen=True, slots=True)
class LocalSearchParams:
    """Settings of both local searches."""

    lloyd_iterations: int = 300  # per Lloyd run
    max_rounds: int = 50  # of Lloyd and chain moves in `LocalSearch`
    max_chain_length: int = 64  # groups in a Kempe chain
    min_gain_fraction: float = 1e-13  # of the total scatter; smaller gains are rounding
    chain_passes: int = 2  # sweeps of chain moves per round of `LocalSearch`
    soft_passes: int = 100  # sweeps of moves under soft pairs per round, unless none gains
    # The rest is for `NeighborhoodSearch`.
    n_neighbor_clusters: int = 16  # nearest clusters that a group may move to
    neighborhood_passes: int = 20  # sweeps per round
    neighborhood_rounds: int = 3
    # From this many centres on, in few dimensions, a k-d tree finds neighbours sooner than the
    # matrix of all distances.
    kdtree_min_centers: int = 1_000
    kdtree_max_dims: int = 8
    # With more multiplications in a pass, about 0.1 s, the deadline is checked after each pass.
    long_pass_work: int = 50_000_000
    link_work: int = 250  # multiplications that take as long as a cannot-link

    def __post_init__(self) -> None:
        counts = (self.lloyd_iterations, self.max_rounds, self.max_chain_length)
        if min(*counts, self.neighborhood_rounds, self.n_neighbor_clusters) < 1:
            raise ValueError("iterations, rounds, chain length and neighbors must be positive")


DEFAULT_PARAMS = LocalSearchParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalOptimum:
    """A local optimum and its means. ``cost`` ranks candidates; it has no rounding bound."""

    labels: Labels
    centers: Centers
    cost: float
    iterations: int


class ChainMoveSetup(NamedTuple):
    """Cannot-link graph and limits of the chain moves on a problem."""

    links: CsrGraph
    limits: ChainLimits


def chain_move_setup(
    problem: ReducedProblem, max_passes: int, params: LocalSearchParams = DEFAULT_PARAMS
) -> ChainMoveSetup | None:
    """Prepare chain moves, or return None if the problem has constraints they would violate."""
    if not problem.label_constraints.is_cannot_link_only:
        return None
    scatter = problem.weights @ np.einsum("ij,ij->i", problem.points, problem.points)
    limits = ChainLimits(
        min_gain=params.min_gain_fraction * float(scatter),
        max_length=min(params.max_chain_length, problem.n_groups),
        max_passes=max_passes,
    )
    return ChainMoveSetup(CsrGraph(problem.graph.indptr, problem.graph.neighbors), limits)


def cluster_workspace(problem: ReducedProblem) -> ClusterSums:
    """Allocate the cluster statistics that chain moves update."""
    k = problem.n_clusters
    return ClusterSums(np.empty(k, dtype=np.int64), np.empty(k), np.empty((k, problem.n_dims)))


@final
class LocalSearch:
    """Lloyd with the exact assignment, alternating with chain moves until neither improves.

    Lloyd moves all groups at once for fixed centres; a chain move changes the centres with
    the group, so it leaves stable points that Lloyd cannot. With constraints other than
    cannot-links `LabelSearch` makes the moves; with soft pairs, moves of single groups suffice.
    """

    def __init__(
        self,
        problem: ReducedProblem,
        assigner: AbstractAssigner,
        params: LocalSearchParams = DEFAULT_PARAMS,
    ) -> None:
        self._problem = problem
        self._assigner = assigner
        self._params = params
        self._chains = chain_move_setup(problem, params.chain_passes, params)
        moves_inside = isinstance(assigner, SizeAssigner)  # its Lloyd runs move and swap groups
        general = self._chains is None and not moves_inside
        self._search = LabelSearch(problem) if general else None
        self._soft_pairs = _soft_pair_graph(problem)

    def from_centers(self, centers: Centers, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from ``centers``; if stopped early, the labels are feasible."""
        if self._search is not None:
            return self._by_label_search(self._search, centers, None, ctx)
        problem = self._problem
        labels = np.full(problem.n_groups, -1, dtype=np.int64)
        clusters = cluster_workspace(problem)
        iterations = 0
        for _ in range(self._params.max_rounds):
            result = self._assigner.lloyd(
                centers,
                labels,
                self._params.lloyd_iterations,
                executor=ctx.executor,
                stop=ctx.stop,
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
            centers, filled = result.centers.copy(), clusters.masses > 0.0
            centers[filled] = clusters.sums[filled] / clusters.masses[filled, None]
        return best

    def _by_label_search(
        self, search: LabelSearch, centers: Centers, labels: Labels | None, ctx: HeuristicContext
    ) -> LocalOptimum:
        """Alternate Lloyd and moves of any kind until neither improves."""
        current = np.full(self._problem.n_groups, -1) if labels is None else labels.copy()
        best: LocalOptimum | None = None
        iterations = 0
        for _ in range(self._params.max_rounds):
            result = self._assigner.lloyd(
                centers,
                current,
                self._params.lloyd_iterations,
                executor=ctx.executor,
                stop=ctx.stop,
            )
            iterations += result.iterations
            moved = self._moved(search, result, ctx)
            if best is not None and not moved.cost < best.cost:
                return best
            gained = moved.cost < result.cost
            best = LocalOptimum(moved.labels.copy(), moved.means, moved.cost, iterations)
            if not gained or ctx.stop.reason() is not None:
                return best
            current, centers = moved.labels.copy(), moved.means
        assert best is not None
        return best

    def _moved(self, search: LabelSearch, result: LloydRun, ctx: HeuristicContext) -> Labelling:
        """Improve the result of a Lloyd run by moves."""
        pairs, problem, params = self._soft_pairs, self._problem, self._params
        if pairs is None:
            return search.descend(result.labels, stop=ctx.stop)
        labels, means = result.labels.copy(), result.centers.copy()
        improve_by_soft_moves(
            problem.points, problem.weights, pairs, means, labels, params.soft_passes,
            params.min_gain_fraction * result.cost,
        )  # fmt: skip
        if problem.graph.n_linked:  # chains of groups with cannot-links
            return search.descend(labels, stop=ctx.stop)
        return search.evaluate(labels)

    def from_labels(self, labels: Labels, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from the means of a labelling."""
        centers = self._problem.cluster_means(labels)
        if self._search is not None:
            return self._by_label_search(self._search, centers, labels, ctx)
        return self.from_centers(centers, ctx)


def _soft_pair_graph(problem: ReducedProblem) -> PairGraph | None:
    """Soft pairs and cannot-links, if there are no other constraints than these."""
    constraints = problem.label_constraints
    soft = constraints.soft
    if soft is None or constraints.sets is not None or constraints.sizes is not None:
        return None
    return pair_graph(problem.n_groups, soft, constraints.cannot_links)


def pass_work(problem: ReducedProblem, params: LocalSearchParams = DEFAULT_PARAMS) -> float:
    """Estimate the multiplications in a pass of neighbourhood moves: for repeatable budgets."""
    width = min(problem.n_clusters, params.n_neighbor_clusters + 1)
    links = len(problem.graph.neighbors) // 2
    return problem.n_groups * problem.n_dims * width + params.link_work * links


@final
class NeighborhoodSearch:
    """Lloyd, then moves between neighbouring clusters until none improves.

    For many clusters: the time of a pass hardly grows with their number. Where the cheapest labels
    of a component of cannot-links take a search, greedy feasible labels are used instead, and
    chain moves improve them.
    """

    def __init__(
        self,
        problem: ReducedProblem,
        assigner: AbstractAssigner,
        params: LocalSearchParams = DEFAULT_PARAMS,
    ) -> None:
        self._problem = problem
        self._assigner = assigner
        self._params = params
        chains = chain_move_setup(problem, params.neighborhood_passes, params)
        if chains is None:
            raise_unsupported(problem.label_constraints, "the search among many clusters")
        self._links, self._limits = chains
        self._is_long = pass_work(problem, params) > params.long_pass_work

    def from_centers(self, centers: Centers, ctx: HeuristicContext) -> LocalOptimum:
        """Descend from ``centers``; if stopped early, the labels are feasible."""
        problem, assigner = self._problem, self._assigner
        labels = np.empty(problem.n_groups, dtype=np.int64)
        if assigner.needs_search and label_greedily(
            problem.points, self._links, problem.graph.n_linked, centers, labels
        ):
            return self._descend_by_moves(labels, centers.copy(), 1, ctx)[0]
        result = assigner.lloyd(
            centers,
            labels,
            1 if assigner.needs_search else self._params.lloyd_iterations,
            executor=ctx.executor,
            stop=ctx.stop,
        )
        return self._descend_by_moves(result.labels, result.centers, result.iterations, ctx)[0]

    def with_exact_assignment(self, found: LocalOptimum, ctx: HeuristicContext) -> LocalOptimum:
        """Alternate exact assignment, with its searches, and moves until neither improves."""
        for _ in range(self._params.neighborhood_rounds):
            result = self._assigner.lloyd(
                found.centers,
                found.labels.copy(),
                self._params.lloyd_iterations,
                executor=ctx.executor,
                stop=ctx.stop,
            )
            better, moves = self._descend_by_moves(
                result.labels, result.centers, result.iterations, ctx
            )
            found = min(found, better, key=lambda optimum: optimum.cost)
            if moves == 0 or found is not better or ctx.stop.reason() is not None:
                break
        return found

    def _descend_by_moves(
        self, labels: Labels, means: Centers, iterations: int, ctx: HeuristicContext
    ) -> tuple[LocalOptimum, int]:
        """Move groups until no move gains; also returns the number of moves."""
        problem, params = self._problem, self._params
        clusters = cluster_workspace(problem)
        total = 0
        limits = self._limits._replace(max_passes=1) if self._is_long else self._limits
        passes_per_round = params.neighborhood_passes if self._is_long else 1
        for _ in range(params.neighborhood_rounds * passes_per_round):
            if self._is_long and ctx.stop.reason() is not None:
                break
            moves = improve_by_neighborhood_moves(
                problem.points,
                problem.weights,
                self._links,
                limits,
                neighbor_clusters(means, params),
                clusters,
                means,
                labels,
            )
            total += moves
            if moves == 0:
                break
        costs = np.empty(problem.n_clusters)
        cost = cluster_costs(problem.points, problem.weights, means, labels, costs)
        return LocalOptimum(labels, means, float(cost), iterations), total


def neighbor_clusters(
    centers: Centers, params: LocalSearchParams = DEFAULT_PARAMS
) -> NDArray[np.int64]:
    """For every centre, the nearest ones including itself, unordered."""
    n_neighbors = params.n_neighbor_clusters
    if len(centers) <= n_neighbors + 1:
        return np.tile(np.arange(len(centers)), (len(centers), 1))
    if len(centers) > params.kdtree_min_centers and centers.shape[1] <= params.kdtree_max_dims:
        from scipy.spatial import KDTree  # loaded only where it saves seconds

        return np.asarray(KDTree(centers).query(centers, n_neighbors + 1)[1], dtype=np.int64)
    squares = np.einsum("ij,ij->i", centers, centers)
    distances = squares[:, None] + squares[None, :] - 2.0 * (centers @ centers.T)
    return np.ascontiguousarray(
        np.argpartition(distances, n_neighbors, axis=1)[:, : n_neighbors + 1]
    )
