"""Rounding of an SDP solution to centers, and its fractional clusters for branching."""

from __future__ import annotations

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import FractionalSolution
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import squared_distances

MAX_LLOYD_STEPS = 20
# Smallest entry of a member of the cluster of s in row s, relative to the diagonal entry.
MEMBERSHIP_THRESHOLD = 0.5


def round_to_centers(problem: ReducedProblem, z: Floats) -> Floats:
    """K centres, by k-means on the rows of ``Z D X``.

    If ``Z`` is a labelling, row s is the mean of the cluster of s and there are K different rows;
    near a labelling they form K tight clusters.
    """
    weights = problem.weights
    means = z @ (weights[:, None] * problem.points)
    centers = np.empty((problem.n_clusters, problem.n_dims))
    nearest = np.full(problem.n_groups, np.inf)
    chosen = int(np.argmax(weights))
    for k in range(problem.n_clusters):
        centers[k] = means[chosen]
        nearest = np.minimum(nearest, squared_distances(means, centers[k : k + 1])[:, 0])
        chosen = int(np.argmax(weights * nearest))
    labels = np.full(problem.n_groups, -1)
    for _ in range(MAX_LLOYD_STEPS):
        before, labels = labels, squared_distances(means, centers).argmin(axis=1)
        if np.array_equal(before, labels):
            break
        centers = _means(means, weights, labels, centers)
    return _means(problem.points, weights, labels, centers)


def fractional_clusters(problem: ReducedProblem, z: Floats) -> FractionalSolution:
    """Clusters given by the rows of ``z``, row s with weight ``w_s Z_ss``.

    If ``Z`` is a labelling, these are its clusters, each of total weight 1.
    """
    diagonal = np.maximum(np.diagonal(z), 0.0)
    members = z >= MEMBERSHIP_THRESHOLD * diagonal[:, None]
    np.fill_diagonal(members, True)
    distinct, inverse = np.unique(members, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), problem.weights * diagonal, len(distinct))
    kept = weights > 0.0
    distinct, weights = distinct[kept], weights[kept]
    member_weights = distinct * problem.weights
    centers = member_weights @ problem.points / member_weights.sum(axis=1, keepdims=True)
    all_clusters = tuple(range(problem.n_clusters))
    return FractionalSolution(
        distinct.astype(np.uint8),
        centers,
        weights.astype(np.float64),
        (all_clusters,) * len(weights),
    )


def _means(
    points: Floats,
    weights: Floats,
    labels: Ints,
    fallback: Floats,
) -> Floats:
    """Weighted means of the clusters; ``fallback`` for empty ones."""
    masses = np.bincount(labels, weights, len(fallback))
    sums = np.zeros_like(fallback)
    np.add.at(sums, labels, weights[:, None] * points)
    filled = masses > 0.0
    means = fallback.copy()
    means[filled] = sums[filled] / masses[filled, None]
    return means
