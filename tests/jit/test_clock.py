"""The clock of a run is paused during compilation."""

from __future__ import annotations

import pytest

from certikmeans._jit import clock as module
from certikmeans._jit.clock import CLOCK, SolverClock
from certikmeans._jit.compile_events import notify
from certikmeans.events import EventBus, KernelsCompiled, Timer
from certikmeans.stop import StopCause, StopSignal


@pytest.fixture
def wall(monkeypatch):
    """A fake wall clock."""

    class Wall:
        seconds = 100.0

        def monotonic(self):
            return self.seconds

    wall = Wall()
    monkeypatch.setattr(module, "time", wall)
    return wall


def test_nested_pauses(wall):
    clock = SolverClock()
    began = clock.now()
    wall.seconds += 1
    assert clock.now() - began == 1
    with clock.paused():
        wall.seconds += 5
        with clock.paused():
            wall.seconds += 5
        assert clock.now() - began == 1
        assert clock.excluded() == 10
    wall.seconds += 2
    assert clock.now() - began == 3
    assert clock.excluded() == 10


def test_deadline_excludes_compilation(wall):
    stop = StopSignal(3.0)
    with CLOCK.paused():
        wall.seconds += 60
        assert stop.reason() is None
        assert stop.remaining == 3.0
    wall.seconds += 2.5
    assert stop.with_time_limit(1.0).remaining == 0.5
    wall.seconds += 1
    assert stop.reason() is StopCause.TIME_LIMIT


def test_stage_time_excludes_compilation(wall):
    events = []
    timer = Timer(EventBus([events.append]))
    with timer.stage("heuristics"):
        wall.seconds += 1
        with CLOCK.paused():
            notify("lloyd")
            wall.seconds += 30
    (compiled,) = (event for event in events if isinstance(event, KernelsCompiled))
    assert (compiled.kernels, compiled.compile_seconds, compiled.seconds) == (1, 30.0, 1.0)
    assert timer.seconds() == {"total": 1.0, "heuristics": 1.0}
