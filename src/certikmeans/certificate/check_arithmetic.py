"""Arithmetic of the verifier: sums with a proven error, and spanning forests.

Write ``u = 2^-53``. For a correctly rounded operation ``fl(a op b) = (a op b)(1 + e) + t`` with
``|e| <= u`` and ``|t| <= 2^-1074``, ``t`` only where the result underflows. Adding ``m`` terms in
any order errs by at most ``(m - 1) u (1 + ...)`` of the sum of their sizes. Every factor below
is twice what this gives at first order, which covers the higher orders as long as
``m u < 0.01``: counts are below 2^31. Underflow is covered by adding ``TINY``; see
docs/certificate-format.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.format import Reason, Rejection

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPS = 2.0**-52
TINY = 1e-200
TINY_NORM = 1e-150  # per row of a matrix: loss by underflow of squares
BLOCK = 256


def distinct(values: Ints) -> Ints:
    """Sorted distinct values. ``np.unique`` hashes, which is slow for many values."""
    ordered = np.sort(values, axis=None)
    if len(ordered) == 0:
        return ordered
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return np.compress(first, ordered)


def sum_by(index: Ints, values: Floats, count: int) -> Floats:
    """Sum of the values of every index, as floats also where there are none."""
    return np.bincount(index, values, count).astype(np.float64, copy=False)


def up(value: float, operations: int = 4) -> float:
    """Upper bound on a number that is not negative, computed in so many operations."""
    return value * (1.0 + (operations + 2) * EPS) + TINY


def add_up(first: float, second: float) -> float:
    """Sum of two numbers that are not negative, rounded up."""
    return first + second if 0.0 in (first, second) else math.nextafter(first + second, math.inf)


def down(value: float, operations: int = 4) -> float:
    """Lower bound on a number that is not negative, at least 0."""
    return max(0.0, value * (1.0 - (operations + 2) * EPS) - TINY)


def total(values: Floats) -> float:
    """Sum of numbers that are not negative; errs by at most ``(BLOCK + 1) u`` of itself."""
    flat = values.ravel()
    whole = len(flat) - len(flat) % BLOCK
    blocks = flat[:whole].reshape(-1, BLOCK).sum(axis=1)
    return math.fsum(blocks.tolist()) + math.fsum(flat[whole:].tolist())


def frobenius_norm(matrix: Floats) -> float:
    """Upper bound on the root of the sum of squares."""
    # Underflow is compensated after the root: before it, it would weigh far more.
    return up(math.sqrt(total(matrix * matrix)), 300) + len(matrix) * TINY_NORM


def measured_eigenvalues(matrix: Floats) -> tuple[Floats, float, float]:
    """Computed eigenvalues, and bounds on two residuals of the eigendecomposition.

    The eigenvalues are not trusted: with the computed ``values`` and ``vectors`` V, the residuals
    are the Frobenius norms of ``V^T V - I`` and of ``matrix - V diag(values) V^T``.
    """
    order = len(matrix)
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        raise Rejection(Reason.BOUND, "the eigenvalues cannot be computed") from error
    product = (order + 4) * EPS
    orthogonality_error = frobenius_norm(vectors.T @ vectors - np.eye(order))
    orthogonality_error = up(orthogonality_error + product * total(vectors * vectors), 300)
    residual = frobenius_norm(matrix - (vectors * values) @ vectors.T)
    residual += product * (1.0 + orthogonality_error) * total(np.abs(values))
    return values, orthogonality_error, residual


def cholesky_factor(inner: Floats, error: float) -> Floats:
    """R, not singular, with ``R^T R`` above every matrix within ``error`` of ``inner``."""
    order = len(inner)
    if np.isfinite(inner).all() and math.isfinite(error):
        product = (order + 4) * EPS
        shift = 2.0 * error + 4.0 * product * order
        for _ in range(8):
            shifted = inner + shift * np.eye(order)
            try:
                root = np.linalg.cholesky(shifted).T
            except np.linalg.LinAlgError:
                shift *= 8.0
                continue
            residual = frobenius_norm(root.T @ root - shifted)
            residual += product * (up(total(root * root), 300) + order)
            if 1.01 * residual + error <= shift and np.diagonal(root).min() > 0.0:
                return np.asarray(root)
            shift *= 8.0
    raise Rejection(Reason.BOUND, "the columns have no root in this arithmetic")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Sum of squares of rows about the mean of their set, between two bounds."""

    means: Floats  # (n_sets, n_columns), near the exact ones
    masses_below: Floats  # (n_sets,): at most the exact sum of the weights
    below: float
    above: float
    mean_error: float  # at least the sum of W |mean - exact mean|^2


