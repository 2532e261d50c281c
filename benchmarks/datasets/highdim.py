"""Data with many axes, each with the gap to prove and the seconds for it.

Real sets are standardised as the files have them; ``y`` is the class where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import BuiltInstance, Recipe, required_file
from benchmarks.datasets.published import published_instances, read_published
from certikmeans import Problem
from certikmeans.generate import random_pairs

PAIRS_SEED = 1
PAIRS_SHARE = 10  # n / 10 pairs of each kind
GAP_FACTOR_WITH_PAIRS = 2.0  # how much wider the gap may be with pairs

Table = tuple[NDArray[np.float64], NDArray[np.int64] | None, int]
"""Points, classes where there are any, and K."""


@dataclass(frozen=True)
class Target:
    """Target of a data set."""

    name: str
    limit: float  # seconds
    gap: float
    stretch_gap: float | None = None  # better still
    has_classes: bool = True
    avoc: bool = False  # one of the sets of AVOC's paper


REAL = (
    Target("breast cancer", 15, 1e-3),
    Target("avoc_abalone", 5, 1e-3, has_classes=False, avoc=True),
    Target("digits", 120, 5e-3, 2.5e-3),
    Target("satimage", 180, 3e-3),
    Target("segment", 120, 3e-3),
    Target("avoc_facebook", 180, 5e-3, has_classes=False, avoc=True),
    Target("pendigits", 180, 1.5e-2),
    Target("mnist10k", 600, 1.5e-2, 1e-2),
)


@dataclass(frozen=True)
class Blobs:
    """A row of scikit-learn's ``make_blobs``, seed 0."""

    n: int
    d: int
    k: int
    spread: float
    limit: float
    gap: float = 1e-3

    @property
    def name(self) -> str:
        """Sizes and spread."""
        return f"blobs {self.n:,} x {self.d} K={self.k} spread {self.spread:g}"


BLOBS = (
    Blobs(2_000, 10, 5, 4, 30),
    Blobs(2_000, 50, 5, 4, 30),
    Blobs(50_000, 30, 10, 1, 15),
    Blobs(50_000, 30, 10, 3, 15),
    Blobs(20_000, 100, 20, 2, 15),
    Blobs(200_000, 30, 10, 4, 30),
    Blobs(50_000, 30, 10, 5, 60, 2e-3),
)

WIDE = tuple((d, k) for d in (100, 300, 500, 700) for k in (2, 3, 4, 5))
WIDE_POINTS, WIDE_PAIRS, WIDE_SPREAD, WIDE_LIMIT, WIDE_GAP = 500, 250, 4.0, 60.0, 1e-3
SMALL_LIMIT, SMALL_GAP, SMALL_CLUSTERS = 60.0, 1e-4, (6, 7, 8)


def real_table(name: str, directory: Path | None) -> Table:
    """A real data set; two come with scikit-learn, the others are files of ``highdim/``."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if name == "breast cancer":
        points, classes = datasets.load_breast_cancer(return_X_y=True)
        return StandardScaler().fit_transform(points), classes.astype(np.int64), 2
    if name == "digits":
        points, classes = datasets.load_digits(return_X_y=True)
        return points.astype(np.float64), classes.astype(np.int64), 10
    with np.load(required_file(directory, f"highdim/{name}.npz")) as arrays:
        known = arrays["y"].astype(np.int64) if "y" in arrays else None
        return arrays["X"].astype(np.float64), known, int(arrays["k"])


def blobs_table(row: Blobs) -> Table:
    """Gaussian blobs; their numbers are the classes."""
    from sklearn.datasets import make_blobs

    points, classes = make_blobs(
        n_samples=row.n, n_features=row.d, centers=row.k, cluster_std=row.spread, random_state=0
    )
    return points, classes.astype(np.int64), row.k


def built(table: Table, with_pairs: bool) -> BuiltInstance:
    """The problem without pairs, or with n/10 of each kind drawn from the classes."""
    points, classes, k = table
    if not with_pairs:
        return BuiltInstance(Problem.from_data(points, k), classes, "none")
    return _with_random_pairs(table, len(points) // PAIRS_SHARE)


def _with_random_pairs(table: Table, n_pairs: int) -> BuiltInstance:
    """With so many pairs of each kind."""
    points, classes, k = table
    assert classes is not None, "pairs are drawn from classes"
    must, cannot = random_pairs(classes, n_pairs, n_pairs, seed=PAIRS_SEED)
    problem = Problem.from_data(points, k, must_link=must, cannot_link=cannot)
    return BuiltInstance(problem, classes, "drawn from classes")


def make_real(name: str, with_pairs: bool, directory: Path | None) -> BuiltInstance:
    """A real data set."""
    return built(real_table(name, directory), with_pairs)


def make_blobs_row(row: Blobs, with_pairs: bool, directory: Path | None = None) -> BuiltInstance:
    """A row of blobs."""
    return built(blobs_table(row), with_pairs)


def make_wide(d: int, k: int, directory: Path | None = None) -> BuiltInstance:
    """As many axes as points, about: blobs with 125 pairs of each kind."""
    row = Blobs(WIDE_POINTS, d, k, WIDE_SPREAD, WIDE_LIMIT)
    return _with_random_pairs(blobs_table(row), WIDE_PAIRS // 2)


def recipes() -> Iterator[Recipe]:
    """Every set without pairs, then those with classes with pairs, then the wide ones."""
    for with_pairs in (False, True):
        suffix = ", n/10 ML+CL" if with_pairs else ""
        group = "pairs" if with_pairs else "free"
        times = GAP_FACTOR_WITH_PAIRS if with_pairs else 1.0
        for one in REAL:
            if with_pairs and not one.has_classes:
                continue
            known = {
                "group": group,
                "limit": one.limit,
                "gap": times * one.gap,
                "aim": None if one.stretch_gap is None else times * one.stretch_gap,
                "avoc": one.avoc,
            }
            yield Recipe(one.name + suffix, partial(make_real, one.name, with_pairs), known)
        for row in BLOBS:
            known = {"group": group, "limit": row.limit, "gap": times * row.gap}
            yield Recipe(row.name + suffix, partial(make_blobs_row, row, with_pairs), known)
    for d, k in WIDE:
        known = {"group": "wide", "limit": WIDE_LIMIT, "gap": WIDE_GAP}
        title = f"blobs {WIDE_POINTS} x {d} K={k} spread {WIDE_SPREAD:g}, {WIDE_PAIRS} pairs"
        yield Recipe(title, partial(make_wide, d, k), known)


def small_recipes(directory: Path | None) -> Iterator[Recipe]:
    """Published instances of up to 400 groups to 1e-4; their points with K = 6 to 8 too."""
    if directory is None:
        return
    known = {"group": "small", "limit": SMALL_LIMIT, "gap": SMALL_GAP}
    folders: dict[str, str] = {}
    for one in published_instances(directory):
        yield one.recipe(f"published {one.name}", **known)
        folders[one.name.partition("/")[0]] = one.name  # the last file of pairs of each set
    for folder, pairs in folders.items():
        for k in SMALL_CLUSTERS:
            for name in (folder, pairs):
                yield Recipe(f"{name} K={k}", partial(read_published, name, k), known)
