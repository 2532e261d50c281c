"""What the cluster bound needs for many groups and for many cuts, on a few: to be compiled."""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.cluster.cuts import Cuts, Rows
from certikmeans.bounds.cluster.multipliers import cells_of
from certikmeans.bounds.cluster.smooth import SoftModel
from certikmeans.problem import ReducedProblem


def rehearse(problem: ReducedProblem) -> None:
    """Share multipliers, and look at a soft model."""
    together = np.zeros(problem.n_groups, dtype=np.int64)
    for n_cells in (1, problem.n_groups):  # by a sample of the groups, and by all
        cells_of(problem.points, together, n_cells)
    cuts = Cuts(
        Rows.of(np.array([[1.0, 0.0]])), np.zeros(1), np.zeros(1, dtype=np.int64),
        np.ones(1), np.ones(2), 0.0, np.ones(2),
    )  # fmt: skip
    SoftModel(cuts, 1.0).value(np.zeros(2))
