"""Rounding error of the grouped bound.

Write ``u`` for the unit roundoff, ``EPS = 2 u``; ``m``, ``K``, ``d`` for the numbers of samples
of a group, clusters and axes; ``Y`` for the largest norm in any box, and for a set of samples with
a share ``s`` of the linear term

    M = sum_i w_i (|x_i| + Y)^2  +  s sum_kj |nu_kj| Y_kj ,

``Y_kj`` the largest absolute value of that coordinate in the box of cluster k. M is additive when
samples and share are split, and at least the sum of the absolute values of all terms below.

**Value of a labelling.** ``sum_kj (W c - 2 b + s nu) c + q`` at a computed ``c`` inside the box.
The sums W, b, q have at most ``m`` terms, and each term rounds at most ``d + 2`` times; there are
``K (d + 1)`` products to add. So the evaluation errs by at most ``(m + K d + K + d + 10) u M``.
The computed ``c`` is not quite the minimiser: before clamping it errs by some ``delta``, and the
value there is too high by at most ``3 W delta^2``, and not at all if the exact minimiser before
clamping is farther than ``delta`` from the box. Otherwise ``delta <= 4 (m + 4) u (X + Y)``, with X
the mean of ``|x_j|`` in the cluster, and ``W X^2 <= sum w x_j^2`` makes that excess below ``u M``
for fewer than 9,000,000 samples.

**Additions.** They start from the computed centre instead of the exact one: replacing it in
``W |mu - c|^2`` costs at most ``4 W Y delta <= 16 (m + 4) u M``. The weights in ``ratio`` err by
``(m + 3) u``, which moves an addition, monotone in them, by ``(2 m + 10) u`` of its size at most;
its own arithmetic by ``(d + 10) u``; summation by ``m u``. An addition is at most
``w (|x| + Y)^2``, so all this is below ``(20 m + d + 100) u M``.

**Russian doll search.** Labelled part and tail have their own errors, in proportion to their own
parts of M, so along the chain of tails they add up to the above for the whole group. Each link
rounds the share (three times) and a sum, and so does each block: ``6 u M``, at most ``m`` times.

The total is below ``(27 m + K d + K + 2 d + 120) u M``; `group_errors` returns
``16 (m + K d + 16) EPS M``. Minima, maxima and comparisons are exact, and every branch that the
search did not follow is in the minimum with its own bound, whatever the tolerance.

**The sum.** For common centres ``mu`` the linear terms of all groups add up to ``r.mu`` with
``r = sum_g nu_g``, which is zero only up to rounding. ``|r|`` is at most its computed value plus
``G EPS sum_g |nu_g|``, and `lagrangian_lower_bound` takes ``|r|.Y`` off. Underflow does not occur:
`Problem` keeps squares far above the smallest normal number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certikmeans.rounding import EPS


def sample_magnitudes(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    starts: NDArray[np.int64],
    max_abs_center: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The part of M that comes from the samples, per group; ``max_abs_center`` is ``Y_kj``."""
    largest = math.sqrt(float(np.max(np.sum(max_abs_center * max_abs_center, axis=1))))
    norms = np.sqrt(np.einsum("ij,ij->i", points, points))
    magnitudes: NDArray[np.float64] = np.add.reduceat(weights * (norms + largest) ** 2, starts[:-1])
    return magnitudes


def group_errors(
    magnitudes: NDArray[np.float64],
    starts: NDArray[np.int64],
    nu: NDArray[np.float64],
    max_abs_center: NDArray[np.float64],
) -> NDArray[np.float64]:
    """At least the rounding error of the bound of every group."""
    magnitude = magnitudes + np.einsum("gkj,kj->g", np.abs(nu), max_abs_center)
    errors: NDArray[np.float64] = (
        16.0 * (np.diff(starts) + max_abs_center.size + 16) * EPS * magnitude
    )
    return errors


def lagrangian_lower_bound(
    bounds: NDArray[np.float64],
    errors: NDArray[np.float64],
    nu: NDArray[np.float64],
    max_abs_center: NDArray[np.float64],
) -> float:
    """At most the cost of every labelling, given the groups' bounds and their errors.

    >>> zero = np.zeros((2, 1, 1))
    >>> bound = lagrangian_lower_bound(np.array([1.0, 2.0]), np.zeros(2), zero, np.ones((1, 1)))
    >>> 2.9 < bound <= 3.0
    True
    """
    residual = np.abs(nu.sum(axis=0)) + (len(nu) * EPS) * np.abs(nu).sum(axis=0)
    residual_term = float(np.sum(residual * max_abs_center)) * (
        1.0 + (max_abs_center.size + 8) * EPS
    )
    total = math.fsum([*bounds.tolist(), *(-errors).tolist(), -residual_term])
    return max(0.0, total - 2.0 * EPS * abs(total))
