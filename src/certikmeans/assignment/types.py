"""What an assigner returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray


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
