"""The news of a run: the best labelling, the best bound, whether that is enough.

Everything that learns something tells it here, and every change is an event. The board can be
seen in terms of the problem as stated, or of the groups that presolve has made of it.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.events import BoundImproved, EventBus, IncumbentFound
from certikmeans.kernels.costs import labels_cost
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem
from certikmeans.problem.arrays import canonical_labels
from certikmeans.stop import StopSignal
from certikmeans.tolerances import check_bound, gap_reached, relative_gap

Labels = NDArray[np.int64]

# Who is credited with what needs no bound: no cost is negative, and groups cost what they cost.
TRIVIAL = "trivial"


@final
class SolveState:
    """In terms of the problem as stated. Costs are evaluated here, and rounded up."""

    def __init__(self, problem: Problem, gap: float, emitter: EventBus, stop: StopSignal) -> None:
        self._problem = problem
        self._gap = gap
        self._emitter = emitter
        self._stop = stop
        self._cost = math.inf
        self._labels: Labels | None = None
        self._centers: NDArray[np.float64] | None = None
        self._iterations = 0
        self._deferred: tuple[Labels, int] | None = None
        self._lower_bound = 0.0
        self._bound_source = TRIVIAL

    @property
    def cost(self) -> float:
        """Cost of the best labelling, rounded up; infinite while there is none."""
        return self._cost

    @property
    def labels(self) -> Labels | None:
        """The best labelling, numbered by first appearance."""
        return self._labels

    @property
    def centers(self) -> NDArray[np.float64] | None:
        """Its centres."""
        return self._centers

    @property
    def iterations(self) -> int:
        """Assignment steps of the search that found it."""
        return self._iterations

    @property
    def lower_bound(self) -> float:
        """What no labelling can beat, rounded down."""
        return self._lower_bound

    @property
    def bound_source(self) -> str:
        """The method that proved it."""
        return self._bound_source

    @property
    def gap(self) -> float:
        """Relative gap between the two."""
        return relative_gap(self._cost, self._lower_bound)

    def gap_reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return gap_reached(self._cost, self._lower_bound, self._gap)

    def finished(self) -> bool:
        """Whether there is no point, or no time, to go on."""
        return self._stop.reason() is not None or self.gap_reached()

    def update_incumbent(self, labels: Labels, bound_source: str, iterations: int = 0) -> None:
        """Take a labelling, which respects every pair, if it costs less."""
        numbered = canonical_labels(labels)
        cost, centers = self._evaluate(numbered)
        if not cost < self._cost:
            return
        self._cost, self._labels, self._centers = cost, numbered, centers
        self._iterations = iterations
        check_bound(cost, self._lower_bound, self._bound_source)
        self._emitter.emit(IncumbentFound(self._emitter.seconds, cost, bound_source))

    def _evaluate(self, labels: Labels) -> tuple[float, NDArray[np.float64]]:
        problem = self._problem
        centers = np.empty((problem.n_clusters, problem.n_features))
        cost = labels_cost(problem.points, problem.weights, labels, centers)
        return float(cost), centers

    def defer_incumbent(self, labels: Labels, iterations: int) -> None:
        """Keep a labelling for the end: the run shall take the course that it took without."""
        self._deferred = labels, iterations

    def apply_deferred(self, bound_source: str) -> None:
        """Take the labelling that was kept for the end."""
        if self._deferred is not None:
            self.update_incumbent(self._deferred[0], bound_source, self._deferred[1])
            self._deferred = None

    def best(self) -> tuple[Labels | None, int]:
        """The best labelling of all, be it held, and the steps of the search that found it."""
        if self._deferred is not None and self._evaluate(self._deferred[0])[0] < self._cost:
            return self._deferred
        return self._labels, self._iterations

    def update_bound(self, value: float, bound_source: str) -> None:
        """Take a lower bound if it is higher; who proved less is credited with nothing."""
        check_bound(self._cost, value, bound_source)
        if value > self._lower_bound:
            self._lower_bound, self._bound_source = value, bound_source
            self._emitter.emit(BoundImproved(self._emitter.seconds, value, bound_source))

    def reduced_view(self, presolved: PresolvedProblem) -> ReducedView:
        """The same board, in terms of the groups."""
        return ReducedView(self, presolved)


@final
class ReducedView:
    """A board as bounds and heuristics see it: labels of groups, costs without the offset."""

    def __init__(self, board: SolveState, presolved: PresolvedProblem) -> None:
        self._board = board
        self._presolved = presolved

    def labels(self) -> Labels:
        """Return the best labelling known; there is one from the heuristics on."""
        assert self._board.labels is not None
        return self._presolved.presolve_labels(self._board.labels)

    def update_incumbent(self, labels: Labels, bound_source: str, iterations: int = 0) -> None:
        """Tell of a labelling."""
        self._board.update_incumbent(
            self._presolved.postsolve_labels(labels), bound_source, iterations
        )

    def update_bound(self, value: float, bound_source: str) -> None:
        """Tell of a proven bound of the whole."""
        self._board.update_bound(self._presolved.postsolve_bound(value), bound_source)

    def gap_reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return self._board.gap_reached()
