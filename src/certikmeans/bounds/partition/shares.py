"""Which groups are in every part, and with what share of their weight.

``cost(S, w) >= sum_t cost(S, w_t)`` whenever ``sum_t w_t <= w``: the labels that are best for S
cost ``sum_t cost_t`` with common centres, and no part pays more with centres and labels of its
own; weights that are left over cost nothing less than 0. So a group need not be in one part.
A small cluster, or a group far from its centre, is too much for one part and missing in the others:
it is in all of them, with an equal share.

Shares are rounded down: the float below ``w / T``, as computed, is less than the exact quotient,
so T of them are at most w in exact arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem import ReducedProblem
from certikmeans.problem.distances import squared_distances

# A group counts as too much for one part if, in it, it were this part of its cluster or caused
# this part of a cluster's cost; and shared groups fill at most so much of a part.
TOO_MUCH = 0.15
LARGEST_FILL = 0.35


def shared_groups(
    problem: ReducedProblem, labels: NDArray[np.int64], size: int
) -> NDArray[np.bool_]:
    """Groups to put into every part, for parts of about ``size`` groups.

    The score of a group is ``w_s / W_cluster + K w_s d_s / cost``, both as they would be in a
    part, about ``n / size`` times larger: its part of its cluster, and of the cost of a mean
    cluster.
    """
    n = problem.n_groups
    chosen = np.zeros(n, dtype=np.bool_)
    if size >= n:
        return chosen
    weights = problem.weights
    _, masses = problem.cluster_sums(labels)
    costs = group_costs(problem, labels)
    total = max(float(costs.sum()), 1e-300)
    score = n / size * (weights / masses[labels] + problem.n_clusters * costs / total)
    worst = np.argsort(-score, kind="stable")[: int(LARGEST_FILL * size)]
    chosen[worst[score[worst] >= TOO_MUCH]] = True
    return chosen


def group_costs(problem: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weighted squared distance of every group from the mean of its cluster."""
    sums, masses = problem.cluster_sums(labels)
    costs = np.empty(problem.n_groups)
    for k in np.unique(labels).tolist():
        members = np.flatnonzero(labels == k)
        mean = (sums[k] / masses[k])[None, :]
        costs[members] = squared_distances(problem.points[members], mean)[:, 0]
    weighted: NDArray[np.float64] = costs * problem.weights
    return weighted


def share_of(weights: NDArray[np.float64], n_parts: int) -> NDArray[np.float64]:
    """What each of ``n_parts`` parts gets; all together at most the weight, exactly.

    >>> float(share_of(np.array([1.0]), 3)[0]) * 3 <= 1.0
    True
    """
    if n_parts == 1:
        return weights
    return np.nextafter(weights / n_parts, 0.0)
