"""Cheapest feasible labels under cannot-links for fixed centers, and Lloyd runs."""

from __future__ import annotations

from concurrent.futures import Executor
from copy import copy
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans._types import Floats, Ints, Mask
from certikmeans.assignment.base import AbstractAssigner, Assignment, LloydRun, StepSums
from certikmeans.assignment.dense_components import ComponentSolution, solve_dense_component
from certikmeans.assignment.layout import build_geometry, build_layout
from certikmeans.assignment.params import DEFAULT_PARAMS, AssignmentParams
from certikmeans.kernels.assignment import SEARCH, SUM_BLOCK, assign_table
from certikmeans.kernels.lloyd.iteration import (
    CONTINUE,
    CONVERGED,
    COST,
    EXTRAS,
    SHORTFALL,
    add_rows,
    assign_chunks,
    fill_unary,
    finish_iteration,
    lloyd,
    sum_chunks,
)
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


@final
class CannotLinkAssigner(AbstractAssigner):
    """Cheapest feasible labels of a problem with cannot-links only.

    Given the centres, components of the cannot-link graph are independent, and a component whose
    nearest labels are feasible is solved by them. One with a conflict is solved exactly: a tree
    by dynamic programming; a component with cycles by peeling its trees, then its core by bucket
    elimination, by matching (a complete graph), or by branch and bound.

    Parameters
    ----------
    problem : ReducedProblem
    feasible_labels : array-like of shape (n_groups,)
        Any feasible labelling.
    exact_time_limit : float
        Seconds for one component that a short search does not finish. With 0 the best labels of
        the short search are returned.
    params : AssignmentParams
        Limits that decide which method solves a component.

    Notes
    -----
    Immutable after construction, so threads may share it.

    ``lower_bound`` is computed from ``cost`` so that it is proven. Costs are sums of nonnegative
    terms, and labels come from minima over such sums, computed in floating point. Rounding is
    monotone: what the program minimised is at most the rounded cost of any other labelling,
    and a rounded sum of nonnegative terms differs from the exact one by a factor of at most
    ``1 + m eps``, where no term passes through more than ``m`` operations. Matching and search
    subtract multipliers; they return how far their labels may be from the optimum of the costs
    they were given.

    Examples
    --------
    >>> from certikmeans.problem import CannotLinkGraph, CannotLinks
    >>> graph = CannotLinkGraph(  # two points with a cannot-link
    ...     2, np.array([0, 1, 2]), np.array([1, 0]), np.array([0, 2]), np.array([-1, 0]),
    ...     np.array([0]))
    >>> problem = ReducedProblem(np.array([[0.0], [1.0]]), np.ones(2), CannotLinks(graph), 2, 0.0)
    >>> found = CannotLinkAssigner(problem, feasible_labels=[0, 1]).assign([[0.25], [5.0]])
    >>> found.labels, found.cost, found.exact
    (array([0, 1]), 16.0625, True)
    """

    def __init__(
        self,
        problem: ReducedProblem,
        feasible_labels: ArrayLike,
        *,
        exact_time_limit: float = 2.0,
        params: AssignmentParams = DEFAULT_PARAMS,
        method: int | None = None,
    ) -> None:
        self._params = params
        self._shape = (problem.n_clusters, problem.n_dims)
        self._n_groups = problem.n_groups
        self._layout = build_layout(
            problem.graph,
            problem.n_clusters,
            np.asarray(feasible_labels, dtype=np.int64),
            method=method,
            params=params,
        )
        self._geometry = build_geometry(problem, self._layout)
        # Without links, kernels are compiled without the solvers for components.
        self._links: Any = self._layout if problem.graph.n_linked else None
        self._exact_time_limit = exact_time_limit
        self._n_chunks = len(self._geometry.chunk_vertex) - 1
        self._chunk_ranges = _chunk_ranges(self._n_chunks, problem, params.task_work)
        cyclic = np.flatnonzero(self._layout.graph.cyclic_component >= 0)
        starts = problem.graph.starts
        self._cyclic_ranges = [(int(starts[c]), int(starts[c + 1])) for c in cyclic]
        self._needs_search = bool((self._layout.cores.method == SEARCH).any())
        deepest = 2 * self._geometry.largest_component + 2 * problem.n_dims + 16
        self._step_error = (deepest + self._geometry.longest_chunk + self._n_chunks) * EPS
        self._table_error = (deepest + SUM_BLOCK + self._n_groups / SUM_BLOCK) * EPS
        # Squares can underflow: an absolute error.
        heaviest = 1.0 + float(problem.weights.max())
        self._underflow = self._n_groups * problem.n_dims * heaviest * 1e-320

    @property
    def step_work(self) -> float:
        """Estimated multiplications of a step: for repeatable budgets."""
        n_clusters, n_dims = self._shape
        n_searched = np.count_nonzero(self._layout.cores.method == SEARCH)
        n_entries = float(self._layout.tables.size.sum())
        search_work = self._params.search_work * n_searched
        return self._n_groups * n_clusters * n_dims + 2.0 * n_entries + search_work

    @property
    def needs_search(self) -> bool:
        """Whether a step may have to search, which takes milliseconds for each component."""
        return self._needs_search

    def with_exact_time_limit(self, exact_time_limit: float) -> CannotLinkAssigner:
        """Copy with another time limit; the layout is shared."""
        other = copy(self)
        other._exact_time_limit = exact_time_limit
        return other

    def assign(self, centers: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Cheapest feasible labels for ``centers``, of shape (n_clusters, n_dims)."""
        labels = np.full(self._n_groups, -1)
        step = self.step(centers, labels, stop=stop)
        return Assignment(labels, step.cost, step.lower_bound, step.exact)

    def assign_costs(self, costs: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Cheapest feasible labels for any costs >= 0 of shape (n_groups, n_clusters).

        An infinite cost forbids the label. If ``lower_bound`` is infinite, every feasible
        labelling uses a forbidden label: that is proven without arithmetic.
        """
        table = np.array(costs, dtype=np.float64, order="C")
        if table.shape != (self._n_groups, self._shape[0]):
            expected = (self._n_groups, self._shape[0])
            raise ValueError(f"costs: expected shape {expected}, got {table.shape}")
        geometry = self._geometry
        labels = np.empty(self._n_groups, dtype=np.int64)
        pending = np.empty(len(self._cyclic_ranges), dtype=np.bool_)
        cost, lower = assign_table(
            self._layout, table, geometry.largest_component, geometry.largest_table, labels, pending
        )
        exact = True
        for cyclic_component in np.flatnonzero(pending).tolist():
            first, last = self._cyclic_ranges[cyclic_component]
            # Proven infeasible elsewhere: any feasible labels of this component will do.
            seconds = self._exact_time_limit if lower < np.inf else 0.0
            found = self._search(
                cyclic_component, table[first:last], labels[first:last], seconds, stop
            )
            labels[first:last] = found.labels
            cost, lower = cost + found.value, lower + found.lower_bound
            exact = exact and found.exact
        proven = _proven_lower_bound(lower, self._table_error)
        return Assignment(labels, float(cost), proven, exact or proven == np.inf)

    def step(
        self,
        centers: ArrayLike,
        labels_out: Ints,
        *,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> StepSums:
        """Write the cheapest feasible labels into ``labels_out`` and sum the clusters.

        Parameters
        ----------
        centers : array-like of shape (n_clusters, n_dims)
        labels_out : ndarray of shape (n_groups,) of int64
            Any values. Labels of the previous step speed up searches.
        executor : Executor, optional
            Of threads. The result does not depend on it, bit for bit.
        """
        means = self._checked_centers(centers)
        rows, unproven, exact = self._run(means, labels_out, executor, self._exact_time_limit, stop)
        total = rows[0]
        if self._n_chunks > 1:
            total = np.empty_like(total)
            add_rows(rows, total)
        n_clusters, n_dims = self._shape
        masses = n_clusters * n_dims
        cost, shortfall, changed = total[-EXTRAS:].tolist()
        return StepSums(
            sums=total[:masses].reshape(n_clusters, n_dims),
            masses=total[masses:-EXTRAS],
            cost=cost,
            lower_bound=_proven_lower_bound(
                cost, self._step_error, shortfall + unproven, self._underflow
            ),
            exact=exact,
            changed=int(changed),
        )

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
        """Alternate cheapest feasible labels and means until the labels converge.

        An empty cluster is given the group that lies farthest from its centre (weighted squared
        distance, lowest number on a tie) among clusters of two or more, which always lowers the
        cost; if every group coincides with its centre, the cluster stays empty.

        Parameters
        ----------
        centers : array-like of shape (n_clusters, n_dims)
        labels_out : ndarray of shape (n_groups,) of int64
            Receives the final labels; any values before.
        max_iterations : int
            At least 1.
        tolerance : float
            Stop when the relative decrease of the cost is smaller than this.

        Notes
        -----
        A component that a short search does not solve gets its ``exact_time_limit`` only after
        convergence of everything else; the run continues if that lowers the cost.
        """
        means, iterations = self._checked_centers(centers), 0
        while True:
            left = max_iterations - iterations
            run = self._lloyd_once(means, labels_out, left, tolerance, executor, stop)
            iterations += run.iterations
            exact = run.exact
            stopped = stop is not None and stop.reason() is not None
            if not (
                exact or stopped or self._exact_time_limit <= 0 or iterations >= max_iterations
            ):
                labels = labels_out.copy()
                step = self.step(means, labels, executor=executor, stop=stop)
                if step.cost < run.cost:
                    labels_out[:] = labels
                    filled = step.masses > 0
                    means[filled] = step.sums[filled] / step.masses[filled, None]
                    continue
                exact = step.exact
            return LloydRun(labels_out, means, run.cost, iterations, exact)

    def _lloyd_once(
        self,
        means: Floats,
        labels: Ints,
        max_iterations: int,
        tolerance: float,
        executor: Executor | None,
        stop: StopSignal | None,
    ) -> LloydRun:
        """Run Lloyd with short searches only; ``means`` and ``labels`` are updated in place."""
        geometry = self._geometry
        if self._n_chunks == 1 and not self._needs_search:
            cost, iterations = lloyd(
                geometry, self._links, max_iterations, tolerance, labels, means
            )
            return LloydRun(labels, means, cost, iterations, True)
        cost, iteration, action = np.inf, 0, CONTINUE
        while action == CONTINUE and iteration < max_iterations:
            iteration += 1
            rows, _, exact = self._run(means, labels, executor, 0.0, stop)
            total = np.empty_like(rows[0])
            action, cost = finish_iteration(
                geometry, iteration, cost, tolerance, rows, total, labels, means
            )
            if stop is not None and stop.reason() is not None:
                break
        if action != CONVERGED:
            sum_chunks(0, self._n_chunks, geometry, means, labels, labels, rows)
            add_rows(rows, total)
            cost = total[COST - EXTRAS]
        return LloydRun(labels, means, float(cost), iteration, exact)

    def _run(
        self,
        centers: Floats,
        labels: Ints,
        executor: Executor | None,
        exact_time_limit: float,
        stop: StopSignal | None,
    ) -> tuple[Floats, float, bool]:
        """Assign all chunks: ``(their sums, unproven cost of searched components, exact)``."""
        n_clusters, n_dims = self._shape
        rows = np.empty((self._n_chunks, n_clusters * (n_dims + 1) + EXTRAS))
        pending = np.zeros(len(self._cyclic_ranges), dtype=np.bool_)
        before = labels.copy() if self._needs_search else labels
        rest: tuple[Any, ...] = (self._geometry, self._links, centers, labels, rows, pending)
        if executor is None or len(self._chunk_ranges) == 1:
            assign_chunks(0, self._n_chunks, *rest)
        else:
            running = [executor.submit(assign_chunks, *task, *rest) for task in self._chunk_ranges]
            for task in running:
                task.result()
        if not self._needs_search:
            return rows, 0.0, True
        return rows, *self._solve_pending(
            centers, before, labels, rows, pending, exact_time_limit, stop
        )

    def _solve_pending(
        self,
        centers: Floats,
        before: Ints,
        labels: Ints,
        rows: Floats,
        pending: Mask,
        exact_time_limit: float,
        stop: StopSignal | None,
    ) -> tuple[float, bool]:
        """Search the components that compiled steps deferred: ``(unproven cost, exact)``."""
        unproven, exact = 0.0, True
        chunks = set()
        for cyclic_component in np.flatnonzero(pending).tolist():
            first, last = self._cyclic_ranges[cyclic_component]
            unary = np.empty((last - first, self._shape[0]))
            fill_unary(self._geometry, first, centers, unary)
            found = self._search(
                cyclic_component, unary, before[first:last], exact_time_limit, stop
            )
            labels[first:last] = found.labels
            unproven += max(0.0, found.value - found.lower_bound)
            exact = exact and found.exact
            chunks.add(int(np.searchsorted(self._geometry.chunk_vertex, first, side="right")) - 1)
        for chunk in chunks:
            known = rows[chunk, SHORTFALL - EXTRAS]
            sum_chunks(chunk, chunk + 1, self._geometry, centers, labels, before, rows)
            rows[chunk, SHORTFALL - EXTRAS] = known
        return unproven, exact

    def _search(
        self,
        cyclic_component: int,
        unary: Floats,
        guess: Ints,
        seconds: float,
        stop: StopSignal | None,
    ) -> ComponentSolution:
        first, last = self._cyclic_ranges[cyclic_component]
        feasible_labels = self._layout.graph.feasible_labels[first:last]
        return solve_dense_component(
            self._layout,
            cyclic_component,
            unary,
            guess,
            feasible_labels,
            seconds,
            stop,
            self._params,
        )

    def _checked_centers(self, centers: ArrayLike) -> Floats:
        """Return a writable copy, so that kernels are compiled for one array type only."""
        means: Floats = np.array(centers, dtype=np.float64, order="C")
        if means.shape != self._shape:
            raise ValueError(f"centers: expected shape {self._shape}, got {means.shape}")
        return means


def _chunk_ranges(n_chunks: int, problem: ReducedProblem, task_work: int) -> list[tuple[int, int]]:
    """Ranges of chunks large enough for a task of their own."""
    per_chunk = problem.n_groups * problem.n_clusters * problem.n_dims / n_chunks
    length = max(1, round(task_work / per_chunk))
    return [(a, min(a + length, n_chunks)) for a in range(0, n_chunks, length)]


def _proven_lower_bound(
    cost: float, error: float, shortfall: float = 0.0, underflow: float = 0.0
) -> float:
    """Lower bound on the optimum from a computed cost, its relative error and its shortfall."""
    if cost == np.inf:
        return cost
    return max(0.0, cost * (1.0 - error) - shortfall * (1.0 + error) - underflow)
