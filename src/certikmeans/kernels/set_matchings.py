"""Kernel of the bound by linear assignments: matchings between cannot-link sets."""

import numpy as np

from certikmeans._jit.dispatcher import njit
from certikmeans.kernels.assignment import matching_bound, min_cost_matching
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def matching_sums(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    indptr,  # IN   (m + 1,) int64: sets in compressed rows
    members,  # IN   int64
    n_clusters,  # IN   int64, at least the size of every set
    sums,  # OUT  (m,) float64: sums over all earlier sets
    multipliers,  # OUT  (n_matchings or 1, n_clusters) float64: of every matching, or of the last
):
    """Least sums of ``w_s w_t |x_s - x_t|^2`` over pairs of two sets that meet, rounded down.

    Every member is in a cluster of its own, so two sets are matched with each other, where clusters
    without a member of one of them cost nothing.
    """
    k, n_dims = n_clusters, points.shape[1]
    costs = np.empty((k, k))
    column_of = np.empty(k, np.int64)
    number = 0
    relative = (n_dims + 8) * EPS
    for one in range(indptr.size - 1):
        total, count = 0.0, 0
        first_size = indptr[one + 1] - indptr[one]
        for other in range(one):
            second_size = indptr[other + 1] - indptr[other]
            if first_size + second_size <= k:
                continue
            costs[:] = 0.0
            for a in range(first_size):
                s = members[indptr[one] + a]
                for b in range(second_size):
                    t = members[indptr[other] + b]
                    square = 0.0
                    for j in range(n_dims):
                        difference = points[s, j] - points[t, j]
                        square += difference * difference
                    costs[a, b] = weights[s] * weights[t] * square * (1.0 - relative)
            row = multipliers[min(number, len(multipliers) - 1)]
            number += 1
            min_cost_matching(costs, column_of, row)
            value = matching_bound(costs, row)
            if value > 0.0:
                total += value
                count += 1
        sums[one] = total * (1.0 - (count + 2) * EPS)
