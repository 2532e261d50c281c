"""Cost and feasibility, recomputed from the original rows, independent of the solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans import Problem


def recomputed_cost(problem: Problem, labels: NDArray[np.int64]) -> float:
    """Weighted sum of squares about the cluster means."""
    total = 0.0
    for k in np.unique(labels):
        members = labels == k
        weights, rows = problem.weights[members], problem.points[members]
        away = rows - np.average(rows, axis=0, weights=weights)
        total += float(np.sum(weights[:, None] * away * away))
    return total


def violated_pairs(problem: Problem, labels: NDArray[np.int64]) -> int:
    """Number of pairs that ``labels`` does not respect."""
    must = labels[problem.must_link]
    cannot = labels[problem.cannot_link]
    return int(np.sum(must[:, 0] != must[:, 1]) + np.sum(cannot[:, 0] == cannot[:, 1]))


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
