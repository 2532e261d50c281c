"""Data sets and instances of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import AbstractInstance, BuiltInstance, required_file
from benchmarks.datasets.published import read_published
from certikmeans import InputError, Problem
from certikmeans.generate import gaussian_clusters, paper_counts, random_pairs

SPNET3D_FILE = "3D_spatial_network.txt"
_COLUMNS = 4  # road number, longitude, latitude, altitude


def read_spnet3d(path: Path) -> NDArray[np.float64]:
    """Longitude, latitude and altitude: the three features of the paper's SPNET3D.

    The road number in front of them is a name, not a feature.
    """
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise InputError(
            f"{path}: {error}",
            hint="expected lines of four numbers with commas between them, as UCI has it",
        ) from error
    if table.shape[1] != _COLUMNS:
        raise InputError(
            f"{path}: {table.shape[1]} columns instead of {_COLUMNS}",
            hint="road number, longitude, latitude, altitude",
        )
    return np.ascontiguousarray(table[:, 1:])


# The paper's data sets and its way of drawing pairs.

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
        return SPNET3D_FILE
    return f"{name.removesuffix('_8')}.npz"


def real(name: str, directory: Path | None) -> Dataset:
    """A real data set by name; raises `MissingDataError` where its file is absent.

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
    if file == SPNET3D_FILE:
        return read_spnet3d(path), None
    with np.load(path) as arrays:
        return arrays["X"].astype(np.float64), arrays.get("y")


def with_pairs(data: Dataset, kind: str, n_clusters: int = 3, fraction: int = 4) -> Problem:
    """Draw n/4 (or another fraction) pairs of each requested kind, at random from the labels."""
    n_points = len(data.points)
    n_must, n_cannot = paper_counts(n_points, kind.lower())
    share = n_points // fraction
    must, cannot = random_pairs(
        data.labels, share if n_must else 0, share if n_cannot else 0, seed=PAIRS_SEED
    )
    return Problem.from_data(data.points, n_clusters, must_link=must, cannot_link=cannot)


# The paper's instances by name, so that a row can be made in another process and found again.

UNCONSTRAINED = "none"

FILES = {
    "Iris": "iris",
    "Seeds": "seeds",
    "Hemi": "hemi",
    "PR2392": "pr2392",
    "RDS_CNT": "rds_cnt",
    "HTRU2": "htru2",
    "SPNET3D_5": "spnet3D_5",
    "Skin_8": "skin_8",
    "URBANGB": "urbanGB",
    "SPNET3D": "spnet3D",
}
"""The paper's names of its real data sets, and ours."""

PUBLISHED = {
    ("Iris", "ML"): "iris/ml_50_cl_0_0",
    ("Iris", "CL"): "iris/ml_0_cl_50_2",
    ("Iris", "ML+CL"): "iris/ml_25_cl_25_1",
    ("Seeds", "ML"): "seeds/ml_50_cl_0_0",
    ("Seeds", "CL"): "seeds/ml_0_cl_50_0",
    ("Seeds", "ML+CL"): "seeds/ml_25_cl_25_1",
}
"""Rows of the paper whose pairs are public: those of PC-SOS-SDP reproduce its printed objective."""

SYNTHETIC = "Syn-"
# Begins the description of pairs that take the place of published ones.
SUBSTITUTE = "SUBSTITUTE for the published pairs, "


@final
@dataclass(frozen=True)
class Instance(AbstractInstance):
    """A data set of the paper, a kind of pairs and how many, and K."""

    dataset: str
    kind: str  # "ML", "CL", "ML+CL" or "none"
    fraction: int = 4  # n / fraction pairs of each kind
    n_clusters: int = 3
    substitute: bool = False  # other pairs in place of the published ones

    @property
    def name(self) -> str:
        """Short and unique.

        >>> Instance("Hemi", "CL").name, Instance("Skin_8", "ML", n_clusters=2).name
        ('Hemi CL', 'Skin_8 ML K=2')
        >>> Instance("Iris", "CL").with_pairs_of(None).name
        'Iris CL (substitute pairs)'
        """
        share = "" if self.fraction == 4 else f" n/{self.fraction}"
        clusters = "" if self.n_clusters == 3 else f" K={self.n_clusters}"
        note = " (substitute pairs)" if self.substitute else ""
        return f"{self.dataset} {self.kind}{share}{clusters}{note}"

    def with_pairs_of(self, directory: Path | None) -> Instance:
        """Return the instance as the data directory allows it, with its name."""
        return replace(
            self, substitute=_is_public(self) and _published_file(self, directory) is None
        )

    @property
    def facts(self) -> dict[str, Any]:
        """Which data set and which kind of pairs."""
        return {"dataset": self.dataset, "kind": self.kind}

    def build(self, directory: Path | None) -> BuiltInstance:
        """Read or draw; raises `MissingDataError` where the data are not here."""
        data = _dataset(self, directory)
        classes = data.labels if data.has_classes else None
        if self.kind == UNCONSTRAINED:
            return BuiltInstance(Problem.from_data(data.points, self.n_clusters), classes, "none")
        published = _published(self, directory)
        if published is not None:
            return BuiltInstance(published[0], classes, f"published, {published[1]}")
        problem = with_pairs(data, self.kind, self.n_clusters, self.fraction)
        drawn = f"drawn from {'classes' if data.has_classes else 'labels of k-means'}"
        return BuiltInstance(problem, classes, SUBSTITUTE + drawn if _is_public(self) else drawn)


def _dataset(instance: Instance, directory: Path | None) -> Dataset:
    if instance.dataset.startswith(SYNTHETIC):
        return synthetic(int(instance.dataset.removeprefix(SYNTHETIC)))
    name = FILES[instance.dataset]
    return real(name, directory)


def _is_public(instance: Instance) -> bool:
    """Whether the pairs of the row in the paper are published."""
    known = (instance.dataset, instance.kind) in PUBLISHED
    return known and instance.fraction == 4 and instance.n_clusters == 3


def _published(instance: Instance, directory: Path | None) -> tuple[Problem, str] | None:
    """The published instance behind a row of the paper, where the user has it."""
    name = _published_file(instance, directory)
    if directory is None or name is None:
        return None
    return read_published(name, instance.n_clusters, directory).problem, name


def _published_file(instance: Instance, directory: Path | None) -> str | None:
    """Name of the published file of pairs, where there is one and the user has it."""
    if directory is None or not _is_public(instance):
        return None
    name = PUBLISHED[instance.dataset, instance.kind]
    return name if (directory / "instances" / f"{name}.txt").is_file() else None
