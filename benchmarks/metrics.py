"""Cost and feasibility, recomputed from the original rows, independent of the solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans import Problem


def recomputed_cost(problem: Problem, labels: NDArray[np.int64]) -> float:
    """Weighted sum of squares about the cluster means, and penalties of violated soft pairs."""
    total = 0.0
    for k in np.unique(labels):
        members = labels == k
        weights, rows = problem.weights[members], problem.points[members]
        away = rows - np.average(rows, axis=0, weights=weights)
        total += float(np.sum(weights[:, None] * away * away))
    must, cannot = problem.soft_must_link, problem.soft_cannot_link
    cut = labels[must.pairs[:, 0]] != labels[must.pairs[:, 1]]
    joined = labels[cannot.pairs[:, 0]] == labels[cannot.pairs[:, 1]]
    return total + float(must.penalties[cut].sum() + cannot.penalties[joined].sum())


def violated_pairs(problem: Problem, labels: NDArray[np.int64]) -> int:
    """Number of hard constraints that ``labels`` does not respect.

    Pairs, points of a cannot-link set in a cluster that another point of the set is in, and
    clusters whose size is outside of its limits.
    """
    must = labels[problem.must_link]
    cannot = labels[problem.cannot_link]
    broken = int(np.sum(must[:, 0] != must[:, 1]) + np.sum(cannot[:, 0] == cannot[:, 1]))
    for column in problem.cannot_link_groups:
        inside = column >= 0
        places = np.stack([column[inside], labels[inside]], axis=1)
        broken += len(places) - len(np.unique(places, axis=0))
    return broken + _sizes_outside_limits(problem, labels)


def _sizes_outside_limits(problem: Problem, labels: NDArray[np.int64]) -> int:
    """Clusters outside of their limits, the largest cluster with the largest limits."""
    if not problem.has_sizes:
        return 0
    k = problem.n_clusters
    demand = np.ones(problem.n_points) if problem.demand is None else problem.demand
    totals = np.bincount(labels, demand, k)
    lower = np.zeros(k) if problem.size_min is None else problem.size_min
    upper = np.full(k, np.inf) if problem.size_max is None else problem.size_max
    order = np.argsort(lower + np.minimum(upper, demand.sum()), kind="stable")
    totals, lower, upper = np.sort(totals), lower[order], upper[order]
    slack = 1e-12 * demand.sum()
    return int(np.sum((totals < lower - slack) | (totals > upper + slack)))


def scores(classes: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    """How well ``labels`` match the classes: ARI, NMI (arithmetic mean) and purity.

    >>> scores(np.array([0, 0, 1]), np.array([1, 1, 0]))
    {'ARI': 1.0, 'NMI': 1.0, 'purity': 1.0}
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    most = contingency_matrix(classes, labels).max(axis=0).sum()
    return {
        "ARI": float(adjusted_rand_score(classes, labels)),
        "NMI": float(normalized_mutual_info_score(classes, labels)),
        "purity": float(most / len(labels)),
    }
