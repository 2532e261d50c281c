"""Many clusters: points in the plane with published times, published pairs, large Gaussian sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import BuiltInstance, Recipe, required_file
from certikmeans import InputError, Problem
from certikmeans.generate import gaussian_clusters, random_pairs

HOUR = 3600.0
PRINTED_GAP = 1e-4  # what the published times are for
SEED = 1


@dataclass(frozen=True)
class Printed:
    """What CG+DCA's paper prints (INFORMS Journal on Computing 2024.0938), requested gap 0.01 %."""

    seconds: float  # of its own method
    sdp_seconds: float  # of SOS-SDP
    root_gap: float | None = None  # its own, where printed
    sdp_left: str = ""  # what SOS-SDP had not proven when its time was up


@dataclass(frozen=True)
class Plane:
    """A file of ``plane/`` with a number of clusters."""

    file: str
    k: int
    printed: Printed

    @property
    def gap(self) -> float:
        """0.01 % on the small files, 0.1 % elsewhere."""
        return 1e-4 if self.file in ("pr299", "gr666", "u1060") else 1e-3

    @property
    def limit(self) -> float:
        """Longer where the relaxation itself leaves a gap and the tree has to work."""
        hard = {("u2152", 20), ("u2152", 50), ("fl3795", 40)}
        return 300.0 if (self.file, self.k) in hard else 60.0


def _rows(
    file: str,
    ks: tuple[int, ...],
    ours: tuple[float, ...],
    sdp: tuple[float, ...],
    roots: tuple[float, ...] | None = None,
    left: tuple[str, ...] = ("",) * 5,
) -> Iterator[Plane]:
    for i, k in enumerate(ks):
        root = None if roots is None else roots[i]
        yield Plane(file, k, Printed(ours[i], sdp[i], root, left[i]))


def _hours(*values: float) -> tuple[float, ...]:
    return tuple(HOUR * value for value in values)


PLANE = (
    *_rows("pr299", (2, 4, 6, 8, 10), (61, 89, 29, 128, 21), (69, 907, 1255, 430, 338)),
    *_rows(
        "gr666",
        (2, 4, 6, 8, 10),
        (2905, 3516, 1894, 1006, 963),
        (10423, 7356, 6218, 9386, 14553),
    ),
    *_rows(
        "u1060",
        (10, 20, 30, 40, 50),
        _hours(1.87, 0.23, 0.09, 0.06, 0.04),
        _hours(6.5, 3.8, 4.4, 6.0, 6.2),
    ),
    *_rows(
        "u2152",
        (20, 30, 40, 50, 60),
        _hours(10.3, 6.5, 4.3, 2.3, 0.44),
        _hours(18, 18, 22, 24, 24),
        (0.0010, 0.0001, 0.0009, 0.0014, 0.0007),
        ("", "", "", "4.0 % left", "6.8 % left"),
    ),
    *_rows(
        "fl3795",
        (40, 50, 60, 70, 80),
        _hours(16.8, 5.6, 3.8, 2.7, 2.2),
        _hours(24, 24, 24, 24, 24),
        (0.0033, 0.0009, 0.0008, 0.0001, 0.0001),
        ("6 to 16 % left",) * 5,
    ),
)

PUBLISHED_PAIRS = tuple(
    (n, k, pairs) for k in (20, 100) for n in (500, 1_000, 2_000) for pairs in (500, 1_000)
)


def read_pccc_pairs(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Must-links and cannot-links of a PCCC file; soft pairs in it are refused.

    The JSON has ``ml`` and ``cl``, and for soft pairs ``sml``, ``scl`` with ``sml_proba``,
    ``scl_proba``.
    """
    document = json.loads(path.read_text())
    soft = sum(len(document.get(key, ())) for key in ("sml", "scl"))
    if soft:
        raise InputError(
            f"{path}: {soft} soft pairs (sml, scl), which are preferences, not rules",
            hint="only hard pairs (ml, cl) are supported; remove the others",
        )
    must, cannot = (
        np.asarray(document.get(key, ()), dtype=np.int64).reshape(-1, 2) for key in ("ml", "cl")
    )
    return must, cannot


def make_plane(file: str, k: int, directory: Path | None) -> BuiltInstance:
    """Points of TSPLIB: the first line has their number and 2."""
    path = required_file(directory, f"plane/{file}.txt")
    return BuiltInstance(Problem.from_data(np.loadtxt(path, skiprows=1), k), None, "none")


def make_published_pairs(n: int, k: int, pairs: int, directory: Path | None) -> BuiltInstance:
    """Synthetic points with the pairs published with them; the column ``class`` is no feature."""
    stem = f"many_clusters/synthetic_n{n}_d2_k{k}"
    table = np.loadtxt(required_file(directory, f"{stem}_data.csv"), delimiter=",", skiprows=1)
    links = required_file(directory, f"{stem}_constraints_{pairs}.json")
    must, cannot = read_pccc_pairs(links)
    problem = Problem.from_data(table[:, :2], k, must_link=must, cannot_link=cannot)
    return BuiltInstance(problem, table[:, 2].astype(np.int64), f"published, {links.name}")


def make_gaussian(
    n: int, d: int, k: int, spread: float, n_must: int, n_cannot: int, directory: Path | None = None
) -> BuiltInstance:
    """Gaussian clusters in a box of side 20, with pairs drawn from them."""
    points, classes = gaussian_clusters(n, d, k, spread=spread, seed=SEED)
    must, cannot = random_pairs(classes, n_must, n_cannot, seed=SEED)
    problem = Problem.from_data(points, k, must_link=must, cannot_link=cannot)
    return BuiltInstance(problem, classes, "drawn from classes" if n_must + n_cannot else "none")


def recipes() -> Iterator[Recipe]:
    """Every row, with its limit, the gap to prove and what is printed elsewhere."""
    for one in PLANE:
        printed = one.printed
        known = {
            "group": "plane",
            "limit": one.limit,
            "gap": one.gap,
            "printed_seconds": printed.seconds,
            "printed_root_gap": printed.root_gap,
            "sdp_seconds": printed.sdp_seconds,
            "sdp_left": printed.sdp_left,
        }
        yield Recipe(f"{one.file} K={one.k}", partial(make_plane, one.file, one.k), known)
    for n, k, pairs in PUBLISHED_PAIRS:
        known = {"group": "pairs", "limit": 60.0, "gap": 5e-3 if k == 20 else 1e-2}
        make = partial(make_published_pairs, n, k, pairs)
        yield Recipe(f"synthetic n={n:,} K={k}, {pairs:,} pairs", make, known)
    yield from _gaussian_recipes()


def _gaussian_recipes() -> Iterator[Recipe]:
    for n in (5_000, 20_000):
        known = {"group": "gaussian", "limit": 60.0, "gap": 1e-3}
        make = partial(make_gaussian, n, 2, 20, 2.0, 0, 0)
        yield Recipe(f"overlapping Gaussians {n:,} x 2 K=20 spread 2", make, known)
    large = (
        ("Gaussians 100,000 x 2 K=20, 25,000 CL", (100_000, 2, 20, 1.0, 0, 25_000), 60.0, 5e-3),
        ("Gaussians 100,000 x 3 K=50", (100_000, 3, 50, 1.0, 0, 0), 120.0, 1e-2),
        ("Gaussians 200,000 x 8 K=8, 50,000 ML", (200_000, 8, 8, 1.0, 50_000, 0), 120.0, 1e-2),
    )
    for title, sizes, limit, gap in large:
        known = {"group": "gaussian", "limit": limit, "gap": gap}
        yield Recipe(title, partial(make_gaussian, *sizes), known)
