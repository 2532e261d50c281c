"""Runs killed with SIGKILL at random moments, and resumed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoint.killed_runs import STAGES, answer

ROOT = Path(__file__).parents[2]
FIRST = 5  # safe points at the start of every run


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.slow
def test_kills_at_counted_events(tmp_path):
    """At events and in the middle of writing; hashes differ between this process and that one."""
    n_runs = 30
    done = subprocess.run(
        [sys.executable, "-m", "tests.checkpoint.killed_runs", tmp_path, str(n_runs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    whole = {stage: answer(stage) for stage in STAGES}
    assert len(reports) == n_runs
    assert sum(one["write"] for one in reports) >= 4
    for one in reports:
        expected = whole[one["stage"]]
        assert one["killed"]
        assert one["nodes"] == expected.nodes
        assert np.array_equal(one["labels"], expected.labels)
        if one["stage"] == "parts":  # sized by a clock
            assert one["lower"] >= 0.99 * expected.lower_bound
        else:
            assert one["lower"] == expected.lower_bound
            # What was saved is not done again, but for a few at the start.
            assert one["again"] <= one["safe_points"] - one["saved"] + FIRST
    assert {one["stage"] for one in reports} == set(STAGES)
    assert len({one["at"] for one in reports}) > n_runs // 3


SOLVE = (
    "solve points.npy --bound sample --seed 1 --jobs 1 --checkpoint state --checkpoint-every 0.2 "
    "--output out.json --quiet"
)
# Points, settings, and processes that are killed.
LONG = {
    "tree": (60, "-k 5 --gap 1e-9 --node-limit 15000", 10),
    "heuristics": (2_000, "-k 60 --node-limit 1", 4),
}
LIMIT_SECONDS = 200.0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("name", LONG)
def test_kills_at_random_times(name, tmp_path):
    """The command line, killed many times in a row at any time: it still gets there."""
    n_points, settings, attempts = LONG[name]
    np.save(tmp_path / "points.npy", np.random.default_rng(0).uniform(size=(n_points, 2)))
    program = [sys.executable, "-m", "certikmeans", *SOLVE.split(), *settings.split()]
    began = time.monotonic()
    subprocess.run(program, cwd=tmp_path, check=False, timeout=LIMIT_SECONDS)
    seconds = time.monotonic() - began
    whole = json.loads((tmp_path / "out.json").read_text())
    state = tmp_path / "state"
    state.unlink()
    (tmp_path / "out.json").unlink()
    random.seed(0)
    kills = 0
    for _ in range(attempts):
        more = ["--resume", "state"] if state.exists() else []
        running = subprocess.Popen([*program, *more], cwd=tmp_path)
        try:
            # Longer than a start takes, and shorter than a run.
            running.wait(timeout=random.uniform(0.2, 0.7) * min(seconds, 10.0))
            state.unlink(missing_ok=True)  # it came to its end: begin anew
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.wait()
            kills += 1
    assert kills >= attempts // 2
    more = ["--resume", "state"] if state.exists() else []
    subprocess.run([*program, *more], cwd=tmp_path, check=False, timeout=LIMIT_SECONDS)
    again = json.loads((tmp_path / "out.json").read_text())
    for key in ("nodes", "lower_bound", "cost", "labels", "status"):
        assert again[key] == whole[key]
