"""What proves a leaf: that no labelling in it costs less than the bound that was claimed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, scatter
from certikmeans.certificate.check_boxes import Exceeded, Region
from certikmeans.certificate.check_colouring import (
    Colourings,
    cannot_be_coloured,
    least_costs,
    viable_colours,
)
from certikmeans.certificate.check_matrix import least_by_matrix
from certikmeans.certificate.check_parts import Cuts, Part, Stated, collapse
from certikmeans.certificate.check_pricing import Limits, Pricing
from certikmeans.certificate.format import Reason, Refusal

MOST_DIVISIONS = 100


@final
@dataclass(slots=True, eq=False)
class _Slice:
    """Clusters that share a region and the groups they may hold."""

    region: Region
    allowed: NDArray[np.bool_] | None  # None: all
    clusters: int
    known: float = 0.0  # some cluster there is worth this much


@final
class LeafChecker:
    """Checks leaves one after the other; counts boxes over all of them."""

    def __init__(
        self, stated: Stated, root: Part, labels: Ints | None, lower_bound: float, limits: Limits
    ) -> None:
        self._stated, self._root = stated, root
        self._labels, self._lower_bound, self._limits = labels, lower_bound, limits
        self.boxes = 0
        self._matrix_work = 0.0
        self._known: dict[int, float] = {}  # what a row of a matrix proves about the root's groups

    def check(self, kind: str, cuts: Cuts, row: int, multipliers: Floats | None) -> None:
        """Return if the leaf is proven, else raise `Refusal`; ``row`` numbers the multipliers."""
        if self._lower_bound <= 0.0:
            return  # no cost is negative
        if time.monotonic() > self._limits.deadline:
            raise Refusal(Reason.LIMIT, "not proven within the time allowed")
        part = self._root
        if any(link.paired for link in cuts.links()):
            part = collapse(self._stated, cuts, self._lower_bound)
        if part.contradictory or part.needed <= 0.0:
            return  # no labelling at all; or what the groups cost inside is enough
        low, high = cuts.boxes(self._stated.n_clusters, part.points.shape[1])
        # Means of points are where points are; an empty cluster sits on another one.
        floor, ceiling = part.points.min(axis=0), part.points.max(axis=0)
        cut_low, cut_high = low > floor, high < ceiling
        low, high = np.maximum(low, floor), np.minimum(high, ceiling)
        if np.any(low > high):
            return  # no centres, so no labelling
        match kind:
            case "infeasible":
                self._infeasible(part)
            case "one cluster":
                self._one_cluster()
            case "sample":
                self._sample(part, low, high)
            case "cluster":
                regions = [Region(*row) for row in zip(low, high, cut_low, cut_high, strict=True)]
                self._cluster(part, regions, low, high, multipliers)
            case "sdp":
                self._matrix(part, row, multipliers)
            case _:
                raise Refusal(Reason.BOUND, "a bound above 0 needs evidence")

    def _infeasible(self, part: Part) -> None:
        if not cannot_be_coloured(part.n_groups, part.edges, self._stated.n_clusters):
            raise Refusal(Reason.BOUND, "it is not shown that the part is empty")

    def _one_cluster(self) -> None:
        """With K = 1 there is one labelling: compare its cost."""
        if self._stated.n_clusters != 1:
            raise Refusal(Reason.BOUND, "there is more than one cluster")
        everyone = np.zeros(len(self._stated.points), dtype=np.int64)
        cost = scatter(self._stated.points, self._stated.weights, everyone, 1).below
        if not cost >= self._lower_bound:
            raise Refusal(Reason.BOUND, f"one cluster costs {cost!r}, less than claimed")

    def _sample(self, part: Part, low: Floats, high: Floats) -> None:
        """Every group pays at least its distance to the box of its centre."""
        costs = least_costs(part.points, part.weights, low, high)
        value = Colourings(costs, part.edges).least()
        if value < part.needed < math.inf:
            viable = viable_colours(costs, part.edges, part.needed)
            costs[~viable] = part.needed
            value = max(value, Colourings(costs, part.edges).least())
        if not value >= part.needed:
            raise Refusal(Reason.BOUND, f"proven {value!r} of {part.needed!r} (reduced)")

    def _matrix(self, part: Part, row: int, multipliers: Floats | None) -> None:
        """What holds for all labellings holds for those of the part: boxes are not looked at."""
        if multipliers is None:
            raise Refusal(Reason.BOUND, "there are no multipliers")
        value = self._known.get(row) if part is self._root else None
        if value is None:
            self._matrix_work += float(part.n_groups) ** 3
            if self._matrix_work > self._limits.matrix_work:
                raise Refusal(Reason.LIMIT, "too many large matrices")
            value = least_by_matrix(
                part.points, part.weights, part.edges, self._stated.n_clusters, multipliers
            )
            if part is self._root:
                self._known[row] = value
        if not value >= part.needed:
            raise Refusal(Reason.BOUND, f"proven {value!r} of {part.needed!r} (reduced)")

    def _cluster(
        self,
        part: Part,
        regions: list[Region],
        low: Floats,
        high: Floats,
        multipliers: Floats | None,
    ) -> None:
        """``cost >= sum lam - sum over clusters of the worth of the best one in its region``."""
        if multipliers is None or len(multipliers) != part.n_groups:
            raise Refusal(Reason.BOUND, f"there is not one multiplier for each of {part.n_groups}")
        if part.needed == math.inf:
            raise Refusal(Reason.BOUND, "multipliers cannot show that a part is empty")
        exact = math.fsum(multipliers.tolist())
        spare = math.nextafter(math.nextafter(exact, -math.inf) - part.needed, -math.inf)
        if not spare >= 0.0:
            raise Refusal(Reason.BOUND, "the multipliers add up to less than the claim")
        pricing = Pricing(
            part.points, part.weights, part.edges, multipliers, self._limits, self.boxes
        )
        slices = self._slices(part, regions, low, high)
        if slices is None:
            return
        if len(slices) > 1:
            starts = self._means(part)
            for one in slices:
                one.known = max(pricing.climb(one.region, y, one.allowed) for y in starts)
        try:
            _prove_all(pricing, slices, spare)
        finally:
            self.boxes = pricing.looks

    def _slices(
        self, part: Part, regions: list[Region], low: Floats, high: Floats
    ) -> list[_Slice] | None:
        """Clusters by region and viable groups; None: no labelling is below the bound."""
        first = regions[0]
        if all(_same(first, region) for region in regions):
            return [_Slice(first, None, len(regions))]
        costs = least_costs(part.points, part.weights, low, high)
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

    def _means(self, part: Part) -> list[Floats]:
        """Where good clusters may be: the middle, and the means of the labelling."""
        starts = [np.average(part.points, axis=0, weights=part.weights)]
        if self._labels is not None and part is self._root:
            rows = (self._stated.points - self._stated.centre) @ self._stated.axes
            for k in np.unique(self._labels).tolist():
                starts.append(rows[self._labels == k].mean(axis=0))
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
