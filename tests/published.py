"""Where the published instances are, for the tests that use them."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from certikmeans import Problem
from certikmeans.problem.io import read_links, read_points

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
INSTANCES = Path(os.environ.get("CERTIKMEANS_DATA_DIR", BESIDE)) / "instances"


def published():
    """Rows of the table of best known costs; none where it is absent."""
    table = INSTANCES / "best_known.csv"
    if not table.is_file():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def stated(row):
    """The instance of a row."""
    folder = INSTANCES / row["dataset"]
    links = read_links(folder / f"{row['instance']}.txt", kind=None)
    points = read_points(folder / "data.txt").points
    return Problem.from_data(points, int(row["k"]), must_link=links.must, cannot_link=links.cannot)
