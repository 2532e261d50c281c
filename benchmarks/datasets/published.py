"""The published PC-SOS-SDP instances with their best known costs, where a user has them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import BuiltInstance, Recipe, required_file
from certikmeans import Problem
from certikmeans.problem.io import read_links, read_points


@dataclass(frozen=True)
class Published:
    """One line of the table: an instance and what is known of it."""

    name: str  # data set / file of pairs
    n_clusters: int
    best_known: float

    def recipe(self, title: str | None = None, **facts: Any) -> Recipe:
        """The instance, under its own name by default."""
        make = partial(read_published, self.name, self.n_clusters)
        known = {"best_known": self.best_known, **facts}
        return Recipe(self.name if title is None else title, make, known)


def data_dir(given: str | None) -> Path | None:
    """The directory of real data: as given, from CERTIKMEANS_DATA_DIR, or ../shared/data."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    chosen = Path(given or os.environ.get("CERTIKMEANS_DATA_DIR") or beside)
    return chosen if chosen.is_dir() else None


def published_instances(directory: Path) -> Iterator[Published]:
    """Every instance listed in ``instances/best_known.csv``."""
    with open(directory / "instances" / "best_known.csv", newline="") as table:
        for row in csv.DictReader(table):
            name = f"{row['dataset']}/{row['instance']}"
            yield Published(name, int(row["k"]), float(row["best_known_sse"]))


def read_published(name: str, n_clusters: int, directory: Path | None) -> BuiltInstance:
    """Points and pairs of an instance; without a file of pairs (``"iris"``), the points alone."""
    folder, _, pairs = name.partition("/")
    points = read_points(required_file(directory, f"instances/{folder}/data.txt")).points
    if not pairs:
        return BuiltInstance(Problem.from_data(points, n_clusters), None, "none")
    links = read_links(required_file(directory, f"instances/{name}.txt"), kind=None)
    problem = Problem.from_data(points, n_clusters, must_link=links.must, cannot_link=links.cannot)
    return BuiltInstance(problem, None, f"published, {name}")
