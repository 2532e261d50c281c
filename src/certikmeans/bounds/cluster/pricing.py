"""Pricing: the largest value (negative reduced cost) of one cluster under given multipliers.

``sigma(lam) = max over y and I independent of sum_{s in I} (lam_s - w_s |x_s - y|^2)``.

A branch and bound over boxes of ``y``, best bound first: batches of a fixed number of boxes are
taken from a heap and searched depth first by a compiled kernel, each with a work budget; boxes
that stay open return to the heap. An interrupted search therefore has a finite upper bound, the
largest one in the heap, and the result does not depend on the number of threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import StallDetector
from certikmeans.bounds.cluster.priced import (
    FoundSet,
    PricedConstraints,
    ascend_from_set,
    ascend_unless_stopped,
    column_cost,
    completed,
    continued_ascent,
    priced_instance,
    search_priced,
    uses_prices,
)
from certikmeans.bounds.cluster.pricing_error import (
    mean_rounding_error,
    price_error_factor,
    priced_error,
    pricing_error,
)
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.box_bound import Instance
from certikmeans.kernels.pricing.priced_box import PricedInstance
from certikmeans.kernels.pricing.priced_search import PricedSearchParams
from certikmeans.kernels.pricing.search import (
    BoxStack,
    ImprovingCenters,
    SearchParams,
    SearchResult,
    search_boxes,
)
from certikmeans.parallel import TaskPool
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import column_ranges, iter_row_blocks
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.bounds.cluster.size_cuts import SizeCuts


@final
@dataclass(frozen=True, slots=True)
class PricingParams:
    """Settings of exact and heuristic pricing."""

    ascents_per_batch: int = 8  # between two tests of the stopping criterion
    min_parallel_size: int = 8_000  # coordinates; with fewer, starting a thread takes longer
    boxes_per_batch: int = 8  # between two tests of the stopping criterion
    # Work per box and call of the kernel, in evaluations of a coordinate: first, factor, last.
    min_budget: float = 2e5
    budget_growth: float = 1.5
    max_budget: float = 2e6
    # A search has to end without a time limit, too: from this many boxes on, the distance of the
    # bound from the cutoff has to shrink by this factor at every doubling. Searches that close do
    # far better.
    stall_check_after: float = 100_000
    max_stall_ratio: float = 0.9
    stack_capacity: int = 128  # boxes on the stack of one kernel call
    max_improving_centers: int = 4  # returned by one kernel call, the latest
    # With this many pairs, counted at both ends, a selection takes long: ascents have few steps,
    # and only the best are continued.
    preview_min_arcs: int = 100_000
    preview_steps: int = 1
    continued_ascents: int = 8
    continued_steps: int = 4  # between two tests of the stopping criterion

    def __post_init__(self) -> None:
        counts = (self.ascents_per_batch, self.boxes_per_batch, self.max_improving_centers)
        if min(counts) < 1 or self.stack_capacity < 2:
            raise ValueError("batch sizes have to be positive, stack_capacity at least 2")
        if not (0.0 < self.min_budget <= self.max_budget and self.budget_growth >= 1.0):
            raise ValueError("budgets have to be positive and must not shrink")


DEFAULT_PARAMS = PricingParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricingRegion:
    """Box of the centre of a cluster, and the groups allowed in the cluster."""

    low: NDArray[np.float64]  # (n_dims,)
    high: NDArray[np.float64]  # (n_dims,)
    # (2, n_dims): faces that a mean can lie beyond; infinite for the others
    active_faces: NDArray[np.float64]
    allowed: NDArray[np.bool_] | None = None  # (n_groups,), or None for all
    limits: tuple[float, float] | None = None  # on the size of the cluster; None: the loosest
    demand: NDArray[np.float64] | None = None  # (n_groups,), with limits

    @classmethod
    def of(
        cls,
        reduced: ReducedProblem,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None = None,
    ) -> PricingRegion:
        """Region of a box. Means lie in the bounding box of the points: its faces are inactive."""
        data_low, data_high = column_ranges(reduced.points)
        return cls._within(data_low, data_high, low, high, allowed)

    @classmethod
    def _within(
        cls,
        data_low: NDArray[np.float64],
        data_high: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None,
    ) -> PricingRegion:
        low, high = np.maximum(low, data_low), np.minimum(high, data_high)
        active_faces = np.stack(
            [np.where(low > data_low, low, -np.inf), np.where(high < data_high, high, np.inf)]
        )
        return cls(low, high, active_faces, allowed)

    def subregion(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> PricingRegion:
        """Region of a smaller box, given that this one is the bounding box of the points."""
        return self._within(self.low, self.high, low, high, None)

    @classmethod
    def full_region(cls, reduced: ReducedProblem) -> PricingRegion:
        """Bounding box of the points, which contains the mean of every set."""
        return cls.of(reduced, *column_ranges(reduced.points))

    def fits(self, column: Column) -> bool:
        """Whether the size of a column is within the limits, up to rounding."""
        if self.limits is None or self.demand is None:
            return True
        size = float(self.demand @ column.members)
        slack = 1e-9 * float(self.demand.sum())
        return self.limits[0] - slack <= size <= self.limits[1] + slack

    def clamp(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest points between the active faces."""
        return np.asarray(
            np.minimum(np.maximum(centers, self.active_faces[0]), self.active_faces[1])
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A cluster: mean, members, mass, and cost about the mean.

    ``value`` is its value under the multipliers and in the region for which it was generated.
    """

    center: NDArray[np.float64]  # (n_dims,): the mean
    packed_members: NDArray[np.uint8]  # bit field: there may be many columns of many groups
    n_groups: int
    mass: float
    cost: float
    value: float

    @classmethod
    def of(
        cls,
        center: NDArray[np.float64],
        members: NDArray[np.uint8],
        mass: float,
        cost: float,
        value: float,
    ) -> Column:
        """Column of the groups with a 1 in ``members``."""
        return cls(center, np.packbits(members), len(members), mass, cost, value)

    @property
    def members(self) -> NDArray[np.uint8]:
        """Indicator of the members, 0 or 1 for every group."""
        return np.unpackbits(self.packed_members, count=self.n_groups)

    def cost_in_region(self, region: PricingRegion) -> float:
        """Cost about the best centre in ``region``."""
        away = self.center - region.clamp(self.center)
        return self.cost + self.mass * float(away @ away)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricingResult:
    """Result of an exact pricing."""

    upper: float  # at least sigma, rounding included
    centers: list[NDArray[np.float64]]  # of clusters whose value exceeds the cutoff, best first
    # False if stopped, stalled, or ended early after an improving cluster. With prices True where
    # smaller boxes would not lower the bound.
    complete: bool
    boxes: int
    columns: tuple[Column, ...] = ()  # improving clusters as the search found them


# Units of work: of an ascent, beside those per coordinate, and per coordinate of a box.
ASCENT_OVERHEAD, ASCENT_WORK, BOX_WORK = 5e4, 30.0, 8.0
# With prices: of a box, beside those per coordinate, and how much longer an ascent takes.
PRICED_BOX_OVERHEAD, PRICED_ASCENT_FACTOR = 2e4, 20.0


def _no_progress(**counts: float) -> None:
    """Ignore progress. A function of the module, because pricers are pickled for workers."""


@final
class Pricer:
    """Prices clusters of one reduced problem. Immutable, so that threads may share it.

    Parameters
    ----------
    reduced : ReducedProblem
    executor : concurrent.futures.Executor, optional
        Runs boxes and ascents in parallel (threads: the kernels release the GIL).
    progress : callable
        Called with the numbers of boxes and ascents (``climbs``) done.
    params : PricingParams
    priced : bool, optional
        Price constraints instead of using the spanning forest of the cannot-links; by default
        where there are other kinds or many links.
    """

    def __init__(
        self,
        reduced: ReducedProblem,
        executor: Executor | None = None,
        progress: Callable[..., None] = _no_progress,
        params: PricingParams = DEFAULT_PARAMS,
        priced: bool | None = None,
    ) -> None:
        self.reduced = reduced
        self.params = params
        self._progress = progress
        self.full_region = PricingRegion.full_region(reduced)
        self.task_pool = TaskPool(executor)
        small = reduced.points.size < params.min_parallel_size
        self._ascent_pool = TaskPool() if small else self.task_pool
        graph = reduced.graph
        self._cyclic = np.repeat(graph.n_extra_edges > 0, np.diff(graph.starts)).astype(np.uint8)
        self._mean_error = mean_rounding_error(reduced.points)
        model = reduced.label_constraints
        priced = uses_prices(model) if priced is None else priced
        self.constraints = PricedConstraints.of(model) if priced else None
        self.size_cuts: SizeCuts | None = None
        self._n_arcs = (
            0 if self.constraints is None else len(self.constraints.arrays.pair_neighbors)
        )

    def _with_limits(self, limits: tuple[float, float]) -> Pricer:
        """Return a pricer of clusters with these limits on their size."""
        pricer = copy(self)
        assert self.constraints is not None
        pricer.constraints = self.constraints.with_limits(self.reduced.label_constraints, limits)
        return pricer

    def with_size_cuts(self, cuts: SizeCuts | None) -> Pricer:
        """Return a pricer whose multipliers are those of the groups and then those of the cuts."""
        pricer = copy(self)
        pricer.size_cuts = cuts
        return pricer

    def price_exact(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        tolerance: float | None = None,
        region: PricingRegion | None = None,
        stall_check_after: float | None = None,
        resolution: float = 0.0,
    ) -> PricingResult:
        """Prove that no cluster has a value above ``cutoff``, or find one that has.

        Parameters
        ----------
        lam : ndarray of shape (n_groups,)
            Multipliers, any numbers; with size cuts followed by theirs, at least 0.
        cutoff : float
            Raised to 0, the value of the empty cluster, and by the rounding error.
        stop : StopSignal
            Ends the search early with a weaker bound. A stalled search ends early, too.
        tolerance : float, optional
            If given, an improving cluster raises the cutoff to its value plus this, and the search
            continues. Otherwise the cutoff is refuted, and the search ends after twice the boxes
            that the first improving cluster took.
        region : PricingRegion, optional
            Region of the centre; by default all of space.
        stall_check_after : float, optional
            Boxes after which the search has to make progress; by default that of the parameters,
            infinite for no such check.
        resolution : float
            With prices, a box is not split for less than this.
        """
        if stall_check_after is None:
            stall_check_after = self.params.stall_check_after
        region = self.full_region if region is None else region
        if self.constraints is None:
            lam = _restricted(lam, region)
        if region.limits is not None:
            return self._with_limits(region.limits).price_exact(
                lam,
                cutoff,
                stop,
                tolerance,
                replace(region, limits=None),
                stall_check_after,
                resolution,
            )
        return self._branch_and_bound(
            lam, cutoff, stop, (region,), tolerance, stall_check_after, resolution
        )

    def price_regions(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[PricingRegion],
        tolerance: float,
    ) -> PricingResult:
        """Price several regions at once, all groups allowed; see `price_exact`."""
        stall_check_after = self.params.stall_check_after
        return self._branch_and_bound(lam, cutoff, stop, regions, tolerance, stall_check_after)

    def stall_detector(self, stall_check_after: float | None = None) -> StallDetector:
        """Stall detector of a search over boxes; `StallDetector.stalled` takes boxes as work."""
        after = self.params.stall_check_after if stall_check_after is None else stall_check_after
        return StallDetector(self.params.max_stall_ratio, after, doubling=True)

    def error(self, lam: NDArray[np.float64]) -> float:
        """Upper bound on the rounding error of the upper bound of any box."""
        error = pricing_error(self.reduced.points, self.reduced.weights, lam)
        if self.constraints is None:
            return error
        return priced_error(error, self.constraints, self.reduced.n_dims)

    @property
    def slow_ascents(self) -> bool:
        """Whether pairs are so many that a selection takes long."""
        return self._n_arcs >= self.params.preview_min_arcs

    @property
    def only_disjoint_sets(self) -> bool:
        """Whether cannot-link sets are priced, nothing else, and no group is in two of them."""
        return self.constraints is not None and self.constraints.disjoint_sets

    @property
    def penalty_constant(self) -> float:
        """Lower bound on the penalty of a labelling in which no soft pair shares a cluster."""
        if self.constraints is None:
            return 0.0
        return self.constraints.constant - self.constraints.constant_error

    @property
    def min_value(self) -> float:
        """Value of the empty cluster, if it is admissible; else -inf."""
        empty = self.constraints is None or not self.constraints.needs_members
        return 0.0 if empty else -np.inf

    def _branch_and_bound(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[PricingRegion],
        tolerance: float | None,
        stall_check_after: float,
        resolution: float = 0.0,
    ) -> PricingResult:
        """Search all regions, best bound first."""
        error = self.error(lam)
        cutoff = max(cutoff, self.min_value) + 2.0 * error
        instance = (
            self.instance(lam)
            if self.constraints is None
            else priced_instance(self.reduced, self.constraints, lam, self.size_cuts)
        )
        heap = self._root_boxes(lam, regions)
        improving_centers: list[tuple[float, NDArray[np.float64]]] = []
        sets: list[tuple[int, FoundSet]] = []
        unsplittable_bound, boxes, number = -np.inf, 0, len(heap)
        max_boxes, budget = np.inf, self.params.min_budget
        cutoff_margin = (0.0 if tolerance is None else tolerance) + 2.0 * error
        stall_detector = self.stall_detector(stall_check_after)
        while heap and -heap[0].neg_upper_bound > cutoff:
            if stop.reason() is not None or boxes >= max_boxes:
                break
            if stall_detector.stalled(-heap[0].neg_upper_bound - cutoff, boxes):
                break
            n_boxes = min(self.params.boxes_per_batch, len(heap))
            batch = [heapq.heappop(heap) for _ in range(n_boxes)]
            search_params = (
                self.search_params(error, cutoff_margin, budget, mean_bound=True)
                if self.constraints is None
                else self._priced_params(error, cutoff_margin, resolution, budget)
            )
            search = partial(
                search_box,
                instance=instance,
                search_params=search_params,
                cutoff=cutoff,
                params=self.params,
            )
            for searched, result in zip(batch, self.task_pool.map(search, batch), strict=True):
                work = BOX_WORK * result.boxes * len(searched.members) * self.reduced.n_dims
                if self.constraints is not None:
                    work += PRICED_BOX_OVERHEAD * result.boxes
                stop.add_work(work)
                self._progress(boxes=result.boxes, work=work)
                for box in result.open_boxes:
                    box.number = number
                    number += 1
                    heapq.heappush(heap, box)
                improving_centers += result.improving_centers
                sets += [(searched.region, found) for found in result.sets]
                unsplittable_bound = max(unsplittable_bound, result.unsplittable_bound)
                boxes += result.boxes
                cutoff = max(cutoff, result.cutoff)
            if improving_centers and tolerance is None:
                max_boxes = min(max_boxes, 2.0 * boxes)
            budget = self.next_budget(budget)
        improving_centers.sort(key=lambda find: -find[0])
        sets.sort(key=lambda find: -find[1].value)
        highest = -heap[0].neg_upper_bound if heap else -np.inf
        return PricingResult(
            upper=float(max(cutoff, unsplittable_bound, highest)),
            centers=[center for _, center in improving_centers],
            complete=highest <= cutoff
            and (unsplittable_bound <= cutoff or self.constraints is not None),
            boxes=boxes,
            columns=tuple(self.columns_of_sets(lam, sets, regions)),
        )

    def next_budget(self, budget: float) -> float:
        """Work budget of the next batch of boxes."""
        return min(self.params.budget_growth * budget, self.params.max_budget)

    def price_heuristic(
        self,
        lam: NDArray[np.float64],
        starts: Sequence[NDArray[np.float64]],
        *,
        region: PricingRegion | None = None,
        steps: int = 30,
        min_gain: float = 0.0,
        stop: StopSignal | None = None,
    ) -> list[Column]:
        """Ascend from every start to a locally best cluster; columns by descending value.

        At most ``steps`` steps each, and none after one that gains less than ``min_gain``.
        Starts not reached before ``stop`` are left out.
        """
        region = self.full_region if region is None else region
        if region.limits is not None:
            return self._with_limits(region.limits).price_heuristic(
                lam,
                starts,
                region=replace(region, limits=None),
                steps=steps,
                min_gain=min_gain,
                stop=stop,
            )
        if region.allowed is not None and self.constraints is None:
            # A negative multiplier: at 0, rounding could make a forbidden group a member if the
            # centre is at its point, and its multiplier would enter the cuts.
            error = pricing_error(self.reduced.points, self.reduced.weights, lam)
            lam = np.where(region.allowed, lam, -error)
        params, preview = self.params, self.slow_ascents and steps > self.params.preview_steps
        stop = StopSignal() if stop is None else stop
        first_steps = params.preview_steps if preview else steps
        ascent = self._ascent(lam, region, first_steps, min_gain)
        ascend_from = partial(ascend_unless_stopped, ascent=ascent, stop=stop)
        columns: list[Column] = []
        centers = list({start.tobytes(): start for start in starts}.values())
        batch_size = params.ascents_per_batch
        for first in range(0, len(centers), batch_size):
            batch = centers[first : first + batch_size]
            columns += completed(self._ascent_pool.map(ascend_from, batch))
        if preview:
            columns.sort(key=lambda column: -column.value)
            continued = partial(
                continued_ascent,
                ascent=self._ascent(lam, region, params.continued_steps, min_gain),
                n_pieces=-(-steps // params.continued_steps),
                stop=stop,
            )
            columns += completed(
                self._ascent_pool.map(continued, columns[: params.continued_ascents])
            )
        work = len(columns) * (ASCENT_OVERHEAD + ASCENT_WORK * self.reduced.points.size)
        if self.constraints is not None:
            work *= PRICED_ASCENT_FACTOR
        self._progress(climbs=len(columns), work=work)
        best: dict[tuple[float, ...], Column] = {}
        for column in columns:
            best.setdefault((column.value, *column.center.tolist()), column)
        return sorted(best.values(), key=lambda column: -column.value)

    def best_columns_at(
        self, lam: NDArray[np.float64], centers: Sequence[NDArray[np.float64]]
    ) -> list[Column]:
        """Best column at every centre, in the order of the centres."""
        return self._ascent_pool.map(self._ascent(lam, self.full_region, 1, 0.0), centers)

    def _ascent(
        self, lam: NDArray[np.float64], region: PricingRegion, steps: int, min_gain: float
    ) -> Callable[[NDArray[np.float64]], Column]:
        """Local ascent from a centre."""
        active_faces = region.active_faces
        if self.constraints is None:
            return partial(
                _ascend_from,
                instance=self.instance(lam),
                active_faces=active_faces,
                steps=steps,
                min_gain=min_gain,
            )
        return partial(
            _priced_ascent,
            instance=priced_instance(self.reduced, self.constraints, lam, self.size_cuts),
            constraints=self.constraints,
            region=region,
            limits=np.array([steps, min_gain]),
        )

    def columns_of_sets(
        self,
        lam: NDArray[np.float64],
        sets: Sequence[tuple[int, FoundSet]],
        regions: Sequence[PricingRegion],
    ) -> list[Column]:
        """Columns of the best sets found, improved by an ascent."""
        if self.constraints is None or not sets:
            return []
        instance = priced_instance(self.reduced, self.constraints, lam, self.size_cuts)
        columns = [
            _priced_ascent(
                found.center,
                instance=instance,
                constraints=self.constraints,
                region=regions[number],
                limits=np.array([30.0, 0.0]),
                members=found.members,
            )
            for number, found in sets[: 4 * self.params.max_improving_centers]
        ]
        return [column for column in columns if column.mass > 0.0]

    def _priced_params(
        self, error: float, tolerance: float, resolution: float, budget: float
    ) -> PricedSearchParams:
        excluded_box = no_excluded_box(self.reduced.n_dims)
        faces = self.full_region.active_faces
        return PricedSearchParams(
            error, price_error_factor(*self.reduced.points.shape), self._mean_error, faces,
            excluded_box, tolerance, resolution, budget,
        )  # fmt: skip

    def search_params(
        self, error: float, tolerance: float, budget: float, *, mean_bound: bool = False
    ) -> SearchParams:
        """Kernel settings for all of space; `search_box` sets faces and excluded box."""
        excluded_box = no_excluded_box(self.reduced.n_dims)
        return SearchParams(
            error, self._mean_error, self.full_region.active_faces, excluded_box, tolerance,
            budget, mean_bound,
        )  # fmt: skip

    def instance(self, lam: NDArray[np.float64]) -> Instance:
        """Kernel data for given multipliers."""
        reduced, graph, base = self.reduced, self.reduced.graph, lam.copy()
        for rows in iter_row_blocks(reduced.points):
            points = reduced.points[rows]
            base[rows] -= reduced.weights[rows] * np.einsum("ij,ij->i", points, points)
        return Instance(
            points=reduced.points,
            weights=reduced.weights,
            lam=lam,
            base=base,
            parents=graph.parents,
            cyclic=self._cyclic,
            indptr=graph.indptr,
            neighbors=graph.neighbors,
        )

    def _root_boxes(
        self, lam: NDArray[np.float64], regions: Sequence[PricingRegion]
    ) -> list[OpenBox]:
        n_dims = self.reduced.n_dims
        lam = lam[: self.reduced.n_groups]
        useful = lam > 0.0
        if self.constraints is not None:
            useful = lam + self.constraints.sum_of_bonuses * (1.0 + 1e-9) > 0.0
            useful |= self.constraints.needs_members
        no_sums, excluded_box = np.zeros(n_dims + 2), no_excluded_box(n_dims)
        return [
            OpenBox(
                neg_upper_bound=-np.inf,
                number=i,
                low=region.low,
                high=region.high,
                fixed_sums=no_sums,
                members=np.flatnonzero(
                    useful if region.allowed is None else useful & region.allowed
                ).astype(np.int32),
                active_faces=region.active_faces,
                excluded_box=excluded_box,
                region=i,
            )
            for i, region in enumerate(regions)
        ]


def _restricted(lam: NDArray[np.float64], region: PricingRegion) -> NDArray[np.float64]:
    """Multipliers, 0 for groups that are not allowed: their value is nowhere positive."""
    return lam if region.allowed is None else np.where(region.allowed, lam, 0.0)


def _ascend_from(
    start: NDArray[np.float64],
    instance: Instance,
    active_faces: NDArray[np.float64],
    steps: int,
    min_gain: float,
) -> Column:
    """Column of one local ascent."""
    n, d = instance.points.shape
    center, sums, members = start.copy(), np.empty(d + 2), np.empty(n, dtype=np.uint8)
    value, _ = ascend(instance, active_faces, center, sums, members, steps, min_gain)
    if sums[1] == 0.0:
        return Column.of(center, members, 0.0, 0.0, 0.0)
    mean = sums[2:] / sums[1]
    cost = -(sums[0] + float(mean @ sums[2:]))
    for rows in iter_row_blocks(members):
        cost += float(members[rows] @ instance.lam[rows])
    return Column.of(mean, members, float(sums[1]), cost, float(value))


def _priced_ascent(
    start: NDArray[np.float64],
    instance: PricedInstance,
    constraints: PricedConstraints,
    region: PricingRegion,
    limits: NDArray[np.float64],
    members: NDArray[np.uint8] | None = None,
) -> Column:
    """Column of one local ascent from a centre, and from a set if one is given."""
    n = len(instance.weights)
    allowed = np.ones(n, dtype=np.uint8)
    if region.allowed is not None:
        allowed[:] = region.allowed
    known = np.zeros(n, dtype=np.uint8) if members is None else members
    _, sums, chosen, value = ascend_from_set(
        (start, known), instance, allowed, region.active_faces, limits
    )
    if not sums[1] > 0.0 or value == -np.inf:
        return Column.of(start, np.zeros(n, dtype=np.uint8), 0.0, 0.0, 0.0)
    mean = sums[2:] / sums[1]
    cost = -(sums[0] + float(mean @ sums[2:])) - column_cost(constraints, chosen)
    for rows in iter_row_blocks(chosen):
        cost += float(chosen[rows] @ instance.lam[rows])
    return Column.of(mean, chosen, float(sums[1]), cost, value)


@final
@dataclass(order=True, slots=True)
class OpenBox:
    """A box in the heap, ordered by descending upper bound, then by age."""

    neg_upper_bound: float
    number: int
    low: NDArray[np.float64] = field(compare=False)
    high: NDArray[np.float64] = field(compare=False)
    fixed_sums: NDArray[np.float64] = field(compare=False)
    members: NDArray[np.int32] = field(compare=False)
    active_faces: NDArray[np.float64] = field(compare=False)  # of the region that contains it
    excluded_box: NDArray[np.float64] = field(compare=False)  # centres in it are not searched
    region: int = field(compare=False)  # index of the region
    # With prices: bonuses of the groups that are in, for every member, and their demand
    shifts: NDArray[np.float64] | None = field(default=None, compare=False)
    fixed_demand: float = field(default=0.0, compare=False)


def no_excluded_box(n_dims: int) -> NDArray[np.float64]:
    """Empty box: no centre is excluded."""
    return np.stack([np.full(n_dims, np.inf), np.full(n_dims, -np.inf)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoxSearchResult:
    """Open boxes that remain of a searched box, and improving centres found in it."""

    open_boxes: list[OpenBox]
    improving_centers: list[tuple[float, NDArray[np.float64]]]
    cutoff: float
    unsplittable_bound: float
    boxes: int
    sets: list[FoundSet] = field(default_factory=list)


def search_box(
    box: OpenBox,
    instance: Instance | PricedInstance,
    search_params: SearchParams | PricedSearchParams,
    cutoff: float,
    params: PricingParams = DEFAULT_PARAMS,
) -> BoxSearchResult:
    """Search one box with a budget, by one call of the kernel.

    Open boxes with the same undecided groups share the array of these groups.
    """
    if isinstance(instance, PricedInstance):
        assert isinstance(search_params, PricedSearchParams)
        priced = search_priced(box, instance, search_params, cutoff, params)
        return BoxSearchResult(
            open_boxes=[OpenBox(**fields) for fields in priced.open_boxes],
            improving_centers=[(one.value, one.center) for one in priced.found],
            cutoff=priced.cutoff,
            unsplittable_bound=priced.unsplittable_bound,
            boxes=priced.boxes,
            sets=priced.found,
        )
    stack = _stack_with(box, params.stack_capacity)
    improving_centers = ImprovingCenters(
        centers=np.empty((params.max_improving_centers, len(box.low))),
        values=np.empty(params.max_improving_centers),
    )
    search_params = search_params._replace(
        active_faces=box.active_faces, excluded_box=box.excluded_box
    )
    done: SearchResult = search_boxes(instance, stack, 1, search_params, cutoff, improving_centers)
    shared: dict[tuple[int, int], NDArray[np.int32]] = {}
    open_boxes = []
    for i in range(done.n_open):
        key = (int(stack.starts[i]), int(stack.sizes[i]))
        if key not in shared:
            shared[key] = stack.arena[key[0] : key[0] + key[1]].copy()
        open_boxes.append(
            OpenBox(
                neg_upper_bound=-float(stack.uppers[i]),
                number=0,
                low=stack.lows[i].copy(),
                high=stack.highs[i].copy(),
                fixed_sums=stack.fixed_sums[i].copy(),
                members=shared[key],
                active_faces=box.active_faces,
                excluded_box=box.excluded_box,
                region=box.region,
            )
        )
    kept = range(min(done.n_found, params.max_improving_centers))
    return BoxSearchResult(
        open_boxes=open_boxes,
        improving_centers=[
            (float(improving_centers.values[i]), improving_centers.centers[i].copy()) for i in kept
        ],
        cutoff=float(done.cutoff),
        unsplittable_bound=float(done.unsplittable_bound),
        boxes=int(done.n_bounded),
    )


def _stack_with(box: OpenBox, capacity: int) -> BoxStack:
    """Stack with one box on it."""
    d, size = len(box.low), len(box.members)
    stack = BoxStack(
        lows=np.empty((capacity, d)),
        highs=np.empty((capacity, d)),
        fixed_sums=np.empty((capacity, d + 2)),
        uppers=np.empty(capacity),
        starts=np.empty(capacity, dtype=np.int64),
        sizes=np.empty(capacity, dtype=np.int64),
        arena=np.empty(8 * size + 1024, dtype=np.int32),
    )
    stack.arena[:size] = box.members
    stack.lows[0], stack.highs[0], stack.fixed_sums[0] = box.low, box.high, box.fixed_sums
    stack.uppers[0], stack.starts[0], stack.sizes[0] = -box.neg_upper_bound, 0, size
    return stack
