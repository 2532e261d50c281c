"""View of the incumbent in terms of groups, shared by heuristics and bounds."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


class IncumbentView(Protocol):
    """Read and improve the best labelling and the best bound."""

    def labels(self) -> Labels:
        """Return the best labelling known; there is one from the heuristics on."""

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Offer a feasible labelling, found in ``iterations`` assignment steps."""

    def update_bound(self, value: float, source: str) -> None:
        """Offer a proven bound of the whole problem."""

    def gap_reached(self) -> bool:
        """Whether the required gap is proven."""


class CandidateCluster(Protocol):
    """Cluster found by a bound, which may belong to a better labelling."""

    @property
    def center(self) -> NDArray[np.float64]:
        """Its mean, of shape (n_axes,)."""

    @property
    def members(self) -> NDArray[np.uint8]:
        """1 for every group of the cluster, of shape (n_groups,)."""

    @property
    def cost(self) -> float:
        """Its sum of squares."""


class NullIncumbent:
    """Null implementation: ignores updates and never reports convergence."""

    def __init__(self, labels: Labels | None = None) -> None:
        self._labels = np.empty(0, dtype=np.int64) if labels is None else labels

    def labels(self) -> Labels:
        """Return the given labelling."""
        return self._labels

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Ignore it."""

    def update_bound(self, value: float, source: str) -> None:
        """Ignore it."""

    def gap_reached(self) -> bool:
        """Return False."""
        return False
