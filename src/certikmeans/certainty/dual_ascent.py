"""Multipliers, and how much labellings below a cost can lose against them.

Write ``L`` for ``sum lam - K sigma``, where no cluster has a value above ``sigma``. A labelling
with clusters ``C_1 .. C_K`` costs

    sum lam - sum_k value(C_k)  =  L + sum_k (sigma - value(C_k)),

no term of the last sum negative. So if it costs at most ``T``, its *deficits*, the terms
``sigma - value(C_k)``, add up to at most ``budget = T - L``.

**Rounding.** ``T`` is the reduced cost that no labelling of stated cost up to ``cost (1 + slack)``
exceeds: ``PresolvedProblem.postsolve_bound`` maps the reduced cost of any labelling below its
stated cost, and is monotone, also in floating point (every operation in it is). So a value whose
image lies above ``cost (1 + slack)`` is above the reduced cost of all of them. ``sum lam`` is
rounded once; ``budget`` is taken from it with a margin of 8 EPS of everything added up. Regions are
proven with ``sigma`` itself, so nothing here depends on the origin of the multipliers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.cluster.initial_point import ClusterWarmStart, column_of
from certikmeans.bounds.cluster.lagrangian_dual import DualPoint, LagrangianDual
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.certainty.artifacts import CertaintyProblem
from certikmeans.certainty.params import AggregationParams
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.proof import GroupMultipliers
from certikmeans.rounding import EPS, TINY
from certikmeans.stop import StopSignal

Labels = Ints

# Everything is proven for a slightly larger budget than needed, so that the verifier, which rounds
# differently, can prove it again: a fraction of the budget, and, as that may be close to 0, the
# amounts by which the verifier's sigma and its costs are larger; unless these amounts exceed the
# last two fractions, of the budget and of the cost.
CHECKER_MARGIN = 1e-3
CHECKER_ERROR_MARGIN, CHECKER_COST_MARGIN = 24.0, 1e-11
MAX_CHECKER_MARGIN = 1e-2, 1e-6


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualLevel:
    """Value that every cluster of a labelling below the cost limit must reach."""

    multipliers: Floats  # (n_groups,)
    sigma: float  # no cluster has a larger value, once the regions are proven
    budget: float  # at least the sum of all deficits
    threshold: float  # at most ``sigma - budget``: every cluster has at least this value
    error: float  # rounding error of pricing


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualScale:
    """Data shared by all levels of the same multipliers."""

    multipliers: Floats  # (n_groups,)
    total: float  # sum of the multipliers, rounded once
    error: float  # rounding error of pricing
    most: float  # above the reduced cost of every labelling considered
    n_clusters: int

    @classmethod
    def of(cls, dual: LagrangianDual, multipliers: Floats, most: float) -> DualScale:
        """Return the scale of some multipliers."""
        total = math.fsum(multipliers.tolist())
        return cls(multipliers, total, dual.error(multipliers), most, dual.problem.n_clusters)

    def sigma_for(self, bound: float) -> float:
        """Largest value of a cluster if the multipliers prove ``bound``."""
        return (self.total - bound) / self.n_clusters

    def level(self, sigma: float) -> DualLevel:
        """Return the level that holds if no cluster has a value above ``sigma``."""
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


# Aggregation: a smaller problem with the same good multipliers.
#
# With many groups, nearly all of them have a positive value for their own center wherever it can
# be, and a negative value for the others. Good clusters hold all of those of one center, or none.
# So they are merged, as must-links would merge them: their multipliers add up, less the cost within
# the merged group. Changes of the multiplier of a merged group are distributed by weight.
#
# Nothing here is proven, and nothing need be: any multipliers are valid, and the bound that they
# give is proven on the whole problem. Cannot-links of merged groups are left out: their neighbors
# have a negative value for that center.


@final
@dataclass(frozen=True, slots=True, eq=False)
class AggregatedProblem:
    """A problem with merged groups, and the map back to all groups."""

    problem: ReducedProblem
    labels: Labels
    multipliers: Floats
    group_of: Labels  # (n_groups,): merged group of every group of the whole problem
    within_cost: float  # sum of squares within merged groups
    original_multipliers: Floats  # multipliers of the whole problem
    weight_fraction: Floats  # (n_groups,): share of the weight of its merged group

    def disaggregate(self, multipliers: Floats) -> Floats:
        """Return multipliers of all groups, given those of the merged groups."""
        gained = (multipliers - self.multipliers)[self.group_of]
        return self.original_multipliers + self.weight_fraction * gained

    def warm_start(
        self, known: ClusterWarmStart, tolerance: float
    ) -> tuple[ClusterWarmStart, list[Column]]:
        """Map a warm start; also return the columns that split merged groups.

        Fractions of a merged group up to ``tolerance`` count as 0, those above ``1 - tolerance``
        as 1. Centers need no mapping.
        """
        n, rows = self.problem.n_groups, np.flatnonzero(self.weight_fraction < 1.0)
        merged_group, weight_fraction = self.group_of[rows], self.weight_fraction[rows]
        whole = np.bincount(merged_group, weight_fraction, n)
        is_merged = whole > 0.0
        mapped, split = list[Column](), list[Column]()
        for column in known.columns:
            members = column.members
            held_weight = np.bincount(merged_group, weight_fraction * members[rows], n)
            held = held_weight[is_merged] / whole[is_merged]
            if np.any((held > tolerance) & (held < 1.0 - tolerance)):
                split.append(column)
                continue
            mapped_members = np.empty(n, dtype=bool)
            mapped_members[self.group_of] = members
            mapped_members[is_merged] = held > 0.5
            if mapped_members.any():
                mapped.append(column_of(self.problem, mapped_members))
        warm_start = ClusterWarmStart(
            self.multipliers, tuple(mapped), known.centers, known.column_centers
        )
        return warm_start, split


def aggregate_problem(
    dual: LagrangianDual,
    labels: Labels,
    multipliers: Floats,
    budget: float,
    params: AggregationParams,
) -> AggregatedProblem | None:
    """Merge groups far from every other cluster; None if too few groups can be merged.

    ``budget`` bounds the sum of the deficits of all clusters.
    """
    reduced = dual.problem
    n, k = reduced.n_groups, reduced.n_clusters
    if n < params.min_groups:
        return None
    sums, masses = reduced.cluster_sums(labels)
    with np.errstate(invalid="ignore", divide="ignore"):
        centers = sums / masses[:, None]  # NaN: empty
        reach = params.center_reach * np.sqrt(budget / masses)
    fixed = dual.fixed_groups(multipliers, labels, centers, reach, params.multiplier_margin)
    n_kept = n - int(fixed.sum())
    if n_kept > params.max_remaining_fraction * n:
        return None
    aggregate_of = np.where(fixed, n_kept + labels, np.cumsum(~fixed) - 1)
    used = np.bincount(aggregate_of, minlength=n_kept + k) > 0
    aggregate_of = (np.cumsum(used) - 1)[aggregate_of]
    return _build_aggregate(reduced, labels, multipliers, fixed, aggregate_of, int(used.sum()))


def compile_aggregation(reduced: ReducedProblem) -> None:
    """Call what only large problems need on a tiny one, so that it is compiled."""
    labels = np.arange(reduced.n_groups) % reduced.n_clusters
    params = AggregationParams(min_groups=0)
    aggregate_problem(LagrangianDual(reduced), labels, np.ones(reduced.n_groups), 0.0, params)


def _build_aggregate(
    reduced: ReducedProblem,
    labels: Labels,
    multipliers: Floats,
    fixed: Mask,
    aggregate_of: Labels,
    n_aggregated: int,
) -> AggregatedProblem:
    weights = np.bincount(aggregate_of, reduced.weights, n_aggregated).astype(np.float64)
    means = np.empty((n_aggregated, reduced.n_dims))
    within_cost = np.zeros(n_aggregated)
    for j, column in enumerate(reduced.points.T):
        weighted = reduced.weights * column
        means[:, j] = np.bincount(aggregate_of, weighted, n_aggregated) / weights
        within_cost += (
            np.bincount(aggregate_of, weighted * column, n_aggregated) - weights * means[:, j] ** 2
        )
    single = np.bincount(aggregate_of, minlength=n_aggregated) == 1
    within_cost[single] = 0.0
    means[aggregate_of[~fixed]] = reduced.points[~fixed]
    pairs = reduced.graph.edges()
    graph, order = build_cannot_link_graph(
        n_aggregated, aggregate_of[pairs[~fixed[pairs].any(axis=1)]]
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
    merged = np.bincount(aggregate_of, multipliers, n_aggregated) - within_cost
    weight_fraction = np.where(fixed, reduced.weights / aggregated.weights[group_of], 1.0)
    return AggregatedProblem(
        aggregated, aggregated_labels, merged[order], group_of, total, multipliers, weight_fraction
    )


# Ascent: multipliers whose bound is close to the cost of the labelling.
#
# A bound to 0.1 % would double a slack of 0.1 %, so the bundle method continues from the warm start
# of the run until the remaining gap is a tenth of the slack. With many groups it does so on the
# aggregated problem, and where that turns out to miss clusters, on all groups.
#
# The bound of the multipliers is only reported here; the regions prove it or refute it.


@final
@dataclass(frozen=True, slots=True, eq=False)
class StrengthenedDual:
    """Multipliers with the bound reported for them, which is not trusted."""

    multipliers: Floats
    bound: float
    target_gain: float  # gains below this amount are not pursued: a tenth of the slack
    guide: DualPoint  # where to look for good clusters; may be of the aggregated problem

    def without_executor(self) -> StrengthenedDual:
        """Return the same for use after the threads have ended."""
        guide = dataclasses.replace(self.guide, dual=self.guide.dual.without_executor())
        return dataclasses.replace(self, guide=guide)


def strengthened_multipliers(
    case: CertaintyProblem, dual: LagrangianDual, executor: Executor | None, stop: StopSignal
) -> Iterator[StrengthenedDual]:
    """Yield multipliers to try; the next ones if the bound of the previous ones is refuted."""
    params = case.params.ascent
    given = next(
        (one for one in case.bound_artifacts() if isinstance(one.evidence, GroupMultipliers)), None
    )
    if given is None and dual.problem.n_dims > params.max_dims:
        return
    ascent = _DualAscent(
        case, dual, executor, stop.with_time_limit(params.time_fraction * case.seconds()),
        max(params.target_gap_fraction * case.slack, params.min_target_gap),
    )  # fmt: skip
    if given is None:
        found = ascent.maximize(dual, case.groups, None)
        if found is not None and found.bound > 0.0:
            yield ascent.strengthened(found)
        return
    assert isinstance(given.evidence, GroupMultipliers)
    warm_start = dual.warm_start(given.evidence.values, given.warm_start)
    on_aggregate = ascent.on_aggregate(warm_start, given.value)
    if on_aggregate is not None:
        yield on_aggregate
    yield ascent.on_full_problem(warm_start, given.value)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _DualAscent:
    """Inputs shared by the ascents on the aggregated and on the full problem."""

    case: CertaintyProblem
    dual: LagrangianDual
    executor: Executor | None
    stop: StopSignal
    target_gap: float  # relative to the cost

    def maximize(
        self, dual: LagrangianDual, labels: Labels, warm_start: ClusterWarmStart | None
    ) -> DualPoint | None:
        seed = self.case.basis.seed
        return dual.maximize(labels, self.target_gap, seed, self.stop, warm_start)

    def strengthened(self, found: DualPoint) -> StrengthenedDual:
        """Return the result of an ascent over all groups."""
        gain = self.target_gap * self.case.cost
        return StrengthenedDual(found.multipliers, found.bound, gain, found)

    def on_full_problem(self, warm_start: ClusterWarmStart, bound: float) -> StrengthenedDual:
        """Improve multipliers that were reported to prove ``bound``."""
        found = self.maximize(self.dual, self.case.groups, warm_start)
        if found is None or found.bound < bound:  # stopped before it reached the start again
            found = DualPoint(self.dual, warm_start.multipliers, warm_start.columns, bound)
        return self.strengthened(found)

    def on_aggregate(self, warm_start: ClusterWarmStart, bound: float) -> StrengthenedDual | None:
        """Improve them on the aggregated problem; None if there is none or it misses clusters."""
        case, params = self.case, self.case.params.ascent.aggregation
        multipliers = warm_start.multipliers
        most = max_reduced_cost(case.presolved, case.cost, case.slack)
        aggregated = aggregate_problem(self.dual, case.groups, multipliers, most - bound, params)
        if aggregated is None:
            return None
        mapped, split = aggregated.warm_start(warm_start, params.partial_column_tolerance)
        # Clusters outside of the aggregated problem matter if their value is above the average
        # over the clusters of a labelling within the slack.
        average = (float(multipliers.sum()) - most) / self.dual.problem.n_clusters
        if any(float(multipliers @ one.members) - one.cost > average for one in split):
            return None
        inner = LagrangianDual(aggregated.problem, self.executor)
        found = self.maximize(inner, aggregated.labels, mapped)
        if found is None or found.bound + aggregated.within_cost < bound:
            return None
        return StrengthenedDual(
            aggregated.disaggregate(found.multipliers),
            found.bound + aggregated.within_cost,
            self.target_gap * case.cost,
            found,
        )
