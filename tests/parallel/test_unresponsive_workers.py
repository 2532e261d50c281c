"""Workers that do not answer, or fail all at once: no run waits for them, or ends by that."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from certikmeans import Problem, StopReason, StopSignal, solve
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.partition.run import partition_bound
from certikmeans.errors import WorkerError
from certikmeans.parallel import RemoteExecutor, SharedData, TaskPool, task_queue
from certikmeans.parallel import remote as remote_module
from certikmeans.parallel.dispatch_policy import OFFLOAD_AFTER_SECONDS, DispatchPolicy
from certikmeans.parallel.worker import TaskResult
from certikmeans.presolve.pipeline import presolve
from tests.checkpoint.cases import clumps, same
from tests.parallel import tasks

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
        if self._near and function.__name__ != "run_batch":
            future.set_result(function(*arguments, **named))
        else:
            self.taken.append((future, function, arguments))
        return future


def busy(dispatch_policy):
    """So long that workers would be woken up."""
    dispatch_policy.note(TaskResult(None, OFFLOAD_AFTER_SECONDS, OFFLOAD_AFTER_SECONDS), None)


def test_workers_that_were_not_reached_are_not_waited_for():
    """They may stand in a queue for hours; when one is there, tasks go out."""
    silent, dispatch_policy = Silent(), DispatchPolicy(1)
    remote = RemoteExecutor(silent)
    busy(dispatch_policy)
    began = time.monotonic()
    for _ in range(100):
        assert not dispatch_policy.pays(remote, 100)
    assert time.monotonic() - began < SOON
    assert len(silent.taken) == 1
    future, function, arguments = silent.taken.pop()
    silent._near = True
    future.set_result(function(*arguments))
    for _ in range(100):
        if dispatch_policy.pays(remote, 100):
            break
        time.sleep(0.05)
    assert dispatch_policy.pays(remote, 100)


def test_workers_that_are_busy_are_far_away(monkeypatch):
    """Reached once, and then they do something else."""
    monkeypatch.setattr(remote_module, "PROBE_SECONDS", 0.05)
    remote = RemoteExecutor(Silent())
    assert remote.latency() >= 0.05
    assert remote.per_task_overhead() < 0.05


@pytest.mark.parametrize("near", [False, True])
def test_a_time_limit_holds_whatever_the_workers_do(near, monkeypatch):
    monkeypatch.setattr("certikmeans.parallel.dispatch_policy.OFFLOAD_AFTER_SECONDS", 0.0)
    settings = {"bound": "sample", "branching": "pairs", "gap": 1e-9, "jobs": 1}
    solve(clumps(), node_limit=9, **settings)  # compiles
    began, silent = time.monotonic(), Silent(near)
    result = solve(clumps(), executor=silent, time_limit=2.0, **settings)
    assert time.monotonic() - began < 2.0 + task_queue.DRAIN_SECONDS + SOON
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.nodes > 1
    assert any(function.__name__ == "run_batch" for _, function, _ in silent.taken) == near


def test_an_executor_that_takes_no_tasks_ends_the_run_with_what_was_proven(monkeypatch):
    class Closed(Silent):
        def submit(self, function, /, *arguments, **named):
            raise RuntimeError("closed")

    monkeypatch.setattr("certikmeans.parallel.dispatch_policy.OFFLOAD_AFTER_SECONDS", 0.0)
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
    assert shared.reason() is not None
    return item


def test_tasks_that_do_not_come_back_are_done_here_when_a_run_is_stopped(monkeypatch):
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)
    stop, began = pulled_after(0.2), time.monotonic()
    task_pool = TaskPool(remote=RemoteExecutor(Silent(near=True)))
    found = task_pool.map(end_at_once, [1, 2, 3], shared=SharedData(stop), stop=stop)
    assert found == [1, 2, 3]
    assert time.monotonic() - began < SOON


def test_a_stop_does_not_wait_for_parts_that_do_not_come_back(monkeypatch):
    monkeypatch.setattr(DispatchPolicy, "pays", lambda self, remote, count: True)
    rng = np.random.default_rng(0)
    reduced = presolve(Problem.from_data(rng.normal(size=(60, 6)), 3), StopSignal()).reduced
    labels, remote = (np.arange(60) % 3).astype(np.int64), RemoteExecutor(Silent(near=True))
    stop, began = pulled_after(0.2), time.monotonic()
    ctx = BoundContext(stop, pool=TaskPool(remote=remote))
    found = partition_bound(reduced, labels, np.inf, ctx, size=20)
    assert 0.2 <= time.monotonic() - began < task_queue.DRAIN_SECONDS + SOON
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
            if self._holds == 0 and function.__name__ == "run_batch":
                if not self.lost:
                    threading.Timer(0.3, self._break).start()
                self.lost.append(future)
                return future
            if self._holds is not None:
                self._holds -= function.__name__ == "run_batch"
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

    monkeypatch.setattr(remote_module, "_similar_pool", like)
    return made


def test_a_pool_that_breaks_is_one_failure_however_many_tasks_it_had(replaced, monkeypatch):
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)
    monkeypatch.setattr(DispatchPolicy, "bundle", lambda self, remote, count: 1)
    count = 2 * Fragile._max_workers
    assert count > remote_module.MAX_FAILURES
    pool = Fragile(holds=0)
    remote = RemoteExecutor(pool)
    found = TaskPool(remote=remote).map(tasks.add, list(range(count)), shared=SharedData((100,)))
    assert found == list(range(100, 100 + count))
    assert len(pool.lost) == count
    assert len(replaced) == 1
    assert remote._failures == 1


def test_a_tree_outlives_a_pool_with_many_workers(replaced, monkeypatch):
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)
    settings = {"bound": "sample", "branching": "pairs", "node_limit": 99, "jobs": 1}
    alone = solve(clumps(), **settings)
    pool = Fragile(holds=40)
    assert same(solve(clumps(), executor=pool, **settings), alone)
    assert len(pool.lost) > remote_module.MAX_FAILURES
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
    monkeypatch.setattr(remote_module, "LOOK_SECONDS", 0.0)
    client = SlowClient(0.1, gone)
    remote, began = RemoteExecutor(Silent(), client), time.monotonic()
    while time.monotonic() - began < 1.0:
        assert remote.empty() is gone
    assert client.asked == 1


class Ranks(Silent):
    """Workers of MPI, of which nobody has begun."""

    num_workers = 3


Ranks.__module__ = "mpi4py.futures"


def test_of_two_broadcasts_at_a_time_each_would_wait_for_the_other(monkeypatch):
    """The second run sends its data along with tasks instead."""
    monkeypatch.setattr(remote_module, "_passing_on", [])
    first, second = RemoteExecutor(Ranks()), RemoteExecutor(Ranks())
    for remote in (first, second):
        shared = SharedData((100,))
        for _ in range(5):
            remote.submit(tasks.add, [1], shared)
    names = [[one[1].__name__ for one in remote._executor.taken] for remote in (first, second)]
    assert names == [["receive_by_mpi"] * 3 + ["run_batch"] * 5, ["run_batch"] * 5]
    with_data = [one[2][-1] is not None for one in second._executor.taken]
    assert with_data == [True] * 3 + [False] * 2
    assert (first.data_sent, second.data_sent) == (1, 3)
    for future, *_ in first._executor.taken[:3]:
        future.set_result(True)
    third = RemoteExecutor(Ranks())
    third.submit(tasks.add, [1], SharedData((100,)))
    assert len(third._executor.taken) == 3 + 1


def test_errors_of_waking_up_come_out_as_worker_errors():
    class Closing(Silent):
        def submit(self, function, /, *arguments, **named):
            if function.__name__ == "preload_modules":
                raise OSError("gone")
            return super().submit(function, *arguments, **named)

    with pytest.raises(WorkerError, match="takes no tasks: OSError: gone"):
        RemoteExecutor(Closing(near=True)).workers_ready()
