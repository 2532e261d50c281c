"""Cheapest labels with limits on cluster sizes for fixed centres, Lloyd runs, and exchanges."""

from __future__ import annotations

from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans._types import Floats, Ints
from certikmeans.assignment.base import Assignment, LloydRun, TableAssigner, without_infinities
from certikmeans.assignment.transportation import (
    ScaledSizes,
    SizedAssignment,
    assign_sizes,
    improve_by_program,
    scale_sizes,
    transportation_bound,
    writable,
)
from certikmeans.constraint_model.model import LabelConstraints
from certikmeans.kernels.transportation.descent import descend_with_limits
from certikmeans.kernels.transportation.exchanges import ClusterState, SizedPoints
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True)
class SizeSearchParams:
    """Settings of Lloyd runs with limits on sizes."""

    # Candidates per pair of clusters for swaps, for all pairs together and for one.
    swap_candidates: int = 400
    min_swap_width: int = 4
    max_swap_width: int = 40
    # Multiplications of the iterations between two looks at the deadline.
    work_per_call: float = 2e7

    def __post_init__(self) -> None:
        if not 1 <= self.min_swap_width <= self.max_swap_width:
            raise ValueError("the least swap width must lie between 1 and the largest")

    def swap_width(self, n_clusters: int) -> int:
        """Candidates per ordered pair of clusters."""
        width = self.swap_candidates // max(1, n_clusters * (n_clusters - 1))
        return int(np.clip(width, self.min_swap_width, self.max_swap_width))


DEFAULT_PARAMS = SizeSearchParams()


def has_sizes_alone(constraints: LabelConstraints) -> bool:
    """Whether the sizes of clusters are the only constraints."""
    return (
        constraints.sizes is not None
        and constraints.sets is None
        and constraints.soft is None
        and constraints.cannot_links.n_linked == 0
    )


@final
class SizeAssigner(TableAssigner):
    """Cheapest labels of a problem with limits on cluster sizes only.

    With equal demands an assignment is a transportation problem, solved exactly. Groups of
    different demands are assigned by its linear relaxation, rounded and repaired. `lloyd` also
    moves and swaps groups while the centres move with them.

    Parameters
    ----------
    problem : ReducedProblem
    feasible_labels : array-like of shape (n_groups,)
        Any feasible labelling.
    exact_time_limit : float
        Seconds for the integer program of an assignment of groups of different demands; with 0
        there is none.

    Notes
    -----
    ``lower_bound`` is the dual value at the prices of the clusters, less its rounding error.

    Examples
    --------
    >>> from certikmeans import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> done = presolve(
    ...     Problem.from_data([[0.0], [1.0], [2.0], [9.0]], 2, size_min=2), StopSignal()
    ... )
    >>> assigner = SizeAssigner(done.reduced, done.feasible_labels)
    >>> assigner.assign_costs([[0, 9], [0, 8], [0, 7], [9, 0]]).labels
    array([0, 0, 1, 1])
    """

    def __init__(
        self,
        problem: ReducedProblem,
        feasible_labels: ArrayLike,
        *,
        exact_time_limit: float = 2.0,
        params: SizeSearchParams = DEFAULT_PARAMS,
    ) -> None:
        super().__init__(problem)
        sizes = problem.label_constraints.sizes
        assert sizes is not None
        self._params, self._sizes = params, sizes
        self._program_seconds = exact_time_limit
        labels = np.asarray(feasible_labels, dtype=np.int64)
        self._feasible: Ints = sizes.aligned(labels)
        scaled = scale_sizes(sizes)
        assert scaled is not None
        self._scaled: ScaledSizes = scaled
        self._data = SizedPoints(
            writable(problem.points),
            writable(problem.points.T),
            writable(problem.weights),
            scaled.demand,
            scaled.limits.totals,
        )

    @property
    def step_work(self) -> float:
        """Estimated multiplications of a step: for repeatable budgets."""
        problem = self._problem
        return float(problem.n_groups * problem.n_clusters * (problem.n_dims + 10))

    @property
    def needs_search(self) -> bool:
        """Always False: a step takes polynomial time."""
        return False

    def with_exact_time_limit(self, exact_time_limit: float) -> SizeAssigner:
        """Copy with another time limit for integer programs; 0 for none."""
        other = copy(self)
        other._program_seconds = exact_time_limit
        return other

    def _assign_table(
        self, table: Floats, before: Ints | None, stop: StopSignal | None
    ) -> Assignment:
        """Cheapest feasible labels for a table of costs."""
        finite = without_infinities(table)
        found = assign_sizes(finite, self._sizes, self._feasible)
        if not found.exact and self._program_seconds > 0.0:
            found = found._replace(labels=self._improved(finite, found, stop))
        cost = float(table[np.arange(len(table)), found.labels].sum())
        # A forbidden label costs more in the table than in the finite one.
        bound = max(0.0, transportation_bound(finite, self._sizes, found.prices))
        if np.isinf(table).all(axis=1).any():
            return Assignment(found.labels, cost, np.inf, True)
        return Assignment(found.labels, cost, bound, found.exact and np.isfinite(cost))

    def _improved(self, table: Floats, found: SizedAssignment, stop: StopSignal | None) -> Ints:
        seconds = self._program_seconds if stop is None else min(
            self._program_seconds, stop.remaining
        )  # fmt: skip
        if seconds <= 0.0:
            return found.labels
        return improve_by_program(table, self._sizes, found.labels, found.prices, seconds)

    def lloyd(
        self,
        centers: ArrayLike,
        labels_out: Ints,
        max_iterations: int = 300,
        *,
        tolerance: float = 0.0,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> LloydRun:
        """Alternate cheapest labels and means, then moves and swaps, until neither improves."""
        params, problem = self._params, self._problem
        n_clusters = problem.n_clusters
        means: Floats = np.array(centers, dtype=np.float64, order="C")
        if means.shape != (n_clusters, problem.n_dims):
            raise ValueError(
                f"centers: expected shape {(n_clusters, problem.n_dims)}, got {means.shape}"
            )
        state = ClusterState(
            np.full(problem.n_groups, -1), means, np.zeros(n_clusters), np.zeros(n_clusters)
        )
        prices, best, iterations, done = np.zeros(n_clusters), np.inf, 0, False
        per_call = max(1, int(params.work_per_call / self.step_work))
        labels_out[:] = self._feasible
        best_means = problem.cluster_means(self._feasible)
        while not done and iterations < max_iterations:
            cost, steps, done = descend_with_limits(
                self._data, self._scaled.limits, min(per_call, max_iterations - iterations),
                tolerance, params.swap_width(n_clusters), prices, state,
            )  # fmt: skip
            iterations += steps
            if not cost < best:
                break
            best, best_means = cost, state.means.copy()
            labels_out[:] = state.labels
            if stop is not None and stop.reason() is not None:
                break
            if done and self._program_seconds > 0.0 and self._scaled.limits.whole.size == 0:
                # Better labels for the same centres are the start of another descent.
                better = self.assign(best_means, stop=stop)
                if better.cost < best * (1.0 - 1e-12):
                    labels_out[:] = state.labels[:] = better.labels
                    best_means = problem.cluster_means(better.labels)
                    best, done = self._cost_of(better.labels, best_means), False
                    state.means[:] = best_means
        if best == np.inf:
            best = self._cost_of(self._feasible, best_means)
        return LloydRun(labels_out, best_means, float(best), iterations, done)

    def _cost_of(self, labels: Ints, means: Floats) -> float:
        problem = self._problem
        away = ((problem.points - means[labels]) ** 2).sum(axis=1)
        return float(problem.weights @ away)
