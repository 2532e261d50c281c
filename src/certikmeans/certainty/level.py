"""Multipliers, and how much every labelling that is good enough may lose against them.

Write ``L`` for ``sum lam - K sigma``, where no cluster is worth more than ``sigma``. A labelling
with clusters ``C_1 .. C_K`` costs

    sum lam - sum_k value(C_k)  =  L + sum_k (sigma - value(C_k)),

no term of the last sum negative. So if it costs at most ``T``, its *deficits*, the terms
``sigma - value(C_k)``, add up to at most ``delta = T - L``.

**Rounding.** ``T`` is the reduced cost that no labelling of stated cost up to ``cost (1 + slack)``
exceeds: ``Presolved.restore_bound`` maps the reduced cost of any labelling below its stated cost,
and is monotone, also in floating point (every operation in it is). So a value whose image lies
above ``cost (1 + slack)`` is above the reduced cost of all of them. ``sum lam`` is rounded once;
``delta`` is taken from it with a margin of 8 EPS of everything added up. Regions are proven with
``sigma`` itself, so nothing here depends on who found the multipliers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.pricing_error import pricing_error
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS, TINY

# Everything is proven for a little more than is said, so that a checker, who rounds differently,
# can prove it again: a share of delta, and, as that may be next to nothing, what a checker's sigma
# and its costs are larger by; unless that were more than these shares of delta and of the cost.
FOR_A_CHECKER = 1e-3
ERRORS_OF_A_CHECKER, COST_OF_A_CHECKER = 24.0, 1e-11
MOST_FOR_A_CHECKER = 1e-2, 1e-6


@final
@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How good a cluster of a good labelling has to be."""

    multipliers: NDArray[np.float64]  # (n_groups,)
    sigma: float  # no cluster is worth more, once the regions are proven
    delta: float  # at least what all deficits add up to
    cut: float  # at most ``sigma - delta``: every cluster is worth as much
    error: float  # of pricing


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """What levels of the same multipliers have in common."""

    multipliers: NDArray[np.float64]  # (n_groups,)
    total: float  # of the multipliers, rounded once
    error: float  # of pricing
    most: float  # above the reduced cost of every labelling spoken of
    n_clusters: int

    @classmethod
    def of(cls, reduced: ReducedProblem, multipliers: NDArray[np.float64], most: float) -> Scale:
        """Add up."""
        error = pricing_error(reduced.points, reduced.weights, multipliers)
        total = math.fsum(multipliers.tolist())
        return cls(multipliers, total, error, most, reduced.n_clusters)

    def sigma_of(self, value: float) -> float:
        """What a cluster is worth at most if the multipliers are worth ``value``."""
        return (self.total - value) / self.n_clusters

    def level(self, sigma: float) -> Level:
        """The level that is set if no cluster is worth more than ``sigma``."""
        total, most, k = self.total, self.most, self.n_clusters
        rounding = 8.0 * EPS * (abs(total) + 2.0 * k * abs(sigma) + abs(most))
        delta = max(0.0, most - total + k * sigma) * (1.0 + FOR_A_CHECKER) + rounding
        extra = ERRORS_OF_A_CHECKER * k * self.error + COST_OF_A_CHECKER * abs(most)
        if extra <= max(MOST_FOR_A_CHECKER[0] * delta, MOST_FOR_A_CHECKER[1] * abs(most)):
            delta += extra
        return Level(self.multipliers, sigma, delta, sigma - delta - rounding, self.error)


def most_reduced_cost(presolved: Presolved, cost: float, slack: float) -> float:
    """Above the reduced cost of every labelling of stated cost up to ``cost (1 + slack)``."""
    most = cost * (1.0 + slack) * (1.0 + 4.0 * EPS) + TINY
    return presolved.reduce_bound(math.nextafter(most, math.inf))
