"""Bounds for labellings in which a group is in a small cluster: they prove limits on sizes.

Let R be the cluster of group i in a labelling, with r groups of weight 1, and A the others: these
are in K - 1 clusters. So

    cost = cost(R) + cost of a labelling of A with K - 1 clusters.

**Two clusters.** With the mean ``m`` of all groups, ``cost = SSE - n r / (n - r) |mean(R) - m|^2``
and ``r^2 |mean(R) - m|^2`` is the sum of ``<x_s - m, x_t - m>`` over s and t in R.

**More clusters.** By `subset_bound` for K - 1 clusters, with ``C_st = |x_s - x_t|^2 / 2``,

    cost >= value - 2 sum over R of y + cost(R) = value - 1/r sum over s, t in R of H_st,
    H_st = y_s + y_t - C_st.

**The sum over R** of a matrix H: row s contributes H_si and r - 1 other entries, at most their
largest ones, ``rho_s``; row i and the r - 1 largest of the other ``rho_s`` are an upper bound.

Groups of R are near each other and far from the rest if the labelling is to be cheap; the bound
rises as r falls, and most for groups in the midst of a cluster. If it reaches some value for all
``r < m_i``, labellings in which the cluster of any i has fewer than m_i groups cost that at least,
and in all others every cluster has as many groups as its members require.

**Rounding.** An entry of H, ``<x_s - c, x_t - c>`` or ``y_s + y_t - C_st``, errs by ``(d + 8) EPS``
of the sum of its absolute terms, at most B; sums of r^2 entries by ``(2 r + 4) EPS r^2 B`` more.
With a centre c near the mean, ``|mean(R) - m| <= |mean(R) - c| + |m - c|``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.bounds.sample import cost_about_single_center
from certikmeans.bounds.sdp.admm import Admm, iteration_work
from certikmeans.bounds.sdp.dual_bound import subset_bound
from certikmeans.bounds.sdp.limits import AssumedSizes
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal

CHECK_ITERATIONS = 50
MAX_CHECKS = 4
MIN_GAIN = 2e-3  # of the value between two checks
SIZE_RANGE = 2.0  # sizes looked at, in units of the mean size


@final
@dataclass(frozen=True, slots=True, eq=False)
class LightBounds:
    """Bounds on labellings with small clusters; ``reaching`` derives limits from them."""

    empty: float  # with an empty cluster
    values: Floats  # (n, m): cluster of group i has at most 1, 2, ..., m groups; rows descend
    multipliers: MatrixMultipliers | None = None  # they prove the bounds if K > 2

    def reaching(self, value: float) -> tuple[AssumedSizes, float]:
        """Largest sizes such that labellings with smaller clusters cost ``value`` or more.

        Returns
        -------
        assumed : AssumedSizes
        limit : float
            Bound on labellings without these sizes; at least ``value``.

        Examples
        --------
        >>> bounds = LightBounds(9.0, np.array([[8.0, 6.0], [4.0, 2.0]]))
        >>> assumed, limit = bounds.reaching(5.0)
        >>> assumed.least, assumed.nonempty, limit
        (array([3., 1.]), True, 6.0)
        """
        counts = np.count_nonzero(self.values >= value, axis=1)
        nonempty = self.empty >= value
        reached = self.values[np.arange(len(counts)), np.maximum(counts, 1) - 1][counts > 0]
        limit = float(reached.min(initial=math.inf))
        limit = min(limit, self.empty) if nonempty else limit
        return AssumedSizes(counts + 1.0, nonempty), limit


def light_cluster_bounds(problem: ReducedProblem, stop: StopSignal) -> LightBounds | None:
    """Lower bounds on the cost of labellings with small clusters.

    Parameters
    ----------
    problem : ReducedProblem
        Sizes and soft pairs are ignored, which is valid: penalties are not negative.
    stop : StopSignal
        Ends the computation, with valid bounds; work is added to it.

    Returns
    -------
    LightBounds or None
        None if weights are not 1 or there is one cluster.
    """
    n, k = problem.n_groups, problem.n_clusters
    if k < 2 or n <= k or not (problem.weights == 1.0).all():
        return None
    count = min(n - 1, int(SIZE_RANGE * n / k))
    if k == 2:
        return _of_two_clusters(problem, count)
    found = LightBounds(0.0, np.zeros((n, count)))
    model = SdpModel.of(replace(problem, n_clusters=k - 1), plain=True)
    if model.total <= 0.0:
        return found
    admm, best, multipliers = Admm(model), None, None
    for _ in range(MAX_CHECKS):
        if stop.reason() is not None:
            break
        admm.run(CHECK_ITERATIONS, stop)
        stop.add_work(CHECK_ITERATIONS * iteration_work(n))
        tried = admm.multipliers
        dual = subset_bound(model, tried)
        if dual is None or (best is not None and dual[0] <= best[0]):
            continue
        gain = dual[0] - (0.0 if best is None else best[0])
        best, multipliers = dual, tried
        if gain <= MIN_GAIN * best[0]:
            break
    if best is None:
        return found
    return replace(_of_multipliers(model, *best, count), multipliers=multipliers)


def _of_two_clusters(problem: ReducedProblem, count: int) -> LightBounds:
    points, n = problem.points, problem.n_groups
    total = cost_about_single_center(points, problem.weights)
    center = points.mean(axis=0)
    away = points - center
    # |m - c|: the sum of differences, with its rounding error.
    sums = np.abs(away.sum(axis=0)) + (n + 8) * EPS * np.abs(away).sum(axis=0)
    offset = 1.01 * float(np.linalg.norm(sums)) / n
    largest = float(np.einsum("ij,ij->i", away, away).max())
    inner = largest_block_sums(away @ away.T, count)
    r = np.arange(1, count + 1)
    error = (2 * r + problem.n_dims + 16) * EPS * r * r * largest * 1.01
    distance = np.sqrt(np.maximum(inner + error, 0.0)) / r * (1.0 + 4.0 * EPS) + offset
    values = total - n * r / (n - r) * distance * distance * (1.0 + 16.0 * EPS)
    return _light_bounds(total, values, 4.0 * EPS * total)


def _of_multipliers(model: SdpModel, value: float, y: Floats, count: int) -> LightBounds:
    sums = largest_block_sums(y[:, None] + y[None, :] - model.costs, count)
    largest = 2.0 * float(np.abs(y).max()) + float(model.costs.max())
    r = np.arange(1, count + 1)
    error = (2 * r + model.problem.n_dims + 16) * EPS * r * largest * 1.01
    values = value - sums / r - error
    return _light_bounds(value, values, 4.0 * EPS * (abs(value) + np.abs(sums) / r))


def _light_bounds(empty: float, values: Floats, error: Floats | float) -> LightBounds:
    lowered = np.minimum.accumulate(values - 2.0 * error, axis=1)
    return LightBounds(math.nextafter(empty, -math.inf), np.maximum(lowered, 0.0))


def largest_block_sums(matrix: Floats, count: int) -> Floats:
    """Upper bounds on sums over r rows and the same columns, i among them: (n, count) for r >= 1.

    >>> largest_block_sums(np.diag([3.0, 1.0, 2.0]), 2)
    array([[3., 5.],
           [1., 4.],
           [2., 5.]])
    """
    n = len(matrix)
    descending = -np.sort(-matrix, axis=1)
    leading = np.cumsum(descending, axis=1) - descending  # of the r - 1 largest entries
    found = np.empty((n, count))
    for r in range(1, count + 1):
        # rho[i, s] = H_si + the r - 1 largest other entries of row s
        rho = leading[:, r - 1] + np.minimum(matrix, descending[:, r - 1])
        own = np.diagonal(rho).copy()
        np.fill_diagonal(rho, -np.inf)
        others = -np.partition(-rho, r - 2, axis=1)[:, : r - 1] if r > 1 else np.zeros((n, 0))
        found[:, r - 1] = own + others.sum(axis=1)
    return found
