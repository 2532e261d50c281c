"""Progress displays: plain lines, live display, output errors."""

from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from certikmeans._jit.compile_events import KernelCompilation
from certikmeans.events import (
    BoundImproved,
    BoundProgress,
    EventBus,
    Finished,
    HeuristicProgress,
    IncumbentFound,
    PresolveDone,
    ProgressCounter,
    StageFinished,
    StageStarted,
)
from certikmeans.problem import Problem
from certikmeans.report.progress import (
    FIRST_RUN_MESSAGE,
    LiveProgress,
    PlainProgress,
    ProgressState,
    SilentProgress,
    make_progress,
)
from tests.report.examples import make_result

PROBLEM = Problem.from_data([[0.0], [1.0], [5.0]], 2)
RUN = [
    StageStarted(0.0, "presolve"),
    PresolveDone(0.01, 1000, 900, 2, 7, 30),
    StageFinished(0.01, "presolve"),
    StageStarted(0.01, "bounds"),
    BoundImproved(0.02, 9.0, "sample"),
    StageFinished(0.02, "bounds"),
    StageStarted(0.02, "heuristics"),
    IncumbentFound(0.03, 12.0, "lloyd"),
    HeuristicProgress(0.04, 16, 256),
    StageFinished(0.05, "heuristics"),
    Finished(0.06, make_result(PROBLEM, [0, 0, 1])),
]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def test_plain_lines():
    stream = io.StringIO()
    with PlainProgress(stream, clock=lambda: 0.0) as progress:
        for event in RUN:
            progress(event)
    assert stream.getvalue().splitlines() == [
        "[    0.00 s] presolve",
        "[    0.01 s] presolve: 1,000 points, 900 groups, 7 components (largest 30)",
        "[    0.01 s] bounds",
        "[    0.02 s] heuristics: lower bound 9",
        "[    0.06 s] finished, feasible: cost 0.5, lower bound 0.4, gap 20 %",
    ]


def test_plain_lines_rate_limit():
    now = 0.0
    stream = io.StringIO()
    progress = PlainProgress(stream, clock=lambda: now)
    progress(StageStarted(0.0, "heuristics"))
    for tick in range(1, 10_001):
        now = tick / 1000
        progress(IncumbentFound(now, 1e6 - tick, "lloyd"))
    assert 9 <= len(stream.getvalue().splitlines()) <= 11


def test_closed_pipe():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream:
        progress = PlainProgress(stream)
        for event in RUN:
            progress(event)
        progress.announce("stopping")
        # What could not be written would be tried again on closing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def test_live_display():
    from rich.console import Console

    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100, highlight=False)
    progress = LiveProgress(console)
    with progress:
        for event in RUN[:-1]:
            progress(event)
        progress.announce("stopping soon")
        shown = progress.render().plain
        progress(RUN[-1])
    assert "heuristics: 16 of 256 starts" in shown
    assert "1,000 points, 900 groups, 7 components (largest 30)" in shown
    assert "cost 12, lower bound 9, gap 25 %" in shown
    assert "stopping soon" in shown
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 1
    assert "finished, feasible" in stream.getvalue().splitlines()[-1]


@pytest.mark.parametrize(
    ("term", "kind"), [("xterm-256color", LiveProgress), ("dumb", PlainProgress)]
)
def test_display_by_stream(monkeypatch, term, kind):
    monkeypatch.setenv("TERM", term)
    assert isinstance(make_progress(Terminal()), kind)
    assert isinstance(make_progress(io.StringIO()), PlainProgress)
    assert isinstance(make_progress(Terminal(), quiet=True), SilentProgress)


def test_silent_display():
    stream = Terminal()
    with make_progress(stream, quiet=True) as progress:
        for event in RUN:
            progress(event)
        progress.announce("stopping")
        progress.restore_terminal()
    assert stream.getvalue() == ""


def test_activity_of_bound():
    state = ProgressState()
    state.update(StageStarted(1.0, "bounds"))
    assert state.activity() == "bounds"
    state.update(BoundProgress(1.5, "cluster", {"boxes": 12_000, "climbs": 40}))
    assert state.activity() == "bounds: cluster, 12,000 boxes, 40 climbs"
    state.update(StageStarted(2.0, "bounds"))
    assert state.activity() == "bounds"


def test_activity_without_budget():
    state = ProgressState()
    state.update(StageStarted(0.0, "heuristics"))
    state.update(HeuristicProgress(0.1, 5, 0))
    assert state.activity() == "heuristics: 5 starts"


def test_compilation_message_once(tmp_path):
    path = tmp_path / "log"
    with path.open("w") as stream, PlainProgress(stream) as progress:
        for number in (1, 2, 3):
            progress.compiling(KernelCompilation("lloyd", number))
    assert path.read_text().splitlines() == [FIRST_RUN_MESSAGE]


def test_compilation_message_repeats(tmp_path):
    path, seconds = tmp_path / "log", iter([0.0, 4.0, 6.0, 8.0])
    with path.open("w") as stream, PlainProgress(stream, clock=lambda: next(seconds)) as progress:
        for number in (1, 2, 3, 4):
            progress.compiling(KernelCompilation("lloyd", number))
    assert path.read_text().splitlines() == [FIRST_RUN_MESSAGE, "compiling kernel 3 (lloyd)"]


def test_live_compilation_message():
    live = LiveProgress(Console(file=io.StringIO(), force_terminal=True, width=120))
    live.compiling(KernelCompilation("lloyd", 7))
    assert "compiling kernel 7 (lloyd)" in live.render().plain
    live(StageStarted(1.0, "bounds"))
    assert "compiling" not in live.render().plain


def test_progress_counter(monkeypatch):
    events = []
    bus = EventBus([events.append])
    monkeypatch.setattr(EventBus, "seconds", property(lambda self: now[0]))
    now = [0.0]
    count_work = ProgressCounter(bus, "cluster")
    for now[0] in (0.1, 0.2, 0.3, 0.4, 0.6):
        count_work(boxes=10)
    count_work(climbs=1)
    assert [(event.seconds, event.done) for event in events] == [
        (0.3, {"boxes": 30}),
        (0.6, {"boxes": 50}),
    ]
