"""Instances with limits on cluster sizes: published balanced sets, and normal clusters."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.datasets.base import BuiltInstance, Recipe, required_file
from benchmarks.datasets.constrained import Labels, Points
from certikmeans import Problem
from certikmeans.generate import random_pairs

# Target gap and limit in seconds of the published sets; the others have no target.
TARGETS = {
    "iris": (1e-4, 10.0), "thyroid": (1e-4, 10.0), "body": (1e-4, 10.0), "vowel": (1e-4, 10.0),
    "glass": (1e-3, 40.0), "ionosphere": (1e-3, 60.0), "breast_cancer": (1e-3, 60.0),
    "PhonesAcc": (1e-2, 40.0), "WatchGyro": (1e-2, 40.0), "vehicle": (3e-2, 60.0),
}  # fmt: skip
LABELS_ONLY = (1.0, 15.0)


def balanced_limits(n: int, k: int) -> tuple[int, int]:
    """Floor and ceiling of the mean size."""
    return n // k, -(-n // k)


def published(directory: Path) -> Iterator[Recipe]:
    """Balanced sets of ``sizes/best_known.csv`` with the cost of the best stored labels."""
    with open(directory / "sizes" / "best_known.csv", newline="") as table:
        for row in csv.DictReader(table):
            gap, limit = TARGETS.get(row["instance"], LABELS_ONLY)
            facts = {
                "section": "published",
                "gap": gap,
                "limit": limit,
                "published": float(row["best_of_the_two_exact"]),
            }
            yield Recipe(row["instance"], partial(read_balanced, row["instance"]), facts)


def read_balanced(name: str, directory: Path | None) -> BuiltInstance:
    """A balanced set: every cluster has floor(n/K) or ceil(n/K) points."""
    path = required_file(directory, f"sizes/instances/{name}.csv")
    with open(path) as file:
        n, _, k = (int(value) for value in file.readline().split(","))
        points = np.loadtxt(file, delimiter=",")
    low, high = balanced_limits(n, k)
    return BuiltInstance(Problem.from_data(points, k, size_min=low, size_max=high))


def wine(*, directory: Path | None = None) -> BuiltInstance:
    """Wine of scikit-learn, as measured, in three clusters of equal size."""
    from sklearn.datasets import load_wine

    points = load_wine().data
    low, high = balanced_limits(len(points), 3)
    return BuiltInstance(Problem.from_data(points, 3, size_min=low, size_max=high))


def normal_clusters_of_sizes(
    n: int, d: int, k: int, spread: float, unequal: float, seed: int
) -> tuple[Points, Labels]:
    """Normal clusters with centres in a cube of side 10; the largest ``1 + unequal`` times a mean.

    >>> np.bincount(normal_clusters_of_sizes(90, 2, 3, 1.0, 0.5, 0)[1]).tolist()
    [45, 30, 15]
    """
    rng = np.random.default_rng(seed)
    share = np.linspace(1.0 + unequal, 1.0 - unequal, k) / k
    ends = np.round(np.cumsum(share) * n).astype(np.int64)
    classes = np.searchsorted(ends, np.arange(n), side="right").astype(np.int64)
    centers = rng.uniform(0.0, 10.0, size=(k, d))
    return centers[classes] + rng.normal(scale=spread, size=(n, d)), classes


def normal_with_limits(
    n: int, d: int, k: int, kind: str, *, unequal: float = 0.0, spread: float = 0.7,
    seed: int = 1, directory: Path | None = None,
) -> BuiltInstance:  # fmt: skip
    """Normal clusters, with a minimum of 0.8 or a maximum of 1.2 mean sizes, or equal sizes."""
    points, classes = normal_clusters_of_sizes(n, d, k, spread, unequal, seed)
    low, high = balanced_limits(n, k)
    limits = {
        "minimum": {"size_min": int(0.8 * n / k)},
        "maximum": {"size_max": int(1.2 * n / k)},
        "equal": {"size_min": low, "size_max": high},
    }[kind]
    return BuiltInstance(Problem.from_data(points, k, **limits), classes)


def with_pairs(name: str, *, seed: int = 1, directory: Path | None = None) -> BuiltInstance:
    """Iris, wine (standardised) or blobs with n/4 pairs of each kind, sizes within 10 %."""
    if name == "blobs":
        points, classes = normal_clusters_of_sizes(2_000, 2, 3, 1.5, 0.1, seed)
    else:
        from sklearn.datasets import load_iris, load_wine

        bunch = load_iris() if name == "iris" else load_wine()
        points, classes = bunch.data, bunch.target.astype(np.int64)
        if name == "wine":
            points = (points - points.mean(axis=0)) / points.std(axis=0)
    n = len(points)
    must, cannot = random_pairs(classes, n // 4, n // 4, seed=seed)
    sizes = np.bincount(classes, minlength=3)
    problem = Problem.from_data(
        points, 3, must_link=must, cannot_link=cannot,
        size_min=int(0.9 * sizes.min()), size_max=int(np.ceil(1.1 * sizes.max())),
    )  # fmt: skip
    return BuiltInstance(problem, classes, "drawn from classes")


def groups_with_demand(
    n: int, k: int, *, seed: int = 1, directory: Path | None = None
) -> BuiltInstance:
    """Districts: demands from a lognormal distribution, totals within 5 % of their mean."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 10.0, size=(n, 2))
    demand = np.round(rng.lognormal(3.0, 0.8, size=n)) + 1.0
    mean = demand.sum() / k
    problem = Problem.from_data(
        points, k, demand=demand, weights=demand, size_min=0.95 * mean, size_max=1.05 * mean
    )
    return BuiltInstance(problem)
