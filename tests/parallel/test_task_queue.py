"""Tasks in a row: in bundles or alone, here or elsewhere, and where that is soonest."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

from certikmeans.errors import WorkerError
from certikmeans.parallel import RemoteExecutor, SharedData, TaskPool
from certikmeans.parallel import dispatch_policy as dispatch_policy_module
from certikmeans.parallel.dispatch_policy import (
    MAX_SLOWDOWN,
    OFFLOAD_AFTER_SECONDS,
    REST_FACTOR,
    DispatchPolicy,
)
from certikmeans.parallel.task_queue import TaskQueue
from certikmeans.parallel.worker import TaskResult
from tests.parallel import tasks


class Post(Executor):
    """Workers elsewhere that answer when they are told to; ``bundles`` has what was sent."""

    def __init__(self, workers=2):
        self._max_workers = workers
        self.bundles = []

    def submit(self, function, /, *arguments, **named):
        future = Future()
        if function.__name__ != "run_batch":  # what measures the journey comes back at once
            future.set_result(function(*arguments, **named))
        else:
            self.bundles.append((future, function, arguments))
        return future

    def answer(self, place=0):
        future, function, arguments = self.bundles.pop(place)
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return len(arguments[1])


SAME = SharedData((0,))


def line_to(remote, size=1, executor=None, function=tasks.add):
    """A line that sends everything out, in bundles of a size."""
    dispatch_policy = DispatchPolicy(2)
    dispatch_policy.bundle = lambda remote, count: size
    told = []
    made = TaskQueue(
        function, lambda *one: told.append(one), executor, remote, dispatch_policy, lambda *_: True
    )
    return made, told


@pytest.mark.parametrize("size", [1, 3, 4])
def test_tasks_travel_in_bundles_and_come_back_in_any_order(size):
    post = Post()
    task_queue, told = line_to(RemoteExecutor(post), size)
    shared = SharedData((100,))
    numbers = [task_queue.put(i, shared) for i in range(12)]
    sizes = []
    while len(task_queue.results) < 12:
        if post.bundles:
            sizes.append(post.answer(len(post.bundles) - 1))  # the last one first
        task_queue.advance()
    assert [task_queue.results[number] for number in numbers] == [100 + i for i in range(12)]
    assert sorted(told) == [(number, 100 + number) for number in numbers]
    assert max(sizes) == size
    assert told != sorted(told)


def test_no_worker_gets_more_than_two_bundles():
    post = Post(workers=3)
    task_queue, _ = line_to(RemoteExecutor(post), 2)
    for i in range(40):
        task_queue.put(i, SAME)
    sizes = [len(arguments[1]) for _, _, arguments in post.bundles]
    assert len(sizes) == 6
    assert set(sizes[1:]) == {2}  # what is first does not wait for others
    assert task_queue.room() == 2 * 3 * 2 - 40


def test_what_tasks_share_is_the_same_in_a_bundle():
    post = Post(workers=1)
    task_queue, _ = line_to(RemoteExecutor(post), 4)
    one, other = SharedData((10,)), SharedData((20,))
    for i, shared in enumerate([one, one, other, other, other]):
        task_queue.put(i, shared)
    while len(task_queue.results) < 5:
        task_queue.advance()
        if post.bundles:
            post.answer()
    assert [task_queue.results[i] for i in range(5)] == [10, 11, 22, 23, 24]


def test_of_a_bundle_that_failed_only_the_culprit_ends_the_run(tmp_path):
    """Tasks of a bundle that failed go out alone: the others are not to blame."""
    post = Post(workers=1)
    task_queue, told = line_to(RemoteExecutor(post), 4, function=tasks.fail_at_two)
    for i in range(4):
        task_queue.put(i, SAME)

    def go_on():
        while True:
            while post.bundles:
                post.answer()
            task_queue.advance()

    with pytest.raises(WorkerError, match="ZeroDivisionError: two"):
        go_on()
    assert {number for number, _ in told} == {0, 1, 3}


def test_a_dropped_task_is_never_heard_of():
    post = Post()
    task_queue, told = line_to(RemoteExecutor(post), 1)
    for i in range(3):
        task_queue.put(i, SAME)
    task_queue.cancel_all()
    while post.bundles:
        if post.bundles[0][0].cancelled():
            post.bundles.pop(0)
        else:
            post.answer()
    number = task_queue.put(7, SAME)
    while not task_queue.results:
        if post.bundles:
            post.answer()
        task_queue.advance()
    assert task_queue.results == {number: 7}
    assert told == [(number, 7)]


def test_threads_and_this_thread_answer_alike():
    with ThreadPoolExecutor(2) as pool:
        for executor in (None, pool):
            task_queue = TaskPool(executor, n_threads=2).task_queue(tasks.cube)
            assert (task_queue.room() > 0) == (executor is not None)
            numbers = [task_queue.put(i) for i in range(30)]
            while len(task_queue.results) < 30:
                task_queue.advance()
            assert [task_queue.results[number] for number in numbers] == [i**3 for i in range(30)]


def test_winding_up_waits_for_what_has_begun_here_and_for_nothing_else():
    import threading

    begun, go = threading.Event(), threading.Event()

    def wait(item):
        begun.set()
        go.wait(30)
        return item

    with ThreadPoolExecutor(1) as pool:
        task_queue = TaskPool(pool).task_queue(wait)
        numbers = [task_queue.put(i) for i in range(5)]
        begun.wait(30)
        threading.Timer(0.1, go.set).start()
        task_queue.drain(0.0)
        assert task_queue.results == {numbers[0]: 0}
    post = Post()
    task_queue, _ = line_to(RemoteExecutor(post), 1)
    task_queue.put(1, SAME)
    task_queue.drain(0.05)  # it does not come back
    assert task_queue.results == {}


class Clock:
    """Goes when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


