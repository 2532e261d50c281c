"""A clock that stands still while somebody compiles."""

from __future__ import annotations

import pytest

from certikmeans.compiling import clock as module
from certikmeans.compiling.clock import CLOCK, WorkClock
from certikmeans.compiling.listening import tell
from certikmeans.events import Emitter, KernelsCompiled, Timer
from certikmeans.stop import StopCause, StopSignal


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that is moved by hand."""

    class Wall:
        seconds = 100.0

        def monotonic(self):
            return self.seconds

    wall = Wall()
    monkeypatch.setattr(module, "time", wall)
    return wall


def test_it_stands_until_everybody_lets_it_go(wall):
    clock = WorkClock()
    began = clock.now()
    wall.seconds += 1
    assert clock.now() - began == 1
    with clock.stopped():
        wall.seconds += 5
        with clock.stopped():
            wall.seconds += 5
        assert clock.now() - began == 1
        assert clock.lost() == 10
    wall.seconds += 2
    assert clock.now() - began == 3
    assert clock.lost() == 10


def test_a_deadline_waits_for_the_compiler(wall):
    stop = StopSignal(3.0)
    with CLOCK.stopped():
        wall.seconds += 60
        assert stop.cause() is None
        assert stop.remaining == 3.0
    wall.seconds += 2.5
    assert stop.within(1.0).remaining == 0.5
    wall.seconds += 1
    assert stop.cause() is StopCause.TIME_LIMIT


def test_a_stage_tells_what_it_compiled_and_leaves_it_out(wall):
    events = []
    timer = Timer(Emitter([events.append]))
    with timer.stage("heuristics"):
        wall.seconds += 1
        with CLOCK.stopped():
            tell("lloyd")
            wall.seconds += 30
    (told,) = (event for event in events if isinstance(event, KernelsCompiled))
    assert (told.kernels, told.compile_seconds, told.seconds) == (1, 30.0, 1.0)
    assert timer.seconds() == {"total": 1.0, "heuristics": 1.0}
