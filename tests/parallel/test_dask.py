"""Runs on a Dask cluster of separate processes, also when workers are killed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from certikmeans import Problem, Status, solve
from certikmeans.errors import InputError
from certikmeans.events import TreeProgress
from certikmeans.parallel import (
    RemoteExecutor,
    RemoteParams,
    SharedData,
    TaskPool,
    resolve_executor,
)
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


def remote_on(client, **params):
    """A remote executor whose counters can be read after the run."""
    return RemoteExecutor(client.get_executor(pure=False), client, RemoteParams(**params))


def test_client_and_executor_are_accepted(client):
    for handle in (client, client.get_executor()):
        assert resolve_executor(handle).remote is not None


def test_same_result_as_local(client):
    local = solve(problem(), **SETTINGS)
    remote = remote_on(client)
    assert same(solve(problem(), executor=remote, **SETTINGS), local)
    assert local.nodes > 20
    assert remote.n_sent > 20
    assert remote.n_data_sent == 1
    assert same(solve(problem(), executor=client, **SETTINGS), local)


def test_broken_worker_is_avoided(client):
    """A broken worker fails at once and would get every task: more than may fail in all."""
    broken = sorted(client.nthreads())[0]
    remote = remote_on(client)
    count = 3 * RemoteParams().max_failures
    found = TaskPool(remote=remote).map(tasks.fail_at, list(range(count)), SharedData(broken))
    remote.close()
    assert broken not in found
    assert len(found) == count
    assert remote.n_sent > count  # some had to be sent again


def test_killed_worker(site, client):
    local = solve(problem(), **SETTINGS)
    killed, remote = [], remote_on(client)

    def kill_one(event):
        if isinstance(event, TreeProgress) and event.nodes > 15 and not killed:
            killed.append(site.workers[0])
            site.workers[0].kill()

    found = solve(problem(), executor=remote, callbacks=[kill_one], **SETTINGS)
    assert killed
    assert site.workers[0].wait(timeout=60) != 0
    assert same(found, local)
    assert remote.n_sent > 20


def test_root_sends_nothing(client):
    """The root closes, and boxes of its pricing run on local threads."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(i * 9, 1, size=(60, 2)) for i in range(3)])
    remote = remote_on(client)
    result = solve(Problem.from_data(points, 3), executor=remote)
    assert result.status is Status.OPTIMAL
    assert remote.n_sent == 0


def test_cluster_without_workers(tmp_path):
    """Tasks run locally, and the time limit holds."""
    local = solve(problem(), **SETTINGS)
    with (
        cluster(tmp_path, 0) as empty,
        distributed.Client(scheduler_file=str(empty.file), timeout=60) as client,
    ):
        remote = remote_on(client)
        assert same(solve(problem(), executor=remote, **SETTINGS), local)
        assert remote.n_sent == 0
        endless = {**SETTINGS, "node_limit": 10**9, "gap": 1e-12, "time_limit": 1.0}
        began = time.monotonic()
        solve(problem(), executor=client, **endless)
        assert time.monotonic() - began < 20.0


def test_lost_connection(client):
    local = solve(problem(), **SETTINGS)

    def close(event):
        if isinstance(event, TreeProgress) and event.nodes > 15:
            client.close()

    remote = remote_on(client, no_workers_seconds=0.5)
    assert same(solve(problem(), executor=remote, callbacks=[close], **SETTINGS), local)
    with pytest.raises(InputError, match="the Dask client is closed"):
        solve(problem(), executor=client)


def test_all_workers_killed(site, client):
    """Last of this module: no worker is left."""
    local = solve(problem(), **SETTINGS)

    def kill_all(event):
        if isinstance(event, TreeProgress) and event.nodes > 45:
            for worker in site.workers:
                worker.kill()

    remote = remote_on(client, no_workers_seconds=0.5)
    assert same(solve(problem(), executor=remote, callbacks=[kill_all], **SETTINGS), local)
    assert remote.n_sent > 20
