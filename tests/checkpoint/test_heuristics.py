"""Killed while heuristics go on: they go on between the same two trials, to the same answer."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import StopReason, StopSignal, solve
from certikmeans.checkpoint.file import decode
from certikmeans.events import CheckpointOpportunity, HeuristicProgress, StageFinished, StageStarted
from certikmeans.heuristics import default
from certikmeans.heuristics.default import HeuristicParams
from tests.checkpoint.cases import Killed, clumps, same

# Each finds its labelling in another way; the budget of the rest is counted.
PROBLEMS = {
    "population": clumps(n=40, pairs=40),
    "exchange": clumps(n=40, k=12, pairs=40),
    "sample, population": clumps(n=120, pairs=40),
    "sample, exchange": clumps(n=120, k=12, pairs=40),
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
        elif isinstance(event, CheckpointOpportunity) and self._stages == ["heuristics"]:
            self.seen += 1
            if self.seen == self.number:
                raise Killed


def saved_then_killed(problem, path, number, resume=None, **settings):
    """Leave the state of a safe point of the heuristics behind."""
    from certikmeans.checkpoint.writer import CheckpointWriter
    from certikmeans.options import Options

    options = Options().changed(**settings)
    writer = CheckpointWriter(path, problem, options, interval_seconds=0)
    with pytest.raises(Killed):  # the state is written first, then the run ends
        solve(problem, options, callbacks=[writer, InHeuristics(number)], resume=resume)


@pytest.fixture
def small_samples(monkeypatch):
    small = HeuristicParams(max_direct_groups=60, sample_size=40)
    monkeypatch.setattr(default, "DEFAULT_PARAMS", small)


def trials_of(events):
    """Number of trials in the last progress event."""
    return [one.trials for one in events if isinstance(one, HeuristicProgress)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_heuristics_resume_exactly(name, tmp_path, request):
    if name.startswith("sample"):
        request.getfixturevalue("small_samples")
    problem, counter, whole_events = PROBLEMS[name], InHeuristics(), []
    whole = solve(problem, callbacks=[counter, whole_events.append], **SETTINGS)
    trials = trials_of(whole_events)
    assert counter.seen > 5
    moments = np.unique(np.linspace(1, counter.seen, 7).astype(int)).tolist()
    for number in moments:
        path, events = tmp_path / f"state-{number}", []
        saved_then_killed(problem, path, number, **SETTINGS)
        assert decode(path.read_bytes(), path).state.heuristics is not None
        again = solve(problem, resume=path, callbacks=[events.append], **SETTINGS)
        assert same(again, whole), number
        # One batch for every safe point: those before it are not tried again.
        assert len(trials_of(events)) <= len(trials) - number + 2
        assert trials_of(events) == trials[len(trials) - len(trials_of(events)) :]


@pytest.mark.parametrize("name", PROBLEMS)
def test_heuristics_killed_repeatedly(name, tmp_path, request):
    if name.startswith("sample"):
        request.getfixturevalue("small_samples")
    problem, path, before = PROBLEMS[name], tmp_path / "state", {}
    whole = solve(problem, **SETTINGS)
    for _ in range(3):
        saved_then_killed(problem, path, 3, **SETTINGS, **before)
        before = {"resume": path}
    assert same(solve(problem, resume=path, **SETTINGS), whole)


@pytest.mark.parametrize("name", ["population", "exchange"])
def test_heuristics_resume_with_other_thread_count(name, tmp_path):
    problem, path = PROBLEMS[name], tmp_path / "state"
    settings = {**SETTINGS, "jobs": 2}
    saved_then_killed(problem, path, 4, **settings)
    assert same(solve(problem, resume=path, **SETTINGS), solve(problem, **settings))


def test_interrupted_trial_is_repeated(tmp_path):
    """Stopped by hand in the midst of a batch: what it leaves behind is from before it."""
    problem, path = PROBLEMS["exchange"], tmp_path / "state"
    whole = solve(problem, **SETTINGS)
    for trial in (4, 60, 200):
        stop = StopSignal()

        def pull(event, stop=stop, trial=trial):
            if isinstance(event, HeuristicProgress) and event.trials >= trial:
                stop.interrupt()

        first = solve(problem, checkpoint=path, callbacks=[pull], stop=stop, **SETTINGS)
        assert first.stop_reason is StopReason.INTERRUPTED
        assert same(solve(problem, resume=path, **SETTINGS), whole)


@pytest.mark.parametrize("seed", [2, 9])
def test_closed_gap_ends_resumed_heuristics(seed, tmp_path):
    """What must-links cost is bound enough: the search ends with its first labelling.

    One that started again would have tried other centres, and found a cheaper labelling.
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
