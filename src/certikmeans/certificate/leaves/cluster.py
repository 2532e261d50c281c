"""The cluster bound: ``cost >= sum lam - sum over clusters of the worth of the best one``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats
from certikmeans.certificate.check_boxes import Exceeded, Region
from certikmeans.certificate.check_cases import LeafCase
from certikmeans.certificate.check_colouring import least_costs, viable_colours
from certikmeans.certificate.check_pricing import Pricing
from certikmeans.certificate.format import Reason, Refusal

MOST_DIVISIONS = 100

NAME = "cluster"
CODE = 2


@final
@dataclass(slots=True, eq=False)
class _Slice:
    """Clusters that share a region and the groups they may hold."""

    region: Region
    allowed: NDArray[np.bool_] | None  # None: all
    clusters: int
    known: float = 0.0  # some cluster there is worth this much


def check(case: LeafCase) -> None:
    """Show that all clusters together are worth at most what the multipliers leave."""
    part, row = case.part, case.row
    if row is None or len(row) != part.n_groups:
        raise Refusal(Reason.BOUND, f"there is not one multiplier for each of {part.n_groups}")
    if part.needed == math.inf:
        raise Refusal(Reason.BOUND, "multipliers cannot show that a part is empty")
    exact = math.fsum(row.tolist())
    spare = math.nextafter(math.nextafter(exact, -math.inf) - part.needed, -math.inf)
    if not spare >= 0.0:
        raise Refusal(Reason.BOUND, "the multipliers add up to less than the claim")
    work = case.work
    pricing = Pricing(part.points, part.weights, part.edges, row, work.limits, work.boxes)
    slices = _slices(case)
    if slices is None:
        return
    if len(slices) > 1:
        starts = _means(case)
        for one in slices:
            one.known = max(pricing.climb(one.region, y, one.allowed) for y in starts)
    try:
        _prove_all(pricing, slices, spare)
    finally:
        work.boxes = pricing.looks


def _slices(case: LeafCase) -> list[_Slice] | None:
    """Clusters by region and viable groups; None: no labelling is below the bound."""
    part = case.part
    boxes = (case.low, case.high, case.cut_low, case.cut_high)
    regions = [Region(*row) for row in zip(*boxes, strict=True)]
    first = regions[0]
    if all(_same(first, region) for region in regions):
        return [_Slice(first, None, len(regions))]
    costs = least_costs(part.points, part.weights, case.low, case.high)
    viable = viable_colours(costs, part.edges, part.needed)
    if not np.all(viable.any(axis=1)):
        return None
    slices: list[_Slice] = []
    for k, region in enumerate(regions):
        for one in slices:
            same = one.allowed is not None and np.array_equal(one.allowed, viable[:, k])
            if same and _same(one.region, region):
                one.clusters += 1
                break
        else:
            slices.append(_Slice(region, viable[:, k], 1))
    return slices


def _means(case: LeafCase) -> list[Floats]:
    """Where good clusters may be: the middle, and the means of the labelling."""
    part, stated = case.part, case.stated
    starts = [np.average(part.points, axis=0, weights=part.weights)]
    if case.labels is not None and part is case.whole:
        rows = (stated.points - stated.centre) @ stated.axes
        for k in np.unique(case.labels).tolist():
            starts.append(rows[case.labels == k].mean(axis=0))
    return starts


def _prove_all(pricing: Pricing, slices: list[_Slice], spare: float) -> None:
    """Show that all clusters together are worth at most ``spare``.

    How it is divided among them is a guess from clusters known to be worth much; where a
    better one turns up, it is divided again.
    """
    n_clusters = sum(one.clusters for one in slices)
    for _ in range(MOST_DIVISIONS):
        share = (spare - math.fsum(one.clusters * one.known for one in slices)) / n_clusters
        cutoffs = [(one.known + share) - 8.0 * EPS * (one.known + abs(share)) for one in slices]
        spent = math.fsum(
            cutoff for one, cutoff in zip(slices, cutoffs, strict=True) for _ in range(one.clusters)
        )
        if not (share >= 0.0 and math.nextafter(spent, math.inf) <= spare):
            raise Refusal(Reason.BOUND, "some clusters are worth more than the claim allows")
        for one, cutoff in zip(slices, cutoffs, strict=True):
            try:
                pricing.prove(one.region, max(0.0, cutoff), one.allowed)
            except Exceeded as better:
                if len(slices) == 1 or not better.value > one.known:
                    raise Refusal(
                        Reason.BOUND, "a cluster is worth more than the claim allows"
                    ) from better
                one.known = better.value
                break
        else:
            return
    raise Refusal(Reason.LIMIT, "no division of the bound among the clusters was found")


def _same(a: Region, b: Region) -> bool:
    return (
        np.array_equal(a.low, b.low)
        and np.array_equal(a.high, b.high)
        and np.array_equal(a.cut_low, b.cut_low)
        and np.array_equal(a.cut_high, b.cut_high)
    )
