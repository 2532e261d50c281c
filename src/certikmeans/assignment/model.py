"""Cheap feasible labels under any mix of constraints for fixed centres, and Lloyd runs."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans._types import Floats, Ints
from certikmeans.assignment.base import Assignment, LloydRun, TableAssigner, without_infinities
from certikmeans.assignment.label_search import LabelSearch, LabelSearchParams
from certikmeans.assignment.soft import SoftAssignment
from certikmeans.kernels.label_search.matching import match_sets
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

# Assignments follow one another in a Lloyd run, so each begins near the labels of the one before:
# few sweeps at a low temperature.
SEARCH_PARAMS = LabelSearchParams(n_sweeps=20, start_temperature=0.05, start_penalty=1.0)


@final
class ModelAssigner(TableAssigner):
    """Cheap feasible labels of a problem with any mix of constraints.

    Labels of least cost are taken where they are feasible. Disjoint cannot-link sets alone are
    solved exactly, set by set; soft pairs and cannot-links by `SoftAssignment`. A mixture is solved
    by `LabelSearch`, from the labels of the previous step where they are feasible, so that a step
    never raises the cost.

    Parameters
    ----------
    problem : ReducedProblem
    feasible_labels : array-like of shape (n_groups,)
        Any feasible labelling.

    Notes
    -----
    ``lower_bound`` is the sum of the least costs, the dual value of the matchings, or the optimum
    of a forest of soft pairs, less a term for the rounding of the sums; penalties are not negative.

    Examples
    --------
    >>> from certikmeans import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> done = presolve(
    ...     Problem.from_data([[0.0], [1.0], [9.0]], 2, cannot_link_groups=[0, 0, -1]),
    ...     StopSignal(),
    ... )
    >>> assigner = ModelAssigner(done.reduced, done.feasible_labels)
    >>> found = assigner.assign_costs([[0.0, 4.0], [0.0, 1.0], [9.0, 0.0]])
    >>> found.labels.tolist(), found.cost, bool(found.exact)
    ([0, 1, 1], 1.0, True)
    """

    def __init__(
        self,
        problem: ReducedProblem,
        feasible_labels: ArrayLike,
        *,
        exact_time_limit: float = 2.0,
    ) -> None:
        super().__init__(problem)
        constraints = self._constraints = problem.label_constraints
        self._feasible: Ints = constraints.aligned(np.asarray(feasible_labels, dtype=np.int64))
        self._search = LabelSearch(problem, SEARCH_PARAMS)
        linked = constraints.cannot_links.n_linked > 0
        sets = constraints.sets
        self._only_sets = (
            not linked and sets is not None and sets.disjoint
            and constraints.sizes is None and constraints.soft is None
        )  # fmt: skip
        soft = constraints.soft
        self._soft: SoftAssignment | None = None
        if soft is not None and sets is None and constraints.sizes is None:
            shape = problem.n_groups, problem.n_clusters
            self._soft = SoftAssignment(*shape, soft, constraints.cannot_links)
        n_kinds = sum(one is not None for one in (sets, constraints.sizes, soft))
        self._mixed = self._soft is None and (
            n_kinds + linked > 1 or (sets is not None and not sets.disjoint)
        )

    @property
    def step_work(self) -> float:
        """Estimated multiplications of a step: for repeatable budgets."""
        problem = self._problem
        entries = float(problem.n_groups * problem.n_clusters)
        if self._soft is not None:
            return entries * problem.n_dims + self._soft.step_work
        return entries * (problem.n_dims + (10.0 * SEARCH_PARAMS.n_sweeps if self._mixed else 10.0))

    @property
    def needs_search(self) -> bool:
        """Whether a step may need a search."""
        return self._mixed

    def with_exact_time_limit(self, exact_time_limit: float) -> ModelAssigner:
        """Return itself: searches are limited by steps."""
        return self

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
        """Alternate cheap feasible labels and means until the labels converge.

        The labels are feasible and the cost, penalties included, never rises. An empty cluster
        stays empty; `LabelSearch.descend` fills it.
        """
        means = np.array(centers, dtype=np.float64, order="C")
        best = self._search.evaluate(self._feasible.copy())
        iterations, exact = 0, True
        cost = np.inf
        labels: Ints | None = labels_out
        while iterations < max_iterations:
            iterations += 1
            found = self._assign_table(self._costs(means), labels, stop)
            unchanged = labels is not None and np.array_equal(found.labels, labels)
            evaluated = self._search.evaluate(found.labels)
            # An empty cluster keeps its centre.
            empty = np.bincount(found.labels, minlength=len(means)) == 0
            evaluated.means[empty] = means[empty]
            if evaluated.cost < best.cost or iterations == 1:
                best, exact = evaluated, found.exact
            if unchanged or not evaluated.cost < cost - tolerance * cost:
                break
            labels, means, cost = found.labels, evaluated.means, evaluated.cost
            if stop is not None and stop.reason() is not None:
                break
        labels_out[:] = best.labels
        return LloydRun(labels_out, best.means, best.cost, iterations, exact)

    def _assign_table(
        self, table: Floats, before: Ints | None, stop: StopSignal | None
    ) -> Assignment:
        """Cheap feasible labels; ``before`` are those of the previous step, or any numbers."""
        finite = without_infinities(table)
        rows = np.arange(len(table))
        labels = np.argmin(finite, axis=1).astype(np.int64)
        least = finite[rows, labels]
        lower, size = float(least.sum()), float(least.sum())
        exact = True
        if self._only_sets:
            sets = self._constraints.sets
            assert sets is not None
            raised, terms = match_sets(finite, sets.indptr, sets.members, labels)
            lower, size = lower + float(raised), size + float(terms)
        elif self._soft is not None:
            start = before if before is not None and self._usable(before) else self._feasible
            labels, exact = self._soft.assign(finite, start)
            if exact:
                # Messages are sums and minima of nonnegative terms, each of which passes through
                # fewer additions than the error below allows for.
                lower = size = self._soft.objective(finite, labels)
        elif self._constraints.soft is not None or not self._constraints.satisfied_by(labels):
            labels, exact = self._searched(finite, before, stop), False
        cost = float(table[rows, labels].sum()) + self._constraints.penalty(labels)
        error = (8.0 * sum(table.shape) + 64.0) * EPS * size
        impossible = bool(np.isinf(table).all(axis=1).any())
        bound = np.inf if impossible else max(0.0, lower - error)
        return Assignment(labels, cost, bound, (exact and np.isfinite(cost)) or impossible)

    def _searched(
        self,
        table: Floats,
        before: Ints | None,
        stop: StopSignal | None,
    ) -> Ints:
        """Labels of a local search from several starts; feasible."""
        starts = [self._feasible]
        if before is not None and self._usable(before):
            starts = [before.copy()]
        centers = np.zeros((table.shape[1], self._problem.n_dims))
        annealed = self._search.anneal(None, centers, 0, costs=table, stop=stop)
        if annealed is not None:
            starts.append(annealed)
        found = [self._search.descend(one, costs=table, stop=stop) for one in starts]
        return min(found, key=lambda one: one.cost).labels

    def _usable(self, labels: Ints) -> bool:
        """Whether labels are in range and feasible, each cluster within its own limits."""
        in_range = labels.min() >= 0 and labels.max() < self._problem.n_clusters
        return bool(in_range) and self._feasible_as_numbered(labels)

    def _feasible_as_numbered(self, labels: Ints) -> bool:
        """Whether labels are feasible, each cluster within its own limits."""
        constraints = self._constraints
        return constraints.satisfied_by(labels) and np.array_equal(
            constraints.aligned(labels), labels
        )
