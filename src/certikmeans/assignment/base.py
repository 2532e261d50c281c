"""Contract and results of assigners: cheapest feasible labels for fixed centers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans._types import Floats, Ints
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import squared_distances
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Feasible labels for fixed costs, with a lower bound.

    Attributes
    ----------
    labels : ndarray of shape (n_groups,)
        Always feasible.
    cost : float
        Of these labels. Infinite if every feasible labelling uses a forbidden label
        (``exact``), or if none without one was found (not ``exact``).
    lower_bound : float
        On the cost of every feasible labelling: rounded down by a proven error term. When
        ``exact`` it equals ``cost`` up to that term; infinite proves that no labelling has finite
        cost.
    exact : bool
        The labels are optimal up to rounding, by rigorous arithmetic. False if a component
        exceeded its limits; the labels are then the best found.
    """

    labels: Ints
    cost: float
    lower_bound: float
    exact: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class StepSums:
    """Cluster sums and cost of one Lloyd step."""

    sums: Floats  # (n_clusters, n_dims) weighted sums of the members
    masses: Floats  # (n_clusters,) total weights
    cost: float  # of the new labels about the centres they were assigned to
    lower_bound: float  # on the cost of every feasible labelling about these centres
    exact: bool  # as in `Assignment`
    changed: int  # labels that differ from the previous ones


@final
@dataclass(frozen=True, slots=True, eq=False)
class LloydRun:
    """Result of a Lloyd run: ``centers`` are the means of ``labels``, ``cost`` is about them."""

    labels: Ints
    centers: Floats
    cost: float
    iterations: int
    exact: bool  # the labels are optimal for the centres before the last update


class AbstractAssigner(ABC):
    """Cheapest feasible labels of a problem for given centres or costs.

    One class per kind of constraints, registered in `certikmeans.assignment`. Immutable
    after construction, so threads may share it. Results do not depend on the number of threads.
    """

    @property
    @abstractmethod
    def step_work(self) -> float:
        """Estimated multiplications of a step: for repeatable budgets."""

    @property
    @abstractmethod
    def needs_search(self) -> bool:
        """Whether a step may need a search, which takes milliseconds or more."""

    @abstractmethod
    def with_exact_time_limit(self, exact_time_limit: float) -> AbstractAssigner:
        """Copy with another time limit per component."""

    @abstractmethod
    def assign(self, centers: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Cheapest feasible labels for ``centers``, of shape (n_clusters, n_dims)."""

    @abstractmethod
    def assign_costs(self, costs: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Cheapest feasible labels for any costs >= 0 of shape (n_groups, n_clusters).

        An infinite cost forbids the label. If ``lower_bound`` is infinite, every feasible
        labelling uses a forbidden label: that is proven without arithmetic.
        """

    @abstractmethod
    def step(
        self,
        centers: ArrayLike,
        labels_out: Ints,
        *,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> StepSums:
        """Write the cheapest feasible labels into ``labels_out`` and sum the clusters."""

    @abstractmethod
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
        """Alternate cheapest feasible labels and means until the labels converge."""


class TableAssigner(AbstractAssigner):
    """Assigner that solves every step for the table of all costs."""

    def __init__(self, problem: ReducedProblem) -> None:
        self._problem = problem

    @abstractmethod
    def _assign_table(
        self, table: Floats, before: Ints | None, stop: StopSignal | None
    ) -> Assignment:
        """Feasible labels for a table of costs; ``before`` are those of the previous step."""

    def assign(self, centers: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Feasible labels for ``centers``, of shape (n_clusters, n_dims)."""
        return self._assign_table(self._costs(centers), None, stop)

    def assign_costs(self, costs: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Feasible labels for any costs >= 0 of shape (n_groups, n_clusters)."""
        table = np.array(costs, dtype=np.float64, order="C")
        expected = (self._problem.n_groups, self._problem.n_clusters)
        if table.shape != expected:
            raise ValueError(f"costs: expected shape {expected}, got {table.shape}")
        return self._assign_table(table, None, stop)

    def step(
        self,
        centers: ArrayLike,
        labels_out: Ints,
        *,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> StepSums:
        """Write feasible labels into ``labels_out`` and sum the clusters."""
        found = self._assign_table(self._costs(centers), labels_out, stop)
        changed = int((labels_out != found.labels).sum())
        labels_out[:] = found.labels
        sums, masses = self._problem.cluster_sums(found.labels)
        return StepSums(sums, masses, found.cost, found.lower_bound, found.exact, changed)

    def _costs(self, centers: ArrayLike) -> Floats:
        distances = squared_distances(self._problem.points, np.asarray(centers, dtype=np.float64))
        return np.ascontiguousarray(self._problem.weights[:, None] * distances)


def without_infinities(table: Floats) -> Floats:
    """Return the table with forbidden labels at a price that no other labels reach."""
    forbidden = np.isinf(table)
    if not forbidden.any():
        return table
    largest = np.where(forbidden, 0.0, table).max(axis=1)
    return np.where(forbidden, 2.0 * float(largest.sum()) + 1.0, table)
