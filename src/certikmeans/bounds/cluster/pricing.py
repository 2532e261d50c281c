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
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import untold
from certikmeans.bounds.cluster.box_search import WaitingBox, no_hole, search_box
from certikmeans.bounds.cluster.pricing_error import mean_slack, pricing_error
from certikmeans.execution import Crew
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.instance import Instance
from certikmeans.kernels.pricing.search import Rules
from certikmeans.problem import ReducedProblem
from certikmeans.problem.tables import column_ranges, row_blocks
from certikmeans.stop import StopSignal

CLIMBS = 8  # ascents between two looks at the clock
SHORT_CLIMB = 8_000  # coordinates: with fewer, an ascent is done before another thread has begun
ROUND = 8  # boxes searched between two looks at the clock
LEAST_BUDGET = 2e5
MOST_BUDGET = 2e6
# A search must end by itself, with or without a clock: from this many boxes on, every doubling has
# to bring the bound closer to the cutoff by this factor. Searches that close do far better.
DOUBT_AFTER = 100_000
LEAST_PROGRESS = 0.9


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Where a centre may be, and which groups may join it."""

    low: NDArray[np.float64]  # (n_axes,)
    high: NDArray[np.float64]  # (n_axes,)
    walls: NDArray[np.float64]  # (2, n_axes): infinite where no mean can be beyond
    allowed: NDArray[np.bool_] | None = None  # (n_groups,); None: all

    @classmethod
    def of(
        cls,
        reduced: ReducedProblem,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None = None,
    ) -> Region:
        """Box of a centre. Means never leave the box of all points: its faces are no walls."""
        least, most = column_ranges(reduced.points)
        return cls._within(least, most, low, high, allowed)

    @classmethod
    def _within(
        cls,
        least: NDArray[np.float64],
        most: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        allowed: NDArray[np.bool_] | None,
    ) -> Region:
        low, high = np.maximum(low, least), np.minimum(high, most)
        walls = np.stack([np.where(low > least, low, -np.inf), np.where(high < most, high, np.inf)])
        return cls(low, high, walls, allowed)

    def part(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Region:
        """Part of the region of everything, without a look at the points."""
        return self._within(self.low, self.high, low, high, None)

    @classmethod
    def everywhere(cls, reduced: ReducedProblem) -> Region:
        """All of it: the mean of any set lies in the box that holds all points."""
        return cls.of(reduced, *column_ranges(reduced.points))

    def clamp(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nearest places inside the walls."""
        return np.asarray(np.minimum(np.maximum(places, self.walls[0]), self.walls[1]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A cluster: its mean, its groups, its weight, its cost about the mean.

    ``value`` is what it was worth where and when it was found.
    """

    centre: NDArray[np.float64]  # (n_axes,): the mean
    bits: NDArray[np.uint8]  # members, eight in a byte: there are many columns of many groups
    n_groups: int
    mass: float
    cost: float
    value: float

    @classmethod
    def of(
        cls,
        centre: NDArray[np.float64],
        members: NDArray[np.uint8],
        mass: float,
        cost: float,
        value: float,
    ) -> Column:
        """Column of the groups that have a 1 in ``members``."""
        return cls(centre, np.packbits(members), len(members), mass, cost, value)

    @property
    def members(self) -> NDArray[np.uint8]:
        """1 for every group that is in, 0 for the others."""
        return np.unpackbits(self.bits, count=self.n_groups)

    def cost_within(self, region: Region) -> float:
        """Cost about the best centre inside the walls of ``region``."""
        away = self.centre - region.clamp(self.centre)
        return self.cost + self.mass * float(away @ away)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What an exact pricing has proven and found."""

    upper: float  # at least sigma, rounding included
    centres: list[NDArray[np.float64]]  # whose value exceeds the cutoff, best first
    complete: bool  # False: cut short by the clock or by a find
    boxes: int


@final
class Progress:
    """Notices that a search will not end in reasonable time. Counts boxes, not seconds."""

    def __init__(self, doubt_after: float) -> None:
        self._next_look = doubt_after
        self._before = np.inf

    def is_lost(self, boxes: int, distance: float) -> bool:
        """Whether to give up, with the bound ``distance`` above the cutoff."""
        if boxes < self._next_look:
            return False
        lost = distance > LEAST_PROGRESS * self._before
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
        on_work: Callable[..., None] = untold,
    ) -> None:
        self.reduced = reduced
        self._on_work = on_work
        self.everywhere = Region.everywhere(reduced)
        self.crew = Crew(executor)
        self._climbers = Crew() if reduced.points.size < SHORT_CLIMB else self.crew
        graph = reduced.graph
        self._cyclic = np.repeat(graph.extra_edges > 0, np.diff(graph.starts)).astype(np.uint8)
        self._slack = mean_slack(reduced.points)

    def exact(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        tolerance: float | None = None,
        region: Region | None = None,
        doubt_after: float = DOUBT_AFTER,
    ) -> Priced:
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
        doubt_after : float
            Boxes from which on progress is asked for. Infinite: go on until ``stop``.
        """
        region = self.everywhere if region is None else region
        lam = _restricted(lam, region)
        return self._priced(lam, cutoff, stop, (region,), tolerance, doubt_after)

    def exact_in(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[Region],
        tolerance: float,
    ) -> Priced:
        """Prove the same of several regions at once, all groups allowed."""
        return self._priced(lam, cutoff, stop, regions, tolerance, DOUBT_AFTER)

    def error(self, lam: NDArray[np.float64]) -> float:
        """At least the rounding error of the upper bound of any box."""
        return pricing_error(self.reduced.points, self.reduced.weights, lam)

    def _priced(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        regions: Sequence[Region],
        tolerance: float | None,
        doubt_after: float,
    ) -> Priced:
        """Search all regions, the largest bound first."""
        error = self.error(lam)
        cutoff = max(cutoff, 0.0) + 2.0 * error
        instance = self.instance(lam)
        heap, finds = self._roots(lam, regions), list[tuple[float, NDArray[np.float64]]]()
        stuck, boxes, number, budget = -np.inf, 0, len(heap), LEAST_BUDGET
        patience = (0.0 if tolerance is None else tolerance) + 2.0 * error
        enough, progress = np.inf, Progress(doubt_after)
        while heap and -heap[0].minus_upper > cutoff:
            if stop.cause() is not None or boxes >= enough:
                break
            if progress.is_lost(boxes, -heap[0].minus_upper - cutoff):
                break
            batch = [heapq.heappop(heap) for _ in range(min(ROUND, len(heap)))]
            rules = self.rules(error, patience, budget)
            search = partial(search_box, instance=instance, rules=rules, cutoff=cutoff)
            for outcome in self.crew.map(search, batch):
                self._on_work(boxes=outcome.boxes)
                for box in outcome.open_boxes:
                    box.number = number
                    number += 1
                    heapq.heappush(heap, box)
                finds += outcome.finds
                stuck = max(stuck, outcome.stuck)
                boxes += outcome.boxes
                cutoff = max(cutoff, outcome.cutoff)
            if finds and tolerance is None:
                enough = min(enough, 2.0 * boxes)
            budget = min(1.5 * budget, MOST_BUDGET)
        finds.sort(key=lambda find: -find[0])
        highest = -heap[0].minus_upper if heap else -np.inf
        return Priced(
            upper=float(max(cutoff, stuck, highest)),
            centres=[centre for _, centre in finds],
            complete=highest <= cutoff and stuck <= cutoff,
            boxes=boxes,
        )

    def climb(
        self,
        lam: NDArray[np.float64],
        starts: Sequence[NDArray[np.float64]],
        *,
        region: Region | None = None,
        steps: int = 30,
        least_gain: float = 0.0,
        stop: StopSignal | None = None,
    ) -> list[Column]:
        """Climb from every start to a cluster that is its own best answer; best first.

        At most ``steps`` steps each, and none after one that gains less than ``least_gain``.
        Starts that ``stop`` comes before are left out.
        """
        region = self.everywhere if region is None else region
        if region.allowed is not None:
            # Worth less than nothing: at its own place, rounding could make a forbidden group a
            # member, and its multiplier would count in cuts.
            error = pricing_error(self.reduced.points, self.reduced.weights, lam)
            lam = np.where(region.allowed, lam, -error)
        instance = self.instance(lam)
        climb = partial(
            _climb, instance=instance, walls=region.walls, steps=steps, least_gain=least_gain
        )
        columns: list[Column] = []
        places = list({start.tobytes(): start for start in starts}.values())
        for first in range(0, len(places), CLIMBS):
            if stop is not None and stop.cause() is not None:
                break
            columns += self._climbers.map(climb, places[first : first + CLIMBS])
        self._on_work(climbs=len(columns))
        best: dict[tuple[float, ...], Column] = {}
        for column in columns:
            best.setdefault((column.value, *column.centre.tolist()), column)
        return sorted(best.values(), key=lambda column: -column.value)

    def best_sets(
        self, lam: NDArray[np.float64], places: Sequence[NDArray[np.float64]]
    ) -> list[Column]:
        """Find a best set at every place, in the order of the places; side by side."""
        walls, instance = self.everywhere.walls, self.instance(lam)
        select = partial(_climb, instance=instance, walls=walls, steps=1, least_gain=0.0)
        return self._climbers.map(select, places)

    def rules(self, error: float, tolerance: float, budget: float) -> Rules:
        """Rules of a search everywhere; boxes bring walls and a hole of their own."""
        hole = no_hole(self.reduced.n_axes)
        return Rules(error, self._slack, self.everywhere.walls, hole, tolerance, budget)

    def instance(self, lam: NDArray[np.float64]) -> Instance:
        """What the kernels work on, for some multipliers."""
        reduced, graph, base = self.reduced, self.reduced.graph, lam.copy()
        for rows in row_blocks(reduced.points):
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

    def _roots(self, lam: NDArray[np.float64], regions: Sequence[Region]) -> list[WaitingBox]:
        members = np.flatnonzero(lam > 0.0).astype(np.int32)
        nothing, hole = np.zeros(self.reduced.n_axes + 2), no_hole(self.reduced.n_axes)
        return [
            WaitingBox(-np.inf, i, region.low, region.high, nothing, members, region.walls, hole, i)
            for i, region in enumerate(regions)
        ]


def _restricted(lam: NDArray[np.float64], region: Region) -> NDArray[np.float64]:
    """Multipliers with those of forbidden groups at 0: they are worth nothing anywhere."""
    return lam if region.allowed is None else np.where(region.allowed, lam, 0.0)


def _climb(
    start: NDArray[np.float64],
    instance: Instance,
    walls: NDArray[np.float64],
    steps: int,
    least_gain: float,
) -> Column:
    """Climb from one start."""
    n, d = instance.points.shape
    centre, sums, members = start.copy(), np.empty(d + 2), np.empty(n, dtype=np.uint8)
    value, _ = ascend(instance, walls, centre, sums, members, steps, least_gain)
    if sums[1] == 0.0:
        return Column.of(centre, members, 0.0, 0.0, 0.0)
    mean = sums[2:] / sums[1]
    cost = -(sums[0] + float(mean @ sums[2:]))
    for rows in row_blocks(members):
        cost += float(members[rows] @ instance.lam[rows])
    return Column.of(mean, members, float(sums[1]), cost, float(value))
