"""The paper's data sets and its way of drawing pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import required_file
from benchmarks.datasets.spnet3d import FILE_NAME, read_spnet3d
from certikmeans import Problem
from certikmeans.generate import gaussian_clusters, paper_counts, random_pairs

PAIRS_SEED = 1
KINDS = ("ML", "CL", "ML+CL")
SAMPLES = {"skin_8": 80_000, "spnet3D_5": 50_000}
"""Data sets that are a fixed sample of another one's rows, and how many."""


@dataclass(frozen=True)
class Dataset:
    """Points and the labels that pairs are drawn from."""

    name: str
    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    has_classes: bool = True  # else the labels are those of k-means


def synthetic(n_points: int, n_features: int = 2, n_clusters: int = 3) -> Dataset:
    """Gaussian clusters, seed 1, as in the paper (which does not state their spread)."""
    points, labels = gaussian_clusters(n_points, n_features, n_clusters, seed=1)
    return Dataset(f"synthetic-{n_points}", points, labels)


def file_name(name: str) -> str | None:
    """The file that a real data set is read from; None for Iris, which comes with scikit-learn.

    >>> file_name("skin_8"), file_name("spnet3D_5"), file_name("iris")
    ('skin.npz', '3D_spatial_network.txt', None)
    """
    if name == "iris":
        return None
    if name.startswith("spnet3D"):
        return FILE_NAME
    return f"{name.removesuffix('_8')}.npz"


def real(name: str, directory: Path | None) -> Dataset:
    """A real data set by name; raises `AbsentError` where its file is absent.

    Where a data set has no class, labels are those of the best of 20 runs of k-means with K = 3.
    "skin_8" and "spnet3D_5" are fixed samples of rows; "rds_cnt" is x, y and count.
    """
    points, classes = _read(name, directory)
    if name == "rds_cnt":
        points = points[:, [0, 1, 3]]
    labels = classes
    if labels is None:
        from sklearn.cluster import KMeans

        labels = KMeans(3, n_init=20, random_state=0).fit(points).labels_
    if name in SAMPLES:
        rows = np.random.default_rng(0).permutation(len(points))[: SAMPLES[name]]
        points, labels = points[rows], labels[rows]
    numbers = np.unique(labels, return_inverse=True)[1]
    return Dataset(name, points, numbers, has_classes=classes is not None)


def _read(name: str, directory: Path | None) -> tuple[NDArray[np.float64], Any]:
    """Points and classes, if there are any."""
    file = file_name(name)
    if file is None:
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)  # type: ignore[no-any-return]
    path = required_file(directory, file)
    if file == FILE_NAME:
        return read_spnet3d(path), None
    with np.load(path) as arrays:
        return arrays["X"].astype(np.float64), arrays.get("y")


def with_pairs(data: Dataset, kind: str, n_clusters: int = 3, fraction: int = 4) -> Problem:
    """Draw n/4 (or another fraction) pairs of each kind asked for, at random from the labels."""
    n_points = len(data.points)
    n_must, n_cannot = paper_counts(n_points, kind.lower())
    share = n_points // fraction
    must, cannot = random_pairs(
        data.labels, share if n_must else 0, share if n_cannot else 0, seed=PAIRS_SEED
    )
    return Problem.from_data(data.points, n_clusters, must_link=must, cannot_link=cannot)
