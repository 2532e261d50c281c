"""The first question to the rules of a problem: the cheapest admissible labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans.assignment.types import Assignment, LloydRun, StepSums
from certikmeans.stop import StopSignal


class AbstractAssigner(ABC):
    """Cheapest admissible labels of a problem for one set of centres or costs after another.

    One class per kind of rules, listed in `certikmeans.assignment.assigner_for`. Prepared once;
    holds no state that changes, so threads may share it. Answers are the same bit for bit with
    any number of threads.
    """

    @property
    @abstractmethod
    def step_work(self) -> float:
        """About how many multiplications a step takes: for budgets that do not use a clock."""

    @property
    @abstractmethod
    def searches(self) -> bool:
        """Whether a step may have to search, which takes milliseconds or more."""

    @abstractmethod
    def with_hard_seconds(self, hard_seconds: float) -> AbstractAssigner:
        """Return an assigner for the same problem, prepared already, with another patience."""

    @abstractmethod
    def assign(
        self,
        centers: ArrayLike,
        *,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> Assignment:
        """Cheapest admissible labels for ``centers``, of shape (n_clusters, n_axes)."""

    @abstractmethod
    def assign_costs(self, costs: ArrayLike, *, stop: StopSignal | None = None) -> Assignment:
        """Cheapest admissible labels for any costs >= 0 of shape (n_groups, n_clusters).

        An infinite cost forbids the label. If ``lower`` is infinite, every admissible labelling
        uses a forbidden label: that is proven without arithmetic.
        """

    @abstractmethod
    def step(
        self,
        centers: ArrayLike,
        labels_out: NDArray[np.int64],
        *,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> StepSums:
        """Write the cheapest admissible labels into ``labels_out`` and add up the clusters."""

    @abstractmethod
    def lloyd(
        self,
        centers: ArrayLike,
        labels_out: NDArray[np.int64],
        max_iterations: int = 300,
        *,
        tolerance: float = 0.0,
        executor: Executor | None = None,
        stop: StopSignal | None = None,
    ) -> LloydRun:
        """Alternate cheapest admissible labels and means until the labels settle."""
