"""Swap search for many clusters: center swaps, reseeded neighborhoods, partition crossover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.heuristics.annealed_search import (
    AnyLocalSearch,
    first_centers,
    local_search,
    offspring_search,
)
from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.crossover import (
    Fragment,
    FragmentKey,
    FragmentPool,
    costs_by_cluster,
    crossover_mutate,
    hyperplane_crossover,
)
from certikmeans.heuristics.local_search import (
    LocalOptimum,
    NeighborhoodSearch,
    initial_centers,
)
from certikmeans.kernels.lloyd.seeding import bisect_cluster, bisection_costs, kmeanspp_seeds
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator


@final
@dataclass(frozen=True, slots=True)
class SwapParams:
    """Settings of the swap search that do not depend on the problem."""

    batch_size: int = 4  # trials at a time; fixed: results do not depend on threads
    max_perturbed_fraction: float = 0.1  # of the clusters, changed by one trial
    min_neighborhood: int = 2  # clusters of a neighbourhood that is seeded again
    max_neighborhood: int = 6
    elite_size: int = 10  # labellings kept for crossover with the best
    cost_tolerance: float = 1e-9  # optima whose costs differ by a smaller fraction are equal
    # A restart that ends at the best cost from another start counts as this many failed ones.
    agreeing_restart_weight: int = 4
    # Where cheapest labels take a search, only results this close to the best get it.
    exact_assignment_ratio: float = 1.001
    block_size: int = 4096  # groups whose distances are computed at a time
    # Groups times clusters below which threads run trials; above, they share the groups of one.
    max_parallel_trial_size: int = 150_000

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.block_size < 1:
            raise ValueError("batch_size and block_size must be positive")
        if not 2 <= self.min_neighborhood <= self.max_neighborhood:
            raise ValueError("min_neighborhood must lie between 2 and max_neighborhood")


DEFAULT_PARAMS = SwapParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class SwapScores:
    """Estimated loss of removing each centre and gain of splitting each cluster."""

    optimum: LocalOptimum
    members: tuple[Ints, ...]  # by cluster
    loss: Floats  # (n_clusters,): of removing the centre; an upper estimate
    gain: Floats  # (n_clusters,): of splitting the cluster
    nearest_clusters: Ints  # (n_clusters, .): nearest centres, itself first


def score_swaps(
    problem: ReducedProblem, optimum: LocalOptimum, params: SwapParams = DEFAULT_PARAMS
) -> SwapScores:
    """Estimate the loss of every removed centre and the gain of every split."""
    k = problem.n_clusters
    centers, labels = optimum.centers, optimum.labels
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))])
    members = tuple(np.split(order, starts[1:-1]))
    masses = np.bincount(labels, problem.weights, k)
    distances = ((centers[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    nearest_clusters = np.argsort(distances, axis=1, kind="stable")
    nearest_clusters = nearest_clusters[:, : params.max_neighborhood + 1]
    both = masses[:, None] + masses[None, :]
    merged = np.divide(
        masses[:, None] * masses[None, :], both, out=np.zeros((k, k)), where=both > 0
    )
    merged *= distances
    np.fill_diagonal(merged, np.inf)
    costs = costs_by_cluster(problem, optimum)
    second = _second_nearest_costs(problem, optimum, params.block_size)
    reassigned = np.bincount(labels, second, k) - costs
    bisected = np.empty(k)
    bisection_costs(problem.points, problem.weights, order, starts, bisected)
    return SwapScores(
        optimum,
        members,
        np.minimum(merged.min(axis=1), reassigned),
        costs - bisected,
        nearest_clusters,
    )


def _second_nearest_costs(
    problem: ReducedProblem, optimum: LocalOptimum, block_size: int
) -> Floats:
    """Cost of every group at the nearest centre other than its own."""
    found = np.empty(problem.n_groups)
    squares = np.einsum("ij,ij->i", optimum.centers, optimum.centers)
    for first in range(0, problem.n_groups, block_size):
        rows = slice(first, first + block_size)
        points = problem.points[rows]
        away = squares - 2.0 * (points @ optimum.centers.T)
        away[np.arange(len(points)), optimum.labels[rows]] = np.inf
        found[rows] = away.min(axis=1) + np.einsum("ij,ij->i", points, points)
    return problem.weights * found


def swap_centers(
    problem: ReducedProblem, scores: SwapScores, count: int, rng: np.random.Generator
) -> Centers:
    """Remove up to ``count`` centres of small loss and split as many clusters of large gain."""
    k = problem.n_clusters
    centers = scores.optimum.centers.copy()
    # The cube of a uniform number favours the front of the order.
    by_loss = np.argsort(scores.loss, kind="stable")
    by_gain = np.argsort(-scores.gain, kind="stable")
    changed: set[int] = set()
    pair = np.empty((2, problem.n_dims))
    for _ in range(count):
        target = int(by_gain[int(k * rng.random() ** 3)])
        source = int(by_loss[int(k * rng.random() ** 3)])
        uniform = float(rng.random())
        members = scores.members[target]
        if source == target or source in changed or target in changed or len(members) < 2:
            continue
        changed |= {source, target}
        bisect_cluster(problem.points, problem.weights, members, uniform, pair)
        centers[target], centers[source] = pair
    return centers


def reseed_neighborhoods(
    problem: ReducedProblem,
    scores: SwapScores,
    count: int,
    rng: np.random.Generator,
    params: SwapParams = DEFAULT_PARAMS,
) -> Centers:
    """Seed up to ``count`` neighbourhoods again by k-means++ on their groups.

    In half of the calls twice as many: pairs of which one gets a centre more, the other one less.
    """
    k = problem.n_clusters
    kept = np.ones(k, dtype=bool)
    drawn = []
    changes = (0,) if rng.random() < 0.5 else (1, -1)
    for _ in range(count):
        neighborhoods = []
        for change in changes:
            middle = int(rng.integers(k))
            size = int(rng.integers(params.min_neighborhood, params.max_neighborhood + 1))
            chosen = scores.nearest_clusters[middle, :size]
            uniforms = rng.random((len(chosen) + change, 2))
            rows = np.concatenate([scores.members[c] for c in chosen])
            if kept[chosen].all() and 0 < len(uniforms) < len(rows):
                neighborhoods.append((chosen, rows, uniforms))
        numbers = (
            np.concatenate([chosen for chosen, _, _ in neighborhoods])
            if neighborhoods
            else np.empty(0)
        )
        if len(neighborhoods) < len(changes) or len(np.unique(numbers)) < len(numbers):
            continue
        for chosen, rows, uniforms in neighborhoods:
            kept[chosen] = False
            drawn.append(_kmeanspp_subset(problem, rows, uniforms))
    return np.concatenate([scores.optimum.centers[kept], *drawn])


def _kmeanspp_subset(problem: ReducedProblem, rows: Ints, uniforms: Floats) -> Centers:
    """k-means++ centres among some groups."""
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    points.flags.writeable = weights.flags.writeable = False
    seeds = np.empty(len(uniforms), dtype=np.int64)
    kmeanspp_seeds(points, weights, uniforms, seeds)
    return points[seeds]


# Every trial of the swap search changes the best labelling in several places at once and descends;
# improvements are adopted region by region (`FragmentPool`), so one trial tests many moves. When
# trials no longer improve, the search restarts from other centres and combines the two results;
# it continues as long as restarts improve the best.

# Kinds of attempts: the first, a restart, and a combination of the best with a restart. Their text
# is part of checkpoints.
FIRST, RESTART, COMBINED = "first", "other", "mixed"


@final
@dataclass(frozen=True, slots=True)
class SwapBudget:
    """Effort in numbers of local searches, not seconds, so that runs repeat."""

    starts: int  # per attempt; with 0 there is one attempt, from the given starts
    max_no_improve: int  # trials without improvement before an attempt ends
    trials: int  # in all attempts
    max_failed_restarts: int = 8  # consecutive restarts without improvement that end the search


@final
@dataclass(slots=True, eq=False)
class SwapProgress:
    """State of a search between two batches."""

    best: LocalOptimum  # of the finished attempts
    current: LocalOptimum  # of the running attempt
    other: LocalOptimum  # combined with the best, while a combination is being improved
    kind: str = FIRST
    start_optima: tuple[LocalOptimum, ...] = ()  # local optima of the given starts
    given: int = 0  # given starts tried
    drawn: int = 0  # random starts of this attempt
    improving: bool = False  # all starts of this attempt are done
    n_no_improve: int = 0  # trials since the last improvement
    n_failed: int = 0
    trials: int = 0
    starts: int = 0  # random starts of earlier attempts
    elite: tuple[LocalOptimum, ...] = ()
    previous_elite: tuple[LocalOptimum, ...] = ()  # elite of the attempts before this one
    polished: frozenset[float] = frozenset()  # costs before exact assignment, to avoid repeats


@final
@dataclass(frozen=True, slots=True, eq=False)
class SwapSearchState:
    """Checkpoint of the search."""

    progress: SwapProgress
    best_found: LocalOptimum
    pool: LocalOptimum | None  # labelling of the fragment pool
    unpaired: dict[FragmentKey, Fragment]
    tried: set[tuple[float, ...]]


@final
class SwapSearch(AbstractHeuristic):
    """Restarts improved by swaps and combined by partition crossover, while that helps."""

    name: ClassVar[str] = "exchange"

    def __init__(self, budget: SwapBudget, params: SwapParams = DEFAULT_PARAMS) -> None:
        self._budget = budget
        self._params = params

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found; ``ctx.feasible_labels`` if there was no time at all."""
        run = _Run(ctx, self._budget, self._params)
        if isinstance(ctx.saved, SwapSearchState):
            run.restore(ctx.saved)
        if ctx.starts or not ctx.finished():
            run.run_restarts()
        return run.best_found.labels


