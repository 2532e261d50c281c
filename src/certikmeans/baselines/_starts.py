"""Starting centres of the k-means-like baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.problem import Problem

INITS = ("random", "k-means++")


def start_centers(problem: Problem, init: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Distinct rows of the data, uniform or by k-means++ (one trial per centre)."""
    if init == "random":
        rows = rng.choice(problem.n_points, size=problem.n_clusters, replace=False)
    else:
        rows = np.empty(problem.n_clusters, dtype=np.int64)
        shares = rng.random((problem.n_clusters, 1))
        kmeanspp_seeds(problem.points, problem.weights, shares, rows)
    return problem.points[rows]
