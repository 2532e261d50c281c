"""The sample bound: every point as close to its centre's box as it can be."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


@final
class SampleBound(AbstractBound[ReducedProblem, Subproblem]):
    """Sum over cannot-link components of their cheapest proper labelling at ``d_min``.

    Valid because a centre inside its box is at least ``d_min`` away from a point, and the
    components share nothing but the centres. Weak, but cheap, and as the boxes shrink it
    converges to the cost, which is what the convergence theorem of the paper needs.
    """

    name: ClassVar[str] = "sample"

    def __init__(self, assigner: Assigner) -> None:
        self._assigner = assigner

    def prepare(self, problem: ReducedProblem) -> ReducedProblem:
        """Return the problem: there is nothing to prepare."""
        return problem

    def evaluate(
        self,
        state: ReducedProblem,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        costs = least_costs(state, part)
        if part.viable is not None:
            costs[~part.viable] = np.inf
        found = self._assigner.assign_costs(costs, stop=stop)
        middle = 0.5 * (part.lower + part.upper)
        return BoundResult(max(0.0, found.lower), {"bound": self.name}, centers=(middle,))


def least_costs(problem: ReducedProblem, part: Subproblem) -> NDArray[np.float64]:
    """``w_s d_min(x_s, M_k)^2`` for every group and cluster, rounded down.

    A difference, its square, the sum over the axes and the weight round at most
    ``n_axes + 4`` times, each by EPS/2 in relative terms, and all terms are positive.
    """
    points, weights = problem.points, problem.weights
    costs = np.zeros((problem.n_groups, problem.n_clusters))
    for k in range(problem.n_clusters):
        for j in range(problem.n_axes):
            below = part.lower[k, j] - points[:, j]
            above = points[:, j] - part.upper[k, j]
            outside = np.maximum(np.maximum(below, above), 0.0)
            costs[:, k] += outside * outside
        costs[:, k] *= weights
    return costs * (1.0 - (problem.n_axes + 6) * EPS)


def without_links(costs: NDArray[np.float64]) -> float:
    """At most the cost of every labelling at these costs, whatever the cannot-links.

    The sum is rounded once, and again by the factor that makes up for it.
    """
    return math.fsum(costs.min(axis=1).tolist()) * (1.0 - 4.0 * EPS)
