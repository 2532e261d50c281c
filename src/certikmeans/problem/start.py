"""Warm starts as given by a user, checked against the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.data import Problem


def checked_start_labels(problem: Problem, labels: Any) -> NDArray[np.int64] | None:
    """Labels that respect every pair, or an error that names the first pair they break.

    >>> two = Problem.from_data([[0.0], [1.0]], 2, cannot_link=[(0, 1)])
    >>> checked_start_labels(two, [1, 1])
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: start labels: points 0 and 1 share cluster 1, but must not
    hint: correct the labels, or pass their centres as start_centers: these may break pairs
    """
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (problem.n_points,) or array.dtype.kind not in "iu":
        raise InputError(
            f"start labels: expected {problem.n_points} whole numbers, "
            f"got {array.dtype} of shape {array.shape}",
            hint="give one cluster number per point",
        )
    outside = (array < 0) | (array >= problem.n_clusters)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"start labels: point {row} has label {array[row]}",
            hint=f"clusters are numbered 0 to {problem.n_clusters - 1}",
        )
    hint = "correct the labels, or pass their centres as start_centers: these may break pairs"
    first, second = array[problem.must_link].T
    for i, j in problem.must_link[first != second]:
        raise InputError(
            f"start labels: points {i} and {j} are in clusters {array[i]} and {array[j]}, "
            "but must share one",
            hint=hint,
        )
    first, second = array[problem.cannot_link].T
    for i, j in problem.cannot_link[first == second]:
        raise InputError(
            f"start labels: points {i} and {j} share cluster {array[i]}, but must not",
            hint=hint,
        )
    return array.astype(np.int64)


def checked_start_centers(problem: Problem, centers: Any) -> NDArray[np.float64] | None:
    """Finite centres of the right shape, as float64."""
    if centers is None:
        return None
    expected = (problem.n_clusters, problem.n_features)
    try:
        array = np.array(centers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"start centers: not a table of numbers ({error})", hint=f"give shape {expected}"
        ) from error
    if array.shape != expected or not np.isfinite(array).all():
        raise InputError(
            f"start centers: expected finite numbers of shape {expected}, got shape {array.shape}",
            hint="one row per cluster, one column per feature",
        )
    return array
