"""Remote executors: shared data sent once, failed tasks repeated, missing workers."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partialmethod

import numpy as np
import pytest

from certikmeans import Problem, Status, StopReason, StopSignal, solve
from certikmeans.bounds.partition import PartitionBound
from certikmeans.errors import BoundError, InputError, WorkerError
from certikmeans.parallel import RemoteExecutor, RemoteParams, SharedData, TaskPool
from certikmeans.parallel.task_pool import DRAIN_SECONDS, resolve_executor
from tests.checkpoint.cases import clumps, same
from tests.parallel import tasks
from tests.parallel.executors import Closed, Failing, Immediate, Silent, processes

PARAMS = RemoteParams()
TREE = {"bound": "sample", "branching": "pairs", "gap": 1e-9, "jobs": 1}
SOON = 20.0  # seconds beyond a limit; without end if something is wrong


@pytest.fixture(scope="module")
def pool_of_processes():
    with processes() as executor:
        yield executor


@pytest.fixture
def remote_of():
    """Make remote executors, closed after the test."""
    made = []

    def make(executor, *arguments):
        made.append(RemoteExecutor(executor, *arguments))
        return made[-1]

    yield make
    for remote in made:
        remote.close()


def test_data_sent_once_per_worker(pool_of_processes, remote_of):
    remote = remote_of(pool_of_processes)
    pool, shared = TaskPool(remote=remote), SharedData((100, bytes(1000)))
    for _ in range(5):
        assert pool.map(tasks.add, list(range(8)), shared) == list(range(100, 108))
    assert remote.n_workers == 2
    assert remote.n_sent >= 40
    # Two to begin with; a worker that got none of them requests the data.
    assert 2 <= remote.n_data_sent <= 2 + 8


@pytest.mark.parametrize("forgets", [0, 3, 7])
def test_data_sent_again_to_worker_without_them(remote_of, forgets):
    remote, shared = remote_of(Immediate(forgets)), SharedData((100,))
    for _ in range(4):
        found = TaskPool(remote=remote).map(tasks.add, list(range(10)), shared)
        assert found == list(range(100, 110))
    assert (remote.n_data_sent == 1) == (forgets == 0)
    assert remote.n_failures == 0


def test_failed_task_is_repeated(pool_of_processes, remote_of, tmp_path):
    pool, shared = TaskPool(remote=remote_of(pool_of_processes)), SharedData(str(tmp_path))
    assert pool.map(tasks.fail_once, list(range(6)), shared) == list(range(6))
    assert (tmp_path / "failed").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_broken_pool(remote_of):
    """All tasks of a process pool fail with it, and none waits."""
    with processes(1) as executor:
        remote = remote_of(executor)
        pool, shared = TaskPool(remote=remote), SharedData(0)
        futures = [pool.submit(tasks.die, i, shared=shared) for i in range(6)]
        for future in futures:
            with pytest.raises(WorkerError, match="a pool of workers broke: BrokenProcessPool"):
                future.result(60)
        with pytest.raises(WorkerError, match="BrokenProcessPool"):
            pool.submit(tasks.cube, 1).result(60)
        assert remote.n_failures == 1


def test_task_that_always_fails(remote_of):
    remote = remote_of(Immediate())
    with pytest.raises(WorkerError, match="ZeroDivisionError: number") as error:
        TaskPool(remote=remote).map(tasks.fail, [1, 2], SharedData(0))
    assert error.value.hint
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert PARAMS.max_attempts <= remote.n_sent <= 2 * PARAMS.max_attempts
    assert remote.failure is None


def test_max_failures(remote_of, tmp_path):
    shared = SharedData(str(tmp_path))
    items = list(range(PARAMS.max_failures))
    remote = remote_of(Immediate())
    pool = TaskPool(remote=remote)
    assert pool.map(tasks.fail_first, items, shared) == items
    assert remote.n_failures == PARAMS.max_failures
    with pytest.raises(WorkerError, match="too many tasks failed"):
        pool.map(tasks.fail_first, [100, 101], shared)
    assert remote.failure is not None


def test_own_errors_are_not_repeated(remote_of):
    remote = remote_of(Immediate())
    with pytest.raises(BoundError, match="three"):
        TaskPool(remote=remote).map(tasks.bound_error_at_three, [3, 3])
    assert remote.n_sent <= 2


def test_cancelled_task_has_no_effect(remote_of):
    silent = Silent()
    remote = remote_of(silent)
    first = remote.submit(tasks.cube, (1,))
    assert first.cancel()
    second = remote.submit(tasks.cube, (2,))
    while not silent.taken:
        time.sleep(0.01)
    for future, function, arguments in silent.taken:
        future.set_result(function(*arguments))
    assert second.result(60) == 8
    assert first.cancelled()


@pytest.mark.parametrize("field", ["max_attempts", "refresh_seconds"])
def test_params_are_validated(field):
    with pytest.raises(ValueError, match="must be positive"):
        RemoteParams(**{field: 0})


# Runs


def hard():
    rng = np.random.default_rng(0)
    return Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])


def loky():
    from joblib.externals.loky import get_reusable_executor

    return get_reusable_executor(max_workers=2)


@pytest.mark.parametrize("make", [Immediate, lambda: ThreadPoolExecutor(2), processes, loky])
def test_accepted_executors(make):
    settings = {"bound": "sample", "node_limit": 30, "jobs": 1}
    local = solve(hard(), **settings)
    executor = make()
    found = solve(hard(), executor=executor, **settings)
    executor.shutdown(wait=True)
    assert local.nodes == found.nodes > 2
    assert local.lower_bound == found.lower_bound


def rejected():
    import joblib

    yield 4, "a number of type int", "jobs=2"
    yield "dask", "a value of type str", "pass the executor itself"
    yield joblib.Parallel(2), "a joblib Parallel", "get_reusable_executor"
    yield object(), "a value of type object", "MPIPoolExecutor"


@pytest.mark.parametrize(("thing", "named", "advice"), list(rejected()))
def test_rejected_executors(thing, named, advice):
    with pytest.raises(InputError) as error:
        solve(hard(), executor=thing)
    assert error.value.message == f"executor: {named} takes no tasks"
    assert advice in error.value.hint


def test_rejected_multiprocessing_pool():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(InputError, match="multiprocessing Pool takes no tasks") as error:
            solve(hard(), executor=pool)
        assert "ProcessPoolExecutor" in error.value.hint


def test_rejected_after_shutdown():
    for executor in (ThreadPoolExecutor(1), processes(1)):
        executor.shutdown()
        with pytest.raises(InputError, match="shut down or is broken"):
            resolve_executor(executor)


def test_time_limit_with_silent_workers():
    solve(clumps(), node_limit=9, **TREE)  # compiles
    began, silent = time.monotonic(), Silent()
    result = solve(clumps(), executor=silent, time_limit=2.0, **TREE)
    assert time.monotonic() - began < 2.0 + DRAIN_SECONDS + SOON
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.labels is not None
    assert silent.taken


def test_executor_that_accepts_no_tasks():
    result = solve(clumps(), executor=Closed(), node_limit=99, **TREE)
    assert result.stop_reason is StopReason.WORKER_FAILED
    assert "RuntimeError: closed" in result.failure
    assert result.labels is not None


# Parts


def partition_problem():
    return Problem.from_data(np.random.default_rng(0).normal(size=(90, 12)), 3)


@pytest.fixture
def part_size_20(monkeypatch):
    monkeypatch.setattr(PartitionBound, "__init__", partialmethod(PartitionBound.__init__, size=20))


PARTITION = {"bound": "partition", "jobs": 1, "keep_proof": True, "node_limit": 1}


def test_parts_are_repeated_when_they_fail(part_size_20, remote_of):
    problem = partition_problem()
    local = solve(problem, **PARTITION)
    sent = []
    for executor in (Immediate(), Immediate(forgets=7), Failing(lambda task: task % 3 == 0)):
        remote = remote_of(executor, None, RemoteParams(max_failures=1_000))
        found = solve(problem, executor=remote, **PARTITION)
        assert found.stop_reason is local.stop_reason
        assert found.lower_bound == pytest.approx(local.lower_bound, rel=1e-3)
        assert remote.n_sent > 5
        sent.append(remote)
    once, forgotten, failing = sent
    assert failing.n_failures > 0
    assert once.n_data_sent == 1  # points go to a worker once, tasks name them
    assert 1 < forgotten.n_data_sent < forgotten.n_sent / 2


def test_run_ends_when_too_many_parts_fail(part_size_20, remote_of, tmp_path):
    """The result keeps what was proven, and a resumed run tries the failed parts again."""
    problem, path = partition_problem(), tmp_path / "state"
    whole = solve(problem, **PARTITION)
    remote = remote_of(Failing(lambda task: task >= 12), None, RemoteParams(max_failures=2))
    broken = solve(problem, executor=remote, checkpoint=path, **PARTITION)
    assert broken.status is Status.FEASIBLE
    assert broken.stop_reason is StopReason.WORKER_FAILED
    assert "too many tasks failed: ConnectionError: gone" in broken.failure
    assert 0.0 < broken.lower_bound == broken.proof.lower_bound < whole.lower_bound
    again = solve(problem, resume=path, **PARTITION)
    assert again.lower_bound == pytest.approx(whole.lower_bound, rel=1e-3)


def test_stop_with_silent_workers_in_parts(part_size_20):
    stop, silent = StopSignal(), Silent()
    solve(partition_problem(), **PARTITION)  # compiles

    def interrupt():
        while not silent.taken:
            time.sleep(0.05)
        stop.interrupt()

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    result = solve(partition_problem(), executor=silent, stop=stop, **PARTITION)
    assert time.monotonic() - began < DRAIN_SECONDS + 2 * SOON
    assert result.stop_reason is StopReason.INTERRUPTED


# Dask clients without a cluster


class FakeClient:
    """A Dask client whose scheduler responds slowly, or not at all, and has ``workers``."""

    def __init__(self, executor, workers=1, seconds=0.0, gone=False):
        self._executor, self.workers = executor, workers
        self._seconds, self._gone = seconds, gone
        self.requests = 0

    def nthreads(self, callback_timeout):
        self.requests += 1
        time.sleep(self._seconds)
        if self._gone:
            raise TimeoutError
        return {f"tcp://{i}": 1 for i in range(self.workers)}

    def scatter(self, packed, **settings):
        return packed

    def get_executor(self, **settings):
        return self._executor


def fake_remote(remote_of, client, **params):
    return remote_of(client._executor, client, RemoteParams(**params))


def test_without_workers_tasks_run_locally(remote_of):
    silent = Silent()
    remote = fake_remote(remote_of, FakeClient(silent, workers=0))
    settings = {**TREE, "node_limit": 31}
    assert same(solve(clumps(), executor=remote, **settings), solve(clumps(), **settings))
    with pytest.raises(RuntimeError, match="was closed"):
        remote.submit(tasks.cube, (1,))
    with ThreadPoolExecutor(2) as threads:
        pool = TaskPool(threads, fake_remote(remote_of, FakeClient(silent, workers=0)), 2)
        assert pool.map(tasks.cube, [1, 2, 3]) == [1, 8, 27]
    assert not silent.taken


def test_tasks_are_recalled_when_workers_are_gone(remote_of):
    silent = Silent()
    client = FakeClient(silent)
    remote = fake_remote(remote_of, client, no_workers_seconds=0.3, refresh_seconds=0.05)
    task = remote.submit(tasks.add, (5,), SharedData((1,)))
    while not silent.taken:
        time.sleep(0.01)
    client.workers = 0
    assert task.result(60) == 6


@pytest.mark.parametrize("gone", [False, True])
def test_slow_scheduler_gets_few_requests(remote_of, gone):
    client = FakeClient(Immediate(), seconds=0.1, gone=gone)
    remote, began = fake_remote(remote_of, client, refresh_seconds=0.01), time.monotonic()
    while time.monotonic() - began < 1.0:
        assert remote.submit(tasks.cube, (2,)).result(60) == 8
    assert client.requests <= 2
    assert (remote.n_sent == 0) == gone
