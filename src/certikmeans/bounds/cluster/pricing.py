"""Pricing: the most that one cluster can be worth under given multipliers.

``sigma(lam) = max over y and I independent of sum_{s in I} (lam_s - w_s |x_s - y|^2)``.
Boxes of ``y`` wait in a heap, largest upper bound first; rounds of a fixed number of boxes
are searched depth first by a compiled kernel, each with a budget, and what they leave open
returns to the heap. So a search that is cut short has a finite bound, the largest one in the
heap, and what is found does not depend on the number of threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import no_progress
from certikmeans.bounds.cluster.pricing_error import mean_rounding_error, pricing_error
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.box_bound import Instance
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
from certikmeans.problem.domain import Domain
from certikmeans.stop import StopSignal

ASCENTS_PER_BATCH = 8  # ascents between two looks at the clock
MIN_PARALLEL_SIZE = (
    8_000  # coordinates: with fewer, an ascent is done before another thread has begun
)
BOXES_PER_BATCH = 8  # boxes searched between two looks at the clock
MIN_BUDGET = 2e5
MAX_BUDGET = 2e6
# A search must end by itself, with or without a clock: from this many boxes on, every doubling has
# to bring the bound closer to the cutoff by this factor. Searches that close do far better.
STALL_CHECK_AFTER = 100_000
MIN_PROGRESS_RATIO = 0.9


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricingRegion:
    """Where a centre may be, and which groups may join it."""

    low: NDArray[np.float64]  # (n_axes,)
    high: NDArray[np.float64]  # (n_axes,)
    active_faces: NDArray[np.float64]  # (2, n_axes): infinite where no mean can be beyond
    allowed: NDArray[np.bool_] | None = None  # (n_groups,); None: all

    @classmethod
    def of(
        cls,
        reduced: ReducedProblem,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None = None,
    ) -> PricingRegion:
        """Box of a centre. Means never leave the box of all points: its faces are no walls."""
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
        """Part of the region of everything, without a look at the points."""
        return self._within(self.low, self.high, low, high, None)

    @classmethod
    def full_region(cls, reduced: ReducedProblem) -> PricingRegion:
        """All of it: the mean of any set lies in the box that holds all points."""
        return cls.of(reduced, *column_ranges(reduced.points))

    def clamp(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest places inside the walls."""
        return np.asarray(
            np.minimum(np.maximum(centers, self.active_faces[0]), self.active_faces[1])
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A cluster: its mean, its groups, its weight, its cost about the mean.

    ``value`` is what it was worth where and when it was found.
    """

    center: NDArray[np.float64]  # (n_axes,): the mean
    packed_members: NDArray[
        np.uint8
    ]  # members, eight in a byte: there are many columns of many groups
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
        """Column of the groups that have a 1 in ``members``."""
        return cls(center, np.packbits(members), len(members), mass, cost, value)

    @property
    def members(self) -> NDArray[np.uint8]:
        """1 for every group that is in, 0 for the others."""
        return np.unpackbits(self.packed_members, count=self.n_groups)

    def cost_in_region(self, region: PricingRegion) -> float:
        """Cost about the best centre inside the walls of ``region``."""
        away = self.center - region.clamp(self.center)
        return self.cost + self.mass * float(away @ away)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricingResult:
    """What an exact pricing has proven and found."""

    upper: float  # at least sigma, rounding included
    centers: list[NDArray[np.float64]]  # whose value exceeds the cutoff, best first
    complete: bool  # False: cut short by the clock or by a find
    boxes: int


@final
class SearchStallDetector:
    """Notices that a search will not end in reasonable time. Counts boxes, not seconds."""

    def __init__(self, stall_check_after: float) -> None:
        self._next_look = stall_check_after
        self._before = np.inf

    def search_stalled(self, boxes: int, distance: float) -> bool:
        """Whether to give up, with the bound ``distance`` above the cutoff."""
        if boxes < self._next_look:
            return False
        lost = distance > MIN_PROGRESS_RATIO * self._before
        self._next_look, self._before = 2 * boxes, distance
        return lost


@final
class Pricer:
    """Prices clusters of one reduced problem. Holds nothing that changes: threads may share it.

    Parameters
    ----------
    reduced : ReducedProblem
    executor : concurrent.futures.Executor, optional
        Runs boxes and ascents side by side (threads: the kernels release the GIL).
    on_work : callable
        Told of boxes and ascents (``climbs``), for those who want to see something move.
    """

    def __init__(
        self,
        reduced: ReducedProblem,
        executor: Executor | None = None,
        progress: Callable[..., None] = no_progress,
    ) -> None:
        self.reduced = reduced
        self._on_work = progress
        self.full_region = PricingRegion.full_region(reduced)
        self.task_pool = TaskPool(executor)
        self._ascent_pool = (
            TaskPool() if reduced.points.size < MIN_PARALLEL_SIZE else self.task_pool
        )
        graph = reduced.graph
        self._cyclic = np.repeat(graph.n_extra_edges > 0, np.diff(graph.starts)).astype(np.uint8)
        self._mean_error = mean_rounding_error(reduced.points)

    def price_exact(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        tolerance: float | None = None,
        region: PricingRegion | None = None,
        stall_check_after: float = STALL_CHECK_AFTER,
    ) -> PricingResult:
        """Prove that no cluster is worth more than ``cutoff``, or find one that is.

        Parameters
        ----------
        lam : ndarray of shape (n_groups,)
            Any numbers.
        cutoff : float
            Raised to 0, the value of the empty cluster, and by the rounding error.
        stop : StopSignal
            Ends the search early with a weaker bound. It also ends where it makes no progress.
        tolerance : float, optional
            When a cluster beats the cutoff, go on with its value plus this. None: the cutoff is
            refuted then; look for more for as long as the first one took, and end.
        region : Region, optional
            Where the centre has to be; by default anywhere.
        stall_check_after : float
            Boxes from which on progress is asked for. Infinite: go on until ``stop``.
        """
        region = self.full_region if region is None else region
        lam = _restricted(lam, region)
        return self._branch_and_bound(lam, cutoff, stop, (region,), tolerance, stall_check_after)

    def price_regions(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[PricingRegion],
        tolerance: float,
    ) -> PricingResult:
        """Prove the same of several regions at once, all groups allowed."""
        return self._branch_and_bound(lam, cutoff, stop, regions, tolerance, STALL_CHECK_AFTER)

    def error(self, lam: NDArray[np.float64]) -> float:
        """At least the rounding error of the upper bound of any box."""
        return pricing_error(self.reduced.points, self.reduced.weights, lam)

    def _branch_and_bound(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[PricingRegion],
        tolerance: float | None,
        stall_check_after: float,
    ) -> PricingResult:
        """Search all regions, the largest bound first."""
        error = self.error(lam)
        cutoff = max(cutoff, 0.0) + 2.0 * error
        instance = self.instance(lam)
        heap, improving_centers = (
            self._root_boxes(lam, regions),
            list[tuple[float, NDArray[np.float64]]](),
        )
        unsplittable_bound, boxes, number, budget = -np.inf, 0, len(heap), MIN_BUDGET
        cutoff_margin = (0.0 if tolerance is None else tolerance) + 2.0 * error
        max_boxes, stall_detector = np.inf, SearchStallDetector(stall_check_after)
        while heap and -heap[0].neg_upper_bound > cutoff:
            if stop.reason() is not None or boxes >= max_boxes:
                break
            if stall_detector.search_stalled(boxes, -heap[0].neg_upper_bound - cutoff):
                break
            batch = [heapq.heappop(heap) for _ in range(min(BOXES_PER_BATCH, len(heap)))]
            search_params = self.search_params(error, cutoff_margin, budget)
            search = partial(
                search_box, instance=instance, search_params=search_params, cutoff=cutoff
            )
            for result in self.task_pool.map(search, batch):
                self._on_work(boxes=result.boxes)
                for box in result.open_boxes:
                    box.number = number
                    number += 1
                    heapq.heappush(heap, box)
                improving_centers += result.improving_centers
                unsplittable_bound = max(unsplittable_bound, result.unsplittable_bound)
                boxes += result.boxes
                cutoff = max(cutoff, result.cutoff)
            if improving_centers and tolerance is None:
                max_boxes = min(max_boxes, 2.0 * boxes)
            budget = min(1.5 * budget, MAX_BUDGET)
        improving_centers.sort(key=lambda find: -find[0])
        highest = -heap[0].neg_upper_bound if heap else -np.inf
        return PricingResult(
            upper=float(max(cutoff, unsplittable_bound, highest)),
            centers=[center for _, center in improving_centers],
            complete=highest <= cutoff and unsplittable_bound <= cutoff,
            boxes=boxes,
        )

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
        """Climb from every start to a cluster that is its own best answer; best first.

        At most ``steps`` steps each, and none after one that gains less than ``min_gain``.
        Starts that ``stop`` comes before are left out.
        """
        region = self.full_region if region is None else region
        if region.allowed is not None:
            # Worth less than nothing: at its own place, rounding could make a forbidden group a
            # member, and its multiplier would count in cuts.
            error = pricing_error(self.reduced.points, self.reduced.weights, lam)
            lam = np.where(region.allowed, lam, -error)
        instance = self.instance(lam)
        price_heuristic = partial(
            _ascend_from,
            instance=instance,
            active_faces=region.active_faces,
            steps=steps,
            min_gain=min_gain,
        )
        columns: list[Column] = []
        centers = list({start.tobytes(): start for start in starts}.values())
        for first in range(0, len(centers), ASCENTS_PER_BATCH):
            if stop is not None and stop.reason() is not None:
                break
            columns += self._ascent_pool.map(
                price_heuristic, centers[first : first + ASCENTS_PER_BATCH]
            )
        self._on_work(climbs=len(columns))
        best: dict[tuple[float, ...], Column] = {}
        for column in columns:
            best.setdefault((column.value, *column.center.tolist()), column)
        return sorted(best.values(), key=lambda column: -column.value)

    def best_columns_at(
        self, lam: NDArray[np.float64], centers: Sequence[NDArray[np.float64]]
    ) -> list[Column]:
        """Find a best set at every place, in the order of the places; side by side."""
        active_faces, instance = self.full_region.active_faces, self.instance(lam)
        select = partial(
            _ascend_from, instance=instance, active_faces=active_faces, steps=1, min_gain=0.0
        )
        return self._ascent_pool.map(select, centers)

    def search_params(self, error: float, tolerance: float, budget: float) -> SearchParams:
        """Rules of a search everywhere; boxes bring walls and a hole of their own."""
        excluded_box = no_excluded_box(self.reduced.n_dims)
        return SearchParams(
            error, self._mean_error, self.full_region.active_faces, excluded_box, tolerance, budget
        )

    def instance(self, lam: NDArray[np.float64]) -> Instance:
        """What the kernels work on, for some multipliers."""
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
        members = np.flatnonzero(lam > 0.0).astype(np.int32)
        no_sums, excluded_box = (
            np.zeros(self.reduced.n_dims + 2),
            no_excluded_box(self.reduced.n_dims),
        )
        return [
            OpenBox(
                -np.inf,
                i,
                region.low,
                region.high,
                no_sums,
                members,
                region.active_faces,
                excluded_box,
                i,
            )
            for i, region in enumerate(regions)
        ]


def _restricted(lam: NDArray[np.float64], region: PricingRegion) -> NDArray[np.float64]:
    """Multipliers with those of forbidden groups at 0: they are worth nothing anywhere."""
    return lam if region.allowed is None else np.where(region.allowed, lam, 0.0)


def _ascend_from(
    start: NDArray[np.float64],
    instance: Instance,
    active_faces: NDArray[np.float64],
    steps: int,
    min_gain: float,
) -> Column:
    """Climb from one start."""
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


# One call of the search kernel: a box goes in, what stays open and what was found comes out.

STACK_CAPACITY = 128
MAX_IMPROVING_CENTERS = 4


@final
@dataclass(order=True, slots=True)
class OpenBox:
    """A box in the heap: the largest upper bound first, then the oldest."""

    neg_upper_bound: float
    number: int
    low: NDArray[np.float64] = field(compare=False)
    high: NDArray[np.float64] = field(compare=False)
    fixed_sums: NDArray[np.float64] = field(compare=False)
    members: NDArray[np.int32] = field(compare=False)
    active_faces: NDArray[np.float64] = field(compare=False)  # of the region it is a part of,
    excluded_box: NDArray[np.float64] = field(compare=False)  # what of it does not count, and
    region: int = field(compare=False)  # its number


def no_excluded_box(n_dims: int) -> NDArray[np.float64]:
    """Where everything counts."""
    return np.stack([np.full(n_dims, np.inf), np.full(n_dims, -np.inf)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoxSearchResult:
    """What is left of a box, and what was found in it."""

    open_boxes: list[OpenBox]
    improving_centers: list[tuple[float, NDArray[np.float64]]]
    cutoff: float
    unsplittable_bound: float
    boxes: int


def search_box(
    box: OpenBox, instance: Instance, search_params: SearchParams, cutoff: float
) -> BoxSearchResult:
    """Search one box with a budget; what stays open shares the members it was left with."""
    stack = _stack_with(box)
    improving_centers = ImprovingCenters(
        centers=np.empty((MAX_IMPROVING_CENTERS, len(box.low))),
        values=np.empty(MAX_IMPROVING_CENTERS),
    )
    search_params = search_params._replace(
        active_faces=box.active_faces, excluded_box=box.excluded_box
    )
    done: SearchResult = search_boxes(instance, stack, 1, search_params, cutoff, improving_centers)
    shared: dict[tuple[int, int], NDArray[np.int32]] = {}
    open_boxes_left = []
    for i in range(done.n_open):
        key = (int(stack.starts[i]), int(stack.sizes[i]))
        if key not in shared:
            shared[key] = stack.arena[key[0] : key[0] + key[1]].copy()
        open_boxes_left.append(
            OpenBox(
                -float(stack.uppers[i]),
                0,
                stack.lows[i].copy(),
                stack.highs[i].copy(),
                stack.fixed_sums[i].copy(),
                shared[key],
                box.active_faces,
                box.excluded_box,
                box.region,
            )
        )
    kept = range(min(done.n_found, MAX_IMPROVING_CENTERS))
    return BoxSearchResult(
        open_boxes=open_boxes_left,
        improving_centers=[
            (float(improving_centers.values[i]), improving_centers.centers[i].copy()) for i in kept
        ],
        cutoff=float(done.cutoff),
        unsplittable_bound=float(done.unsplittable_bound),
        boxes=int(done.n_bounded),
    )


def _stack_with(box: OpenBox) -> BoxStack:
    """Return a stack with one box on it, and room for those that it is split into."""
    d, size = len(box.low), len(box.members)
    stack = BoxStack(
        lows=np.empty((STACK_CAPACITY, d)),
        highs=np.empty((STACK_CAPACITY, d)),
        fixed_sums=np.empty((STACK_CAPACITY, d + 2)),
        uppers=np.empty(STACK_CAPACITY),
        starts=np.empty(STACK_CAPACITY, dtype=np.int64),
        sizes=np.empty(STACK_CAPACITY, dtype=np.int64),
        arena=np.empty(8 * size + 1024, dtype=np.int32),
    )
    stack.arena[:size] = box.members
    stack.lows[0], stack.highs[0], stack.fixed_sums[0] = box.low, box.high, box.fixed_sums
    stack.uppers[0], stack.starts[0], stack.sizes[0] = -box.neg_upper_bound, 0, size
    return stack


# Clusters that look alike: the same box, the same groups allowed. They are priced once.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SymmetryClass:
    """Clusters whose centres share one region: each is worth at most ``sigma`` of the region."""

    region: PricingRegion
    clusters: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.clusters)

    def contains(self, center: NDArray[np.float64]) -> bool:
        """Whether a centre may be there."""
        active_faces = self.region.active_faces
        return bool(((center >= active_faces[0]) & (center <= active_faces[1])).all())

    def admits(self, column: Column) -> bool:
        """Whether the column's mean may be here, and all its groups."""
        allowed = self.region.allowed
        if not self.contains(column.center):
            return False
        return allowed is None or not bool((column.members.astype(bool) & ~allowed).any())


def symmetry_classes(reduced: ReducedProblem, domain: Domain) -> list[SymmetryClass]:
    """Group the clusters of ``domain`` by box and allowed groups."""
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for k in range(reduced.n_clusters):
        groups = b"" if domain.allowed is None else np.packbits(domain.allowed[:, k]).tobytes()
        key = (domain.lower[k].tobytes(), domain.upper[k].tobytes(), groups)
        alike.setdefault(key, []).append(k)
    sym_classes = []
    for clusters in alike.values():
        k = clusters[0]
        allowed = None if domain.allowed is None else domain.allowed[:, k]
        region = PricingRegion.of(reduced, domain.lower[k], domain.upper[k], allowed)
        sym_classes.append(SymmetryClass(region, tuple(clusters)))
    return sym_classes
