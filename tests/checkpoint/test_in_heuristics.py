"""Killed while heuristics go on: they begin anew, and the answer is the same."""

from __future__ import annotations

import pytest

from certikmeans import solve
from certikmeans.events import SafePoint, StageFinished, StageStarted
from certikmeans.heuristics import default
from tests.checkpoint.cases import Killed, clumps, same

# Each finds its labelling in another way; the budget of the rest is counted.
PROBLEMS = {
    "population": clumps(n=40, pairs=40),
    "exchange": clumps(n=40, k=12, pairs=40),
    "sample": clumps(n=120, pairs=40),
}
SETTINGS = {"bound": "sample", "node_limit": 5, "jobs": 1}


class InHeuristics:
    """Counts safe points of the heuristics; ends the run at one of them, counted from 1."""

    def __init__(self, number=None):
        self.number = number
        self.seen = 0
        self._stages = []

    def __call__(self, event):
        if isinstance(event, StageStarted):
            self._stages.append(event.stage)
        elif isinstance(event, StageFinished):
            self._stages.pop()
        elif isinstance(event, SafePoint) and self._stages == ["heuristics"]:
            self.seen += 1
            if self.seen == self.number:
                raise Killed


def saved_then_killed(problem, path, number, **settings):
    """Leave the state of a safe point of the heuristics behind."""
    from certikmeans.checkpoint.saving import CheckpointWriter
    from certikmeans.options import Options

    asked = Options().changed(**settings)
    writer = CheckpointWriter(path, problem, asked, interval_seconds=0)
    with pytest.raises(Killed):  # the state is written first, then the run ends
        solve(problem, asked, callbacks=[writer, InHeuristics(number)])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_answer(name, tmp_path, monkeypatch):
    if name == "sample":
        monkeypatch.setattr(default, "LARGE", 60)
        monkeypatch.setattr(default, "SAMPLE_SIZE", 40)
    problem, counter = PROBLEMS[name], InHeuristics()
    whole = solve(problem, callbacks=[counter], **SETTINGS)
    assert counter.seen >= 1
    for number in range(1, counter.seen + 1):
        path = tmp_path / f"state-{number}"
        saved_then_killed(problem, path, number, **SETTINGS)
        assert same(solve(problem, resume=path, **SETTINGS), whole)


@pytest.mark.parametrize("seed", [2, 9])
def test_where_enough_was_found_nothing_better_is_sought(seed, tmp_path):
    """What must-links cost is bound enough: the search ends with its first labelling.

    One that began anew would have tried other centres, and found a cheaper labelling.
    """
    problem, settings = (
        clumps(n=40, k=6, must=20, pairs=4, seed=seed),
        {**SETTINGS, "gap": 0.9},
    )
    whole = solve(problem, **settings)
    assert whole.gap > 0.05
    path = tmp_path / "state"
    saved_then_killed(problem, path, 1, **settings)
    assert same(solve(problem, resume=path, **settings), whole)
