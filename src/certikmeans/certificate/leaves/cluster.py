"""Cluster bound: ``cost >= sum lam`` minus the values of the ``n_clusters`` best clusters.

With soft pairs the cost with penalties is at least ``sum lam``, plus the sum of the bonuses
``r > 0``, minus the worths of the clusters, bonuses inside them included (`check_mean_pricing`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    connected_components,
    distinct,
)
from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_coloring import allowed_colors, box_costs
from certikmeans.certificate.check_constraints import GroupConstraints, PricedConstraints
from certikmeans.certificate.check_domains import LeafContext, check_table_size
from certikmeans.certificate.check_mean_boxes import PricedGroups
from certikmeans.certificate.check_mean_pricing import MeanPricing
from certikmeans.certificate.check_pricing import Pricing
from certikmeans.certificate.format import Reason, Rejection

MAX_REALLOCATIONS = 100
MANY_CYCLES = 0.5

NAME = "cluster"
CODE = 2


@final
@dataclass(slots=True, eq=False)
class _RegionClass:
    """Clusters with the same region, the same allowed groups and the same limits on demand."""

    region: CenterRegion
    allowed: NDArray[np.bool_] | None  # None: all
    n_clusters: int
    lower: float = 0.0
    upper: float = math.inf
    best_value: float = 0.0  # value of some cluster there


def check(ctx: LeafContext) -> None:
    """Prove that the values of all clusters add up to at most what the multipliers leave."""
    domain, row = ctx.domain, ctx.row
    if row is None or len(row) != domain.n_groups:
        raise Rejection(Reason.BOUND, f"there is not one multiplier for each of {domain.n_groups}")
    if domain.required_bound == math.inf:
        raise Rejection(Reason.BOUND, "multipliers cannot prove that a domain is empty")
    constant = 0.0
    if domain.constraints is not None:
        constant = _sum_of_gains(domain.constraints)
    exact = math.fsum([*row.tolist(), constant])
    available = math.nextafter(math.nextafter(exact, -math.inf) - domain.required_bound, -math.inf)
    classes = _region_classes(ctx)
    if classes is None:
        return
    if domain.constraints is not None:
        classes = _with_limits(classes, domain.constraints, by_class=ctx.is_root_region)
    if not available >= 0.0 and all(one.lower <= 0.0 for one in classes):
        raise Rejection(Reason.BOUND, "the multipliers add up to less than the claim")
    pricing = _PricingMethods(ctx, row)
    if len(classes) > 1:
        starts = _start_centers(ctx)
        for one in classes:
            one.best_value = max(pricing.local_search(one, y) for y in starts)
            if not math.isfinite(one.best_value):  # no set was found
                one.best_value = available / ctx.original.n_clusters
    try:
        _prove_all(pricing, classes, available)
    finally:
        ctx.budget.boxes = pricing.evaluations


def _sum_of_gains(constraints: GroupConstraints) -> float:
    """Sum of the positive bonuses, rounded down: the penalty where all groups are separated."""
    gains = constraints.bonus[constraints.bonus > 0.0]
    return math.nextafter(math.fsum(gains.tolist()), -math.inf) if len(gains) else 0.0


def _with_limits(
    classes: list[_RegionClass], constraints: GroupConstraints, *, by_class: bool
) -> list[_RegionClass]:
    """Give every class its limits on demand.

    Clusters that are numbered by their centers satisfy the limits in some order: the loosest ones
    hold for all of them. Where no center was split, they may be numbered by their limits instead.
    """
    lower, upper = constraints.lower, constraints.upper
    if len(classes) > 1 or not by_class:
        return [replace(c, lower=float(lower.min()), upper=float(upper.max())) for c in classes]
    limits, counts = np.unique(np.column_stack([lower, upper]), axis=0, return_counts=True)
    return [
        replace(classes[0], n_clusters=n, lower=a, upper=b)
        for (a, b), n in zip(limits.tolist(), counts.tolist(), strict=True)
    ]


@final
class _PricingMethods:
    """The two ways to bound the value of a cluster; what is proven by either is proven.

    Without other constraints, and with few cycles of cannot-links, `Pricing` divides the space of
    centers into boxes in which groups are decided by ranges; else `MeanPricing` is needed.
    """

    def __init__(self, ctx: LeafContext, multipliers: Floats) -> None:
        self._domain, self._multipliers = ctx.domain, multipliers
        self._limits, self.evaluations = ctx.budget.limits, ctx.budget.boxes
        domain = ctx.domain
        self._pricing = None
        if domain.constraints is None and not _has_many_cycles(domain.n_groups, domain.edges):
            self._pricing = Pricing(
                domain.points, domain.weights, domain.edges, multipliers, self._limits
            )
        self._arranged: PricedConstraints | None = None

    def _mean_pricing(self, one: _RegionClass) -> MeanPricing:
        domain, given = self._domain, self._domain.constraints
        if self._arranged is None:
            none = np.empty((0, 2), dtype=np.int64)
            self._arranged = PricedConstraints.of(
                domain.n_groups,
                domain.edges,
                none if given is None else given.pairs,
                np.empty(0) if given is None else given.bonus,
                [] if given is None else given.sets,
                None if given is None else given.demand,
            )
        groups = PricedGroups(
            domain.points, domain.weights, self._multipliers, self._arranged, one.lower, one.upper
        )
        return MeanPricing(groups, self._limits, self.evaluations)

    def local_search(self, one: _RegionClass, start: Floats) -> float:
        """Value of a good cluster of the class near ``start``."""
        method = self._pricing or self._mean_pricing(one)
        return method.local_search(one.region, start, one.allowed)

    def prove(self, one: _RegionClass, cutoff: float) -> None:
        """Prove that no cluster of the class has a larger value."""
        method = self._pricing or self._mean_pricing(one)
        method.evaluations = self.evaluations
        try:
            method.prove(one.region, cutoff, one.allowed)
        finally:
            self.evaluations = method.evaluations


def _has_many_cycles(n_groups: int, edges: Ints) -> bool:
    """Whether a spanning forest leaves out many cannot-links per linked group."""
    linked = distinct(edges)
    label = connected_components(n_groups, edges)
    forest_edges = len(linked) - len(distinct(label[linked]))
    return len(edges) - forest_edges > MANY_CYCLES * len(linked)


def _region_classes(ctx: LeafContext) -> list[_RegionClass] | None:
    """Classes of clusters by region and allowed groups; None if no labelling is below the bound."""
    domain = ctx.domain
    boxes = (ctx.low, ctx.high, ctx.cut_low, ctx.cut_high)
    regions = [CenterRegion(*row) for row in zip(*boxes, strict=True)]
    first = regions[0]
    if all(_same_region(first, region) for region in regions):
        return [_RegionClass(first, None, len(regions))]
    check_table_size(domain.n_groups, ctx.original.n_clusters, ctx.original.points)
    costs = box_costs(domain.points, domain.weights, ctx.low, ctx.high)
    allowed = allowed_colors(costs, domain.edges, domain.required_bound)
    if not np.all(allowed.any(axis=1)):
        return None
    classes: list[_RegionClass] = []
    for k, region in enumerate(regions):
        for one in classes:
            same = one.allowed is not None and np.array_equal(one.allowed, allowed[:, k])
            if same and _same_region(one.region, region):
                one.n_clusters += 1
                break
        else:
            classes.append(_RegionClass(region, allowed[:, k], 1))
    return classes


def _start_centers(ctx: LeafContext) -> list[Floats]:
    """Start centers for local search: the mean of all groups and the means of the labelling."""
    domain, original = ctx.domain, ctx.original
    starts = [np.average(domain.points, axis=0, weights=domain.weights)]
    if ctx.labels is not None and domain is ctx.root_domain:
        rows = (original.points - original.center) @ original.axes
        for k in np.unique(ctx.labels).tolist():
            starts.append(rows[ctx.labels == k].mean(axis=0))
    return starts


def _prove_all(pricing: _PricingMethods, classes: list[_RegionClass], available: float) -> None:
    """Prove that the values of all clusters add up to at most ``available``.

    The division among classes is estimated from clusters of high value; where a better one is
    found, it is divided again.
    """
    n_clusters = sum(one.n_clusters for one in classes)
    for _ in range(MAX_REALLOCATIONS):
        slack_per_cluster = (
            available - math.fsum(one.n_clusters * one.best_value for one in classes)
        ) / n_clusters
        cutoffs = [
            (one.best_value + slack_per_cluster)
            - 8.0 * EPS * (abs(one.best_value) + abs(slack_per_cluster))
            for one in classes
        ]
        total_cutoff = math.fsum(
            cutoff
            for one, cutoff in zip(classes, cutoffs, strict=True)
            for _ in range(one.n_clusters)
        )
        possible = slack_per_cluster >= 0.0 or len(classes) == 1
        if not (possible and math.nextafter(total_cutoff, math.inf) <= available):
            raise Rejection(Reason.BOUND, "the values of some clusters exceed the claim")
        for one, cutoff in zip(classes, cutoffs, strict=True):
            try:
                pricing.prove(one, cutoff)
            except CutoffExceeded as exceeded:
                if len(classes) == 1 or not exceeded.value > one.best_value:
                    raise Rejection(
                        Reason.BOUND, "the value of a cluster exceeds the claim"
                    ) from exceeded
                one.best_value = exceeded.value
                break
        else:
            return
    raise Rejection(Reason.LIMIT, "no division of the bound among the clusters was found")


def _same_region(a: CenterRegion, b: CenterRegion) -> bool:
    return (
        np.array_equal(a.low, b.low)
        and np.array_equal(a.high, b.high)
        and np.array_equal(a.cut_low, b.cut_low)
        and np.array_equal(a.cut_high, b.cut_high)
    )
