"""A subset of the labellings: a box for each centre, and allowed pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem.arrays import column_ranges
from certikmeans.problem.data import ReducedProblem


@final
@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """All labellings with the mean of every non-empty cluster k in ``lower[k] .. upper[k]``.

    ``allowed``, where given, also excludes every labelling that puts a group s into a cluster k
    with ``allowed[s, k]`` False.
    """

    lower: NDArray[np.float64]  # (n_clusters, n_dims)
    upper: NDArray[np.float64]  # (n_clusters, n_dims)
    allowed: NDArray[np.bool_] | None = None  # (n_groups, n_clusters)

    @classmethod
    def root(cls, problem: ReducedProblem) -> Domain:
        """Every labelling: a mean of points lies in the bounding box of the points."""
        low, high = column_ranges(problem.points)
        boxes = (problem.n_clusters, 1)
        return cls(np.tile(low, boxes), np.tile(high, boxes))
