"""What every group is worth to a centre in a region, at least and at most.

**Rounding.** As in `kernels.pricing.ranges`: a difference, its square, the sum over ``d`` axes, the
product with the weight and the last subtraction err by less than ``(d + 6) EPS`` of
``|lam| + w r^2`` together; twice that is taken. The distance to the middle of the ball, a square
root more, errs by less than ``(d + 4) EPS`` of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certainty.regions import CenterRegion
from certikmeans.problem import ReducedProblem
from certikmeans.problem.tables import SMALL_BLOCK, row_blocks
from certikmeans.rounding import EPS

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Bounds on ``a_s(y)`` for ``y`` in each of some sets of centres."""

    low: NDArray[np.float64]  # (n_groups, n_sets), set after set
    high: NDArray[np.float64]

    def over(self, sets: Sequence[int]) -> tuple[Vector, Vector]:
        """Least and most over some of the sets together."""
        low, high = self.low[:, sets[0]], self.high[:, sets[0]]
        for k in sets[1:]:
            low, high = np.minimum(low, self.low[:, k]), np.maximum(high, self.high[:, k])
        return low, high


def worth_of(
    reduced: ReducedProblem, multipliers: Vector, regions: tuple[CenterRegion, ...]
) -> Worth:
    """Bound what every group is worth to a centre in every region."""
    shape = (reduced.n_groups, len(regions))
    low, high = np.empty(shape, order="F"), np.empty(shape, order="F")
    for rows in row_blocks(reduced.points, SMALL_BLOCK):
        columns = [column.copy() for column in reduced.points[rows].T]
        weights, lam = reduced.weights[rows], multipliers[rows]
        for k, region in enumerate(regions):
            low[rows, k], high[rows, k] = _over(columns, weights, lam, region)
    return Worth(low, high)


def _over(
    columns: list[Vector], weights: Vector, lam: Vector, region: CenterRegion
) -> tuple[Vector, Vector]:
    n, d = len(lam), len(columns)
    near, far, middle = np.zeros(n), np.zeros(n), np.zeros(n)
    for j, column in enumerate(columns):
        below, above = region.low[j] - column, column - region.high[j]
        gap = np.maximum(0.0, np.maximum(below, above))
        reach = np.maximum(-below, -above)
        near += gap * gap
        far += reach * reach
        middle += (column - region.centre[j]) ** 2
    if math.isfinite(region.radius):
        away, slack = np.sqrt(middle), (d + 4) * EPS
        inner = np.maximum(0.0, away * (1.0 - slack) - region.radius)
        outer = away * (1.0 + slack) + region.radius
        near, far = np.maximum(near, inner * inner), np.minimum(far, outer * outer)
    near, far = weights * near, weights * far
    slack, size = 2.0 * (d + 8) * EPS, np.abs(lam)
    return lam - far - slack * (size + far), lam - near + slack * (size + near)
