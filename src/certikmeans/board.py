"""The news of a run: the best labelling, the best bound, whether that is enough.

Everything that learns something tells it here, and every change is an event. The board can be
seen in terms of the problem as stated, or of the groups that presolve has made of it.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.events import BoundImproved, Emitter, IncumbentFound
from certikmeans.kernels.cost import labelling_cost
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import Problem
from certikmeans.problem.numbering import number_by_appearance
from certikmeans.stop import StopSignal
from certikmeans.tolerances import check_bound, gap_reached, relative_gap

Labels = NDArray[np.int64]

# Who is credited with what needs no bound: no cost is negative, and groups cost what they cost.
TRIVIAL = "trivial"


@final
class Board:
    """In terms of the problem as stated. Costs are evaluated here, and rounded up."""

    def __init__(self, problem: Problem, gap: float, emitter: Emitter, stop: StopSignal) -> None:
        self._problem = problem
        self._asked = gap
        self._emitter = emitter
        self._stop = stop
        self._cost = math.inf
        self._labels: Labels | None = None
        self._centers: NDArray[np.float64] | None = None
        self._iterations = 0
        self._held: tuple[Labels, int] | None = None
        self._lower = 0.0
        self._source = TRIVIAL

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
    def lower(self) -> float:
        """What no labelling can beat, rounded down."""
        return self._lower

    @property
    def source(self) -> str:
        """The method that proved it."""
        return self._source

    @property
    def gap(self) -> float:
        """Relative gap between the two."""
        return relative_gap(self._cost, self._lower)

    def gap_reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return gap_reached(self._cost, self._lower, self._asked)

    def finished(self) -> bool:
        """Whether there is no point, or no time, to go on."""
        return self._stop.cause() is not None or self.gap_reached()

    def offer(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Take a labelling, which respects every pair, if it costs less."""
        numbered = number_by_appearance(labels)
        cost, centers = self._evaluated(numbered)
        if not cost < self._cost:
            return
        self._cost, self._labels, self._centers = cost, numbered, centers
        self._iterations = iterations
        check_bound(cost, self._lower, self._source)
        self._emitter.emit(IncumbentFound(self._emitter.seconds, cost, source))

    def _evaluated(self, labels: Labels) -> tuple[float, NDArray[np.float64]]:
        problem = self._problem
        centers = np.empty((problem.n_clusters, problem.n_features))
        cost = labelling_cost(problem.points, problem.weights, labels, centers)
        return float(cost), centers

    def hold(self, labels: Labels, iterations: int) -> None:
        """Keep a labelling for the end: the run shall take the course that it took without."""
        self._held = labels, iterations

    def release(self, source: str) -> None:
        """Take the labelling that was kept for the end."""
        if self._held is not None:
            self.offer(self._held[0], source, self._held[1])
            self._held = None

    def best(self) -> tuple[Labels | None, int]:
        """The best labelling of all, be it held, and the steps of the search that found it."""
        if self._held is not None and self._evaluated(self._held[0])[0] < self._cost:
            return self._held
        return self._labels, self._iterations

    def prove(self, value: float, source: str) -> None:
        """Take a lower bound if it is higher; who proved less is credited with nothing."""
        check_bound(self._cost, value, source)
        if value > self._lower:
            self._lower, self._source = value, source
            self._emitter.emit(BoundImproved(self._emitter.seconds, value, source))

    def seen_from(self, presolved: Presolved) -> GroupBoard:
        """The same board, in terms of the groups."""
        return GroupBoard(self, presolved)


@final
class GroupBoard:
    """A board as bounds and heuristics see it: labels of groups, costs without the offset."""

    def __init__(self, board: Board, presolved: Presolved) -> None:
        self._board = board
        self._presolved = presolved

    def labels(self) -> Labels:
        """Return the best labelling known; there is one from the heuristics on."""
        assert self._board.labels is not None
        return self._presolved.reduce_labels(self._board.labels)

    def offer(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Tell of a labelling."""
        self._board.offer(self._presolved.restore_labels(labels), source, iterations)

    def prove(self, value: float, source: str) -> None:
        """Tell of a proven bound of the whole."""
        self._board.prove(self._presolved.restore_bound(value), source)

    def gap_reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return self._board.gap_reached()
