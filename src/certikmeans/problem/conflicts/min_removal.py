"""Minimum set of pairs to remove: hitting sets of conflicts, with a lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from certikmeans.problem.conflicts.conflict_sets import (
    ConflictSet,
    ConflictWalks,
    StepLimitReached,
    coloring_conflicts,
    disjoint_conflicts,
)
from certikmeans.problem.conflicts.graph import IntArray, PairGraph
from certikmeans.problem.conflicts.heuristics import gaec, grow_labels, local_search_labels
from certikmeans.stop import StopSignal

_VIOLATION_THRESHOLD = 1.0 - 1e-4  # a conflict that is this heavy is hit
_MAX_NEW_CONFLICTS = 400  # added at once
_MAX_COLORING_CONFLICTS = 60  # sets of groups at once
_LP_ROUNDS = 40
_N_STARTS = 5
_SINGLE_START_EDGES = 20_000  # edges for which one start has to do


@final
@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Edges to remove, and how many have to be removed at least."""

    edges: IntArray
    least: int


def min_removal(graph: PairGraph, n_clusters: int, stop: StopSignal) -> Removal:
    """Find a smallest set of edges to remove, or a small one if time runs out.

    >>> triangle = PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 2)
    >>> found = min_removal(triangle, 2, StopSignal())
    >>> len(found.edges), found.least
    (1, 1)
    """
    if n_clusters == 1:  # one label: every cannot-link is broken, no must-link is
        return Removal(np.arange(graph.n_must, len(graph.edges)), len(graph.cannot))
    removed: list[IntArray] = []
    least = 0
    for part, _, ids in graph.cyclic_components():
        found = _RemovalSearch(part, n_clusters, stop).run()
        removed.append(ids[found.edges])
        least += found.least
    return Removal(np.sort(np.concatenate(removed)) if removed else np.empty(0, np.int64), least)


@final
class _RemovalSearch:
    """The search in one connected piece."""

    def __init__(self, graph: PairGraph, n_clusters: int, stop: StopSignal) -> None:
        self._graph, self._k, self._stop = graph, n_clusters, stop
        self._walks = ConflictWalks(graph, stop, doubled=n_clusters == 2)
        self._rows: dict[ConflictSet, None] = {}
        self._best = np.arange(len(graph.edges))
        self._lower_bound = 0

    def run(self) -> Removal:
        nothing = np.zeros(len(self._graph.edges), dtype=np.bool_)
        self._add_disjoint_conflicts()
        if self._rows or self._add_missed_conflicts(nothing):
            self._run_heuristics()
            self._update_best(nothing)
            self._solve_relaxation()
            self._solve_hitting_set()
        elif len(self._best):  # not known whether there is a conflict
            self._run_heuristics()
            self._update_best(nothing)
        return Removal(self._best, self._lower_bound)

    def _add(self, rows: list[ConflictSet]) -> bool:
        before = len(self._rows)
        self._rows.update(dict.fromkeys(rows))
        self._lower_bound = max(self._lower_bound, int(before == 0 and bool(rows)))
        return len(self._rows) > before

    def _add_missed_conflicts(self, removed: NDArray[np.bool_]) -> bool:
        """Add conflicts that a removal misses; without any it is one that works."""
        walks = self._walks.lighter_than(removed.astype(np.float64), ~removed, 0.5)
        if self._add(list(islice(walks, _MAX_NEW_CONFLICTS))):
            return True
        if self._stop.reason() is not None:
            return False
        try:
            if self._k > 2 and self._add(
                coloring_conflicts(
                    self._graph, removed, self._k, max_conflicts=_MAX_COLORING_CONFLICTS
                )
            ):
                return True
        except StepLimitReached:  # what is left may or may not be satisfiable
            return False
        if removed.sum() < len(self._best):
            self._best = np.flatnonzero(removed)
        return False

    def _solve_relaxation(self) -> None:
        """Solve the linear relaxation over walks, a portion of new rows at a time."""
        every = np.ones(len(self._graph.edges), dtype=np.bool_)
        for _ in range(_LP_ROUNDS):
            if self._is_done():
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
            self._update_lower_bound(_packing_bound(-answer.ineqlin.marginals, matrix))
            weights = np.zeros(len(every))
            weights[columns] = answer.x
            walks = self._walks.lighter_than(weights, every, _VIOLATION_THRESHOLD)
            if not self._add(list(islice(walks, _MAX_NEW_CONFLICTS))):
                return

    def _solve_hitting_set(self) -> None:
        """Solve the integer program; add what its answer misses."""
        while not self._is_done():
            columns, matrix = self._matrix()
            answer = milp(
                np.ones(len(columns)),
                constraints=LinearConstraint(matrix, lb=1.0),
                integrality=np.ones(len(columns)),
                bounds=Bounds(0.0, 1.0),
                options={"time_limit": self._seconds()},
            )
            if answer.mip_dual_bound is not None:
                self._update_lower_bound(answer.mip_dual_bound)
            if answer.x is None:
                return
            removed = np.zeros(len(self._graph.edges), dtype=np.bool_)
            removed[columns[answer.x > 0.5]] = True
            self._update_best(removed)
            if self._is_done() or not self._add_missed_conflicts(removed):
                return

    def _is_done(self) -> bool:
        return self._lower_bound >= len(self._best) or self._stop.reason() is not None

    def _seconds(self) -> float:
        left = self._stop.remaining
        return 3600.0 if math.isinf(left) else max(left, 0.1)

    def _update_lower_bound(self, bound: float) -> None:
        self._lower_bound = min(max(self._lower_bound, math.ceil(bound - 1e-6)), len(self._best))

    def _add_disjoint_conflicts(self) -> None:
        """Start from conflicts that share nothing: as many pairs have to go."""
        rows = disjoint_conflicts(self._graph, self._k, self._stop)
        self._add(rows)
        self._update_lower_bound(len(rows))

    def _run_heuristics(self) -> None:
        """Labellings that make sense of most pairs, from what is tied most, then from starts."""
        labels = local_search_labels(
            self._graph, gaec(self._graph), self._k, target=self._lower_bound
        )
        self._best = min(self._best, self._graph.violated(labels), key=len)
        for seed in range(_N_STARTS):
            broken = self._graph.violated(grow_labels(self._graph, self._k, seed))
            if len(broken) < len(self._best):
                self._best = broken
            if self._is_done() or len(self._graph.edges) > _SINGLE_START_EDGES:
                return

    def _update_best(self, removed: NDArray[np.bool_]) -> None:
        """Label what a removal leaves; the pairs that the labelling breaks are an upper bound."""
        labels = local_search_labels(
            self._graph, self._graph.groups(removed), self._k, target=self._lower_bound
        )
        broken = self._graph.violated(labels)
        if len(broken) < len(self._best):
            self._best = broken

    def _matrix(self) -> tuple[IntArray, csr_array]:
        """One row for each conflict, one column for each edge that is in any."""
        sizes = [len(row) for row in self._rows]
        members = np.fromiter((e for row in self._rows for e in row), dtype=np.int64)
        columns, at = np.unique(members, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return columns, csr_array((np.ones(len(members)), at, starts), (len(sizes), len(columns)))


def _packing_bound(multipliers: NDArray[np.float64], matrix: csr_array) -> float:
    """Scale prices of conflicts so that no edge is charged more than 1: a sound lower bound."""
    multipliers = np.maximum(multipliers, 0.0)
    load = float((matrix.T @ multipliers).max(initial=0.0))
    return float(multipliers.sum()) / max(1.0, load)
