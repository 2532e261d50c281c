"""The published instances: no bound above a best known cost, no cost above it, every gap closed."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from certikmeans import Problem, Status, solve
from certikmeans.problem.files import read_links, read_points

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
INSTANCES = Path(os.environ.get("CERTIKMEANS_DATA_DIR", BESIDE)) / "instances"


def published():
    table = INSTANCES / "best_known.csv"
    if not table.is_file():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def stated(row):
    folder = INSTANCES / row["dataset"]
    links = read_links(folder / f"{row['instance']}.txt", kind=None)
    points = read_points(folder / "data.txt").points
    return Problem.from_data(points, int(row["k"]), must_link=links.must, cannot_link=links.cannot)


@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("row", published(), ids=lambda row: f"{row['dataset']}-{row['instance']}")
def test_published_instance(row):
    best_known = float(row["best_known_sse"])
    result = solve(stated(row), time_limit=120)
    assert result.lower_bound <= best_known * (1 + 1e-12)
    assert result.cost <= best_known * (1 + 1e-6)
    assert result.status is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("row", published(), ids=lambda row: f"{row['dataset']}-{row['instance']}")
def test_published_instance_as_far_as_the_root_goes(row):
    best_known = float(row["best_known_sse"])
    for seed in (1, 2, 3):
        result = solve(stated(row), gap=1e-6, seed=seed, time_limit=20)
        assert result.lower_bound <= best_known * (1 + 1e-12)
        assert result.cost <= best_known * (1 + 1e-6)
