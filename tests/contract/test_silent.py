"""Workers that do not answer, or fail all at once: no run waits for them, or ends by that."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from certikmeans import Problem, StopReason, StopSignal, solve
from certikmeans.bounds.partition.run import partition_bound
from certikmeans.errors import WorkerError
from certikmeans.execution import Crew, Far, Shared, line
from certikmeans.execution import far as far_module
from certikmeans.execution.paces import WAKE_AFTER, Paces
from certikmeans.execution.there import Done
from certikmeans.presolve.pipeline import presolve
from tests.checkpoint.cases import clumps, same
from tests.contract import tasks

SOON = 20.0  # seconds beyond what has to be waited for; for ever, if something is wrong


class Silent(Executor):
    """Takes tasks; those that measure the journey come back, if ``near``, others never."""

    _max_workers = 2

    def __init__(self, near=False):
        self._near = near
        self.taken = []

    def submit(self, function, /, *arguments, **named):
        future = Future()
        future.set_running_or_notify_cancel()
        if self._near and function.__name__ != "run_there":
            future.set_result(function(*arguments, **named))
        else:
            self.taken.append((future, function, arguments))
        return future


def busy(paces):
    """So long that workers would be woken up."""
    paces.note(Done(None, WAKE_AFTER, WAKE_AFTER), None)


def test_workers_that_were_not_reached_are_not_waited_for():
    """They may stand in a queue for hours; when one is there, tasks go out."""
    silent, paces = Silent(), Paces(1)
    far = Far(silent)
    busy(paces)
    began = time.monotonic()
    for _ in range(100):
        assert not paces.pays(far, 100)
    assert time.monotonic() - began < SOON
    assert len(silent.taken) == 1
    future, function, arguments = silent.taken.pop()
    silent._near = True
    future.set_result(function(*arguments))
    for _ in range(100):
        if paces.pays(far, 100):
            break
        time.sleep(0.05)
    assert paces.pays(far, 100)


def test_workers_that_are_busy_are_far_away(monkeypatch):
    """Reached once, and then they do something else."""
    monkeypatch.setattr(far_module, "PROBE_SECONDS", 0.05)
    far = Far(Silent())
    assert far.journey() >= 0.05
    assert far.each() < 0.05


@pytest.mark.parametrize("near", [False, True])
def test_a_time_limit_holds_whatever_the_workers_do(near, monkeypatch):
    monkeypatch.setattr("certikmeans.execution.paces.WAKE_AFTER", 0.0)
    settings = {"bound": "sample", "branching": "pairs", "gap": 1e-9, "jobs": 1}
    solve(clumps(), node_limit=9, **settings)  # compiles
    began, silent = time.monotonic(), Silent(near)
    result = solve(clumps(), executor=silent, time_limit=2.0, **settings)
    assert time.monotonic() - began < 2.0 + line.PATIENCE_SECONDS + SOON
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.nodes > 1
    assert any(function.__name__ == "run_there" for _, function, _ in silent.taken) == near


def test_an_executor_that_takes_no_tasks_ends_the_run_with_what_was_proven(monkeypatch):
    class Closed(Silent):
        def submit(self, function, /, *arguments, **named):
            raise RuntimeError("closed")

    monkeypatch.setattr("certikmeans.execution.paces.WAKE_AFTER", 0.0)
    settings = {"bound": "sample", "branching": "pairs", "gap": 1e-9, "jobs": 1}
    result = solve(clumps(), executor=Closed(), node_limit=99, **settings)
    assert result.stop_reason is StopReason.WORKER_FAILED
    assert "takes no tasks: RuntimeError: closed" in result.failure
    assert result.labels is not None


def pulled_after(seconds):
    stop = StopSignal()
    threading.Timer(seconds, stop.interrupt).start()
    return stop


def end_at_once(shared, item):
    """Asks the signal, as tasks that take long do."""
    assert shared.cause() is not None
    return item


def test_tasks_that_do_not_come_back_are_done_here_when_a_run_is_stopped(monkeypatch):
    monkeypatch.setattr(Crew, "pays", lambda self, far, count: True)
    stop, began = pulled_after(0.2), time.monotonic()
    crew = Crew(far=Far(Silent(near=True)))
    found = crew.map(end_at_once, [1, 2, 3], shared=Shared(stop), stop=stop)
    assert found == [1, 2, 3]
    assert time.monotonic() - began < SOON


def test_a_stop_does_not_wait_for_parts_that_do_not_come_back(monkeypatch):
    monkeypatch.setattr(Paces, "pays", lambda self, far, count: True)
    rng = np.random.default_rng(0)
    reduced = presolve(Problem.from_data(rng.normal(size=(60, 6)), 3), StopSignal()).reduced
    labels, far = (np.arange(60) % 3).astype(np.int64), Far(Silent(near=True))
    stop, began = pulled_after(0.2), time.monotonic()
    found = partition_bound(reduced, labels, np.inf, stop, size=20, far=far)
    assert 0.2 <= time.monotonic() - began < line.PATIENCE_SECONDS + SOON
    assert (found.value, found.failures) == (0.0, 0)


class Fragile(Executor):
    """A pool that breaks some time after so many tasks, and everything in it; None: never."""

    _max_workers = 20

    def __init__(self, holds=None):
        self._holds = holds
        self._broken = False
        self._lock = threading.Lock()
        self.lost = []

    def submit(self, function, /, *arguments, **named):
        with self._lock:
            if self._broken:
                raise BrokenProcessPool("broken")
            future = Future()
            if self._holds == 0 and function.__name__ == "run_there":
                if not self.lost:
                    threading.Timer(0.3, self._break).start()
                self.lost.append(future)
                return future
            if self._holds is not None:
                self._holds -= function.__name__ == "run_there"
        future.set_result(function(*arguments, **named))
        return future

    def _break(self):
        with self._lock:
            self._broken = True
        for one in self.lost:
            one.set_exception(BrokenProcessPool("broken"))


@pytest.fixture
def replaced(monkeypatch):
    """Pools that took the place of a broken one."""
    made = []

    def like(executor):
        made.append(Fragile())
        return made[-1]

    monkeypatch.setattr(far_module, "_like", like)
    return made


def test_a_pool_that_breaks_is_one_failure_however_many_tasks_it_had(replaced, monkeypatch):
    monkeypatch.setattr(Crew, "pays", lambda self, far, count: True)
    monkeypatch.setattr(Paces, "bundle", lambda self, far, count: 1)
    count = 2 * Fragile._max_workers
    assert count > far_module.MOST_FAILURES
    pool = Fragile(holds=0)
    far = Far(pool)
    found = Crew(far=far).map(tasks.add, list(range(count)), shared=Shared((100,)))
    assert found == list(range(100, 100 + count))
    assert len(pool.lost) == count
    assert len(replaced) == 1
    assert far._failures == 1


def test_a_tree_outlives_a_pool_with_many_workers(replaced, monkeypatch):
    monkeypatch.setattr(Crew, "pays", lambda self, far, count: True)
    settings = {"bound": "sample", "branching": "pairs", "node_limit": 99, "jobs": 1}
    alone = solve(clumps(), **settings)
    pool = Fragile(holds=40)
    assert same(solve(clumps(), executor=pool, **settings), alone)
    assert len(pool.lost) > far_module.MOST_FAILURES
    assert len(replaced) == 1


class SlowClient:
    """A client of Dask whose scheduler takes its time to say who is there, or does not say it."""

    def __init__(self, seconds, gone=False):
        self._seconds, self._gone = seconds, gone
        self.asked = 0

    def nthreads(self, callback_timeout):
        self.asked += 1
        time.sleep(self._seconds)
        if self._gone:
            raise TimeoutError
        return {"tcp://one": 1}


@pytest.mark.parametrize("gone", [False, True])
def test_a_slow_scheduler_is_asked_rarely(gone, monkeypatch):
    monkeypatch.setattr(far_module, "LOOK_SECONDS", 0.0)
    client = SlowClient(0.1, gone)
    far, began = Far(Silent(), client), time.monotonic()
    while time.monotonic() - began < 1.0:
        assert far.empty() is gone
    assert client.asked == 1


class Ranks(Silent):
    """Workers of MPI, of which nobody has begun."""

    num_workers = 3


Ranks.__module__ = "mpi4py.futures"


def test_of_two_broadcasts_at_a_time_each_would_wait_for_the_other(monkeypatch):
    """The second run sends its data along with tasks instead."""
    monkeypatch.setattr(far_module, "_passing_on", [])
    first, second = Far(Ranks()), Far(Ranks())
    for far in (first, second):
        shared = Shared((100,))
        for _ in range(5):
            far.submit(tasks.add, [1], shared)
    names = [[one[1].__name__ for one in far._executor.taken] for far in (first, second)]
    assert names == [["receive_by_mpi"] * 3 + ["run_there"] * 5, ["run_there"] * 5]
    with_data = [one[2][-1] is not None for one in second._executor.taken]
    assert with_data == [True] * 3 + [False] * 2
    assert (first.data_sent, second.data_sent) == (1, 3)
    for future, *_ in first._executor.taken[:3]:
        future.set_result(True)
    third = Far(Ranks())
    third.submit(tasks.add, [1], Shared((100,)))
    assert len(third._executor.taken) == 3 + 1


def test_errors_of_waking_up_come_out_as_worker_errors():
    class Closing(Silent):
        def submit(self, function, /, *arguments, **named):
            if function.__name__ == "wake_up":
                raise OSError("gone")
            return super().submit(function, *arguments, **named)

    with pytest.raises(WorkerError, match="takes no tasks: OSError: gone"):
        Far(Closing(near=True)).awake()
