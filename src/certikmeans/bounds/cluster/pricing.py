"""Pricing: the most that one cluster can be worth under given multipliers.

``sigma(lam) = max over y and I independent of sum_{s in I} (lam_s - w_s |x_s - y|^2)``.
Boxes of ``y`` wait in a heap, largest upper bound first; rounds of a fixed number of boxes
are searched depth first by a compiled kernel, each with a budget, and what they leave open
returns to the heap. So a search that is cut short has a finite bound, the largest one in the
heap, and what is found does not depend on the number of threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.rounding import mean_slack, pricing_error
from certikmeans.kernels.pricing_ascent import ascend
from certikmeans.kernels.pricing_search import search_boxes
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

ROUND = 8  # boxes searched between two looks at the clock
STACK = 128
FINDS = 4
LEAST_BUDGET = 2e5
MOST_BUDGET = 2e6
# Without a time limit a search must end by itself: from this many boxes on, every doubling has
# to bring the bound closer to the cutoff by this factor. Searches that close do far better.
PATIENT_BOXES = 100_000
LEAST_PROGRESS = 0.9


@final
@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A cluster: its centre, its groups, its cost, and ``sum lam - cost`` when it was found."""

    centre: NDArray[np.float64]  # (n_axes,)
    members: NDArray[np.uint8]  # (n_groups,)
    cost: float
    value: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What an exact pricing has proven and found."""

    upper: float  # at least sigma, rounding included
    centres: list[NDArray[np.float64]]  # whose value exceeds the cutoff, best first
    complete: bool  # False: cut short by the clock or by a find
    boxes: int


@final
@dataclass(order=True, slots=True)
class _Box:
    minus_upper: float
    number: int
    low: NDArray[np.float64] = field(compare=False)
    high: NDArray[np.float64] = field(compare=False)
    settled: NDArray[np.float64] = field(compare=False)
    members: NDArray[np.int32] = field(compare=False)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    open_boxes: list[_Box]
    finds: list[tuple[float, NDArray[np.float64]]]
    cutoff: float
    stuck: float
    boxes: int


@final
class _Progress:
    """Notices that a search will not end in reasonable time. Counts boxes, not seconds."""

    def __init__(self, stop: StopSignal) -> None:
        self._limited = stop.remaining < np.inf
        self._next_look = PATIENT_BOXES
        self._before = np.inf

    def is_lost(self, boxes: int, distance: float) -> bool:
        """Whether to give up, with the bound ``distance`` above the cutoff."""
        if self._limited or boxes < self._next_look:
            return False
        lost = distance > LEAST_PROGRESS * self._before
        self._next_look, self._before = 2 * boxes, distance
        return lost


@final
class Pricer:
    """Prices clusters of one reduced problem; safe to use from one thread at a time.

    Parameters
    ----------
    reduced : ReducedProblem
    executor : concurrent.futures.Executor, optional
        Runs boxes and ascents side by side (threads: the kernels release the GIL).
    """

    def __init__(self, reduced: ReducedProblem, executor: Executor | None = None) -> None:
        self.reduced = reduced
        self._executor = executor
        graph = reduced.graph
        self._cyclic = np.repeat(graph.extra_edges > 0, np.diff(graph.starts)).astype(np.uint8)
        self._squares = np.einsum("ij,ij->i", reduced.points, reduced.points)
        self._slack = mean_slack(reduced.points)

    def exact(
        self,
        lam: NDArray[np.float64],
        cutoff: float,
        stop: StopSignal,
        tolerance: float | None = None,
    ) -> Priced:
        """Prove that no cluster is worth more than ``cutoff``, or find one that is.

        Parameters
        ----------
        lam : ndarray of shape (n_groups,)
            Any numbers.
        cutoff : float
            Raised to 0, the value of the empty cluster, and by the rounding error.
        stop : StopSignal
            Ends the search early with a weaker bound. Without a time limit the search also
            ends where it makes no progress.
        tolerance : float, optional
            When a cluster beats the cutoff, go on with its value plus this. None: end the
            search there, the cutoff being refuted.
        """
        error = pricing_error(self.reduced.points, self.reduced.weights, lam)
        cutoff = max(cutoff, 0.0) + 2.0 * error
        data = self._data(lam)
        heap = [self._root(lam)]
        finds: list[tuple[float, NDArray[np.float64]]] = []
        stuck, boxes, number, budget = -np.inf, 0, 1, LEAST_BUDGET
        patience = -1.0 if tolerance is None else tolerance + 2.0 * error
        progress = _Progress(stop)
        while heap and -heap[0].minus_upper > cutoff:
            if stop.cause() is not None or (finds and tolerance is None):
                break
            if progress.is_lost(boxes, -heap[0].minus_upper - cutoff):
                break
            batch = [heapq.heappop(heap) for _ in range(min(ROUND, len(heap)))]
            for outcome in self._each(batch, data, error, cutoff, patience, budget):
                for box in outcome.open_boxes:
                    box.number = number
                    number += 1
                    heapq.heappush(heap, box)
                finds += outcome.finds
                stuck = max(stuck, outcome.stuck)
                boxes += outcome.boxes
                cutoff = max(cutoff, outcome.cutoff)
            budget = min(1.5 * budget, MOST_BUDGET)
        finds.sort(key=lambda find: -find[0])
        left = -heap[0].minus_upper if heap else -np.inf
        return Priced(
            upper=float(max(cutoff, stuck, left)),
            centres=[centre for _, centre in finds],
            complete=left <= cutoff and stuck <= cutoff,
            boxes=boxes,
        )

    def climb(
        self,
        lam: NDArray[np.float64],
        starts: Sequence[NDArray[np.float64]],
        *,
        steps: int = 30,
        least_gain: float = 0.0,
        stop: StopSignal | None = None,
    ) -> list[Column]:
        """Climb from every start to a cluster that is its own best answer; best first.

        At most ``steps`` steps each, and none after one that gains less than ``least_gain``.
        Starts that ``stop`` comes before are left out.
        """
        data = self._data(lam)

        def one(start: NDArray[np.float64]) -> Column | None:
            if stop is not None and stop.cause() is not None:
                return None
            centre = start.copy()
            members = np.empty(self.reduced.n_groups, dtype=np.uint8)
            value, _ = ascend(data, centre, members, steps, least_gain)
            return Column(centre, members, float(members @ lam) - value, float(value))

        columns = list(
            map(one, starts) if self._executor is None else self._executor.map(one, starts)
        )
        best: dict[tuple[float, ...], Column] = {}
        for column in columns:
            if column is None:
                continue
            best.setdefault((column.value, *column.centre.tolist()), column)
        return sorted(best.values(), key=lambda column: -column.value)

    def _data(self, lam: NDArray[np.float64]) -> tuple[Any, ...]:
        reduced, graph = self.reduced, self.reduced.graph
        base = lam - reduced.weights * self._squares
        return (
            reduced.points, reduced.weights, lam, base,
            graph.parents, self._cyclic, graph.indptr, graph.neighbors,
        )  # fmt: skip

    def _root(self, lam: NDArray[np.float64]) -> _Box:
        # The mean of any set lies in the box that holds all points.
        points = self.reduced.points
        members = np.flatnonzero(lam > 0.0).astype(np.int32)
        settled = np.zeros(points.shape[1] + 2)
        return _Box(-np.inf, 0, points.min(axis=0), points.max(axis=0), settled, members)

    def _each(
        self,
        batch: list[_Box],
        data: tuple[Any, ...],
        error: float,
        cutoff: float,
        tolerance: float,
        budget: float,
    ) -> list[_Outcome]:
        def one(box: _Box) -> _Outcome:
            return _search(box, data, error, self._slack, cutoff, tolerance, budget)

        if self._executor is None or len(batch) == 1:
            return [one(box) for box in batch]
        return list(self._executor.map(one, batch))


def _search(
    box: _Box,
    data: tuple[Any, ...],
    error: float,
    slack: NDArray[np.float64],
    cutoff: float,
    tolerance: float,
    budget: float,
) -> _Outcome:
    """Search one box with a budget; what stays open shares the members it was left with."""
    d, size = len(box.low), len(box.members)
    lows, highs = np.empty((STACK, d)), np.empty((STACK, d))
    settled, uppers = np.empty((STACK, d + 2)), np.empty(STACK)
    starts, sizes = np.empty(STACK, dtype=np.int64), np.empty(STACK, dtype=np.int64)
    arena = np.empty(8 * size + 1024, dtype=np.int32)
    arena[:size] = box.members
    lows[0], highs[0], settled[0] = box.low, box.high, box.settled
    uppers[0], starts[0], sizes[0] = -box.minus_upper, 0, size
    found, values = np.empty((FINDS, d)), np.empty(FINDS)
    stack = (lows, highs, settled, uppers, starts, sizes, arena)
    n_open, boxes, n_found, cutoff, stuck = search_boxes(
        data, stack, 1, error, slack, cutoff, tolerance, budget, found, values
    )
    shared: dict[tuple[int, int], NDArray[np.int32]] = {}
    left = []
    for i in range(n_open):
        key = (int(starts[i]), int(sizes[i]))
        if key not in shared:
            shared[key] = arena[key[0] : key[0] + key[1]].copy()
        left.append(
            _Box(
                -float(uppers[i]),
                0,
                lows[i].copy(),
                highs[i].copy(),
                settled[i].copy(),
                shared[key],
            )
        )
    finds = [(float(values[i]), found[i].copy()) for i in range(min(n_found, FINDS))]
    return _Outcome(left, finds, float(cutoff), float(stuck), int(boxes))