class Place(RemoteExecutor):  # type: ignore[misc]
    """Workers elsewhere, without any."""

    def __init__(self, workers, latency, per_task_overhead):
        super().__init__(Post(workers))
        self._latency, self._per_task_overhead = latency, per_task_overhead

    def workers_ready(self):
        return True


def measured(dispatch_policy, clock, remote, seconds, workers, busy, wall):
    """So many seconds of tasks of one length are done, by so many workers at a time."""
    until = clock.now + wall
    while clock.now < until:
        clock.now += seconds / workers
        dispatch_policy.note(TaskResult(None, seconds, busy), remote)


CASES = {
    "long tasks, as many workers as threads": (0.2, 2, 0.005, 0.001, True),
    "short tasks, as many workers as threads": (0.001, 2, 0.02, 0.001, False),
    "short tasks, many workers": (0.001, 128, 0.01, 0.001, True),
    "short tasks, far away": (0.001, 128, 1.0, 0.001, False),
    "one worker against two threads": (0.2, 1, 0.005, 0.001, False),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_guess_follows_from_journey_and_tasks(name):
    seconds, workers, latency, per_task_overhead, pays = CASES[name]
    clock = Clock()
    dispatch_policy, remote = DispatchPolicy(2, clock), Place(workers, latency, per_task_overhead)
    assert not dispatch_policy.pays(remote, 256)  # before anything is known
    measured(dispatch_policy, clock, None, seconds, 2, seconds, OFFLOAD_AFTER_SECONDS)
    assert dispatch_policy.pays(remote, 256) is pays


@pytest.mark.parametrize(
    ("seconds", "workers", "count", "size"),
    [(0.2, 2, 256, 1), (0.001, 2, 256, 8), (0.2, 128, 256, 1), (0.001, 2, 1, 1)],
)
def test_bundles_are_worth_the_journey_and_no_larger(seconds, workers, count, size):
    dispatch_policy = DispatchPolicy(2, Clock())
    dispatch_policy.note(TaskResult(None, seconds, seconds), None)
    assert dispatch_policy.bundle(Place(workers, 0.005, 0.001), count) == size


def test_what_is_slower_elsewhere_comes_home_and_rarely_tries_again():
    """However wrong the guess, a twentieth of the time is spent elsewhere, and then less."""
    clock = Clock()
    dispatch_policy, remote = DispatchPolicy(2, clock), Place(2, 0.005, 0.0001)
    away, trials = 0.0, 0
    measured(dispatch_policy, clock, None, 0.01, 2, 0.01, 2.0)
    while clock.now < 200.0:
        before, out = clock.now, dispatch_policy.pays(remote, 256)
        if out:  # half as fast as here
            measured(dispatch_policy, clock, remote, 0.02, 2, 0.01, 0.1)
            away += clock.now - before
            trials += not dispatch_policy.pays(remote, 256)
        else:
            measured(dispatch_policy, clock, None, 0.01, 2, 0.01, 0.1)
    assert trials >= 2
    assert away < 1.5 * 200.0 / REST_FACTOR


def test_what_is_as_fast_elsewhere_stays_there():
    clock = Clock()
    dispatch_policy, remote = DispatchPolicy(2, clock), Place(2, 0.005, 0.0001)
    measured(dispatch_policy, clock, None, 0.01, 2, 0.01, 2.0)
    for _ in range(50):
        assert dispatch_policy.pays(remote, 256)
        measured(dispatch_policy, clock, remote, 0.01 * (1.0 + MAX_SLOWDOWN) / 2.0, 2, 0.01, 0.5)


def test_tasks_that_became_longer_are_no_slower(monkeypatch):
    """Speed is work per second, so it does not matter that tasks take ten times as long now."""
    clock = Clock()
    dispatch_policy, remote = DispatchPolicy(2, clock), Place(2, 0.005, 0.0001)
    measured(dispatch_policy, clock, None, 0.02, 2, 0.02, 2.0)
    assert dispatch_policy.pays(remote, 256)
    for _ in range(20):
        measured(dispatch_policy, clock, remote, 0.2, 2, 0.2, 2.0)
        assert dispatch_policy.pays(remote, 256)
    assert dispatch_policy_module.SPAN_SECONDS < 2.0
