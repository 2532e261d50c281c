"""Task pools: results in order, errors, draining; serial, with threads and remotely."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from certikmeans import BoundError, Problem, Status, StopSignal, solve
from certikmeans.errors import WorkerError
from certikmeans.parallel import RemoteExecutor, SharedData, TaskPool
from tests.parallel import tasks
from tests.parallel.executors import Immediate, Silent, processes

MAKERS = {
    "serial": lambda: None,
    "immediate": Immediate,
    "threads": lambda: ThreadPoolExecutor(3),
    "processes": processes,
}


@pytest.fixture(scope="module", params=MAKERS)
def executor(request):
    made = MAKERS[request.param]()
    yield made
    if made is not None:
        made.shutdown(wait=True, cancel_futures=True)


@pytest.fixture
def pool(executor):
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        made = TaskPool(executor, n_threads=3)
    else:
        made = TaskPool(remote=RemoteExecutor(executor))
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_map_keeps_order(pool, count):
    assert pool.map(tasks.cube, list(range(count))) == [i**3 for i in range(count)]
    shared = SharedData((100,))
    assert pool.map(tasks.add, list(range(count)), shared) == [100 + i for i in range(count)]


def test_submit(pool):
    futures = [pool.submit(tasks.cube, i) for i in range(20)]
    assert [future.result(60) for future in futures] == [i**3 for i in range(20)]
    assert pool.submit(tasks.add, 5, shared=SharedData((1,))).result(60) == 6


@pytest.mark.parametrize("items", [[3], [0, 1, 2, 3, 4, 5]])
def test_exception_becomes_worker_error(pool, items):
    with pytest.raises(WorkerError, match="ZeroDivisionError: three") as error:
        pool.map(tasks.fail_at_three, items)
    assert error.value.hint
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert pool.map(tasks.cube, [1, 2]) == [1, 8]  # the pool still works


@pytest.mark.parametrize("items", [[3], [0, 3, 4]])
def test_own_errors_are_unchanged(pool, items):
    with pytest.raises(BoundError, match="three"):
        pool.map(tasks.bound_error_at_three, items)
    with pytest.raises(BoundError, match="three"):
        pool.submit(tasks.bound_error_at_three, 3).result(60)


def test_own_errors_can_be_pickled():
    assert str(pickle.loads(pickle.dumps(BoundError("three", hint="none")))) == "three\nhint: none"


def test_capacity():
    assert TaskPool().capacity == TaskPool(n_threads=4).n_workers == 1
    with ThreadPoolExecutor(3) as threads:
        assert TaskPool(threads, n_threads=3).n_workers == 3
        assert TaskPool(threads, n_threads=3).capacity > 3


def test_threads_shut_down_during_a_run():
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(WorkerError, match="cannot schedule"):
        TaskPool(threads).submit(tasks.cube, 1)


def test_drain_waits_for_running_local_tasks():
    begun, go = threading.Event(), threading.Event()

    def wait(item):
        begun.set()
        go.wait(30)
        return item

    with ThreadPoolExecutor(1) as threads:
        pool = TaskPool(threads)
        futures = [pool.submit(wait, i) for i in range(5)]
        begun.wait(30)
        threading.Timer(0.1, go.set).start()
        pool.drain(futures, 0.0)
        assert futures[0].result() == 0
        assert all(future.cancelled() for future in futures[1:])


def test_drain_cancels_silent_remote_tasks():
    pool = TaskPool(remote=RemoteExecutor(Silent()))
    future = pool.submit(tasks.cube, 1)
    began = time.monotonic()
    pool.drain([future], 0.05)
    assert time.monotonic() - began < 10.0
    assert future.cancelled()
    pool.close()


def test_map_with_stop_and_silent_workers():
    """Tasks that are out at an interrupt run locally, where they observe the signal."""
    stop = StopSignal()
    threading.Timer(0.2, stop.interrupt).start()
    pool = TaskPool(remote=RemoteExecutor(Silent()))
    found = pool.map(tasks.observe_stop, [1, 2, 3], SharedData(stop), stop)
    assert found == [1, 2, 3]
    pool.close()


@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_solve_does_not_depend_on_executor(executor, branching):
    rng = np.random.default_rng(0)
    problem = Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])
    settings = {"bound": "sample", "branching": branching, "node_limit": 40, "jobs": 1}
    alone = solve(problem, **settings)
    found = solve(problem, executor=executor, **settings)
    assert alone.nodes > 2
    assert found.status is alone.status
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert found.lower_bound == alone.lower_bound
    assert found.cost == alone.cost
    assert found.nodes == alone.nodes
    assert np.array_equal(found.labels, alone.labels)
