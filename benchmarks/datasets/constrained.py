"""Instances with many cannot-links, cannot-link sets or many partial labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import BuiltInstance, required_file
from certikmeans import Problem
from certikmeans.generate import random_pairs

Points = NDArray[np.float64]
Labels = NDArray[np.int64]

# Published costs of PCCC (Baumann and Hochbaum, INFORMS Journal on Computing 2023.0419), best of
# the methods that it compares; constraint sets in the order of their size.
PCCC_COSTS = {
    "appendicitis": (491.8, 544.2, 612.9, 612.9),
    "glass": (814.1, 1_071.5, 1_266.2, 1_410.6),
    "iris": (146.3, 146.2, 141.0, 145.0),
    "tae": (487.0, 595.0, 684.3, 711.8),
    "moons": (283.7, 322.1, 322.9, 322.9),
}
PCCC_SIZES = ("0.05", "0.1", "0.15", "0.2")
PCCC_SYNTHETIC = {
    ("synthetic_n500_d2_k20", "0.05"): 29.6,
    ("synthetic_n1000_d2_k20", "0.05"): 63.9,
    ("synthetic_n2000_d2_k50", "0.05"): 69.3,
    ("synthetic_n5000_d2_k20", "0.05"): 370.2,
}


def normal_clusters(n: int, d: int, k: int, spread: float, seed: int) -> tuple[Points, Labels]:
    """Normal clusters with centres drawn from a cube of side 10.

    >>> points, classes = normal_clusters(30, 2, 3, 1.0, seed=1)
    >>> points.shape, np.unique(classes).tolist()
    ((30, 2), [0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.0, 10.0, size=(k, d))
    classes = np.arange(n, dtype=np.int64) % k
    return centers[classes] + rng.normal(scale=spread, size=(n, d)), classes


def many_cannot_links(
    n: int, d: int, k: int, per_point: float, *, spread: float = 1.6, seed: int = 1,
    directory: Path | None = None,
) -> BuiltInstance:  # fmt: skip
    """Overlapping normal clusters with cannot-links drawn from the classes, so many per point."""
    points, classes = normal_clusters(n, d, k, spread, seed)
    _, links = random_pairs(classes, 0, int(per_point * n), seed=seed)
    problem = Problem.from_data(points, k, cannot_link=links)
    return BuiltInstance(problem, classes, "drawn from classes")


def cannot_link_sets(
    n: int, d: int, k: int, largest: int, *, spread: float = 1.6, seed: int = 1,
    directory: Path | None = None,
) -> BuiltInstance:  # fmt: skip
    """Normal clusters, and sets of 2 to ``largest`` points of different classes.

    >>> cannot_link_sets(40, 2, 4, 3).problem.cannot_link_groups.shape
    (1, 40)
    """
    points, classes = normal_clusters(n, d, k, spread, seed)
    rng = np.random.default_rng(seed)
    waiting = [list(rng.permutation(np.flatnonzero(classes == j))) for j in range(k)]
    sets, number = np.full(n, -1, dtype=np.int64), 0
    while True:
        size = int(rng.integers(2, largest + 1))
        filled = [j for j in range(k) if waiting[j]]
        if len(filled) < size:
            break
        for j in rng.choice(filled, size=size, replace=False):
            sets[waiting[j].pop()] = number
        number += 1
    problem = Problem.from_data(points, k, cannot_link_groups=sets)
    return BuiltInstance(problem, classes, "sets of points of different classes")


def full_sets(
    n_sets: int, d: int, k: int, noise: float, *, seed: int = 1, directory: Path | None = None
) -> BuiltInstance:
    """Unit vectors with noise, one of every class in each set."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    centers /= np.linalg.norm(centers, axis=1)[:, None]
    points = np.concatenate([centers + noise * rng.normal(size=(k, d)) for _ in range(n_sets)])
    sets = np.repeat(np.arange(n_sets), k)
    classes = np.tile(np.arange(k, dtype=np.int64), n_sets)
    problem = Problem.from_data(points, k, cannot_link_groups=sets)
    return BuiltInstance(problem, classes, "one point of every class in each set")


def partly_labelled(
    n: int, d: int, k: int, share: float, *, spread: float = 0.35, seed: int = 1,
    directory: Path | None = None,
) -> BuiltInstance:  # fmt: skip
    """Normal clusters with the class known for a share of the points, as pairs."""
    from certikmeans import Constraints

    points, classes = normal_clusters(n, d, k, spread, seed)
    known = np.full(n, -1, dtype=np.int64)
    rows = np.random.default_rng(seed).choice(n, size=int(share * n), replace=False)
    known[rows] = classes[rows]
    pairs = Constraints.from_partial_labels(known)
    problem = Problem.from_data(points, k, must_link=pairs.must_link, cannot_link=pairs.cannot_link)
    return BuiltInstance(problem, classes, f"labels of {share:.0%} of the points")


def pccc(name: str, size: str, directory: Path | None) -> BuiltInstance:
    """Points and hard pairs of PCCC; K is the number of classes."""
    data = np.genfromtxt(
        required_file(directory, f"pccc/hard/{name}_data.csv"), delimiter=",", names=True
    )
    columns = [data[column] for column in data.dtype.names or () if column != "class"]
    classes = np.unique(data["class"], return_inverse=True)[1].astype(np.int64)
    path = required_file(directory, f"pccc/hard/{name}_constraints_{size}.json")
    pairs = json.loads(path.read_text())
    problem = Problem.from_data(
        np.stack(columns, axis=1),
        len(np.unique(classes)),
        must_link=pairs["ml"] or None,
        cannot_link=pairs["cl"] or None,
    )
    return BuiltInstance(problem, classes, "published by PCCC")
