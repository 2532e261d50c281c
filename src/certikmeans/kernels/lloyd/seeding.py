"""k-means++ seeding and bisection of clusters. Compiled; random numbers are passed in."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.costs import squared_distance, squared_distance_to


@njit(cache=True, nogil=True)
def _sample_index(masses, uniform):
    """Index drawn with probability proportional to ``masses``; ``uniform`` is uniform in [0, 1)."""
    total = 0.0
    for i in range(masses.size):
        total += masses[i]
    threshold = uniform * total
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
    uniforms,  # IN   (n_clusters, n_trials) float64, uniform in [0, 1)
    seeds,  # OUT  (n_clusters,) int64 row numbers
):
    """Greedy k-means++: each seed is the best of ``n_trials`` drawn in proportion to cost."""
    n = points.shape[0]
    n_clusters, n_trials = uniforms.shape
    nearest = np.empty(n)
    trial = np.empty(n)
    best = np.empty(n)
    seeds[0] = _sample_index(weights, uniforms[0, 0])
    for i in range(n):
        nearest[i] = weights[i] * squared_distance(points, i, points, seeds[0])
    for k in range(1, n_clusters):
        best_cost = np.inf
        for t in range(n_trials):
            candidate = _sample_index(nearest, uniforms[k, t])
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
    skipped,  # IN   centre to be moved, which is ignored
    uniform,  # IN   uniform in [0, 1)
):
    """Draw a row with probability proportional to its cost about the other centres."""
    n = points.shape[0]
    costs = np.empty(n)
    for i in range(n):
        least = np.inf
        for k in range(centers.shape[0]):
            if k == skipped:
                continue
            least = min(least, squared_distance(points, i, centers, k))
        costs[i] = weights[i] * least if centers.shape[0] > 1 else weights[i]
    return _sample_index(costs, uniform)


# Bisection of a cluster.

BISECTION_STEPS = 4


@njit(cache=True, nogil=True)
def _farthest(points, members, center):
    """Member farthest from a point."""
    chosen, largest = members[0], -1.0
    for i in members:
        away = squared_distance_to(points, i, center)
        if away > largest:
            chosen, largest = i, away
    return chosen


@njit(cache=True, nogil=True)
def bisect_cluster(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    members,  # IN   (m,) int64, m >= 1
    uniform,  # IN   in [0, 1): first member; with 0 the one farthest from the mean
    pair,  # OUT  (2, d) float64
):
    """Two centres by a few Lloyd steps. Returns the cost about them."""
    d = points.shape[1]
    sums, masses = np.zeros((2, d)), np.zeros(2)
    first = members[int(uniform * members.size)]
    if uniform == 0.0:
        for i in members:
            masses[0] += weights[i]
            for j in range(d):
                sums[0, j] += weights[i] * points[i, j]
        first = _farthest(points, members, sums[0] / masses[0])
    pair[0] = points[first]
    pair[1] = points[_farthest(points, members, pair[0])]
    cost = 0.0
    for step in range(BISECTION_STEPS + 1):
        sums[:] = 0.0
        masses[:] = 0.0
        cost = 0.0
        for i in members:
            one, two = (
                squared_distance_to(points, i, pair[0]),
                squared_distance_to(points, i, pair[1]),
            )
            side = 1 if two < one else 0
            cost += weights[i] * min(one, two)
            masses[side] += weights[i]
            for j in range(d):
                sums[side, j] += weights[i] * points[i, j]
        if step < BISECTION_STEPS:
            for side in range(2):
                if masses[side] > 0.0:
                    pair[side] = sums[side] / masses[side]
    return cost


@njit(cache=True, nogil=True)
def bisection_costs(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    order,  # IN   (n,) int64: members of cluster k are order[starts[k]] .. order[starts[k + 1]]
    starts,  # IN   (k + 1,) int64
    costs,  # OUT  (k,) float64: of each cluster, split in two
):
    """Cost of every cluster about two centres."""
    pair = np.empty((2, points.shape[1]))
    for k in range(costs.size):
        costs[k] = 0.0
        members = order[starts[k] : starts[k + 1]]
        if members.size > 1:
            costs[k] = bisect_cluster(points, weights, members, 0.0, pair)
