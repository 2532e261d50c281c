"""Ctrl-C: once for the incumbent, twice to abort."""

from __future__ import annotations

import json
import signal

import pytest

from certikmeans.generate import gaussian_clusters, random_pairs, write_instance
from tests.cli.process import TIMEOUT_SECONDS, start, with_fake_solver


def read_until(stream, word: str) -> str:
    """Read lines until one contains ``word``."""
    seen = ""
    for line in stream:
        seen += line
        if word in line:
            return seen
    raise AssertionError(f"{word!r} never came:\n{seen}")


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data.csv").write_text("1\n2\n9\n")
    return tmp_path


def test_interrupt_returns_incumbent(tmp_path):
    # Takes far longer than the test.
    points, labels = gaussian_clusters(60_000, 8, 40, spread=4.0, seed=2)
    must, cannot = random_pairs(labels, 5_000, 5_000, seed=2)
    write_instance(tmp_path / "long.npy", points, labels, must, cannot)
    process = start(
        *("solve", "long.npy", "-k", 40, "--constraints", "long.pairs.txt", "--gap", 0),
        *("--json", "--output", "out.json"),
        cwd=tmp_path,
    )
    try:
        read_until(process.stderr, "] heuristics")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 1, stderr
    assert "stopping with the best labelling so far" in stderr
    result = json.loads(stdout)
    assert result["stop_reason"] == "interrupted"
    assert result["status"] == "feasible"
    assert 0.0 <= result["lower_bound"] <= result["cost"]
    assert len(result["labels"]) == 60_000
    assert json.loads((tmp_path / "out.json").read_text()) == result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_outputs_written_after_interrupt(data, number):
    process = start(
        *("solve", "data.csv", "-k", 1, "--output", "out.json", "--plot", "out.png"),
        cwd=data,
        command=with_fake_solver("patient"),
    )
    try:
        read_until(process.stderr, "solving")
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 1, stderr
    assert "the run was interrupted." in stdout
    assert json.loads((data / "out.json").read_text())["stop_reason"] == "interrupted"
    assert (data / "out.png").read_bytes().startswith(b"\x89PNG")


def test_second_interrupt_aborts(data):
    process = start("solve", "data.csv", "-k", 1, cwd=data, command=with_fake_solver("stubborn"))
    try:
        read_until(process.stderr, "solving")
        process.send_signal(signal.SIGINT)
        read_until(process.stderr, "press Ctrl-C again")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stdout == ""
    assert "aborted" in stderr


@pytest.mark.parametrize("command", [("solve", "data.csv", "-k", 1), ("check", "c", "--data", "d")])
def test_sigterm_during_imports(data, command):
    for name in ("numba", "numpy"):  # what is imported first blocks
        (data / name).mkdir()
        (data / name / "__init__.py").write_text(
            "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
        )
    (data / "c").touch()
    process = start(*command, cwd=data)
    try:
        read_until(process.stderr, "importing")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stderr == "error: terminated before there was a result\n"
