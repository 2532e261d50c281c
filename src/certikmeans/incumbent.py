"""News of a run, in terms of the groups: what heuristics and bounds tell each other."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


class IncumbentView(Protocol):
    """Where a better labelling and a better bound are told, and the best ones are read."""

    def labels(self) -> Labels:
        """Return the best labelling known; there is one from the heuristics on."""

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Tell of a proper labelling, and of the assignment steps that led to it."""

    def update_bound(self, value: float, source: str) -> None:
        """Tell of a proven bound of the whole."""

    def gap_reached(self) -> bool:
        """Whether enough is proven."""


class CandidateCluster(Protocol):
    """A cluster that a bound has come across: it may be part of a better labelling."""

    @property
    def center(self) -> NDArray[np.float64]:
        """Its mean, of shape (n_axes,)."""

    @property
    def members(self) -> NDArray[np.uint8]:
        """1 for every group it holds, of shape (n_groups,)."""

    @property
    def cost(self) -> float:
        """Its sum of squares."""


class NullIncumbent:
    """For whoever works alone: nothing is known, nothing is told, nothing is enough."""

    def labels(self) -> Labels:
        """Return an empty labelling."""
        return np.empty(0, dtype=np.int64)

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Tell nobody."""

    def update_bound(self, value: float, source: str) -> None:
        """Tell nobody."""

    def gap_reached(self) -> bool:
        """Go on."""
        return False