@final
class _Run:
    """One search: its progress, its fragment pool and the best labelling found."""

    def __init__(self, ctx: HeuristicContext, budget: SwapBudget, params: SwapParams) -> None:
        problem = ctx.problem
        self._ctx = ctx
        self._budget = budget
        self._params = params
        self._local_search = local_search(problem, ctx.assigner, many_clusters=True)
        self._offspring_search = offspring_search(self._local_search)
        parallel = problem.n_groups * problem.n_clusters < params.max_parallel_trial_size
        self._trial_ctx = ctx.replace(executor=None) if parallel else ctx
        self._pool: FragmentPool | None = None
        feasible_centers = problem.cluster_means(ctx.feasible_labels)
        self._no_solution = LocalOptimum(ctx.feasible_labels, feasible_centers, np.inf, 0)
        self._progress = SwapProgress(self._no_solution, self._no_solution, self._no_solution)
        self.best_found = self._no_solution

    def restore(self, state: SwapSearchState) -> None:
        """Continue from a checkpoint."""
        self._progress, self.best_found = replace(state.progress), state.best_found
        if state.pool is not None:
            self._pool = FragmentPool(self._ctx.problem, state.pool)
            self._pool.restore(state.unpaired, state.tried)

    def _save(self) -> None:
        pool = self._pool
        best = None if pool is None else pool.best
        fragments = ({}, set()) if pool is None else pool.saved()
        self._ctx.checkpoint(
            SwapSearchState(replace(self._progress), self.best_found, best, *fragments)
        )

    def run_restarts(self) -> None:
        """Restart and combine until enough consecutive restarts have failed."""
        progress = self._progress
        while True:
            if not progress.improving:
                self._start_attempt()
                progress.improving, progress.n_no_improve = True, 0
            self._improve()
            if progress.kind == FIRST:
                progress.best, progress.n_failed = progress.current, 0
                if not self._budget.starts:
                    return
            elif progress.kind == COMBINED or not self._combine_attempts():
                self._record_attempt(progress.current)
            else:
                continue  # improve the combination
            if progress.n_failed >= self._budget.max_failed_restarts or self._budget_spent():
                return
            # The next attempt uses nothing of earlier ones, or it would end where they did.
            progress.kind, progress.improving, progress.drawn = RESTART, False, 0
            progress.previous_elite, progress.elite = progress.elite, ()
            progress.current = self._no_solution

    def _combine_attempts(self) -> bool:
        """Combine the best with the finished attempt; True if that improved on both."""
        progress = self._progress
        for one in progress.previous_elite:
            self._add_to_elite(one)
        progress.other, progress.previous_elite = progress.current, ()
        progress.current = self._combine(
            *sorted((progress.best, progress.other), key=lambda one: one.cost)
        )
        if progress.current.cost < min(progress.best.cost, progress.other.cost):
            progress.kind, progress.n_no_improve = COMBINED, 0
            return True
        return False

    def _record_attempt(self, combined: LocalOptimum) -> None:
        """Adopt the result of a restart, or count the restart as failed."""
        progress = self._progress
        if combined.cost < progress.best.cost * (1.0 - self._params.cost_tolerance):
            progress.best, progress.n_failed = combined, 0
        else:
            agreeing = progress.other.cost <= progress.best.cost * (
                1.0 + self._params.cost_tolerance
            )
            progress.n_failed += self._params.agreeing_restart_weight if agreeing else 1

    def _budget_spent(self) -> bool:
        return self._ctx.finished() or self._progress.trials >= self._budget.trials

    def _start_attempt(self) -> None:
        """Descend from the given and some random starts, and combine the results."""
        progress, ctx = self._progress, self._ctx
        if progress.kind == FIRST:
            starts = ctx.starts[: 1 if ctx.finished() else None]
            feasible = self._no_solution.centers
            usual = first_centers(self._local_search, ctx.problem, feasible, ctx.seed)
            self._descend_from_given(list(starts) or [usual])
        batch_size = self._params.batch_size
        for first in range(progress.drawn, self._budget.starts, batch_size):
            if ctx.finished():
                return
            numbers = range(first, min(first + batch_size, self._budget.starts))
            drawn = (
                initial_centers(ctx.problem, ctx.seed, progress.starts + number)
                for number in numbers
            )
            for found in self._local_optima(drawn, progress.current, self._local_search):
                progress.current = self._merge_with_best(progress.current, found)
            progress.drawn = numbers.stop
            self._save()
        progress.starts += self._budget.starts

    def _descend_from_given(self, given: list[Centers]) -> None:
        """Descend from all starts at once, or one by one where a trial takes long; then combine."""
        progress, ctx = self._progress, self._ctx
        size = 1 if self._trial_ctx is ctx else len(given)
        for first in range(progress.given, len(given), size):
            if first and ctx.stop.reason() is not None:
                break
            found = self._local_optima(
                given[first : first + size], self._no_solution, self._local_search
            )
            progress.start_optima, progress.given = (*progress.start_optima, *found), first + size
            self._save()
        start_optima, progress.start_optima = progress.start_optima, ()
        for one in start_optima:
            progress.current = self._merge_with_best(progress.current, one)

    def _improve(self) -> None:
        """Perturb the current labelling until trials no longer improve it."""
        progress, params = self._progress, self._params
        scores = None
        while progress.n_no_improve < self._budget.max_no_improve and not self._budget_spent():
            if scores is None or scores.optimum is not progress.current:
                scores = score_swaps(self._ctx.problem, progress.current, params)
            before = progress.current.cost
            trials = range(progress.trials, progress.trials + params.batch_size)
            starts = [self._perturbed(scores, trial) for trial in trials]
            for found in self._local_optima(starts, progress.current):
                progress.current = self._merge_with_best(progress.current, found)
            if progress.current.cost < before * (1.0 - params.cost_tolerance):
                progress.n_no_improve = 0
            else:
                progress.n_no_improve += params.batch_size
            self._save()

    def _perturbed(self, scores: SwapScores, trial: int) -> Centers:
        """Centres of a trial: swaps, reseeded neighbourhoods or a crossover, in turn."""
        problem, params = self._ctx.problem, self._params
        rng = generator(self._ctx.seed, "heuristics.exchange", trial)
        count = 1 + int(rng.random() * params.max_perturbed_fraction * problem.n_clusters)
        kind = trial % 4
        elite = self._progress.elite
        if kind == 2 and elite:
            partner = elite[int(rng.integers(len(elite)))]
            return hyperplane_crossover(scores.optimum.centers, partner.centers, rng)
        if kind == 3 and len(elite) > 1:
            # With the best as parent in every trial, all would end near the same optimum.
            ranked = (scores.optimum, *elite)
            first, second = rng.integers(len(ranked), size=(2, 2)).min(axis=1)
            return crossover_mutate(problem, ranked[first].centers, ranked[second].centers, rng)
        if kind == 0:
            return swap_centers(problem, scores, count, rng)
        return reseed_neighborhoods(problem, scores, count, rng, params)

    def _local_optima(
        self,
        starts: Iterable[Centers],
        best: LocalOptimum,
        search: AnyLocalSearch | None = None,
    ) -> list[LocalOptimum]:
        """Local optima of the starts, in order, until the deadline."""
        ctx, local = self._ctx, self._offspring_search if search is None else search
        starts = ctx.until_deadline(starts)

        def work(centers: Centers) -> tuple[LocalOptimum, float]:
            return self._descend(centers, best.cost, local)

        small = self._trial_ctx is not ctx
        found = list(ctx.map(work, starts) if small else map(work, starts))
        progress = self._progress
        progress.polished |= {cost for _, cost in found}
        progress.trials += len(found)
        ctx.on_progress(progress.trials, max(progress.trials, self._budget.trials))
        return [one for one, _ in found]

    def _descend(
        self, centers: Centers, best: float, search: AnyLocalSearch
    ) -> tuple[LocalOptimum, float]:
        """Descend; where labels take a search, repeat with it if the result is promising and new.

        Also returns the cost before exact assignment.
        """
        found = search.from_centers(centers, self._trial_ctx)
        if (
            not isinstance(search, NeighborhoodSearch)
            or not self._ctx.assigner.needs_search
            or (found.cost > self._params.exact_assignment_ratio * best)
        ):
            return found, found.cost
        if found.cost in self._progress.polished or self._ctx.finished():
            return found, found.cost
        return search.with_exact_assignment(found, self._trial_ctx), found.cost

    def _merge_with_best(self, best: LocalOptimum, found: LocalOptimum) -> LocalOptimum:
        """Return the better of two optima, combined with the regions where the other is better."""
        if found.cost < best.cost:
            best, found = found, best
        self._report(best)
        self._add_to_elite(found)
        return self._combine(best, found)

    def _add_to_elite(self, found: LocalOptimum) -> None:
        """Keep the cheapest optima of distinct cost besides the best."""
        if not np.isfinite(found.cost):
            return
        progress = self._progress
        tolerance = self._params.cost_tolerance
        if not any(abs(found.cost - one.cost) <= tolerance * one.cost for one in progress.elite):
            by_cost = sorted([*progress.elite, found], key=lambda one: one.cost)
            progress.elite = tuple(by_cost[: self._params.elite_size])

    def _combine(self, best: LocalOptimum, other: LocalOptimum) -> LocalOptimum:
        """Partition crossover of the best with the other, followed by a descent."""
        if not np.isfinite(other.cost) or self._ctx.finished():
            return best
        if self._pool is None or self._pool.best is not best:
            self._pool = FragmentPool(self._ctx.problem, best)
        combined = self._pool.combined(other)
        if combined is None:
            return best
        child = self._local_optima([combined], best)[0]
        if child.cost < best.cost:
            self._report(child)
            return child
        return best

    def _report(self, found: LocalOptimum) -> None:
        if found.cost < self.best_found.cost:
            self.best_found = found
            self._ctx.incumbent.update_incumbent(found.labels, "exchange", found.iterations)
