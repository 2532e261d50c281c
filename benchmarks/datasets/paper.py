"""The paper's data sets and its way of drawing pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certikmeans import Problem
from certikmeans.generate import gaussian_clusters, paper_counts, random_pairs

PAIRS_SEED = 1
KINDS = ("ML", "CL", "ML+CL")


@dataclass(frozen=True)
class Dataset:
    """Points and the labels that pairs are drawn from."""

    name: str
    points: NDArray[np.float64]
    labels: NDArray[np.int64]


def synthetic(n_points: int, n_features: int = 2, n_clusters: int = 3) -> Dataset:
    """Gaussian clusters, seed 1, as in the paper (which does not state their spread)."""
    points, labels = gaussian_clusters(n_points, n_features, n_clusters, seed=1)
    return Dataset(f"synthetic-{n_points}", points, labels)


def real(name: str, directory: Path) -> Dataset | None:
    """A real data set by name, or None where its file is absent.

    Where a data set has no class, labels are those of the best of 20 runs of k-means with K = 3.
    "skin_8" is a fixed sample of 80,000 rows; "rds_cnt" is x, y and count.
    """
    path = directory / f"{name.removesuffix('_8')}.npz"
    if not path.is_file():
        return None
    with np.load(path) as file:
        points = file["X"].astype(np.float64)
        labels = file.get("y")
    if name == "rds_cnt":
        points = points[:, [0, 1, 3]]
    if labels is None:
        from sklearn.cluster import KMeans

        labels = KMeans(3, n_init=20, random_state=0).fit(points).labels_
    if name == "skin_8":
        rows = np.random.default_rng(0).permutation(len(points))[:80_000]
        points, labels = points[rows], labels[rows]
    return Dataset(name, points, np.unique(labels, return_inverse=True)[1])


def with_pairs(data: Dataset, kind: str, n_clusters: int = 3) -> Problem:
    """Draw n/4 pairs of each kind asked for, at random from the labels."""
    n_must, n_cannot = paper_counts(len(data.points), kind.lower())
    must, cannot = random_pairs(data.labels, n_must, n_cannot, seed=PAIRS_SEED)
    return Problem.from_data(data.points, n_clusters, must_link=must, cannot_link=cannot)
