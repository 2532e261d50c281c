"""A part of the solution set: a box for each centre. Knows nothing of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem.data import ReducedProblem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Subproblem:
    """All labellings whose centre ``k`` lies in the box ``lower[k] .. upper[k]``."""

    lower: NDArray[np.float64]  # (n_clusters, n_axes)
    upper: NDArray[np.float64]  # (n_clusters, n_axes)

    @classmethod
    def root(cls, problem: ReducedProblem) -> Subproblem:
        """Every labelling: a mean of points lies in the bounding box of the points."""
        low, high = problem.points.min(axis=0), problem.points.max(axis=0)
        boxes = (problem.n_clusters, 1)
        return cls(np.tile(low, boxes), np.tile(high, boxes))
