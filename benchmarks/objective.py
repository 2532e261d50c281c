"""Cost and feasibility, recomputed here from the original rows: no solver is believed."""

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
