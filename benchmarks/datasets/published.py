"""The published PC-SOS-SDP instances with their best known costs, where a user has them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from certikmeans import Problem
from certikmeans.problem.files import read_links, read_points


@dataclass(frozen=True)
class Published:
    """One instance and what is known of it."""

    name: str
    problem: Problem
    best_known: float


def data_dir(given: str | None) -> Path | None:
    """The directory of real data: as given, from CERTIKMEANS_DATA_DIR, or ../shared/data."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    chosen = Path(given or os.environ.get("CERTIKMEANS_DATA_DIR") or beside)
    return chosen if chosen.is_dir() else None


def published_instances(directory: Path) -> Iterator[Published]:
    """Every instance listed in ``instances/best_known.csv``."""
    with open(directory / "instances" / "best_known.csv", newline="") as table:
        for row in csv.DictReader(table):
            folder = directory / "instances" / row["dataset"]
            points = read_points(folder / "data.txt").points
            links = read_links(folder / f"{row['instance']}.txt", kind=None)
            problem = Problem.from_data(
                points, int(row["k"]), must_link=links.must, cannot_link=links.cannot
            )
            name = f"{row['dataset']}/{row['instance']}"
            yield Published(name, problem, float(row["best_known_sse"]))
