"""Principal axes: a frame in which boxes fit the data and null directions are gone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certikmeans.execution.blas import one_blas_thread
from certikmeans.presolve.steps import Turned
from certikmeans.problem.tables import column_ranges, row_blocks
from certikmeans.rounding import UNIT, round_up


def turn_to_principal_axes(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Turned]:
    """Rotate centred points to their weighted principal axes, largest first.

    Distances do not change, except that directions in which the points do not differ by more
    than rounding are dropped: that lowers distances, so bounds stay bounds.
    At least one axis is kept.

    Examples
    --------
    >>> points, turned = turn_to_principal_axes(np.array([[-1., -1.], [1., 1.]]), np.ones(2))
    >>> np.round(np.abs(points), 6)
    array([[1.414214],
           [1.414214]])
    """
    n_features = points.shape[1]
    with one_blas_thread():  # products of blocks: 100 times as slow with two on a busy machine
        axes = _principal_axes(points, weights)
        turned = np.ascontiguousarray(points @ axes)
    n_axes = axes.shape[1]
    square = 0.0
    for rows in row_blocks(points):
        square += float(np.sum(weights[rows, None] * points[rows] * points[rows]))
    norm = round_up(math.sqrt(square), 2 * points.size)
    # |axes^T axes - I|_F, with the rounding of its own evaluation, bounds |axes|_2^2 - 1.
    defect = float(np.linalg.norm(axes.T @ axes - np.eye(n_axes)))
    defect = round_up(defect + (n_features + 4) * 2.0 * UNIT * (n_axes + 1))
    stretch = round_up(math.sqrt(1.0 + defect))
    # |fl(xQ) - xQ| <= (d + 2) UNIT |x| | |Q| |_F, and | |Q| |_F <= sqrt(axes) * stretch.
    turning = round_up((n_features + 2) * 2.0 * UNIT * math.sqrt(n_axes) * stretch * norm)
    return turned, Turned(axes, turning, stretch)


def _principal_axes(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    low, high = column_ranges(points)
    scale, heaviest = float(max(-low.min(), high.max())), float(weights.max())
    if scale == 0.0:
        return np.eye(points.shape[1], 1)

    def scaled(rows: slice) -> NDArray[np.float64]:
        return points[rows] * (np.sqrt(weights[rows] / heaviest)[:, None] / scale)

    if points.shape[1] <= points.shape[0]:
        gram = sum(scaled(rows).T @ scaled(rows) for rows in row_blocks(points))
        variances, axes = np.linalg.eigh(gram)
        variances, axes = variances[::-1], axes[:, ::-1]
    else:
        _, singular, right = np.linalg.svd(scaled(slice(None)), full_matrices=False)
        variances, axes = singular**2, right.T
    # The covariance is known to rounding only, so smaller variances are noise in `variances`.
    squares = np.zeros(axes.shape[1])
    for rows in row_blocks(points):
        squares += np.sum((scaled(rows) @ axes) ** 2, axis=0)
    spread = np.sqrt(squares)
    noise = 8.0 * points.shape[1] * UNIT * math.sqrt(float(max(variances[0], 0.0)))
    kept = np.flatnonzero(spread > noise)
    if len(kept) == 0:
        kept = np.array([0])
    axes = axes[:, kept]
    largest = np.argmax(np.abs(axes), axis=0)
    signs = np.where(axes[largest, np.arange(axes.shape[1])] < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(axes * signs)
