"""Workers elsewhere: data go once, failures cost time, and what pays is measured."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.base import BoundContext
from certikmeans.errors import BoundError, InputError, WorkerError
from certikmeans.parallel import RemoteExecutor, SharedData, TaskPool, resolve_executor
from certikmeans.parallel.dispatch_policy import DispatchPolicy
from certikmeans.parallel.remote import MAX_FAILURES, MAX_TRIES
from tests.parallel import tasks

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")


@pytest.fixture(autouse=True)
def always_far(monkeypatch):
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)


def processes(count=2):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def pool():
    with processes() as executor:
        yield executor


class Immediate(Executor):
    """Runs at once, in one worker that has forgotten everything every so often."""

    def __init__(self, forgets=0):
        self._forgets = forgets
        self.tasks = 0

    def submit(self, function, /, *arguments, **named):
        from certikmeans.parallel import worker

        self.tasks += 1
        if self._forgets and self.tasks % self._forgets == 0:
            worker._kept.clear()
        future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def test_data_go_once_per_worker(pool):
    remote = RemoteExecutor(pool)
    task_pool, shared = TaskPool(remote=remote), SharedData((100, bytes(1000)))
    for _ in range(5):
        assert task_pool.map(tasks.add, list(range(8)), shared=shared) == list(range(100, 108))
    assert remote.n_workers == 2
    assert remote.sent >= 40
    # Two to begin with; a worker that got none of them asks.
    assert 2 <= remote.data_sent <= 2 + 8


@pytest.mark.parametrize("forgets", [0, 3, 7])
def test_a_worker_that_has_forgotten_asks_again(forgets):
    task_pool, shared = TaskPool(remote=RemoteExecutor(Immediate(forgets))), SharedData((100,))
    for _ in range(4):
        assert task_pool.map(tasks.add, list(range(10)), shared=shared) == list(range(100, 110))


def test_a_task_that_failed_is_tried_again(pool, tmp_path):
    shared = SharedData(str(tmp_path))
    assert TaskPool(remote=RemoteExecutor(pool)).map(
        tasks.fail_once, list(range(6)), shared=shared
    ) == list(range(6))
    assert (tmp_path / "failed").exists()


@needs_signals
def test_a_worker_that_died_costs_time_alone(tmp_path):
    with processes() as executor:
        remote, shared = RemoteExecutor(executor), SharedData(str(tmp_path))
        task_pool = TaskPool(remote=remote)
        assert task_pool.map(tasks.die_once, list(range(6)), shared=shared) == list(range(6))
        assert task_pool.map(tasks.die_once, list(range(6)), shared=shared) == list(range(6))
        remote.close()
    assert (tmp_path / "died").exists()


@needs_signals
def test_a_task_that_kills_every_worker_ends(tmp_path):
    with processes(1) as executor:
        remote = RemoteExecutor(executor)
        with pytest.raises(WorkerError, match="BrokenProcessPool"):
            TaskPool(remote=remote).map(tasks.die, [1, 2], shared=SharedData(0))
        remote.close()


def test_a_task_that_always_fails_ends_after_a_few_tries():
    remote = RemoteExecutor(Immediate())
    with pytest.raises(WorkerError, match="ZeroDivisionError: number") as error:
        TaskPool(remote=remote).map(tasks.fail, [1, 2], shared=SharedData(0))
    assert error.value.hint
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert MAX_TRIES <= remote.sent <= 2 * MAX_TRIES


def test_failures_cost_nothing_but_time(tmp_path):
    task_pool, items = TaskPool(remote=RemoteExecutor(Immediate())), list(range(MAX_FAILURES))
    assert task_pool.map(tasks.fail_first, items, shared=SharedData(str(tmp_path))) == items


def test_too_many_failures_end_the_run(tmp_path):
    task_pool, items = TaskPool(remote=RemoteExecutor(Immediate())), list(range(MAX_FAILURES + 1))
    with pytest.raises(WorkerError, match="too many tasks failed"):
        task_pool.map(tasks.fail_first, items, shared=SharedData(str(tmp_path)))


def test_our_own_errors_are_not_tried_again():
    remote = RemoteExecutor(Immediate())
    with pytest.raises(BoundError, match="three"):
        TaskPool(remote=remote).map(tasks.refuse, [1, 2], shared=SharedData(0))
    assert remote.sent <= 2


def hard():
    import numpy as np

    rng = np.random.default_rng(0)
    return Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])


def joblibs():
    from joblib.externals.loky import get_reusable_executor

    return get_reusable_executor(max_workers=2)


@pytest.mark.parametrize("make", [Immediate, lambda: ThreadPoolExecutor(2), processes, joblibs])
def test_executors_that_are_accepted(make):
    settings = {"bound": "sample", "node_limit": 30, "jobs": 1}
    here = solve(hard(), **settings)
    executor = make()
    remote = solve(hard(), executor=executor, **settings)
    executor.shutdown(wait=True)
    assert here.nodes == remote.nodes > 2
    assert here.lower_bound == remote.lower_bound


def refused():
    import joblib

    yield 4, "a number of type int", "jobs=2"
    yield "dask", "a value of type str", "pass the executor itself"
    yield joblib.Parallel(2), "a joblib Parallel", "get_reusable_executor"
    yield object(), "a value of type object", "MPIPoolExecutor"


@pytest.mark.parametrize(("thing", "named", "advice"), list(refused()))
def test_executors_that_are_refused_with_advice(thing, named, advice):
    with pytest.raises(InputError) as error:
        solve(hard(), executor=thing)
    assert error.value.message == f"executor: {named} takes no tasks"
    assert advice in error.value.hint


def test_pools_of_multiprocessing_are_refused_with_advice():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(InputError, match="multiprocessing Pool takes no tasks") as error:
            solve(hard(), executor=pool)
        assert "ProcessPoolExecutor" in error.value.hint


def test_an_executor_that_was_shut_down_is_refused():
    for executor in (ThreadPoolExecutor(1), processes(1)):
        executor.shutdown()
        with pytest.raises(InputError, match="shut down or is broken"):
            resolve_executor(executor)


class Flaky(Immediate):
    """Fails every third task that is a part."""

    def submit(self, function, /, *arguments, **named):
        if function.__name__ == "run_batch" and self.tasks % 3 == 2:
            self.tasks += 1
            future = Future()
            future.set_exception(ConnectionError("gone"))
            return future
        return super().submit(function, *arguments, **named)


class Dying(Immediate):
    """From some task on, all fail."""

    def submit(self, function, /, *arguments, **named):
        future = super().submit(function, *arguments, **named)
        if function.__name__ != "run_batch" or self.tasks < 12:
            return future
        gone = Future()
        gone.set_exception(ConnectionError("gone"))
        return gone


def test_when_too_many_parts_fail_the_run_ends_with_what_was_proven(monkeypatch, tmp_path):
    """And whoever goes on tries those again that had failed."""
    import numpy as np

    from certikmeans import Status, StopReason
    from certikmeans.bounds.partition import PartitionBound

    monkeypatch.setattr(DispatchPolicy, "pays", lambda self, remote, count: True)
    monkeypatch.setattr("certikmeans.parallel.remote.MAX_FAILURES", 2)
    monkeypatch.setattr(PartitionBound, "__init__", lambda self: setattr(self, "_size", 20))
    problem = Problem.from_data(np.random.default_rng(0).normal(size=(90, 12)), 3)
    settings, path = {"bound": "partition", "jobs": 1, "keep_proof": True}, tmp_path / "state"
    whole = solve(problem, **settings)
    broken = solve(problem, executor=Dying(), checkpoint=path, **settings)
    assert broken.status is Status.FEASIBLE
    assert broken.stop_reason is StopReason.WORKER_FAILED
    assert "too many tasks failed: ConnectionError: gone" in broken.failure
    assert 0.0 < broken.lower_bound == broken.proof.lower_bound < whole.lower_bound
    again = solve(problem, resume=path, **settings)
    assert again.lower_bound == pytest.approx(whole.lower_bound, rel=1e-3)


def test_parts_go_out_and_come_again_when_they_fail(monkeypatch):
    import numpy as np

    from certikmeans.bounds.partition.run import partition_bound
    from certikmeans.presolve.pipeline import presolve
    from certikmeans.stop import StopSignal

    monkeypatch.setattr(DispatchPolicy, "pays", lambda self, remote, count: True)
    rng = np.random.default_rng(0)
    reduced = presolve(Problem.from_data(rng.normal(size=(60, 6)), 3), StopSignal()).reduced
    labels = (np.arange(60) % 3).astype(np.int64)

    def bounded(executor):
        remote = None if executor is None else RemoteExecutor(executor)
        ctx = BoundContext(pool=TaskPool(remote=remote))
        found = partition_bound(reduced, labels, np.inf, ctx, size=20)
        return found, remote

    here, _ = bounded(None)
    assert here.n_parts >= 3
    data_sent = {}
    for executor in (Immediate(), Immediate(forgets=7), Flaky()):
        worker, remote = bounded(executor)
        assert remote.sent > 5
        assert worker.value == pytest.approx(here.value, rel=1e-3)
        assert worker.failures == 0
        data_sent[executor] = remote.data_sent
    assert remote._failures > 0
    once, forgotten, _ = data_sent.values()
    assert once == 1  # points go to a worker once, tasks name them
    assert 1 < forgotten < remote.sent / 2
