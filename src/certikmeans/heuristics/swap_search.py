"""Swap search for many clusters: center swaps, reseeded neighborhoods, partition crossover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.crossover import (
    Fragment,
    FragmentPool,
    cluster_costs,
    crossover_mutate,
    hyperplane_crossover,
)
from certikmeans.heuristics.local_search import LocalOptimum, NeighborhoodSearch, means_of
from certikmeans.heuristics.seeding import initial_centers
from certikmeans.kernels.lloyd.seeding import bisect_cluster, bisection_costs, kmeanspp_seeds
from certikmeans.problem import ReducedProblem
from certikmeans.random_streams import generator

# Groups that distances are computed for at a time.
BLOCK_SIZE = 4096
# Clusters of a neighbourhood that is drawn anew.
MIN_NEIGHBORHOOD, MAX_NEIGHBORHOOD = 2, 6

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SwapScores:
    """Where a labelling has too many centres and where too few: estimates that rank moves."""

    optimum: LocalOptimum
    members: tuple[NDArray[np.int64], ...]  # by cluster
    loss: Vector  # (n_clusters,): of removing the centre, at most about this
    gain: Vector  # (n_clusters,): of splitting the cluster
    nearest_clusters: NDArray[np.int64]  # (n_clusters, .): nearest centres, itself first


def score_swaps(problem: ReducedProblem, optimum: LocalOptimum) -> SwapScores:
    """Estimate what every centre is worth, and every split."""
    k = problem.n_clusters
    centers, labels = optimum.centers, optimum.labels
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))])
    members = tuple(np.split(order, starts[1:-1]))
    masses = np.bincount(labels, problem.weights, k)
    distances = ((centers[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    nearest_clusters = np.argsort(distances, axis=1, kind="stable")[:, : MAX_NEIGHBORHOOD + 1]
    both = masses[:, None] + masses[None, :]
    merged = np.divide(
        masses[:, None] * masses[None, :], both, out=np.zeros((k, k)), where=both > 0
    )
    merged *= distances
    np.fill_diagonal(merged, np.inf)
    costs = cluster_costs(problem, optimum)
    reassigned = np.bincount(labels, _second_nearest_costs(problem, optimum), k) - costs
    bisected = np.empty(k)
    bisection_costs(problem.points, problem.weights, order, starts, bisected)
    return SwapScores(
        optimum,
        members,
        np.minimum(merged.min(axis=1), reassigned),
        costs - bisected,
        nearest_clusters,
    )


def _second_nearest_costs(problem: ReducedProblem, optimum: LocalOptimum) -> Vector:
    """Cost of every group at the nearest centre other than its own."""
    found = np.empty(problem.n_groups)
    squares = np.einsum("ij,ij->i", optimum.centers, optimum.centers)
    for first in range(0, problem.n_groups, BLOCK_SIZE):
        points = problem.points[first : first + BLOCK_SIZE]
        away = squares - 2.0 * (points @ optimum.centers.T)
        away[np.arange(len(points)), optimum.labels[first : first + BLOCK_SIZE]] = np.inf
        found[first : first + BLOCK_SIZE] = away.min(axis=1) + np.einsum("ij,ij->i", points, points)
    return problem.weights * found


def swap_centers(
    problem: ReducedProblem, scores: SwapScores, count: int, rng: np.random.Generator
) -> Centers:
    """Take ``count`` centres away that are missed little, split as many clusters elsewhere."""
    k = problem.n_clusters
    centers = scores.optimum.centers.copy()
    # Draws favour the front of the order: a cube of a uniform number.
    away, into = np.argsort(scores.loss, kind="stable"), np.argsort(-scores.gain, kind="stable")
    changed: set[int] = set()
    pair = np.empty((2, problem.n_dims))
    for _ in range(count):
        target = int(into[int(k * rng.random() ** 3)])
        source = int(away[int(k * rng.random() ** 3)])
        uniform = float(rng.random())
        members = scores.members[target]
        if source == target or source in changed or target in changed or len(members) < 2:
            continue
        changed |= {source, target}
        bisect_cluster(problem.points, problem.weights, members, uniform, pair)
        centers[target], centers[source] = pair
    return centers


def reseed_neighborhoods(
    problem: ReducedProblem, scores: SwapScores, count: int, rng: np.random.Generator
) -> Centers:
    """Draw the centres of ``count`` neighbourhoods anew by k-means++ on their groups.

    Or of twice as many, every other one with a centre more, the rest with one less.
    """
    k = problem.n_clusters
    kept = np.ones(k, dtype=bool)
    drawn = []
    changes = (0,) if rng.random() < 0.5 else (1, -1)
    for _ in range(count):
        neighborhoods = []
        for change in changes:
            middle, size = (
                int(rng.integers(k)),
                int(rng.integers(MIN_NEIGHBORHOOD, MAX_NEIGHBORHOOD + 1)),
            )
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


def _kmeanspp_subset(problem: ReducedProblem, rows: NDArray[np.int64], uniforms: Vector) -> Centers:
    """Centres among some groups by k-means++."""
    points, weights = np.ascontiguousarray(problem.points[rows]), problem.weights[rows]
    points.flags.writeable = weights.flags.writeable = False
    seeds = np.empty(len(uniforms), dtype=np.int64)
    kmeanspp_seeds(points, weights, uniforms, seeds)
    return points[seeds]


# Many clusters: a labelling improved by swaps and new neighbourhoods, region by region.
#
# Every trial changes the best labelling in several places at once and descends; what became better
# is taken over region by region (`regions`), so one trial tests many moves. When trials
# lead nowhere, the same is done from other starts, and the two results are mixed: where that still
# helps, it is done again.

# Trials at a time: fixed, so that the answer does not depend on the threads.
BATCH_SIZE = 4
# Places that one trial changes at most, as a part of the clusters.
MAX_PERTURBED_FRACTION = 0.1
# An attempt that ends at the best, though it began elsewhere, counts as so many in vain.
AGREEING_RESTART_WEIGHT = 4
# What is better by less than this part is the same.
COST_TOLERANCE = 1e-9
# Labellings kept to be crossed with the best.
ELITE_SIZE = 10
# Where cheapest labels take a search, only results this close to the best get it.
EXACT_ASSIGNMENT_RATIO = 1.001
# Kinds of attempts: the first, another one, and a mixture of the best with that.
FIRST, RESTART, COMBINED = "first", "other", "mixed"


@final
@dataclass(frozen=True, slots=True)
class SwapBudget:
    """How long to go on: numbers of local searches, not seconds, so that runs repeat."""

    starts: int  # of every attempt; with 0 there is one, from the given starts
    max_no_improve: int  # trials without improvement before an attempt ends
    trials: int  # in all
    max_failed_restarts: int = (
        8  # after the first, in a row, that end above the best before the search ends
    )


@final
@dataclass(slots=True, eq=False)
class SwapProgress:
    """How far a search is, between two batches."""

    best: LocalOptimum  # of the attempts that have ended
    current: LocalOptimum  # of the one under way
    other: LocalOptimum  # mixed with the best, where a mixture is being improved
    kind: str = FIRST
    start_optima: tuple[LocalOptimum, ...] = ()  # where given starts have led to
    given: int = 0  # of these, how many were tried
    drawn: int = 0  # random starts of this attempt
    improving: bool = False  # all starts of this attempt are done
    n_no_improve: int = 0  # trials since the last that helped
    n_failed: int = 0
    trials: int = 0
    starts: int = 0  # random ones, of all attempts before
    elite: tuple[LocalOptimum, ...] = ()
    previous_elite: tuple[LocalOptimum, ...] = ()  # elite of the attempts before this one
    polished: frozenset[float] = frozenset()  # costs of what has been


@final
@dataclass(frozen=True, slots=True, eq=False)
class SwapSearchState:
    """What a search needs to go on."""

    progress: SwapProgress
    best_found: LocalOptimum
    pool: LocalOptimum | None  # what pieces are collected for, and these
    unpaired: dict[tuple[int, tuple[int, ...]], Fragment]
    tried: set[tuple[float, ...]]


@final
class SwapSearch(AbstractHeuristic):
    """Attempts from different starts, mixed by regions, for as long as they help."""

    name: ClassVar[str] = "exchange"

    def __init__(self, budget: SwapBudget) -> None:
        self._budget = budget

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found; the witness if there was no time at all."""
        run = _Run(ctx, self._budget)
        if isinstance(ctx.saved, SwapSearchState):
            run.restore(ctx.saved)
        if ctx.starts or not ctx.finished():
            run.run_restarts()
        return run.best_found.labels


