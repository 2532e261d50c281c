"""Runs on a Dask cluster of separate processes: the same answer, also when a worker is killed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from certikmeans import Problem, Status, solve
from certikmeans.errors import InputError
from certikmeans.events import TreeProgress
from certikmeans.parallel import RemoteExecutor, SharedData, TaskPool, dispatch_policy, resolve
from certikmeans.parallel import remote as remote_module
from certikmeans.parallel import task_queue as task_queue_module
from tests.checkpoint.cases import same
from tests.parallel import tasks
from tests.parallel.dask_cluster import cluster

distributed = pytest.importorskip("distributed")

SETTINGS = {"bound": "sample", "node_limit": 60, "jobs": 1}


def problem():
    rng = np.random.default_rng(0)
    return Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made


@pytest.fixture
def client(site):
    with distributed.Client(scheduler_file=str(site.file), timeout=60) as made:
        made.wait_for_workers(1, timeout=60)
        yield made


@pytest.fixture
def sent(monkeypatch):
    """Everything goes out; how much that was."""
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)
    made = []

    class Counted(RemoteExecutor):  # type: ignore[misc]
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(resolve, "RemoteExecutor", Counted)
    return made


@pytest.mark.parametrize("handle", ["client", "executor"])
def test_the_same_answer_as_here(client, sent, handle):
    here = solve(problem(), **SETTINGS)
    there = solve(
        problem(), executor=client if handle == "client" else client.get_executor(), **SETTINGS
    )
    assert same(there, here)
    assert there.nodes > 20
    assert sent[0].sent > 20
    assert sent[0].data_sent == 1


def test_what_fails_at_one_worker_is_done_by_another(client, monkeypatch):
    """A broken worker fails at once, so it would get every task: more than may fail in all."""
    broken = sorted(client.nthreads())[0]
    remote = RemoteExecutor(client.get_executor(pure=False), client)
    count = 3 * remote_module.MAX_FAILURES
    monkeypatch.setattr(TaskPool, "pays", lambda self, remote, count: True)
    found = TaskPool(remote=remote).map(
        tasks.fail_at, list(range(count)), shared=SharedData(broken)
    )
    assert broken not in found
    assert len(found) == count
    assert remote.sent > count  # some had to be sent again


def test_a_worker_killed_in_mid_run_costs_time_alone(site, client, sent):
    here = solve(problem(), **SETTINGS)
    killed = []

    def kill_one(event):
        if isinstance(event, TreeProgress) and event.nodes > 15 and not killed:
            killed.append(site.workers[0])
            site.workers[0].kill()

    there = solve(problem(), executor=client, callbacks=[kill_one], **SETTINGS)
    assert killed
    assert site.workers[0].wait(timeout=60) != 0
    assert same(there, here)
    assert sent[0].sent > 20


def test_easy_runs_send_nothing(client, monkeypatch):
    """The root closes, and boxes of its pricing stay here: workers are not even asked."""
    monkeypatch.setattr(RemoteExecutor, "submit", None)
    monkeypatch.setattr(RemoteExecutor, "_measure", None)
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(i * 9, 1, size=(60, 2)) for i in range(3)])
    result = solve(Problem.from_data(points, 3), executor=client)
    assert result.status is Status.OPTIMAL


def test_a_cluster_that_stands_in_a_queue_is_not_waited_for(tmp_path, monkeypatch):
    """No worker is there: the run is as it would be without, and its time limit holds."""
    monkeypatch.setattr(dispatch_policy, "OFFLOAD_AFTER_SECONDS", 0.0)
    asked, reached = [], RemoteExecutor.reached

    def watched(self):
        asked.append(reached(self))
        return asked[-1]

    monkeypatch.setattr(RemoteExecutor, "reached", watched)
    here = solve(problem(), **SETTINGS)
    with (
        cluster(tmp_path, 0) as nobody,
        distributed.Client(scheduler_file=str(nobody.file), timeout=60) as client,
    ):
        assert same(solve(problem(), executor=client, **SETTINGS), here)
        assert asked
        assert not any(asked)
        endless = {**SETTINGS, "node_limit": 10**9, "gap": 1e-12, "time_limit": 1.0}
        began = time.monotonic()
        solve(problem(), executor=client, **endless)
        assert time.monotonic() - began < 10.0


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(remote_module, "NO_WORKERS_SECONDS", 0.5)
    monkeypatch.setattr(task_queue_module, "WAIT_SECONDS", 0.2)


def test_when_the_connection_is_lost_the_run_goes_on_here(client, sent, impatient):
    here = solve(problem(), **SETTINGS)

    def close(event):
        if isinstance(event, TreeProgress) and event.nodes > 15:
            client.close()

    there = solve(problem(), executor=client, callbacks=[close], **SETTINGS)
    assert same(there, here)
    with pytest.raises(InputError, match="the Dask client is closed"):
        solve(problem(), executor=client)


def test_when_no_worker_is_left_the_run_goes_on_here(site, client, sent, impatient):
    """Last of this file: all workers die."""
    here = solve(problem(), **SETTINGS)

    def kill_all(event):
        if isinstance(event, TreeProgress) and event.nodes > 45:
            for worker in site.workers:
                worker.kill()

    there = solve(problem(), executor=client, callbacks=[kill_all], **SETTINGS)
    assert same(there, here)
    assert sent[0].sent > 20
