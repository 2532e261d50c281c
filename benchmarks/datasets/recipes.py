"""Instances made from real or synthetic points, in memory or stored on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.datasets.base import BuiltInstance, required_file
from benchmarks.datasets.paper import real, synthetic, with_pairs
from certikmeans import Problem
from certikmeans.generate import gaussian_clusters, random_pairs


def real_with_pairs(name: str, kind: str, directory: Path | None) -> BuiltInstance:
    """A real data set with n/4 pairs of each kind."""
    data = real(name, directory)
    drawn_from = "classes" if data.has_classes else "labels of k-means"
    classes = data.labels if data.has_classes else None
    return BuiltInstance(with_pairs(data, kind), classes, f"drawn from {drawn_from}")


def synthetic_with_pairs(
    n: int, kind: str, d: int, k: int, directory: Path | None = None
) -> BuiltInstance:
    """The paper's Gaussian clusters with n/4 pairs of each kind."""
    data = synthetic(n, d, k)
    return BuiltInstance(with_pairs(data, kind, k), data.labels, "drawn from classes")


def noise(n: int, d: int, k: int, seed: int = 0, directory: Path | None = None) -> BuiltInstance:
    """One normal cloud: there are no clusters to find.

    >>> noise(12, 2, 3).problem.points.shape
    (12, 2)
    """
    points = np.random.default_rng(seed).normal(size=(n, d))
    return BuiltInstance(Problem.from_data(points, k), None, "none")


def crossed(
    n: int, d: int, k: int, n_pairs: int, seed: int = 0, directory: Path | None = None
) -> BuiltInstance:
    """Uniform points with cannot-links drawn from random classes: they cut across the geometry."""
    rng = np.random.default_rng(seed)
    points, classes = rng.uniform(size=(n, d)), rng.integers(k, size=n)
    _, cannot = random_pairs(classes, 0, n_pairs, seed=seed)
    return BuiltInstance(Problem.from_data(points, k, cannot_link=cannot), None, "drawn at random")


def standardized(name: str, k: int, directory: Path | None = None) -> BuiltInstance:
    """A data set of scikit-learn, every feature with mean 0 and variance 1.

    >>> standardized("wine", 3).problem.points.shape
    (178, 13)
    """
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    data, classes = getattr(datasets, f"load_{name}")(return_X_y=True)
    classes = classes if name != "diabetes" else None  # a measurement, not a class
    return BuiltInstance(
        Problem.from_data(StandardScaler().fit_transform(data), k), classes, "none"
    )


def standardized_file(name: str, k: int | None, directory: Path | None = None) -> BuiltInstance:
    """A data set of the data directory, every feature with mean 0 and variance 1.

    Parameters
    ----------
    name : str
        Path in the directory.
    k : int or None
        Number of clusters; by default that of the first line, ``n,d,k``.
    """
    from sklearn.preprocessing import StandardScaler

    path, classes = required_file(directory, name), None
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            points = arrays["X"].astype(np.float64)
            classes = arrays["y"].astype(np.int64) if "y" in arrays else None
    else:
        with open(path, encoding="utf-8") as file:
            sizes = file.readline().replace(",", " ").split()
            points = np.loadtxt(file, delimiter="," if path.suffix == ".csv" else None)
        k = int(sizes[2]) if k is None else k
    points = StandardScaler().fit_transform(points)
    assert k is not None
    return BuiltInstance(Problem.from_data(points, k), classes, "none")


def blobs(
    n: int, d: int, k: int, spread: float = 4.0, directory: Path | None = None
) -> BuiltInstance:
    """Round clusters of scikit-learn's ``make_blobs``, seed 0; no pairs."""
    from sklearn.datasets import make_blobs

    points, classes = make_blobs(n, d, centers=k, cluster_std=spread, random_state=0)
    return BuiltInstance(Problem.from_data(points, k), classes, "none")


# Instances too large to be drawn where they are solved: drawn once, by another process, mapped.
#
# ``python -m benchmarks.datasets.recipes N KIND FOLDER`` draws one.

N_CLUSTERS, N_FEATURES = 3, 2
PAIR_ARGUMENTS = {"ML": "must_link", "CL": "cannot_link"}


def _stored_paths(n: int, kind: str, folder: Path) -> tuple[Path, Path]:
    return folder / f"points-{n}.npy", folder / f"{kind}-{n}.npy"


def write_synthetic(n: int, kind: str, folder: Path) -> None:
    """Write points and n/4 pairs of one kind; a file is there as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    points, classes = gaussian_clusters(n, N_FEATURES, N_CLUSTERS, seed=1)
    n_pairs = (n // 4, 0) if kind == "ML" else (0, n // 4)
    must, cannot = random_pairs(classes, *n_pairs, seed=1)
    for path, array in zip(
        _stored_paths(n, kind, folder), (points, must if kind == "ML" else cannot), strict=True
    ):
        part = path.with_suffix(".part.npy")
        np.save(part, array)
        part.replace(path)


def stored_synthetic(
    n: int, kind: str, folder: Path, directory: Path | None = None
) -> BuiltInstance:
    """The paper's Gaussian clusters with n/4 pairs, from files that are mapped, not copied."""
    points, pairs = _stored_paths(n, kind, folder)
    if not (points.exists() and pairs.exists()):
        command = [sys.executable, "-m", "benchmarks.datasets.recipes", str(n), kind, str(folder)]
        subprocess.run(command, check=True)
    links = {PAIR_ARGUMENTS[kind]: np.load(pairs, mmap_mode="r")}
    problem = Problem.from_data(np.load(points, mmap_mode="r"), N_CLUSTERS, **links)
    return BuiltInstance(problem, None, "drawn from classes")


if __name__ == "__main__":
    write_synthetic(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
