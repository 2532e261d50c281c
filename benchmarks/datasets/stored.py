"""Instances too large to be drawn where they are solved: drawn once, by another process, mapped.

``python -m benchmarks.datasets.stored N KIND FOLDER`` draws one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.datasets.base import Built
from certikmeans import Problem
from certikmeans.generate import gaussian_clusters, random_pairs

N_CLUSTERS, N_FEATURES = 3, 2
KINDS = {"ML": "must_link", "CL": "cannot_link"}


def _paths(n: int, kind: str, folder: Path) -> tuple[Path, Path]:
    return folder / f"points-{n}.npy", folder / f"{kind}-{n}.npy"


def draw(n: int, kind: str, folder: Path) -> None:
    """Write points and n/4 pairs of one kind; a file is there as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    points, classes = gaussian_clusters(n, N_FEATURES, N_CLUSTERS, seed=1)
    n_pairs = (n // 4, 0) if kind == "ML" else (0, n // 4)
    must, cannot = random_pairs(classes, *n_pairs, seed=1)
    for path, array in zip(
        _paths(n, kind, folder), (points, must if kind == "ML" else cannot), strict=True
    ):
        part = path.with_suffix(".part.npy")
        np.save(part, array)
        part.replace(path)


def stored_synthetic(n: int, kind: str, folder: Path, directory: Path | None = None) -> Built:
    """The paper's Gaussian clusters with n/4 pairs, from files that are mapped, not copied."""
    points, pairs = _paths(n, kind, folder)
    if not (points.exists() and pairs.exists()):
        command = [sys.executable, "-m", "benchmarks.datasets.stored", str(n), kind, str(folder)]
        subprocess.run(command, check=True)
    links = {KINDS[kind]: np.load(pairs, mmap_mode="r")}
    problem = Problem.from_data(np.load(points, mmap_mode="r"), N_CLUSTERS, **links)
    return Built(problem, None, "drawn from classes")


if __name__ == "__main__":
    draw(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
