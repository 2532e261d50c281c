"""Weighted k-means without pairs: initial centers and Lloyd."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.baselines._kernels import cluster_means
from certikmeans.kernels.lloyd.iteration import nearest_centers
from certikmeans.kernels.lloyd.seeding import kmeanspp_seeds
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal

INITS = ("random", "k-means++")


def initial_centers(problem: Problem, init: str, rng: np.random.Generator) -> Floats:
    """Distinct rows of the data, uniform or by k-means++ (one trial per centre)."""
    if init == "random":
        rows = rng.choice(problem.n_points, size=problem.n_clusters, replace=False)
    else:
        rows = np.empty(problem.n_clusters, dtype=np.int64)
        uniforms = rng.random((problem.n_clusters, 1))
        kmeanspp_seeds(problem.points, problem.weights, uniforms, rows)
    return problem.points[rows]


@final
@dataclass(frozen=True, slots=True, eq=False)
class KMeansRun:
    """Result of a k-means run."""

    centers: Floats
    cost: float
    n_iter: int
    converged: bool
    interrupted: bool = False  # by the time limit: this run, or a later one


def best_kmeans(
    points: Floats,
    weights: Floats,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_init: int,
    max_iter: int,
    stop: StopSignal,
) -> KMeansRun:
    """Best of at most ``n_init`` runs of k-means within the time limit.

    >>> run = best_kmeans(np.array([[0.0], [2.0], [9.0]]), np.ones(3), 2,
    ...     np.random.default_rng(0), n_init=3, max_iter=10, stop=StopSignal())
    >>> np.sort(run.centers.ravel()), run.cost
    (array([1., 9.]), 2.0)
    """
    columns = np.ascontiguousarray(points.T)
    best, interrupted = None, False
    for number in range(n_init):
        uniforms = rng.random((n_clusters, 2 + int(math.log(n_clusters))))
        seeds = np.empty(n_clusters, dtype=np.int64)
        kmeanspp_seeds(points, weights, uniforms, seeds)
        run = _lloyd(points, columns, weights, points[seeds], max_iter, stop)
        if best is None or run.cost < best.cost:
            best = run
        if stop.reason() is not None:
            interrupted = not run.converged or number + 1 < n_init
            break
    assert best is not None
    return replace(best, interrupted=interrupted)


def _lloyd(
    points: Floats,
    columns: Floats,
    weights: Floats,
    centers: Floats,
    max_iter: int,
    stop: StopSignal,
) -> KMeansRun:
    """Lloyd iterations; an empty cluster gets the point of largest cost."""
    n_points = len(points)
    scratch, squares = np.empty(n_points), np.empty(n_points)
    labels, before = np.empty(n_points, dtype=np.int64), np.full(n_points, -1)
    n_iter, converged = 0, False
    while n_iter < max_iter:
        n_iter += 1
        nearest_centers(columns, 0, centers, scratch, squares, labels)
        for k in np.flatnonzero(np.bincount(labels, minlength=len(centers)) == 0).tolist():
            farthest = int(np.argmax(weights * squares))
            labels[farthest], squares[farthest] = k, 0.0
        converged = np.array_equal(labels, before)
        if converged or stop.reason() is not None:
            break
        cluster_means(points, weights, labels, centers)
        labels, before = before, labels
    return KMeansRun(centers, float(weights @ squares), n_iter, converged)
