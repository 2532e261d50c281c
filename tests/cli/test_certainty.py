"""``certikmeans certainty``, ``ask`` and ``solve --certainty``, through a real process."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.process import run


@pytest.fixture
def line(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text("x\n" + "\n".join(["0", "1", "2", "5.6", "9", "10", "11"]) + "\n")
    return path


def test_certainty_text(line, tmp_path):
    done = run("certainty", line, "-k", 2, "--slack", "5%", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    assert "within 5 % of the cost" in done.stdout
    assert "at least 6 of 7 points" in done.stdout
    assert "uncertain points     point 3 (cluster 0 or 1)\n" in done.stdout
    assert "  cluster 1  x  7." in done.stdout
    assert done.stderr == ""


def test_ask_prints_one_pair_per_line(line, tmp_path):
    done = run(
        "ask", line, "-k", 2, "--slack", 0.05, "--one-based", "-n", 3, "--quiet", cwd=tmp_path
    )
    assert done.returncode == 0
    assert done.stdout == "4 5\n"


def test_solve_json_with_certainty(line, tmp_path):
    plain = run("solve", line, "-k", 2, "--json", "--quiet", cwd=tmp_path)
    more = run(
        "solve", line, "-k", 2, "--json", "--quiet", "--certainty", "--slack", 0.05, cwd=tmp_path
    )
    before, after = json.loads(plain.stdout), json.loads(more.stdout)
    assert set(after) == {*before, "certainty"}
    assert after["certainty"]["n_certain"] == 6
    assert after["certainty"]["certain"] == [True, True, True, False, True, True, True]
    assert after["certainty"]["possible"] == {"3": [0, 1]}


@pytest.mark.parametrize("slack", ["-1", "nan", "5", "150%", "much"])
@pytest.mark.parametrize("command", ["certainty", "ask", "solve --certainty"])
def test_bad_slack_rejected_before_reading(command, slack, tmp_path):
    done = run(*command.split(), "absent.csv", "-k", 2, "--slack", slack, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --slack: ")
    assert "hint: 0.001" in done.stderr


def test_bad_number_of_pairs_rejected_before_reading(tmp_path):
    done = run("ask", "absent.csv", "-k", 2, "-n", "-2", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: questions: -2 is not a whole number")


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 12)) + 2.5 * np.eye(12)[np.arange(40) % 2]
    np.savetxt(tmp_path / "wide.csv", points, delimiter=",")
    return tmp_path / "wide.csv"


def test_certainty_without_single_points(wide, tmp_path):
    done = run("certainty", wide, "-k", 2, "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    assert "same cluster         at least" in done.stdout
    assert "certain points" not in done.stdout
    assert "can be in either" not in done.stdout
    assert "centres lie in" not in done.stdout


def test_certificate_without_certainty_claim(wide, tmp_path):
    done = run(
        *("solve", wide, "-k", 2, "--quiet", "--certainty", "--certificate", "wide.cert"),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert "the certificate is about the bound alone" in done.stderr
    assert "regions of centres" in done.stderr
    assert run("check", "wide.cert", "--data", wide, cwd=tmp_path).returncode == 0


def test_check_prints_certainty_claim(line, tmp_path):
    made = run(
        *("solve", line, "-k", 2, "--quiet", "--certainty", "--slack", 0.05),
        *("--certificate", "line.cert"),
        cwd=tmp_path,
    )
    assert made.returncode == 0
    found = run("check", "line.cert", "--data", line, cwd=tmp_path)
    assert found.returncode == 0
    assert "6 of 7 points in every labelling within 5 % of the cost" in found.stdout


def test_ask_explains_pairs_on_stderr(line, tmp_path):
    done = run("ask", line, "-k", 2, "--slack", 0.05, cwd=tmp_path)
    assert done.stdout == "3 4\n"
    assert "does point 3 belong with 4, a representative of cluster 1?" in done.stderr
