"""Makers of instances: functions of plain values, so that another process can call them.

The last argument of each is the directory of real data (None: there is none), so that
``functools.partial`` turns a maker into the recipe of a `Recipe`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.datasets.base import Built
from benchmarks.datasets.paper import real, synthetic, with_pairs
from certikmeans import Problem
from certikmeans.generate import random_pairs


def real_with_pairs(name: str, kind: str, directory: Path | None) -> Built:
    """A real data set with n/4 pairs of each kind."""
    data = real(name, directory)
    drawn_from = "classes" if data.has_classes else "labels of k-means"
    classes = data.labels if data.has_classes else None
    return Built(with_pairs(data, kind), classes, f"drawn from {drawn_from}")


def synthetic_with_pairs(n: int, kind: str, d: int, k: int, directory: Path | None = None) -> Built:
    """The paper's Gaussian clusters with n/4 pairs of each kind."""
    data = synthetic(n, d, k)
    return Built(with_pairs(data, kind, k), data.labels, "drawn from classes")


def noise(n: int, d: int, k: int, seed: int = 0, directory: Path | None = None) -> Built:
    """One normal cloud: there are no clusters to find.

    >>> noise(12, 2, 3).problem.points.shape
    (12, 2)
    """
    points = np.random.default_rng(seed).normal(size=(n, d))
    return Built(Problem.from_data(points, k), None, "none")


def crossed(
    n: int, d: int, k: int, n_pairs: int, seed: int = 0, directory: Path | None = None
) -> Built:
    """Uniform points with cannot-links drawn from random classes: they cut across the geometry."""
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(n, d)), rng.integers(k, size=n)
    _, cannot = random_pairs(classes, 0, n_pairs, seed=seed)
    return Built(Problem.from_data(points, k, cannot_link=cannot), None, "drawn at random")


def standardised_wine(directory: Path | None = None) -> Built:
    """The wine data of scikit-learn, every feature with variance 1; K = 3."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    data, classes = load_wine(return_X_y=True)
    return Built(Problem.from_data(StandardScaler().fit_transform(data), 3), classes, "none")


def blobs(n: int, d: int, k: int, spread: float = 4.0, directory: Path | None = None) -> Built:
    """Round clusters of scikit-learn's ``make_blobs``, seed 0; no pairs."""
    from sklearn.datasets import make_blobs

    points, classes = make_blobs(n, d, centers=k, cluster_std=spread, random_state=0)
    return Built(Problem.from_data(points, k), classes, "none")
