"""Master problem of the disaggregate proximal bundle method. Compiled.

With cuts ``v_g(nu) <= cost_gt + nu.centers_gt`` the model ``sum_g min_t`` is to be maximised minus
``|nu - nu0|^2 / 2`` in a metric ``1 / scale``, over ``nu`` that sum to zero. Its dual is a convex
quadratic program: weights per group on the simplex, ``p_g`` the mean of the cuts' centres with
them, and one common position ``q``:

    min  sum_g sum_t alpha_gt (cost_gt + nu0_g.centers_gt) + 1/2 sum_g scale_g |p_g - q|^2

with ``nu_g = nu0_g + scale_g (p_g - q)``. Solved alternately: ``q`` in closed form, the weights of
a group by exact steps between two cuts. The validity of the bound does not depend on accuracy.
"""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit

MAX_ROUNDS = 60


class CuttingPlanes(NamedTuple):
    """Cuts of every group, the first ``n_cuts[g]`` of each row."""

    n_cuts: np.ndarray  # (G,) int64, >= 1
    costs: np.ndarray  # (G, T)
    centers: np.ndarray  # (G, T, C)
    alpha: np.ndarray  # (G, T) weights of the cuts, each row sums to one; updated


@njit(cache=True, nogil=True)
def _common_position(mean, scale, common):
    for c in range(common.size):
        above, below = 0.0, 0.0
        for g in range(mean.shape[0]):
            above += scale[g, c] * mean[g, c]
            below += scale[g, c]
        common[c] = above / below


@njit(cache=True, nogil=True)
def _weigh(cuts, g, level, mean, scale, common, tolerance):
    """Exact steps between the cuts of largest and smallest slope of a group; returns the gain."""
    n, centers, alpha = cuts.n_cuts[g], cuts.centers[g], cuts.alpha[g]
    gained = 0.0
    for _ in range(2 * n):
        low, high = -1, -1
        least, most = np.inf, -np.inf
        for t in range(n):
            slope = level[t]
            for c in range(common.size):
                slope += scale[c] * (mean[c] - common[c]) * centers[t, c]
            if slope < least:
                low, least = t, slope
            if alpha[t] > 0.0 and slope > most:
                high, most = t, slope
        if low == high or most - least <= tolerance:
            break
        curvature = 0.0
        for c in range(common.size):
            away = centers[low, c] - centers[high, c]
            curvature += scale[c] * away * away
        step = alpha[high]
        if curvature > 0.0:
            step = min(step, (most - least) / curvature)
        for c in range(common.size):
            mean[c] += step * (centers[low, c] - centers[high, c])
        alpha[low] += step
        alpha[high] -= step
        if alpha[high] < 1e-14:
            alpha[high] = 0.0
        gained += step * (most - least)
    return gained


@njit(cache=True, nogil=True)
def solve_master(
    cuts,  # IN/OUT
    nu,  # IN   (G, C) where the metric is centred
    scale,  # IN   (G, C) > 0
    tolerance,
    proposed,  # OUT  (G, C) multipliers; their sum is zero up to rounding
):
    """Maximise the model near ``nu``; returns its value at the proposed multipliers."""
    n_cuts, costs, centers, alpha = cuts.n_cuts, cuts.costs, cuts.centers, cuts.alpha
    n_groups, n_columns = nu.shape
    level = np.empty(costs.shape)
    mean = np.zeros(nu.shape)
    common = np.empty(n_columns)
    for g in range(n_groups):
        for t in range(n_cuts[g]):
            level[g, t] = costs[g, t]
            for c in range(n_columns):
                level[g, t] += nu[g, c] * centers[g, t, c]
                mean[g, c] += alpha[g, t] * centers[g, t, c]
    for _ in range(MAX_ROUNDS):
        _common_position(mean, scale, common)
        gained = 0.0
        for g in range(n_groups):
            if n_cuts[g] > 1:
                gained += _weigh(cuts, g, level[g], mean[g], scale[g], common, tolerance / n_groups)
        if gained <= tolerance:
            break
    _common_position(mean, scale, common)
    for g in range(n_groups):
        for c in range(n_columns):
            proposed[g, c] = nu[g, c] + scale[g, c] * (mean[g, c] - common[c])
    return _model(cuts, proposed)


@njit(cache=True, nogil=True)
def _model(cuts, nu):
    n_cuts, costs, centers = cuts.n_cuts, cuts.costs, cuts.centers
    total = 0.0
    for g in range(nu.shape[0]):
        least = np.inf
        for t in range(n_cuts[g]):
            value = costs[g, t]
            for c in range(nu.shape[1]):
                value += nu[g, c] * centers[g, t, c]
            least = min(least, value)
        total += least
    return total
