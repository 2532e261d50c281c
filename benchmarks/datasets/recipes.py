"""Instances by recipe: functions of plain values, so that another process can make them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.datasets.paper import real, synthetic, with_pairs
from benchmarks.datasets.published import published_instances
from certikmeans import Problem
from certikmeans.generate import random_pairs


def published(directory: Path, name: str) -> Problem:
    """One of the PC-SOS-SDP instances."""
    return next(one.problem for one in published_instances(directory) if one.name == name)


def real_with_pairs(directory: Path | None, name: str, kind: str) -> Problem | None:
    """A real data set with n/4 pairs of each kind; None where its file is absent."""
    data = None if directory is None else real(name, directory)
    return None if data is None else with_pairs(data, kind)


def synthetic_with_pairs(n: int, kind: str, d: int = 2, k: int = 3) -> Problem:
    """The paper's Gaussian clusters with n/4 pairs of each kind."""
    return with_pairs(synthetic(n, d, k), kind, k)


def noise(n: int, d: int, k: int, seed: int = 0) -> Problem:
    """One normal cloud: there are no clusters to find.

    >>> noise(12, 2, 3).points.shape
    (12, 2)
    """
    return Problem.from_data(np.random.default_rng(seed).normal(size=(n, d)), k)


def crossed(n: int, d: int, k: int, n_pairs: int, seed: int = 0) -> Problem:
    """Uniform points with cannot-links drawn from random classes: they cut across the geometry."""
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(n, d)), rng.integers(k, size=n)
    _, cannot = random_pairs(classes, 0, n_pairs, seed=seed)
    return Problem.from_data(points, k, cannot_link=cannot)


def standardised_wine() -> Problem:
    """The wine data of scikit-learn, every feature with variance 1; K = 3."""
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

    return Problem.from_data(StandardScaler().fit_transform(load_wine().data), 3)
