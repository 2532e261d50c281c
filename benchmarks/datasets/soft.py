"""Instances with soft pairs of which a share is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import BuiltInstance, required_file
from benchmarks.datasets.constrained import Labels, Points, normal_clusters
from certikmeans import Problem
from certikmeans.generate import random_pairs

SMALL = ("iris", "wine", "breast cancer", "digits")
PCCC_LEVELS = ("0.50", "0.60", "0.70", "0.80", "0.90", "1.00")
PCCC_SIZES = ("0.05", "0.1", "0.15", "0.2")


def mean_penalty(points: Points) -> float:
    """Total sum of squares divided by the number of points.

    >>> mean_penalty(np.array([[0.0], [2.0]]))
    1.0
    """
    return float(((points - points.mean(axis=0)) ** 2).sum() / len(points))


def small_table(name: str) -> tuple[Points, Labels]:
    """A table of scikit-learn; all but digits with columns of variance 1."""
    from sklearn import datasets

    loaders = {
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
    }
    points, classes = loaders[name](return_X_y=True)
    if name != "digits":
        points = (points - points.mean(axis=0)) / points.std(axis=0)
    return np.ascontiguousarray(points, dtype=np.float64), classes.astype(np.int64)


def noisy_pairs(
    classes: Labels, number: int, wrong: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of both kinds, ``number`` of each; a share ``wrong`` of them has the wrong kind.

    >>> must, cannot = noisy_pairs(np.arange(40) % 2, 10, 0.5, seed=0)
    >>> classes = np.arange(40) % 2
    >>> int((classes[must[:, 0]] == classes[must[:, 1]]).sum())
    5
    """
    must, cannot = random_pairs(classes, number, number, seed=seed)
    swapped = round(wrong * number)
    return (
        np.concatenate([cannot[:swapped], must[swapped:]]),
        np.concatenate([must[:swapped], cannot[swapped:]]),
    )


def soft_instance(
    points: Points, classes: Labels, n_clusters: int, wrong: float, factor: float, seed: int
) -> BuiltInstance:
    """A quarter of the points as pairs of each kind, all with one penalty."""
    must, cannot = noisy_pairs(classes, len(points) // 4, wrong, seed)
    price = factor * mean_penalty(points)
    soft = [np.column_stack([pairs, np.full(len(pairs), price)]) for pairs in (must, cannot)]
    problem = Problem.from_data(
        points, n_clusters, soft_must_link=soft[0], soft_cannot_link=soft[1]
    )
    return BuiltInstance(problem, classes, f"drawn from classes, {wrong:.0%} of them wrong")


def small(
    name: str, wrong: float, factor: float = 1.0, *, seed: int = 1, directory: Path | None = None
) -> BuiltInstance:
    """Soft pairs on a table of scikit-learn.

    >>> len(small("iris", 0.1).problem.soft_must_link)
    37
    """
    points, classes = small_table(name)
    return soft_instance(points, classes, int(classes.max()) + 1, wrong, factor, seed)


def blobs(
    n: int, k: int, wrong: float, factor: float = 1.0, *, spread: float = 1.2, seed: int = 1,
    directory: Path | None = None,
) -> BuiltInstance:  # fmt: skip
    """Soft pairs on overlapping normal clusters in the plane."""
    points, classes = normal_clusters(n, 2, k, spread, seed)
    return soft_instance(points, classes, k, wrong, factor, seed)


def pccc_noisy(level: str, size: str, directory: Path | None) -> BuiltInstance:
    """PCCC's noisy pairs on appendicitis: confidences times the mean squared distance."""
    path = required_file(directory, "pccc/soft/appendicitis_data.csv")
    data = np.genfromtxt(path, delimiter=",", names=True)
    columns = [data[column] for column in data.dtype.names or () if column != "class"]
    points = np.stack(columns, axis=1)
    classes = np.unique(data["class"], return_inverse=True)[1].astype(np.int64)
    name = f"pccc/soft/appendicitis_noisy_constraints_{level}_{size}.json"
    pairs = json.loads(required_file(directory, name).read_text())
    unit = mean_penalty(points)

    def priced(kind: str) -> NDArray[np.float64] | None:
        rows = pairs[kind]
        confidence = np.array(pairs.get(f"{kind}_proba") or [1.0] * len(rows))
        return np.column_stack([np.array(rows), unit * confidence]) if rows else None

    problem = Problem.from_data(
        points,
        len(np.unique(classes)),
        must_link=pairs["ml"] or None,
        cannot_link=pairs["cl"] or None,
        soft_must_link=priced("sml"),
        soft_cannot_link=priced("scl"),
    )
    return BuiltInstance(problem, classes, "published by PCCC")
