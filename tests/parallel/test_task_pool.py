"""This thread, threads and processes: the same answers, in order; a failure is a WorkerError."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from certikmeans import BoundError, Problem, Status, solve
from certikmeans.errors import WorkerError
from certikmeans.parallel import TaskPool


class Immediate(Executor):
    """The least that has the interface: runs at once, keeps whatever is raised."""

    def submit(self, function, /, *arguments, **named):
        future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def processes():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


MAKERS = {
    "this thread": lambda: None,
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


def cube(value):
    return value**3


def fail_at_three(value):
    if value == 3:
        raise ZeroDivisionError("three")
    return value


def refuse_at_three(value):
    if value == 3:
        raise BoundError("three", hint="none")
    return value


def die(value):
    os._exit(1)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_answers_are_in_the_order_of_the_items(executor, count):
    assert TaskPool(executor).map(cube, list(range(count))) == [i**3 for i in range(count)]


@pytest.mark.parametrize("items", [[3], [0, 1, 2, 3, 4, 5]])
def test_what_a_task_raises_is_a_worker_error(executor, items):
    with pytest.raises(WorkerError, match="ZeroDivisionError: three") as error:
        TaskPool(executor).map(fail_at_three, items)
    assert error.value.hint
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert TaskPool(executor).map(cube, [1, 2]) == [1, 8]  # others are not affected


@pytest.mark.parametrize("name", ["this thread", "immediate", "threads"])
@pytest.mark.parametrize("items", [[3], [0, 3, 4]])
def test_our_own_errors_come_out_as_they_are(name, items):
    with pytest.raises(BoundError, match="three"):
        TaskPool(MAKERS[name]()).map(refuse_at_three, items)


def test_our_own_errors_come_out_of_processes_as_they_are():
    assert str(pickle.loads(pickle.dumps(BoundError("three", hint="none")))) == "three\nhint: none"


def test_a_worker_that_dies_is_a_worker_error():
    with processes() as pool, pytest.raises(WorkerError, match="BrokenProcessPool"):
        TaskPool(pool).map(die, [1, 2])


def hard():
    """The root does not close, so that nodes are sent out; few enough to be quick."""
    rng = np.random.default_rng(0)
    return Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])


@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_runs_do_not_depend_on_the_executor(executor, branching):
    settings = {"bound": "sample", "branching": branching, "node_limit": 40, "jobs": 1}
    alone = solve(hard(), **settings)
    found = solve(hard(), executor=executor, **settings)
    assert alone.nodes > 2
    assert found.status is alone.status
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert found.lower_bound == alone.lower_bound
    assert found.cost == alone.cost
    assert found.nodes == alone.nodes
    assert np.array_equal(found.labels, alone.labels)
