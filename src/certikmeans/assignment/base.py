"""Contract and results of assigners: cheapest feasible labels for fixed centers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Proper labels for fixed costs, and what is proven about them.

    Attributes
    ----------
    labels : ndarray of shape (n_groups,)
        Proper, always.
    cost : float
        Of these labels. Infinite if every proper labelling uses a forbidden label
        (``exact``), or if none that does not was found (not ``exact``).
    lower : float
        At most the cost of every proper labelling: rounded down by a proven error term. When
        ``exact`` it equals ``cost`` up to that term; infinite proves that no labelling is finite.
    exact : bool
        The labels are optimal up to rounding, by our own arithmetic. False if a component was too
        hard for its limits; the labels are then the best found.
    """

    labels: NDArray[np.int64]
    cost: float
    lower: float
    exact: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class StepSums:
    """What one Lloyd step adds up."""

    sums: NDArray[np.float64]  # (n_clusters, n_axes) weighted sums of the members
    masses: NDArray[np.float64]  # (n_clusters,) total weights
    cost: float  # of the new labels about the centres they were assigned to
    lower: float  # at most the cost of every proper labelling about these centres
    exact: bool  # as in `Assignment`
    changed: int  # labels that differ from those before


@final
@dataclass(frozen=True, slots=True, eq=False)
class LloydRun:
    """The end of a Lloyd run: ``centers`` are the means of ``labels``, ``cost`` is about them."""

    labels: NDArray[np.int64]
    centers: NDArray[np.float64]
    cost: float
    iterations: int
    exact: bool  # the labels are an optimal answer to the centres before the last update


# The first question to the rules of a problem: the cheapest admissible labels.


class AbstractAssigner(ABC):
    """Cheapest admissible labels of a problem for one set of centres or costs after another.

    One class per kind of rules, listed in `certikmeans.assignment.make_assigner`. Prepared once;
    holds no state that changes, so threads may share it. Answers are the same bit for bit with
    any number of threads.
    """

    @property
    @abstractmethod
    def step_work(self) -> float:
        """About how many multiplications a step takes: for budgets that do not use a clock."""

    @property
    @abstractmethod
    def needs_search(self) -> bool:
        """Whether a step may have to search, which takes milliseconds or more."""

    @abstractmethod
    def with_exact_time_limit(self, exact_time_limit: float) -> AbstractAssigner:
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
