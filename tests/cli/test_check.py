"""``certikmeans check``, called as the command line calls it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate.write import write_certificate
from certikmeans.cli.check import check_command
from certikmeans.cli.exits import ExitCode
from certikmeans.errors import InputError


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    rng = np.random.default_rng(1)
    points = np.vstack([rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + 8.0])
    np.savetxt(folder / "points.csv", points, delimiter=",", fmt="%.17g")
    (folder / "pairs.txt").write_text("ML 0 1\nCL 2 9\n")
    (folder / "other.txt").write_text("CL 2 8\n")
    problem = Problem.from_data(points, 2, must_link=[(0, 1)], cannot_link=[(2, 9)])
    write_certificate(folder / "proof", problem, solve(problem, keep_proof=True))
    return folder


def test_accepted(solved, capsys):
    code = check_command(solved / "proof", solved / "points.csv", constraints=solved / "pairs.txt")
    assert code == ExitCode.GAP_REACHED
    text = capsys.readouterr().out
    assert text.startswith("ACCEPTED")
    assert "12 points in 2 clusters, 1 must-links and 1 cannot-links" in text
    assert "lower bound" in text


def test_json(solved, capsys):
    assert check_command(solved / "proof", solved / "points.csv", as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["accepted"] is True
    assert document["reason"] == "accepted"
    assert document["lower_bound"] <= document["cost"]
    assert document["gap"] <= 1e-3


def test_refused_with_exit_code_4(solved, capsys):
    assert (
        check_command(solved / "proof", solved / "points.csv", constraints=solved / "other.txt")
        == 4
    )
    assert capsys.readouterr().out.startswith("REFUSED (pairs)")
    moved = np.loadtxt(solved / "points.csv", delimiter=",")
    moved[0, 0] += 1e-9
    np.savetxt(solved / "moved.csv", moved, delimiter=",", fmt="%.17g")
    assert check_command(solved / "proof", solved / "moved.csv", as_json=True) == 4
    assert json.loads(capsys.readouterr().out)["reason"] == "other data"
    (solved / "spoilt").write_bytes((solved / "proof").read_bytes()[:-3])
    assert check_command(solved / "spoilt", solved / "points.csv") == 4
    assert capsys.readouterr().out.startswith("REFUSED (damaged file)")


def test_missing_files(solved):
    with pytest.raises(InputError, match="cannot be read"):
        check_command(solved / "absent", solved / "points.csv")
    with pytest.raises(InputError):
        check_command(solved / "proof", solved / "absent.csv")
