"""Multipliers, and how much every labelling that is good enough may lose against them.

Write ``L`` for ``sum lam - K sigma``, where no cluster is worth more than ``sigma``. A labelling
with clusters ``C_1 .. C_K`` costs

    sum lam - sum_k value(C_k)  =  L + sum_k (sigma - value(C_k)),

no term of the last sum negative. So if it costs at most ``T``, its *deficits*, the terms
``sigma - value(C_k)``, add up to at most ``budget = T - L``.

**Rounding.** ``T`` is the reduced cost that no labelling of stated cost up to ``cost (1 + slack)``
exceeds: ``PresolvedProblem.postsolve_bound`` maps the reduced cost of any labelling below its stated cost,
and is monotone, also in floating point (every operation in it is). So a value whose image lies
above ``cost (1 + slack)`` is above the reduced cost of all of them. ``sum lam`` is rounded once;
``budget`` is taken from it with a margin of 8 EPS of everything added up. Regions are proven with
``sigma`` itself, so nothing here depends on who found the multipliers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.initial_point import (
    DEFAULT_PARAMS,
    ClusterWarmStart,
    column_of,
)
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.pricing_error import pricing_error
from certikmeans.certainty.artifacts import BoundArtifact, CertaintyProblem
from certikmeans.incumbent import NullIncumbent
from certikmeans.kernels.aggregation import FIXED, mark_fixed_groups
from certikmeans.parallel import TaskPool
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.domain import Domain
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.proof import GroupMultipliers
from certikmeans.rounding import EPS, TINY
from certikmeans.stop import StopSignal

# Everything is proven for a little more than is said, so that a checker, who rounds differently,
# can prove it again: a share of delta, and, as that may be next to nothing, what a checker's sigma
# and its costs are larger by; unless that were more than these shares of delta and of the cost.
CHECKER_MARGIN = 1e-3
CHECKER_ERROR_MARGIN, CHECKER_COST_MARGIN = 24.0, 1e-11
MAX_CHECKER_MARGIN = 1e-2, 1e-6


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualLevel:
    """How good a cluster of a good labelling has to be."""

    multipliers: NDArray[np.float64]  # (n_groups,)
    sigma: float  # no cluster is worth more, once the regions are proven
    budget: float  # at least what all deficits add up to
    threshold: float  # at most ``sigma - budget``: every cluster is worth as much
    error: float  # of pricing


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualScale:
    """What levels of the same multipliers have in common."""

    multipliers: NDArray[np.float64]  # (n_groups,)
    total: float  # of the multipliers, rounded once
    error: float  # of pricing
    most: float  # above the reduced cost of every labelling spoken of
    n_clusters: int

    @classmethod
    def of(
        cls, reduced: ReducedProblem, multipliers: NDArray[np.float64], most: float
    ) -> DualScale:
        """Add up."""
        error = pricing_error(reduced.points, reduced.weights, multipliers)
        total = math.fsum(multipliers.tolist())
        return cls(multipliers, total, error, most, reduced.n_clusters)

    def sigma_for(self, value: float) -> float:
        """What a cluster is worth at most if the multipliers are worth ``value``."""
        return (self.total - value) / self.n_clusters

    def level(self, sigma: float) -> DualLevel:
        """The level that is set if no cluster is worth more than ``sigma``."""
        total, most, k = self.total, self.most, self.n_clusters
        rounding = 8.0 * EPS * (abs(total) + 2.0 * k * abs(sigma) + abs(most))
        budget = max(0.0, most - total + k * sigma) * (1.0 + CHECKER_MARGIN) + rounding
        extra = CHECKER_ERROR_MARGIN * k * self.error + CHECKER_COST_MARGIN * abs(most)
        if extra <= max(MAX_CHECKER_MARGIN[0] * budget, MAX_CHECKER_MARGIN[1] * abs(most)):
            budget += extra
        return DualLevel(self.multipliers, sigma, budget, sigma - budget - rounding, self.error)


def max_reduced_cost(presolved: PresolvedProblem, cost: float, slack: float) -> float:
    """Above the reduced cost of every labelling of stated cost up to ``cost (1 + slack)``."""
    most = cost * (1.0 + slack) * (1.0 + 4.0 * EPS) + TINY
    return presolved.presolve_bound(math.nextafter(most, math.inf))


# A smaller problem with the same good multipliers: groups far from every border become one.
#
# With many groups nearly all of them are worth something to their own centre wherever it can be, and
# less than nothing to the others. Good clusters hold all of those of one centre, or none. So they are
# joined, as must-links would join them: their multipliers add up, less what they cost inside. What
# joined groups gain or lose in multipliers is shared out by weight when the core is taken apart.
#
# Nothing here is proven, and nothing need be: any multipliers are valid, and what they are worth is
# shown on the whole problem. Cannot-links of joined groups are left out: their neighbours are worth
# less than nothing where they are.

Labels = NDArray[np.int64]
Vector = NDArray[np.float64]

MIN_AGGREGATION_GROUPS = 4_000  # with fewer, there is nothing to gain
MAX_REMAINING_FRACTION = 0.3  # of the groups, or it is not worth while
# How far centres may be from ours: so many times as far as our own clusters would allow.
CENTER_REACH = 2.0
# How far multipliers of joined groups may move, as a share of the way to another cluster.
MULTIPLIER_MARGIN = 0.05
# A cluster that holds more than this share of what is joined, and not the rest of it, is none of
# the core.
PARTIAL_COLUMN_TOLERANCE = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class AggregatedProblem:
    """The smaller problem, and the way back."""

    problem: ReducedProblem
    labels: Labels
    multipliers: Vector
    group_of: Labels  # (n_groups,): of the whole problem's groups
    within_cost: float  # sum of squares inside joined groups
    original_multipliers: Vector  # multipliers of the whole problem
    weight_fraction: Vector  # (n_groups,): of its group's weight

    def disaggregate(self, multipliers: Vector) -> Vector:
        """Multipliers of all groups, given those of the core."""
        gained = (multipliers - self.multipliers)[self.group_of]
        return self.original_multipliers + self.weight_fraction * gained

    def warm_start(self, known: ClusterWarmStart) -> tuple[ClusterWarmStart, list[Column]]:
        """Clusters of the whole problem as clusters of the core, and those that are none of it.

        Places are the same.
        """
        n, rows = self.problem.n_groups, np.flatnonzero(self.weight_fraction < 1.0)
        blocks, weight_fraction = self.group_of[rows], self.weight_fraction[rows]
        whole = np.bincount(blocks, weight_fraction, n)
        joined = whole > 0.0
        inner, others = list[Column](), list[Column]()
        for column in known.columns:
            members = column.members
            held = np.bincount(blocks, weight_fraction * members[rows], n)[joined] / whole[joined]
            if np.any((held > PARTIAL_COLUMN_TOLERANCE) & (held < 1.0 - PARTIAL_COLUMN_TOLERANCE)):
                others.append(column)
                continue
            mine = np.empty(n, dtype=bool)
            mine[self.group_of] = members
            mine[joined] = held > 0.5
            if mine.any():
                inner.append(column_of(self.problem, mine))
        again = ClusterWarmStart(
            self.multipliers, tuple(inner), known.centers, known.column_centers
        )
        return again, others


def aggregate_problem(
    pricer: Pricer,
    labels: Labels,
    multipliers: Vector,
    budget: float,
    least_groups: int = MIN_AGGREGATION_GROUPS,
) -> AggregatedProblem | None:
    """Join what is far from every border; None: too little is, or too few groups there are.

    ``budget`` is what labellings may lose against the multipliers, all clusters together.
    """
    reduced = pricer.reduced
    n, k = reduced.n_groups, reduced.n_clusters
    if n < least_groups:
        return None
    sums, masses = reduced.cluster_sums(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
        reach = CENTER_REACH * np.sqrt(budget / masses)
    state = np.empty(n, dtype=np.uint8)
    count = mark_fixed_groups(
        pricer.instance(multipliers), labels, centers, reach, MULTIPLIER_MARGIN, state
    )
    settled = state == FIXED
    if n - count > MAX_REMAINING_FRACTION * n:
        return None
    n_kept = n - count
    aggregate_of = np.where(settled, n_kept + labels, np.cumsum(~settled) - 1)
    used, aggregate_of = _consecutive_labels(aggregate_of, n_kept + k)
    return _build_aggregate(reduced, labels, multipliers, settled, aggregate_of, used)


def compile_aggregation(reduced: ReducedProblem) -> None:
    """Call what only large problems need on a tiny one, so that it is compiled."""
    labels = np.arange(reduced.n_groups) % reduced.n_clusters
    aggregate_problem(Pricer(reduced), labels, np.ones(reduced.n_groups), 0.0, least_groups=0)


def _consecutive_labels(aggregate_of: Labels, n: int) -> tuple[int, Labels]:
    """How many numbers are in use, and the same numbering with those alone."""
    held = np.bincount(aggregate_of, minlength=n) > 0
    return int(held.sum()), (np.cumsum(held) - 1)[aggregate_of]


def _build_aggregate(
    reduced: ReducedProblem,
    labels: Labels,
    multipliers: Vector,
    settled: NDArray[np.bool_],
    aggregate_of: Labels,
    n_aggregated: int,
) -> AggregatedProblem:
    weights = np.bincount(aggregate_of, reduced.weights, n_aggregated).astype(np.float64)
    means = np.empty((n_aggregated, reduced.n_dims))
    within_cost = np.zeros(n_aggregated)
    for j, column in enumerate(reduced.points.T):
        pull = reduced.weights * column
        means[:, j] = np.bincount(aggregate_of, pull, n_aggregated) / weights
        within_cost += (
            np.bincount(aggregate_of, pull * column, n_aggregated) - weights * means[:, j] ** 2
        )
    alone = np.bincount(aggregate_of, minlength=n_aggregated) == 1
    within_cost[alone] = 0.0
    means[aggregate_of[~settled]] = reduced.points[~settled]
    pairs = reduced.graph.edges()
    graph, order = build_cannot_link_graph(
        n_aggregated, aggregate_of[pairs[~settled[pairs].any(axis=1)]]
    )
    position = np.empty(n_aggregated, dtype=np.int64)
    position[order] = np.arange(n_aggregated)
    group_of = position[aggregate_of]
    aggregated_labels = np.empty(n_aggregated, dtype=np.int64)
    aggregated_labels[group_of] = labels
    total = float(within_cost.sum())
    aggregated = ReducedProblem(
        means[order],
        weights[order],
        CannotLinks(graph),
        reduced.n_clusters,
        reduced.offset + total,
    )
    joined = np.bincount(aggregate_of, multipliers, n_aggregated) - within_cost
    weight_fraction = np.where(settled, reduced.weights / aggregated.weights[group_of], 1.0)
    return AggregatedProblem(
        aggregated, aggregated_labels, joined[order], group_of, total, multipliers, weight_fraction
    )


# Multipliers that are worth nearly what the labelling costs: those of the run, raised.
#
# A proof to 0.1 % would double a slack of 0.1 %, so the bundle goes on from where the run has left it
# until what is missing is a tenth of the slack. With many groups it does so on a small core of them,
# and where that turns out to have left something out, on all of them.
#
# What multipliers are worth is only said here; the regions prove it, or say that it is not so.

# Multipliers are raised until what is left to gain is this share of the slack.
TARGET_GAP_FRACTION = 0.1
MIN_TARGET_GAP = 1e-5  # of the cost
# After this share of the time there is, they are raised no further.
TIME_FRACTION = 0.4
# Beyond so many axes exact pricing is hopeless without multipliers to begin with.
MAX_DIMS = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricingGuide:
    """Where to look for good clusters: pricing that may be about fewer groups than there are."""

    pricer: Pricer
    multipliers: Vector
    columns: tuple[Column, ...]

    def value_of(self, column: Column) -> float:
        """Of a cluster of its groups."""
        return float(self.multipliers @ column.members) - column.cost


@final
@dataclass(frozen=True, slots=True, eq=False)
class StrengthenedDual:
    """Multipliers, and what they are said to be worth."""

    multipliers: Vector
    value: float
    target_gain: float  # what it is worth while to gain: a tenth of the slack
    guide: PricingGuide

    def without_threads(self) -> StrengthenedDual:
        """The same without threads, which will be gone."""
        guide = dataclasses.replace(self.guide, pricer=Pricer(self.guide.pricer.reduced))
        return dataclasses.replace(self, guide=guide)


def strengthened_multipliers(
    case: CertaintyProblem, pricer: Pricer, threads: Executor | None, stop: StopSignal
) -> Iterator[StrengthenedDual]:
    """Multipliers to try, one after the other, while it is shown that they are worth less."""
    given = next(
        (one for one in case.bound_artifacts() if isinstance(one.evidence, GroupMultipliers)), None
    )
    if given is None and case.presolved.reduced.n_dims > MAX_DIMS:
        return
    ascent = _DualAscent(
        case, pricer, threads, stop.with_time_limit(TIME_FRACTION * case.seconds()),
        max(TARGET_GAP_FRACTION * case.slack, MIN_TARGET_GAP),
    )  # fmt: skip
    if given is None:
        found = ascent.run_bundle(pricer.reduced, case.groups, None)
        evidence = found.leaf.evidence
        if isinstance(evidence, GroupMultipliers) and 0.0 < found.value < math.inf:
            yield ascent.strengthened(found, evidence.values)
        return
    warm_start = _saved_warm_start(pricer, given)
    on_aggregate = ascent.on_aggregate(warm_start, given.value)
    if on_aggregate is not None:
        yield on_aggregate
    yield ascent.on_full_problem(warm_start, given.value)


def _saved_warm_start(pricer: Pricer, given: BoundArtifact) -> ClusterWarmStart:
    """Where the run has left the bundle; the clusters it knew, in any case."""
    assert isinstance(given.evidence, GroupMultipliers)
    warm_start = ClusterWarmStart(given.evidence.values, (), np.empty((0, 0)))
    if isinstance(given.warm_start, ClusterWarmStart):
        warm_start = dataclasses.replace(given.warm_start, multipliers=given.evidence.values)
    return dataclasses.replace(warm_start, columns=_initial_columns(pricer, warm_start))


def _initial_columns(pricer: Pricer, warm_start: ClusterWarmStart) -> tuple[Column, ...]:
    """Clusters to begin with; where only their places were kept, they are found again there."""
    if warm_start.columns or warm_start.column_centers is None:
        return warm_start.columns
    most = max(DEFAULT_PARAMS.max_warm_start_columns, 2 * pricer.reduced.n_clusters)
    return tuple(
        column
        for column in pricer.best_columns_at(
            warm_start.multipliers, list(warm_start.column_centers[:most])
        )
        if column.mass > 0.0
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _DualAscent:
    """What it takes to raise multipliers."""

    case: CertaintyProblem
    pricer: Pricer
    threads: Executor | None
    stop: StopSignal
    target_gap: float  # share of the cost that may be missing at last

    def run_bundle(
        self, problem: ReducedProblem, labels: Labels, warm_start: ClusterWarmStart | None
    ) -> BoundResult:
        """Run the bundle around a labelling, from where it was if it was anywhere."""
        bound = ClusterBound()
        inputs = BoundInput(
            problem,
            make_assigner(problem, labels),
            gap=self.target_gap,
            seed=self.case.basis.seed,
        )
        ctx = BoundContext(
            self.stop,
            at_root=True,
            incumbent=_FixedIncumbent(labels),
            pool=TaskPool(self.threads),
            time_boxed=warm_start is None,
        )
        if warm_start is not None:
            warm_start = dataclasses.replace(warm_start, proven=True)
        whole = Domain.root(problem)
        return bound.compute(bound.setup(inputs), whole, math.inf, ctx, warm_start)

    def strengthened(self, found: BoundResult, multipliers: Vector) -> StrengthenedDual:
        """What a bundle over all groups has found."""
        assert isinstance(found.warm_start, ClusterWarmStart)
        guide = PricingGuide(
            self.pricer, multipliers, _initial_columns(self.pricer, found.warm_start)
        )
        return StrengthenedDual(multipliers, found.value, self.target_gap * self.case.cost, guide)

    def on_full_problem(self, warm_start: ClusterWarmStart, value: float) -> StrengthenedDual:
        """Raise multipliers worth ``value``."""
        found = self.run_bundle(self.pricer.reduced, self.case.groups, warm_start)
        evidence = found.leaf.evidence
        if isinstance(evidence, GroupMultipliers) and value <= found.value < math.inf:
            return self.strengthened(found, evidence.values)
        # There was no time to raise them.
        guide = PricingGuide(self.pricer, warm_start.multipliers, warm_start.columns)
        return StrengthenedDual(
            warm_start.multipliers, value, self.target_gap * self.case.cost, guide
        )

    def on_aggregate(self, warm_start: ClusterWarmStart, value: float) -> StrengthenedDual | None:
        """Raise them on the core; None where there is none, or where it leaves something out."""
        case, k = self.case, self.pricer.reduced.n_clusters
        most = max_reduced_cost(case.presolved, case.cost, case.slack)
        core = aggregate_problem(self.pricer, case.groups, warm_start.multipliers, most - value)
        if core is None:
            return None
        inner, others = core.warm_start(warm_start)
        # Clusters that the core does not know and that matter already would be in the way: those
        # worth more than the clusters of a labelling spoken of have to be on average.
        average = (float(warm_start.multipliers.sum()) - most) / k
        if any(float(warm_start.multipliers @ one.members) - one.cost > average for one in others):
            return None
        found = self.run_bundle(core.problem, core.labels, inner)
        evidence = found.leaf.evidence
        if not isinstance(evidence, GroupMultipliers) or found.value + core.within_cost < value:
            return None
        assert isinstance(found.warm_start, ClusterWarmStart)
        pricer = Pricer(core.problem, self.threads)
        guide = PricingGuide(pricer, evidence.values, _initial_columns(pricer, found.warm_start))
        multipliers = core.disaggregate(evidence.values)
        return StrengthenedDual(
            multipliers, found.value + core.within_cost, self.target_gap * case.cost, guide
        )


class _FixedIncumbent(NullIncumbent):
    """News of a labelling that stays the best."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels
