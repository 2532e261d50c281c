"""The smallest set of pairs whose removal leaves something that can hold.

Every conflict has to lose a pair, so a smallest set that hits all conflicts known so far is no
larger than the one we want: its size is a lower bound. If what it leaves can be satisfied, it is
the one; else there is a conflict that it misses, which is added. The hitting sets come from an
integer program (HiGHS), started from the conflicts that its relaxation needs. A labelling found
by local search gives a set to remove at any time, and the search ends when the two sizes meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from certikmeans.problem.noise.colouring import OutOfSteps
from certikmeans.problem.noise.conflicts import Row, Walks, colour_conflicts
from certikmeans.problem.noise.graph import Ids, PairGraph
from certikmeans.problem.noise.joining import joined
from certikmeans.problem.noise.labelling import few_broken, grown
from certikmeans.problem.noise.packing import disjoint_conflicts
from certikmeans.stop import StopSignal

_LIGHT = 1.0 - 1e-4  # a conflict that is this heavy is hit
_MOST_ROWS = 400  # added at once
_MOST_COLOURINGS = 60  # sets of groups at once
_LP_ROUNDS = 40
_STARTS = 5
_LARGE = 20_000  # edges for which one start has to do


@final
@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Edges to remove, and how many have to be removed at least."""

    edges: Ids
    least: int


def smallest_removal(graph: PairGraph, n_clusters: int, stop: StopSignal) -> Removal:
    """Find a smallest set of edges to remove, or a small one if time runs out.

    >>> triangle = PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 2)
    >>> found = smallest_removal(triangle, 2, StopSignal())
    >>> len(found.edges), found.least
    (1, 1)
    """
    if n_clusters == 1:  # one label: every cannot-link is broken, no must-link is
        return Removal(np.arange(graph.n_must, len(graph.edges)), len(graph.cannot))
    removed: list[Ids] = []
    least = 0
    for part, _, ids in graph.parts():
        found = _Search(part, n_clusters, stop).run()
        removed.append(ids[found.edges])
        least += found.least
    return Removal(np.sort(np.concatenate(removed)) if removed else np.empty(0, np.int64), least)


@final
class _Search:
    """The search in one connected piece."""

    def __init__(self, graph: PairGraph, n_clusters: int, stop: StopSignal) -> None:
        self._graph, self._k, self._stop = graph, n_clusters, stop
        self._walks = Walks(graph, stop, doubled=n_clusters == 2)
        self._rows: dict[Row, None] = {}
        self._best = np.arange(len(graph.edges))
        self._least = 0

    def run(self) -> Removal:
        nothing = np.zeros(len(self._graph.edges), dtype=np.bool_)
        self._pack()
        if self._rows or self._continues(nothing):
            self._grow()
            self._offer(nothing)
            self._relax()
            self._hit()
        elif len(self._best):  # not known whether there is a conflict
            self._grow()
            self._offer(nothing)
        return Removal(self._best, self._least)

    def _add(self, rows: list[Row]) -> bool:
        before = len(self._rows)
        self._rows.update(dict.fromkeys(rows))
        self._least = max(self._least, int(before == 0 and bool(rows)))
        return len(self._rows) > before

    def _continues(self, removed: NDArray[np.bool_]) -> bool:
        """Add conflicts that a removal misses; without any it is one that works."""
        walks = self._walks.light(removed.astype(np.float64), ~removed, 0.5)
        if self._add(list(islice(walks, _MOST_ROWS))):
            return True
        if self._stop.cause() is not None:
            return False
        try:
            if self._k > 2 and self._add(
                colour_conflicts(self._graph, removed, self._k, most=_MOST_COLOURINGS)
            ):
                return True
        except OutOfSteps:  # what is left may or may not be satisfiable
            return False
        if removed.sum() < len(self._best):
            self._best = np.flatnonzero(removed)
        return False

    def _relax(self) -> None:
        """Solve the linear relaxation over walks, a portion of new rows at a time."""
        every = np.ones(len(self._graph.edges), dtype=np.bool_)
        for _ in range(_LP_ROUNDS):
            if self._met():
                return
            columns, matrix = self._matrix()
            answer = linprog(
                np.ones(len(columns)),
                A_ub=-matrix,
                b_ub=-np.ones(matrix.shape[0]),
                bounds=(0.0, 1.0),
                method="highs",
                options={"time_limit": self._seconds()},
            )
            if answer.x is None:
                return
            self._raise(_packed(-answer.ineqlin.marginals, matrix))
            weights = np.zeros(len(every))
            weights[columns] = answer.x
            walks = self._walks.light(weights, every, _LIGHT)
            if not self._add(list(islice(walks, _MOST_ROWS))):
                return

    def _hit(self) -> None:
        """Solve the integer program; add what its answer misses."""
        while not self._met():
            columns, matrix = self._matrix()
            answer = milp(
                np.ones(len(columns)),
                constraints=LinearConstraint(matrix, lb=1.0),
                integrality=np.ones(len(columns)),
                bounds=Bounds(0.0, 1.0),
                options={"time_limit": self._seconds()},
            )
            if answer.mip_dual_bound is not None:
                self._raise(answer.mip_dual_bound)
            if answer.x is None:
                return
            removed = np.zeros(len(self._graph.edges), dtype=np.bool_)
            removed[columns[answer.x > 0.5]] = True
            self._offer(removed)
            if self._met() or not self._continues(removed):
                return

    def _met(self) -> bool:
        return self._least >= len(self._best) or self._stop.cause() is not None

    def _seconds(self) -> float:
        left = self._stop.remaining
        return 3600.0 if math.isinf(left) else max(left, 0.1)

    def _raise(self, bound: float) -> None:
        self._least = min(max(self._least, math.ceil(bound - 1e-6)), len(self._best))

    def _pack(self) -> None:
        """Start from conflicts that share nothing: as many pairs have to go."""
        rows = disjoint_conflicts(self._graph, self._k, self._stop)
        self._add(rows)
        self._raise(len(rows))

    def _grow(self) -> None:
        """Labellings that make sense of most pairs, from what is tied most, then from starts."""
        labels = few_broken(self._graph, joined(self._graph), self._k, goal=self._least)
        self._best = min(self._best, self._graph.violated(labels), key=len)
        for seed in range(_STARTS):
            broken = self._graph.violated(grown(self._graph, self._k, seed))
            if len(broken) < len(self._best):
                self._best = broken
            if self._met() or len(self._graph.edges) > _LARGE:
                return

    def _offer(self, removed: NDArray[np.bool_]) -> None:
        """Label what a removal leaves; the pairs that the labelling breaks are an upper bound."""
        labels = few_broken(self._graph, self._graph.groups(removed), self._k, goal=self._least)
        broken = self._graph.violated(labels)
        if len(broken) < len(self._best):
            self._best = broken

    def _matrix(self) -> tuple[Ids, csr_array]:
        """One row for each conflict, one column for each edge that is in any."""
        sizes = [len(row) for row in self._rows]
        members = np.fromiter((e for row in self._rows for e in row), dtype=np.int64)
        columns, at = np.unique(members, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return columns, csr_array((np.ones(len(members)), at, starts), (len(sizes), len(columns)))


def _packed(prices: NDArray[np.float64], matrix: csr_array) -> float:
    """Scale prices of conflicts so that no edge is charged more than 1: a sound lower bound."""
    prices = np.maximum(prices, 0.0)
    load = float((matrix.T @ prices).max(initial=0.0))
    return float(prices.sum()) / max(1.0, load)
