"""Published instances: the bound closes the gap and never passes the best known value."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from certikmeans.assignment import Assigner
from certikmeans.bounds.cluster import cluster_bound
from certikmeans.heuristics.base import Workshop
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CERTIKMEANS_DATA_DIR", ROOT.parent / "shared" / "data")) / "instances"


def instances():
    table = DATA / "best_known.csv"
    if not table.exists():
        return []
    with table.open() as lines:
        return [
            (row["dataset"], row["instance"], float(row["best_known_sse"]))
            for row in csv.DictReader(lines)
        ]


def load(dataset, instance):
    with (DATA / dataset / "data.txt").open() as lines:
        n_clusters = int(next(lines).split()[2])
        points = np.loadtxt(lines)
    pairs = {"ML": [], "CL": []}
    for line in (DATA / dataset / f"{instance}.txt").read_text().splitlines():
        kind, i, j = line.split()
        pairs[kind].append((int(i), int(j)))
    return Problem.from_data(points, n_clusters, must_link=pairs["ML"], cannot_link=pairs["CL"])


def check(dataset, instance, best_known):
    problem = load(dataset, instance)
    done = presolve(problem, StopSignal())
    assert isinstance(done, Presolved)
    assert done.witness is not None
    workshop = Workshop(
        done.reduced, Assigner(done.reduced, done.witness), done.witness, StopSignal(20.0)
    )
    labels = DefaultSearch().search(workshop)

    bound = cluster_bound(done.reduced, labels, target_gap=1e-3, stop=StopSignal(20.0))

    lower = done.restore_bound(bound.value)
    assert lower <= best_known * (1.0 + 1e-9)
    assert bound.reached
    assert lower >= best_known * (1.0 - 1.1e-3)


@pytest.mark.skipif(not instances(), reason="the published instances are not here")
@pytest.mark.parametrize("start", range(0, 8))
def test_published_instances_close_at_the_root(start):
    for dataset, instance, best_known in instances()[start::24]:
        check(dataset, instance, best_known)


@pytest.mark.slow
@pytest.mark.skipif(not instances(), reason="the published instances are not here")
def test_all_published_instances_close_at_the_root():
    for dataset, instance, best_known in instances():
        check(dataset, instance, best_known)
