"""``certikmeans check``: verdicts, exit codes, time limits, pipes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate.write import write_certificate
from certikmeans.cli.check import check_command
from certikmeans.cli.process import ExitCode
from certikmeans.errors import InputError
from tests.cli.process import run


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
    code = check_command(
        certificate=solved / "proof", data=solved / "points.csv", constraints=[solved / "pairs.txt"]
    )
    assert code == ExitCode.GAP_REACHED
    text = capsys.readouterr().out
    assert text.startswith("ACCEPTED")
    assert "12 points in 2 clusters, 1 must-link and 1 cannot-link\n" in text
    assert "lower bound" in text
    assert " 1 leaf, " in text


def test_json(solved, capsys):
    assert (
        check_command(certificate=solved / "proof", data=solved / "points.csv", as_json=True) == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["accepted"] is True
    assert document["proven"] is True
    assert document["reason"] == "accepted"
    assert document["lower_bound"] <= document["cost"]
    assert document["gap"] <= 1e-3


def test_refused(solved, capsys):
    assert (
        check_command(
            certificate=solved / "proof",
            data=solved / "points.csv",
            constraints=[solved / "other.txt"],
        )
        == 4
    )
    assert capsys.readouterr().out.startswith("REFUSED (pairs)")
    moved = np.loadtxt(solved / "points.csv", delimiter=",")
    moved[0, 0] += 1e-9
    np.savetxt(solved / "moved.csv", moved, delimiter=",", fmt="%.17g")
    assert check_command(certificate=solved / "proof", data=solved / "moved.csv", as_json=True) == 4
    assert json.loads(capsys.readouterr().out)["reason"] == "other data"
    (solved / "spoilt").write_bytes((solved / "proof").read_bytes()[:-3])
    assert check_command(certificate=solved / "spoilt", data=solved / "points.csv") == 4
    assert capsys.readouterr().out.startswith("REFUSED (damaged file)")


def test_refused_claim_not_proven(solved, capsys):
    code = check_command(
        certificate=solved / "proof", data=solved / "points.csv", n_clusters=3, as_json=True
    )
    assert code == ExitCode.REFUSED
    document = json.loads(capsys.readouterr().out)
    assert (document["accepted"], document["proven"]) == (False, False)
    assert document["reason"] == "another problem"
    (solved / "weights.txt").write_text("1\n" * 11 + "2\n")
    weights = solved / "weights.txt"
    assert (
        check_command(certificate=solved / "proof", data=solved / "points.csv", weights=weights)
        == 4
    )
    assert capsys.readouterr().out.startswith("REFUSED (another problem)")


def test_several_pair_files(solved, capsys):
    (solved / "must.txt").write_text("0 1\n")
    (solved / "ml.txt").write_text("ML 0 1\n")
    (solved / "cl.txt").write_text("CL 2 9\n")
    files = ("--constraints", "ml.txt", "--constraints", "cl.txt", "--must-link", "must.txt")
    done = run("check", "proof", "--data", "points.csv", *files, cwd=solved)
    assert done.returncode == 0, done.stderr
    done = run("check", "proof", "--data", "points.csv", *files[:2], cwd=solved)
    assert done.returncode == ExitCode.REFUSED


def test_missing_files(solved):
    with pytest.raises(InputError, match="cannot be read"):
        check_command(certificate=solved / "absent", data=solved / "points.csv")
    with pytest.raises(InputError):
        check_command(certificate=solved / "proof", data=solved / "absent.csv")


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon"])
def test_invalid_time_limit(solved, seconds):
    done = run("check", "proof", "--data", "points.csv", f"--time-limit={seconds}", cwd=solved)
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stdout == ""
    assert done.stderr == (
        f"error: --time-limit: {seconds} is not a positive number of seconds\n"
        "hint: 0 or none switches the limit off\n"
    )


def test_short_time_limit_refuses(solved, capsys):
    long, short = "60", "1e-9"
    assert (
        check_command(certificate=solved / "proof", data=solved / "points.csv", time_limit=long)
        == 0
    )
    assert (
        check_command(certificate=solved / "proof", data=solved / "points.csv", time_limit=short)
        == 4
    )
    assert "REFUSED (limit" in capsys.readouterr().out


def test_huge_values_refused(solved, capsys):
    points = np.loadtxt(solved / "points.csv", delimiter=",")
    np.savetxt(solved / "huge.csv", points * 1e58, delimiter=",", fmt="%.17g")
    assert check_command(certificate=solved / "proof", data=solved / "huge.csv") == ExitCode.REFUSED
    assert capsys.readouterr().out.startswith("REFUSED (other data)")


def test_write_certificate_keeps_mode_and_pipes(solved):
    problem = Problem.from_data([[0.0], [1.0], [9.0]], 2)
    result = solve(problem, keep_proof=True)
    target = solved / "again"
    target.touch()
    target.chmod(0o640)
    write_certificate(target, problem, result)
    assert target.stat().st_mode & 0o777 == 0o640
    pipe = solved / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_certificate(str(pipe), problem, result)
        assert os.read(reader, 1 << 16) == target.read_bytes()
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_pipe_without_writer(solved):
    os.mkfifo(solved / "silent")
    done = run("check", "silent", "--data", "points.csv", "--time-limit", 0.5, cwd=solved)
    assert done.returncode == 2
    assert "no data arrived through this pipe" in done.stderr


def test_pipe_with_writer(solved):
    done = run(
        *(
            "-c",
            f"cat proof | '{sys.executable}' -m certikmeans check /dev/stdin --data points.csv",
        ),
        cwd=solved,
        command=("sh",),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ACCEPTED")


def test_endless_device(solved, monkeypatch):
    monkeypatch.setattr("certikmeans.cli.check.MAX_STREAM_BYTES", 1 << 22)
    with pytest.raises(InputError, match="is not a file"):
        check_command(certificate=Path("/dev/zero"), data=solved / "points.csv")


def test_default_time_limit(solved):
    text = " ".join(run("check", "--help", cwd=solved).stdout.split())
    assert "[default: 600]" in text
    assert "0 or none: no limit" in text
    for limit in ("none", 0, 1e9):
        done = run("check", "proof", "--data", "points.csv", "--time-limit", limit, cwd=solved)
        assert done.returncode == 0, done.stderr
    done = run("check", "proof", "--data", "points.csv", "--time-limit", 1e-9, cwd=solved)
    assert done.returncode == 4
