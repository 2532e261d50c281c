"""The best labelling so far, in terms of the problem as stated."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.cost import labelling_cost
from certikmeans.problem import Problem
from certikmeans.problem.numbering import number_by_appearance


@final
class Incumbent:
    """Keeps the cheapest labelling offered; its cost is evaluated here, and rounded up."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.cost = math.inf
        self.labels: NDArray[np.int64] | None = None
        self.centers: NDArray[np.float64] | None = None
        self.iterations = 0

    def offer(self, labels: NDArray[np.int64], iterations: int) -> bool:
        """Take ``labels``, which respect every pair, if they cost less. Returns whether."""
        problem = self._problem
        numbered = number_by_appearance(labels)
        centers = np.empty((problem.n_clusters, problem.n_features))
        cost = labelling_cost(problem.points, problem.weights, numbered, centers)
        if not cost < self.cost:
            return False
        self.cost, self.labels, self.centers = float(cost), numbered, centers
        self.iterations = iterations
        return True
