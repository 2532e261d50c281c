"""``certikmeans solve`` as a process: exit codes and outputs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from certikmeans.generate import gaussian_clusters, random_pairs, write_instance
from tests.cli.process import run

KEYS = {
    "n_soft_cannot_link",
    "n_soft_must_link",
    "penalty",
    "sum_of_squares",
    "violated_soft_pairs",
    "advice",
    "bounds",
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
    "options",
    "points_counted_from",
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
    (folder / "groups.txt").write_text("0 1 2\n3 4 5 6\n")
    (folder / "truncated.txt").write_text("13 2\n" + 12 * "1 5\n")
    return folder


def test_all_outputs(instance, tmp_path):
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
    assert result["options"] == {
        "gap": 0.0,
        "time_limit": None,
        "bound": "auto",
        "branching": "auto",
        "jobs": None,
        "seed": 0,
        "node_limit": None,
        "selection": "best",
        "keep_proof": False,
    }
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


def test_summary_of_optimal_run(instance):
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
    assert result["points_counted_from"] == 0  # and says so
    assert "error: no labelling respects every constraint" in done.stderr
    assert ": 1, 2, 3\n" in done.stderr  # people count as in their file


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["missing.csv", "-k", 2], "missing.csv: no such file", "looked in"),
        (["small.csv"], "number of clusters is missing", "add -k K"),
        (["small.csv", "-k", 61], "61 is not between 1 and", "choose a K"),
        (
            ["small.csv", "-k", 2, "--gap", 1],
            "--gap: 1.0 is not a number of at least 0",
            "0.001 requests",
        ),
        (["small.csv", "-k", 2, "--time-limit", 0], "--time-limit: 0.0", "leave it out"),
        (["small.csv", "-k", 2, "--jobs", 0], "--jobs: '0' is not", "-1 for one per core"),
        (["small.csv", "-k", 2, "--bound", "best"], "--bound: 'best' is unknown", "auto"),
        (
            ["small.csv", "-k", 2, "--certificate", "c.cert", "--bound", "grouped"],
            "the verifier cannot check the grouped bound",
            "use --bound auto",
        ),
        (
            ["small.csv", "-k", 2, "--constraints", "outside.txt"],
            "outside.txt, line 2: pair (0, 60) names a point",
            "numbered 0 to 59; if the file counts from 1, pass --one-based",
        ),
        (
            ["small.csv", "-k", 2, "--constraints", "must.txt"],
            "must.txt, line 1: pair '4 3' does not state its kind",
            "--must-link or --cannot-link",
        ),
        (
            ["small.csv", "-k", 2, "--constraints", "groups.txt"],
            "groups.txt, line 1: expected 'i j 1', 'i j -1', 'ML i j' or 'CL i j'",
            "must-links only: --must-link",
        ),
        (
            ["classes.csv", "-k", 2],
            "column 'class' holds text",
            "--labels-column class",
        ),
        (
            ["truncated.txt", "-k", 2],
            "'13 2' could be the first of 13 points, or the sizes: 13 points of 2 features",
            "pass --header none",
        ),
        (["-", "-k", 2], "standard input: holds no data", "one point per line"),
        (["-", "-k", 2, "--weights", "-"], "-: standard input is named twice", "name a file"),
        (["small.csv", "-k", 2, "--weights", "-"], "standard input: holds 0 weights", "one number"),
        (["small.csv", "-k", 2, "--plot", "-"], "only --output and --labels can", "name a file"),
        (["small.csv", "-k", 2, "--labels", "-"], "is named twice as an output", "name a file"),
        (["small.csv", "-k", 2, "--header", "no"], "header: 'no' is not known", "auto, none"),
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


def test_infeasible_start_labels(instance):
    (instance / "all-in-one.txt").write_text("0\n" * 60)
    done = run(
        *("solve", "small.csv", "-k", 3, "--constraints", "small.pairs.txt"),
        *("--start-labels", "all-in-one.txt"),
        cwd=instance,
    )
    assert done.returncode == 2
    assert "error: --start-labels: points" in done.stderr
    assert done.stderr.endswith(
        "hint: correct the labels, or leave out --start-labels; "
        "in Python, initial_centers may break pairs\n"
    )


@pytest.mark.parametrize("option", ["-k", "--gap", "--output", "--partial-labels"])
def test_repeated_option_rejected(instance, option):
    done = run("solve", "small.csv", option, 3, option, 2, cwd=instance)
    assert done.returncode == 2
    assert done.stdout == ""
    name = "-k/--n-clusters" if option == "-k" else option
    assert f"Error: {name} is given 2 times.\nhint: it takes one value" in done.stderr


def test_repeated_constraint_files(instance, tmp_path):
    (tmp_path / "a.txt").write_text("CL 0 1\n")
    (tmp_path / "b.txt").write_text("ML 0 1\n")
    files = ("--constraints", tmp_path / "a.txt", "--constraints", tmp_path / "b.txt")
    done = run("solve", "small.csv", "-k", 3, *files, cwd=instance)
    assert done.returncode == 3
    assert "1 must-link and 1 cannot-link;" in done.stderr


def test_labels_round_trip(instance, tmp_path):
    labels = tmp_path / "labels.txt"
    done = run(
        *("solve", "small.csv", "-k", 3, "--constraints", "small.pairs.txt", "--quiet"),
        *("--labels", labels, "--output", "-"),
        cwd=instance,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [int(line) for line in labels.read_text().splitlines()] == result["labels"]
    assert not (instance / "-").exists()
    again = run(
        *("solve", "small.csv", "-k", 3, "--constraints", "small.pairs.txt"),
        *("--start-labels", labels, "--labels", tmp_path / "again.txt"),
        cwd=instance,
    )
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.txt").read_text() == labels.read_text()


def test_no_labels_file_if_infeasible(instance, tmp_path):
    (tmp_path / "both.txt").write_text("ML 0 1\nCL 0 1\n")
    done = run(
        *("solve", "small.csv", "-k", 3, "--constraints", tmp_path / "both.txt", "--quiet"),
        *("--labels", tmp_path / "labels.txt"),
        cwd=instance,
    )
    assert done.returncode == 3
    assert "labels.txt: not written, there is no labelling" in done.stderr
    assert not (tmp_path / "labels.txt").exists()


def test_weighted_certificate(instance, tmp_path):
    (tmp_path / "weights.txt").write_text("2\n" * 30 + "1\n" * 30)
    weights = ("--weights", tmp_path / "weights.txt")
    solved = run(
        *("solve", "small.csv", "-k", 3, *weights, "--certificate", tmp_path / "proof"),
        cwd=instance,
    )
    assert solved.returncode == 0, solved.stderr
    assert "read 60 weighted points" in solved.stderr
    assert "(weighted squared distances" in solved.stdout
    check = ("check", tmp_path / "proof", "--data", "small.csv")
    assert "weighted" in run(*check, *weights, cwd=instance).stdout
    assert run(*check, cwd=instance).stdout.startswith("REFUSED (another problem)")


def test_pairs_from_npy(instance, tmp_path):
    np.save(tmp_path / "pairs.npy", np.array([[0, 1], [1, 2]]))
    done = run(
        *("solve", "small.csv", "-k", 3, "--must-link", tmp_path / "pairs.npy", "--json"),
        cwd=instance,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["n_must_link"] == 2
    assert len(set(result["labels"][:3])) == 1
