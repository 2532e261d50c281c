"""``certikmeans solve`` as a process: exit codes, and what goes where."""

from __future__ import annotations

import json

import numpy as np
import pytest

from certikmeans.generate import gaussian_clusters, random_pairs, write_instance
from tests.cli.process import run

KEYS = {
    "status",
    "stop_reason",
    "cost",
    "lower_bound",
    "gap",
    "bound",
    "failure",
    "labels",
    "centers",
    "n_clusters",
    "n_points",
    "n_features",
    "n_must_link",
    "n_cannot_link",
    "nodes",
    "iterations",
    "seconds",
    "seed",
    "version",
    "infeasibility",
}


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """A directory with sixty points in three clusters, and pairs."""
    folder = tmp_path_factory.mktemp("instance")
    points, labels = gaussian_clusters(60, n_clusters=3, seed=5)
    must, cannot = random_pairs(labels, 10, 10, seed=5)
    write_instance(folder / "small", points, labels, must, cannot)
    rows = [f"{x!r},{y!r},{'abc'[k]}" for (x, y), k in zip(points.tolist(), labels, strict=True)]
    (folder / "classes.csv").write_text("x,y,class\n" + "\n".join(rows) + "\n")
    (folder / "must.txt").write_text("4 3\n")
    (folder / "cannot.txt").write_text("1 2\n2 4\n1 3\n")
    (folder / "outside.txt").write_text("CL 0 1\nCL 0 60\n")
    return folder


def test_everything_at_once(instance, tmp_path):
    done = run(
        *("solve", "classes.csv", "-k", 3, "--constraints", "small.pairs.txt"),
        *("--labels-column", "class", "--json", "--gap", "0"),
        *("--output", tmp_path / "out.json", "--plot", tmp_path / "out.png"),
        cwd=instance,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert set(result) == KEYS | {"adjusted_rand_index"}
    assert result["status"] == "feasible"
    assert result["stop_reason"] == "methods_exhausted"
    assert 0.0 <= result["lower_bound"] <= result["cost"]
    assert len(result["labels"]) == 60
    assert result["adjusted_rand_index"] > 0.9
    check_cost_and_pairs(instance, result)
    assert json.loads((tmp_path / "out.json").read_text()) == result
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.png"]
    assert "] heuristics" in done.stderr
    assert f"wrote {tmp_path / 'out.json'}" in done.stderr
    assert "\x1b" not in done.stderr


def check_cost_and_pairs(folder, result):
    """Recompute the cost of the labels, and look at every pair."""
    points = np.loadtxt(folder / "small.csv", delimiter=",", skiprows=1)
    labels = np.array(result["labels"])
    cost = sum(((points[labels == k] - points[labels == k].mean(0)) ** 2).sum() for k in range(3))
    assert result["cost"] == pytest.approx(cost, rel=1e-9)
    for line in (folder / "small.pairs.txt").read_text().splitlines():
        kind, i, j = line.split()
        assert (labels[int(i)] == labels[int(j)]) == (kind == "ML")


def test_summary_when_the_gap_is_reached(instance):
    # All labels are known: nothing is left to choose, and the bound shows it.
    done = run(
        *("solve", "small.csv", "-k", 3, "--partial-labels", "small.labels.txt"), cwd=instance
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Status        optimal.")
    for word in ("Cost", "Lower bound", "Gap", "Proven", "Clusters", "Pairs", "Time"):
        assert f"\n{word} " in done.stdout
    assert "\x1b" not in done.stdout
    assert "finished, optimal" in done.stderr


def test_infeasible(instance):
    done = run(
        *("solve", "small.csv", "-k", 2, "--must-link", "must.txt", "--cannot-link", "cannot.txt"),
        *("--one-based", "--json"),
        cwd=instance,
    )
    assert done.returncode == 3
    result = json.loads(done.stdout)
    assert (result["status"], result["stop_reason"]) == ("infeasible", "proven_infeasible")
    assert result["labels"] is None
    assert result["cost"] is None
    assert result["infeasibility"]["members"] == [0, 1, 2]  # JSON counts from 0, always
    assert "error: no labelling respects every pair" in done.stderr
    assert ": 1, 2, 3\n" in done.stderr  # people count as in their file


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["missing.csv", "-k", 2], "missing.csv: no such file", "looked in"),
        (["small.csv"], "number of clusters is missing", "add -k K"),
        (["small.csv", "-k", 61], "61 is not between 1 and", "choose a K"),
        (["small.csv", "-k", 2, "--gap", 2], "gap: 2.0 is not", "0.001 asks"),
        (["small.csv", "-k", 2, "--time-limit", 0], "time limit: 0.0", "leave it out"),
        (["small.csv", "-k", 2, "--jobs", 0], "jobs: 0 is not", "whole number"),
        (["small.csv", "-k", 2, "--bound", "best"], "bound: 'best' is unknown", "auto"),
        (
            ["small.csv", "-k", 2, "--certificate", "c.cert", "--bound", "grouped"],
            "the grouped bound has no leaf",
            "use --bound auto",
        ),
        (
            ["small.csv", "-k", 2, "--constraints", "outside.txt"],
            "outside.txt, line 2: pair (0, 60) names a point",
            "numbered 0 to 59",
        ),
        (["small.csv", "-k", 2, "--output", "no/out.json"], "does not exist", "create it"),
        (["small.csv", "-k", 2, "--output", "small.csv"], "is an input", "another name"),
        (["small.csv", "-k", 2, "--plot", "out.bmp"], "cannot be written as '.bmp'", ".png"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input(instance, arguments, error, hint):
    before = sorted(path.name for path in instance.iterdir())
    done = run("solve", *arguments, "--json", cwd=instance)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[-2].startswith("error: ")
    assert error in lines[-2]
    assert lines[-1].startswith("hint: ")
    assert hint in lines[-1]
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in instance.iterdir()) == before


@pytest.mark.parametrize(
    "arguments", [["solve", "small.csv", "-k", "two"], ["solve", "--nonsense"], ["nonsense"]]
)
def test_bad_usage(instance, arguments):
    done = run(*arguments, cwd=instance)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error: " in done.stderr


def test_warm_start_must_respect_the_pairs(instance):
    (instance / "all-in-one.txt").write_text("0\n" * 60)
    done = run(
        *("solve", "small.csv", "-k", 3, "--constraints", "small.pairs.txt"),
        *("--start-labels", "all-in-one.txt"),
        cwd=instance,
    )
    assert done.returncode == 2
    assert "error: start labels: points" in done.stderr
