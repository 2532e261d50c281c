"""Commands ``demo``, ``generate`` and ``warm-up``."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_iris

from certikmeans.cli.auxiliary import iris_with_pairs
from certikmeans.cli.inputs import Inputs, load
from tests.cli.process import run


def test_demo_pairs_match_species():
    problem, species = iris_with_pairs()
    assert (len(problem.must_link), len(problem.cannot_link)) == (40, 40)
    np.testing.assert_array_equal(problem.points, load_iris().data)
    assert (species[problem.must_link[:, 0]] == species[problem.must_link[:, 1]]).all()
    assert (species[problem.cannot_link[:, 0]] != species[problem.cannot_link[:, 1]]).all()
    assert (files("certikmeans") / "data" / "iris_pairs.txt").is_file()


def test_demo(tmp_path):
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


def test_demo_directory_error(tmp_path):
    (tmp_path / "file").touch()
    done = run("demo", "--output-dir", "file", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: file: cannot be created" in done.stderr


# ``certikmeans generate``.


def test_generate_files(tmp_path):
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


def test_generate_too_few_points(tmp_path):
    done = run("generate", "one", "--n-points", 5, "--n-clusters", 6, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: n_points: 5 is less than the number of clusters, 6\n"
        "hint: choose at least 6 points, or fewer clusters\n"
    )


def test_generate_too_many_pairs(tmp_path):
    done = run("generate", "one", "--n-points", 4, "--must-link", 100, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot draw 100 must-links")
    assert list(tmp_path.iterdir()) == []


def test_generate_unwritable_prefix(tmp_path):
    (tmp_path / "file").touch()
    done = run("generate", "file/one", "--n-points", 9, cwd=tmp_path)
    assert done.returncode == 2
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr


# ``certikmeans warm-up``.


def test_warm_up_unknown_bound(tmp_path):
    done = run("warm-up", "--bound", "best", cwd=tmp_path)
    assert done.returncode == 2
    assert "best" in done.stderr


def test_warm_up_one_bound(tmp_path):
    done = run("warm-up", "--bound", "sample", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kernels compiled in" in done.stderr
    assert done.stdout == ""