@final
class _Run:
    """One search: its best labelling and how far it is."""

    def __init__(self, ctx: HeuristicContext, budget: SwapBudget) -> None:
        problem = ctx.problem
        self._ctx = ctx
        self._budget = budget
        self._local_search = NeighborhoodSearch(problem, ctx.assigner)
        self._trial_ctx = ctx.replace(executor=None) if _runs_trials_in_parallel(ctx) else ctx
        self._pool: FragmentPool | None = None
        feasible_labels = means_of(problem, ctx.feasible_labels)
        self._no_solution = LocalOptimum(ctx.feasible_labels, feasible_labels, np.inf, 0)
        self._progress = SwapProgress(self._no_solution, self._no_solution, self._no_solution)
        self.best_found = self._no_solution  # the best of all

    def restore(self, before: SwapSearchState) -> None:
        """Go on where a run before was."""
        self._progress, self.best_found = replace(before.progress), before.best_found
        if before.pool is not None:
            self._pool = FragmentPool(self._ctx.problem, before.pool)
            self._pool.restore(before.unpaired, before.tried)

    def _save(self) -> None:
        pool = self._pool
        best = None if pool is None else pool.best
        fragments = ({}, set()) if pool is None else pool.saved()
        self._ctx.checkpoint(
            SwapSearchState(replace(self._progress), self.best_found, best, *fragments)
        )

    def run_restarts(self) -> None:
        """Make attempts and mix them, until enough of them in a row have not helped."""
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
                continue  # with the mixture
            if progress.n_failed >= self._budget.max_failed_restarts or self._budget_spent():
                return
            # The next one knows nothing of those before, or it would end where they did.
            progress.kind, progress.improving, progress.drawn = RESTART, False, 0
            progress.previous_elite, progress.elite, progress.current = (
                progress.elite,
                (),
                self._no_solution,
            )

    def _combine_attempts(self) -> bool:
        """Mix the best with the attempt that has ended; whether that is worth improving."""
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
        """Whether the attempt has helped."""
        progress = self._progress
        if combined.cost < progress.best.cost * (1.0 - COST_TOLERANCE):
            progress.best, progress.n_failed = combined, 0
        else:
            agreeing = progress.other.cost <= progress.best.cost * (1.0 + COST_TOLERANCE)
            progress.n_failed += AGREEING_RESTART_WEIGHT if agreeing else 1

    def _budget_spent(self) -> bool:
        return self._ctx.finished() or self._progress.trials >= self._budget.trials

    def _start_attempt(self) -> None:
        """Best mixture of what the given starts and some random ones lead to."""
        progress, ctx = self._progress, self._ctx
        if progress.kind == FIRST:
            starts = ctx.starts[: 1 if ctx.finished() else None]
            self._descend_from_given(list(starts) or [self._no_solution.centers])
        for first in range(progress.drawn, self._budget.starts, BATCH_SIZE):
            if ctx.finished():
                return
            numbers = range(first, min(first + BATCH_SIZE, self._budget.starts))
            drawn = (
                initial_centers(ctx.problem, ctx.seed, progress.starts + number)
                for number in numbers
            )
            for found in self._local_optima(drawn, progress.current):
                progress.current = self._merge_with_best(progress.current, found)
            progress.drawn = numbers.stop
            self._save()
        progress.starts += self._budget.starts

    def _descend_from_given(self, given: list[Centers]) -> None:
        """All at once, or where a start takes long, one after the other; then they are mixed."""
        progress, ctx = self._progress, self._ctx
        size = 1 if self._trial_ctx is ctx else len(given)
        for first in range(progress.given, len(given), size):
            if first and ctx.stop.reason() is not None:
                break
            found = self._local_optima(given[first : first + size], self._no_solution)
            progress.start_optima, progress.given = (*progress.start_optima, *found), first + size
            self._save()
        start_optima, progress.start_optima = progress.start_optima, ()
        for one in start_optima:
            progress.current = self._merge_with_best(progress.current, one)

    def _improve(self) -> None:
        """Change the best in a few places, for as long as that helps."""
        progress = self._progress
        scores = None
        while progress.n_no_improve < self._budget.max_no_improve and not self._budget_spent():
            if scores is None or scores.optimum is not progress.current:
                scores = score_swaps(self._ctx.problem, progress.current)
            before = progress.current.cost
            starts = [self._perturbed(scores, progress.trials + i) for i in range(BATCH_SIZE)]
            for found in self._local_optima(starts, progress.current):
                progress.current = self._merge_with_best(progress.current, found)
            progress.n_no_improve = (
                0
                if progress.current.cost < before * (1.0 - COST_TOLERANCE)
                else progress.n_no_improve + BATCH_SIZE
            )
            self._save()

    def _perturbed(self, scores: SwapScores, trial: int) -> Centers:
        problem = self._ctx.problem
        rng = generator(self._ctx.seed, "heuristics.exchange", trial)
        count = 1 + int(rng.random() * MAX_PERTURBED_FRACTION * problem.n_clusters)
        kind = trial % 4
        elite = self._progress.elite
        if kind == 2 and elite:
            partner = elite[int(rng.integers(len(elite)))]
            return hyperplane_crossover(scores.optimum.centers, partner.centers, rng)
        if kind == 3 and len(elite) > 1:
            # The best need not be a parent: with it in every trial, all end near the same optimum.
            ranked = (scores.optimum, *elite)
            first, second = rng.integers(len(ranked), size=(2, 2)).min(axis=1)
            return crossover_mutate(problem, ranked[first].centers, ranked[second].centers, rng)
        change = swap_centers if kind == 0 else reseed_neighborhoods
        return change(problem, scores, count, rng)

    def _local_optima(self, starts: Iterable[Centers], best: LocalOptimum) -> list[LocalOptimum]:
        """What the starts lead to, in order, as far as there is time."""
        ctx = self._ctx
        starts = ctx.until_deadline(starts)

        def work(centers: Centers) -> tuple[LocalOptimum, float]:
            return self._descend(centers, best.cost)

        small = self._trial_ctx is not ctx
        found = list(ctx.map(work, starts) if small else map(work, starts))
        progress = self._progress
        progress.polished |= {cost for _, cost in found}
        progress.trials += len(found)
        ctx.on_progress(progress.trials, max(progress.trials, self._budget.trials))
        return [one for one, _ in found]

    def _descend(self, centers: Centers, best: float) -> tuple[LocalOptimum, float]:
        """Quickly; where labels take a search, again with it if that is promising and new.

        Also says at which cost the quick one ended.
        """
        found = self._local_search.from_centers(centers, self._trial_ctx)
        if not self._ctx.assigner.needs_search or found.cost > EXACT_ASSIGNMENT_RATIO * best:
            return found, found.cost
        if found.cost in self._progress.polished or self._ctx.finished():
            return found, found.cost
        return self._local_search.with_exact_assignment(found, self._trial_ctx), found.cost

    def _merge_with_best(self, best: LocalOptimum, found: LocalOptimum) -> LocalOptimum:
        """The better one of two, with what is better in the other."""
        if found.cost < best.cost:
            best, found = found, best
        self._report(best)
        self._add_to_elite(found)
        return self._combine(best, found)

    def _add_to_elite(self, found: LocalOptimum) -> None:
        """Keep the best of what is not the best."""
        if not np.isfinite(found.cost):
            return
        progress = self._progress
        near = (abs(found.cost - one.cost) <= COST_TOLERANCE * one.cost for one in progress.elite)
        if not any(near):
            progress.elite = tuple(
                sorted([*progress.elite, found], key=lambda one: one.cost)[:ELITE_SIZE]
            )

    def _combine(self, best: LocalOptimum, other: LocalOptimum) -> LocalOptimum:
        """The best with what is better in the other, and with what was found before."""
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


def _runs_trials_in_parallel(ctx: HeuristicContext) -> bool:
    return ctx.problem.n_groups * ctx.problem.n_clusters < 150_000
