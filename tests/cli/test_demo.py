"""The bundled example, as ``make demo`` runs it."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from sklearn.datasets import load_iris

from certikmeans.cli.demo import iris_with_pairs
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
    assert "The independent checker says ACCEPTED" in done.stdout
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