def scatter(rows: Floats, weights: Floats, of_row: Ints, n_sets: int) -> Scatter:
    """Bound ``sum_i w_i |x_i - mean of i's set|^2`` from both sides.

    For any ``c`` in place of the mean ``m`` of a set of mass ``W``, with
    ``g = sum w_i (x_i - c)``:  ``m - c = g / W`` and
    ``sum w_i |x_i - m|^2 = sum w_i |x_i - c|^2 - |g|^2 / W``. Differences of two floats have
    one rounding, so the first sum is accurate, and ``g`` is small where ``c`` is near ``m``.
    """
    sizes = np.bincount(of_row, minlength=n_sets)
    masses = np.asarray(np.bincount(of_row, weights, n_sets), dtype=np.float64)
    whole = bool(np.all(weights == np.floor(weights))) and float(masses.sum()) < 2.0**52
    error = np.zeros(n_sets) if whole else (sizes + 2.0) * EPS
    low: Floats = masses * (1.0 - error)
    high: Floats = masses * (1.0 + error)
    safe = np.maximum(masses, 1e-300)
    means = np.zeros((n_sets, rows.shape[1]))
    means[of_row[::-1]] = rows[::-1]  # the first row of each set
    squares, mean_correction, mean_error, differs = [], 0.0, 0.0, False
    relative = (sizes + 8.0) * EPS
    for j, column in enumerate(rows.T):
        for _ in range(2):
            weighted_sum = np.bincount(of_row, weights * (column - means[of_row, j]), n_sets)
            means[:, j] += weighted_sum / safe
        deviation = column - means[of_row, j]
        weighted_deviation = weights * deviation
        differs |= bool(np.any(deviation != 0.0))
        squares.append(total(weighted_deviation * deviation))
        signed = np.abs(np.bincount(of_row, weighted_deviation, n_sets))
        rounding_error = relative * np.bincount(of_row, np.abs(weighted_deviation), n_sets)
        filled = masses > 0.0  # sets of weight 0 cost nothing
        mean_error += total(((signed + rounding_error) ** 2)[filled] / low[filled])
        mean_correction += total(
            (np.maximum(signed - rounding_error, 0.0) ** 2)[filled] / high[filled]
        )
    if not differs:  # every row is its mean: nothing was rounded
        return Scatter(means, low, 0.0, 0.0, 0.0)
    operations = BLOCK + 16
    summed = math.fsum(squares)
    mean_error = up(mean_error, operations + rows.shape[1])
    mean_correction = down(mean_correction, operations + rows.shape[1])
    return Scatter(
        means=means,
        masses_below=low,
        below=max(0.0, down(summed, operations) - mean_error) * (1.0 - EPS),
        above=max(0.0, up(summed, operations) - mean_correction) * (1.0 + EPS),
        mean_error=mean_error,
    )


def connected_components(n: int, edges: Ints) -> Ints:
    """Smallest member of the connected component of every node.

    Labels only propagate along edges, so no two components mix; the loop ends when the ends
    of every edge agree, so none is divided.
    """
    label = np.arange(n)
    a, b = edges[:, 0], edges[:, 1]
    while True:
        first, second = label[a], label[b]
        differ = first != second
        if not differ.any():
            return label
        a, b, first, second = a[differ], b[differ], first[differ], second[differ]
        np.minimum.at(label, np.maximum(first, second), np.minimum(first, second))
        while True:
            shorter = label[label]
            if np.array_equal(shorter, label):
                break
            label = shorter


@final
@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Spanning forest of a graph: each of its edges connects a node to its parent."""

    parent: Ints  # (n,); -1 at a root
    level: Ints  # (n,): number of edges to the root
    has_cycle: NDArray[np.bool_]  # (n,): the component has an edge outside of the forest


def spanning_forest(n: int, edges: Ints) -> Forest:
    """Breadth-first spanning forest of distinct edges without loops."""
    parent, level = np.full(n, -1), np.full(n, -1)
    label = connected_components(n, edges)
    level[label == np.arange(n)] = 0
    tail = np.concatenate([edges[:, 0], edges[:, 1]])
    head = np.concatenate([edges[:, 1], edges[:, 0]])
    reached = 0
    while len(tail):
        step = (level[tail] == reached) & (level[head] < 0)
        if step.any():
            parent[head[step]] = tail[step]
            level[head[step]] = reached + 1
        left = level[head] < 0
        tail, head = tail[left], head[left]
        reached += 1
    nodes = np.bincount(label, minlength=n)
    links = np.bincount(label[edges[:, 0]], minlength=n)
    return Forest(parent, level, (links > nodes - 1)[label])


def nodes_by_level(level: Ints) -> list[Ints]:
    """Nodes of level 0, of level 1, ..."""
    order = np.argsort(level, kind="stable")
    return np.split(order, np.cumsum(np.bincount(level))[:-1])


def max_independent_set_on_forest(
    values: Floats, parent: Ints, levels: list[Ints]
) -> tuple[NDArray[np.bool_], Floats]:
    """An independent set of maximum value on a forest, and the gain of each node.

    Guides proofs; is no part of them.
    """
    delta = values.copy()
    for level in reversed(levels):
        child = level[(parent[level] >= 0) & (delta[level] > 0.0)]
        np.subtract.at(delta, parent[child], delta[child])
    chosen = np.zeros(len(values), dtype=np.bool_)
    for level in levels:
        above = parent[level]
        chosen[level] = (delta[level] > 0.0) & ((above < 0) | ~chosen[above])
    return chosen, delta
