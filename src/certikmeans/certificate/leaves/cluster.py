"""Cluster bound: ``cost >= sum lam`` minus the values of the ``n_clusters`` best clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats
from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_coloring import allowed_colors, box_costs
from certikmeans.certificate.check_domains import LeafContext, check_table_size
from certikmeans.certificate.check_pricing import Pricing
from certikmeans.certificate.format import Reason, Rejection

MAX_REALLOCATIONS = 100

NAME = "cluster"
CODE = 2


@final
@dataclass(slots=True, eq=False)
class _RegionClass:
    """Clusters with the same region and the same allowed groups."""

    region: CenterRegion
    allowed: NDArray[np.bool_] | None  # None: all
    n_clusters: int
    best_value: float = 0.0  # value of some cluster there


def check(ctx: LeafContext) -> None:
    """Prove that the values of all clusters add up to at most what the multipliers leave."""
    domain, row = ctx.domain, ctx.row
    if row is None or len(row) != domain.n_groups:
        raise Rejection(Reason.BOUND, f"there is not one multiplier for each of {domain.n_groups}")
    if domain.required_bound == math.inf:
        raise Rejection(Reason.BOUND, "multipliers cannot prove that a domain is empty")
    exact = math.fsum(row.tolist())
    available = math.nextafter(math.nextafter(exact, -math.inf) - domain.required_bound, -math.inf)
    if not available >= 0.0:
        raise Rejection(Reason.BOUND, "the multipliers add up to less than the claim")
    budget = ctx.budget
    pricing = Pricing(domain.points, domain.weights, domain.edges, row, budget.limits, budget.boxes)
    classes = _region_classes(ctx)
    if classes is None:
        return
    if len(classes) > 1:
        starts = _start_centers(ctx)
        for one in classes:
            one.best_value = max(pricing.local_search(one.region, y, one.allowed) for y in starts)
    try:
        _prove_all(pricing, classes, available)
    finally:
        budget.boxes = pricing.evaluations


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


def _prove_all(pricing: Pricing, classes: list[_RegionClass], available: float) -> None:
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
            - 8.0 * EPS * (one.best_value + abs(slack_per_cluster))
            for one in classes
        ]
        total_cutoff = math.fsum(
            cutoff
            for one, cutoff in zip(classes, cutoffs, strict=True)
            for _ in range(one.n_clusters)
        )
        if not (slack_per_cluster >= 0.0 and math.nextafter(total_cutoff, math.inf) <= available):
            raise Rejection(Reason.BOUND, "the values of some clusters exceed the claim")
        for one, cutoff in zip(classes, cutoffs, strict=True):
            try:
                pricing.prove(one.region, max(0.0, cutoff), one.allowed)
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
