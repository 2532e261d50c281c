"""The bundled example, as ``make demo`` runs it."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_iris

from certikmeans.cli.auxiliary import iris_with_pairs
from certikmeans.cli.inputs import Inputs, load
from tests.cli.process import run


def test_the_pair_file_agrees_with_the_species():
    problem, species = iris_with_pairs()
    assert (len(problem.must_link), len(problem.cannot_link)) == (40, 40)
    np.testing.assert_array_equal(problem.points, load_iris().data)
    assert (species[problem.must_link[:, 0]] == species[problem.must_link[:, 1]]).all()
    assert (species[problem.cannot_link[:, 0]] != species[problem.cannot_link[:, 1]]).all()
    assert (files("certikmeans") / "data" / "iris_pairs.txt").is_file()


def test_the_demo_runs_and_says_where_things_are(tmp_path):
    done = run("demo", "--output-dir", "new/demo-output", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "40 pairs of flowers" in done.stderr
    assert "Proven" in done.stdout
    assert "40 must-links and 40 cannot-links, all respected" in done.stdout
    assert "Independent verifier: ACCEPTED" in done.stdout
    for name in ("iris.json", "iris.png", "iris.certificate"):
        assert f"wrote new/demo-output/{name}" in done.stderr
        assert (tmp_path / "new" / "demo-output" / name).stat().st_size > 1000
    result = json.loads((tmp_path / "new" / "demo-output" / "iris.json").read_text())
    # No labelling that respects the pairs is cheaper than one that respects none.
    assert 78.85 < result["cost"] < 90.0


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    done = run("demo", "--output-dir", "file", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: file: cannot be created" in done.stderr


# ``certikmeans generate``: files that ``solve`` reads.


def test_files_are_named_read_back_and_repeatable(tmp_path):
    arguments = ("--n-points", 50, "--n-features", 3, "--n-clusters", 4)
    arguments += ("--must-link", 7, "--cannot-link", 9, "--seed", 3)
    done = run("generate", "one", *arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.split() == ["one.csv", "one.labels.txt", "one.pairs.txt"]
    assert "certikmeans solve one.csv -k 4 --constraints one.pairs.txt" in done.stderr
    loaded = load(
        Inputs(
            data=tmp_path / "one.csv",
            n_clusters=4,
            constraints=(tmp_path / "one.pairs.txt",),
            start_labels=tmp_path / "one.labels.txt",
        )
    )
    assert loaded.problem.points.shape == (50, 3)
    assert (len(loaded.problem.must_link), len(loaded.problem.cannot_link)) == (7, 9)

    again = run("generate", "two", *arguments, cwd=tmp_path)
    assert again.returncode == 0
    for ending in (".csv", ".labels.txt", ".pairs.txt"):
        assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


def test_more_clusters_than_points(tmp_path):
    done = run("generate", "one", "--n-points", 5, "--n-clusters", 6, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: n_points: 5 is less than the number of clusters, 6\n"
        "hint: ask for 6 points or more, or for fewer clusters\n"
    )


def test_more_pairs_than_there_are(tmp_path):
    done = run("generate", "one", "--n-points", 4, "--must-link", 100, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot draw 100 must-links")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    done = run("generate", "file/one", "--n-points", 9, cwd=tmp_path)
    assert done.returncode == 2
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr


# ``certikmeans warm-up``, and what the command line says of its kernels and its process.


def test_a_bound_that_is_not_there_is_refused(tmp_path):
    done = run("warm-up", "--bound", "best", cwd=tmp_path)
    assert done.returncode == 2
    assert "best" in done.stderr


def test_one_bound_is_enough(tmp_path):
    done = run("warm-up", "--bound", "sample", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kernels compiled in" in done.stderr
    assert done.stdout == ""
