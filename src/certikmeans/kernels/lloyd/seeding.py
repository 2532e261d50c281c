"""Starting centres by distance-weighted sampling. Compiled; random numbers are passed in."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.distance import squared_distance


@njit(cache=True, nogil=True)
def _pick(masses, share):
    """Index drawn with probability proportional to ``masses``; ``share`` is uniform in [0, 1)."""
    total = 0.0
    for i in range(masses.size):
        total += masses[i]
    threshold = share * total
    last = 0
    running = 0.0
    for i in range(masses.size):
        if masses[i] > 0.0:
            last = i
            running += masses[i]
            if running > threshold:
                return i
    return last


@njit(cache=True, nogil=True)
def kmeanspp_seeds(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    shares,  # IN   (n_clusters, n_trials) float64, uniform in [0, 1)
    seeds,  # OUT  (n_clusters,) int64 row numbers
):
    """Greedy k-means++: each seed is the best of ``n_trials`` drawn in proportion to cost."""
    n = points.shape[0]
    n_clusters, n_trials = shares.shape
    nearest = np.empty(n)
    trial = np.empty(n)
    best = np.empty(n)
    seeds[0] = _pick(weights, shares[0, 0])
    for i in range(n):
        nearest[i] = weights[i] * squared_distance(points, i, points, seeds[0])
    for k in range(1, n_clusters):
        best_cost = np.inf
        for t in range(n_trials):
            candidate = _pick(nearest, shares[k, t])
            cost = 0.0
            for i in range(n):
                trial[i] = min(
                    nearest[i], weights[i] * squared_distance(points, i, points, candidate)
                )
                cost += trial[i]
            if cost < best_cost:
                best_cost = cost
                seeds[k] = candidate
                best, trial = trial, best
        nearest, best = best, nearest


@njit(cache=True, nogil=True)
def pick_by_cost(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    centers,  # IN   (k, d) float64
    skipped,  # IN   the centre that is about to be moved: it does not count
    share,  # IN   uniform in [0, 1)
):
    """Row drawn in proportion to its cost at the other centres: where a centre is missing."""
    n = points.shape[0]
    costs = np.empty(n)
    for i in range(n):
        least = np.inf
        for k in range(centers.shape[0]):
            if k == skipped:
                continue
            least = min(least, squared_distance(points, i, centers, k))
        costs[i] = weights[i] * least if centers.shape[0] > 1 else weights[i]
    return _pick(costs, share)
