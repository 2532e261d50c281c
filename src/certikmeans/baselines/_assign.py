"""Optimal assignment to fixed centres: by a binary program, or the same by our own solver."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner, assigner_for
from certikmeans.baselines._groups import Groups, raise_if_infeasible
from certikmeans.baselines._program import ProgramAnswer, cheapest_labels
from certikmeans.presolve.conflicts import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.distances import squared_distances
from certikmeans.stop import StopSignal
from certikmeans.validation import raise_infeasible

DISTANCES = ("euclidean", "squared")
ASSIGNMENTS = ("milp", "exact")


@final
class OptimalAssignment:
    """Cheapest labels that respect the pairs, for one set of centres after another.

    Parameters
    ----------
    problem : Problem
    distance : {"euclidean", "squared"}
        What a point costs in a cluster: its distance from the centre, or the square of it.
    method : {"milp", "exact"}
        ``"milp"``: a binary program. ``"exact"``: `certikmeans.assignment`, which finds
        labels of the same cost by dynamic programming, much faster.
    fill : bool
        Whether every cluster must get a point.
    stop : StopSignal
    """

    def __init__(
        self, problem: Problem, *, distance: str, method: str, fill: bool, stop: StopSignal
    ) -> None:
        self._problem = problem
        self._distance = distance
        self._fill = fill
        self._stop = stop
        self._explained = False
        self.groups = Groups.of(problem)
        self._assigner: AbstractAssigner | None = None
        self._row_of_group = np.empty(0, dtype=np.int64)
        if method == "exact":
            done = presolve(problem, stop)
            if isinstance(done, InfeasibilityProof):
                raise_infeasible(done)
            if done.witness is not None:
                self._assigner = assigner_for(done.reduced, done.witness)
                self._row_of_group = np.empty(self.groups.n_groups, dtype=np.int64)
                self._row_of_group[self.groups.of_point] = done.row_of_point

    def distances(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cost of every point in every cluster."""
        table = squared_distances(self._problem.points, centers)
        return np.sqrt(table, out=table) if self._distance == "euclidean" else table

    def total(self, centers: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
        """Cost of labels of the points about ``centers``."""
        away = self._problem.points - centers[labels]
        squares = np.einsum("ij,ij->i", away, away)
        return float(np.sqrt(squares).sum() if self._distance == "euclidean" else squares.sum())

    def labels(self, centers: NDArray[np.float64]) -> NDArray[np.int64] | None:
        """Labels of the points; None if there was no time or there are none.

        Raises
        ------
        InfeasibleError
            The pairs contradict each other.
        """
        answer = self._answer(self.groups.total(self.distances(centers)))
        if answer.infeasible and not self._explained:
            raise_if_infeasible(self._problem)
            self._explained = True
        return None if answer.labels is None else answer.labels[self.groups.of_point]

    def _answer(self, costs: NDArray[np.float64]) -> ProgramAnswer:
        if self._assigner is not None:
            table = np.empty_like(costs)
            table[self._row_of_group] = costs
            found = self._assigner.assign_costs(table, stop=self._stop).labels[self._row_of_group]
            if not self._fill or np.bincount(found, minlength=costs.shape[1]).min() > 0:
                return ProgramAnswer(found)
        seconds = self._stop.remaining
        return cheapest_labels(costs, self.groups, fill=self._fill, seconds=seconds)
