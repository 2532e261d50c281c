"""Rounding errors of pricing and of the Lagrangian bound.

Write ``u`` for the unit roundoff, ``EPS = 2 u``, ``n`` and ``d`` for the numbers of groups and
axes, ``Y`` for the largest norm in the box that holds all points, and

    M = sum_s |lam_s| + w_s (|x_s| + Y)^2 .

**One box.** Its upper bound is the maximum of ``c + 2 b.y - A |y|^2``, sums over groups with
shares in [0, 1]. Decisions about groups rest on intervals rounded outward: they are exact.
The remaining errors:

* a chord is evaluated with rounded slope and constant, and falls below the exact one by at
  most ``2 EPS (|l| + |u|)``; ``|l|`` and ``|u|`` of a group are at most its own part of M plus
  those of its children in the forest, so these sum to at most ``8 EPS M``;
* ``lam - w |x|^2`` errs by ``(d + 3) EPS`` of its part of M: together ``(d + 3) EPS M``;
* a group enters the sums of a box once on the path from the root, with at most two terms
  (value and chord constant) in ``c``. The terms and their evaluation at ``y`` are at most
  ``3 M`` in absolute value, and a sum of ``2 n`` of them followed by ``d + 16`` operations errs
  by at most ``(2 n + d + 16) u`` of that.

The total is below ``(3 n + 2.5 d + 35) EPS M``; `pricing_error` returns ``4 (n + d + 16) EPS M``.

**Mean bound.** A value ``a_s + w_s |r|^2`` is at most twice the part of M of its group and errs by
``(d + 10) EPS`` of its own, with ``3 EPS Y^2`` for the rounding of the half-widths and the centre.
The differences in the forest add up to at most ``4 M``, and so do the terms of the sum over at
most n groups; the groups that are in err as above. Together this is below ``(2 n + 2 d + 50) EPS
M``, less than the error of the chords.

**One box with prices.** Let ``S`` be the sum over groups of the sizes of their finite bonuses, and
``P`` the sum of the sizes of the prices and of the constant of a box. `update_prices` returns
numbers for which the inequality of the prices holds exactly, and decisions rest on intervals
rounded outward (a shift of bonuses errs by at most one EPS of their sizes per bonus). What remains:

* the value ``a_s + w_s |r|^2`` of the mean bound errs by ``(d + 8) EPS`` of its size, which is at
  most twice the part of M of the group, plus its shift; that the half-widths and the centre are
  rounded moves ``|r|^2`` by at most ``3 EPS Y^2``: together ``(2 d + 20) EPS M + (d + 8) EPS S``;
* a sum of at most ``n + 2`` terms and the constant, whose sizes add up to at most
  ``2 M + S + P``, errs by ``(n + 3) EPS`` of that;
* the groups that are in: as above, with ``w_s |r|^2 <= w_s Y^2`` and shifts: ``M`` becomes at most
  ``2 M + S``, and shifts err by ``degree EPS S``;
* chords: the terms of above, of groups whose multiplier is ``lam + shift - p``: ``M + S + P``
  instead of M, and the ends of a chord are off by at most EPS of their sizes.

All of it is below ``2 * 4 (n + d + 16) EPS M + 8 (n + d + degree + 16) EPS S + 8 (n + d + 16) EPS
P``: the first two are `priced_error`, the last is added to every box (`price_error_factor`).

**Means.** A weighted mean of numbers of size at most ``X`` errs by less than
``3 (n + 10) EPS X``, and the function whose root it is by less than that times the total weight;
`mean_rounding_error` returns ``8 (n + 16) EPS X`` per axis.

**The bound.** ``sum lam`` is rounded once (`exact_sum`), then a product and a difference:
`sum_upper_bound`, `lagrangian_lower_bound`. Underflow cannot occur: `Problem` keeps squares far
above the smallest normal number.
"""

from __future__ import annotations

import math

import numpy as np

from certikmeans._types import Floats
from certikmeans.bounds.cluster.priced import PricedConstraints
from certikmeans.problem.arrays import column_ranges, exact_sum, iter_row_blocks
from certikmeans.rounding import EPS


def pricing_error(points: Floats, weights: Floats, lam: Floats) -> float:
    """Upper bound on the rounding error of the upper bound of any box."""
    n, d = points.shape
    farthest = math.sqrt(float(np.sum(_largest(points) ** 2)))
    magnitude = 0.0
    for rows in iter_row_blocks(points):
        norms = np.sqrt(np.einsum("ij,ij->i", points[rows], points[rows]))
        largest_costs = weights[rows] * (norms + farthest) ** 2
        magnitude += float(np.sum(np.abs(lam[rows])) + np.sum(largest_costs))
    return float(4.0 * (n + d + 16) * EPS * magnitude)


def priced_error(error: float, constraints: PricedConstraints, n_dims: int) -> float:
    """Upper bound on the rounding error of a box with prices, without the part of the prices.

    ``error`` is that of `pricing_error` for the same multipliers.
    """
    sums = constraints.sum_of_bonuses
    degree = int(np.diff(constraints.arrays.pair_indptr).max(initial=0))
    return 2.0 * error + 8.0 * (len(sums) + n_dims + degree + 16) * EPS * float(sums.sum())


def price_error_factor(n_groups: int, n_dims: int) -> float:
    """Rounding error of a box due to its prices, relative to the sum of their sizes."""
    return 8.0 * (n_groups + n_dims + 16) * EPS


def mean_rounding_error(points: Floats) -> Floats:
    """Upper bound on the rounding error of a weighted mean, per axis."""
    error: Floats = 8.0 * (len(points) + 16) * EPS * _largest(points)
    return error


def _largest(points: Floats) -> Floats:
    """Largest absolute value on every axis."""
    low, high = column_ranges(points)
    return np.maximum(-low, high)


def sum_upper_bound(total: float, count: int, sigma: float) -> float:
    """Upper bound on ``total + count sigma``, given an upper bound ``sigma``."""
    return total + count * sigma + 4.0 * EPS * (abs(total) + count * abs(sigma))


def lagrangian_lower_bound(lam: Floats, sigma_sum: float, constant: float = 0.0) -> float:
    """Lower bound on ``sum lam + constant - sum_k sigma_k``, with an upper bound on the last sum.

    >>> lagrangian_lower_bound(np.array([1.0, 2.0]), 1.0) <= 2.0
    True
    """
    total = exact_sum(lam)
    # With more groups than a block holds, the total errs by far less than EPS^1.5 of the sizes.
    rounding_margin = EPS * (
        2.0 * (abs(total) + abs(sigma_sum) + abs(constant)) + 1e-6 * float(np.abs(lam).sum())
    )
    return ((total + constant) - sigma_sum) - rounding_margin
