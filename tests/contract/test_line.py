"""Tasks in a row: in bundles or alone, here or elsewhere, and where that is soonest."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

from certikmeans.errors import WorkerError
from certikmeans.execution import Crew, Far, Shared
from certikmeans.execution import paces as paces_module
from certikmeans.execution.line import Line
from certikmeans.execution.paces import REST, SLOWER, WAKE_AFTER, Paces
from certikmeans.execution.there import Done
from tests.contract import tasks


class Post(Executor):
    """Workers elsewhere that answer when they are told to; ``bundles`` has what was sent."""

    def __init__(self, workers=2):
        self._max_workers = workers
        self.bundles = []

    def submit(self, function, /, *arguments, **named):
        future = Future()
        if function.__name__ != "run_there":  # what measures the journey comes back at once
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


SAME = Shared((0,))


def line_to(far, size=1, executor=None, function=tasks.add):
    """A line that sends everything out, in bundles of a size."""
    paces = Paces(2)
    paces.bundle = lambda far, count: size
    told = []
    made = Line(function, lambda *one: told.append(one), executor, far, paces, lambda *_: True)
    return made, told


@pytest.mark.parametrize("size", [1, 3, 4])
def test_tasks_travel_in_bundles_and_come_back_in_any_order(size):
    post = Post()
    line, told = line_to(Far(post), size)
    shared = Shared((100,))
    numbers = [line.put(i, shared) for i in range(12)]
    sizes = []
    while len(line.answers) < 12:
        if post.bundles:
            sizes.append(post.answer(len(post.bundles) - 1))  # the last one first
        line.advance()
    assert [line.answers[number] for number in numbers] == [100 + i for i in range(12)]
    assert sorted(told) == [(number, 100 + number) for number in numbers]
    assert max(sizes) == size
    assert told != sorted(told)


def test_no_worker_gets_more_than_two_bundles():
    post = Post(workers=3)
    line, _ = line_to(Far(post), 2)
    for i in range(40):
        line.put(i, SAME)
    sizes = [len(arguments[1]) for _, _, arguments in post.bundles]
    assert len(sizes) == 6
    assert set(sizes[1:]) == {2}  # what is first does not wait for others
    assert line.room() == 2 * 3 * 2 - 40


def test_what_tasks_share_is_the_same_in_a_bundle():
    post = Post(workers=1)
    line, _ = line_to(Far(post), 4)
    one, other = Shared((10,)), Shared((20,))
    for i, shared in enumerate([one, one, other, other, other]):
        line.put(i, shared)
    while len(line.answers) < 5:
        line.advance()
        if post.bundles:
            post.answer()
    assert [line.answers[i] for i in range(5)] == [10, 11, 22, 23, 24]


def test_of_a_bundle_that_failed_only_the_culprit_ends_the_run(tmp_path):
    """Tasks of a bundle that failed go out alone: the others are not to blame."""
    post = Post(workers=1)
    line, told = line_to(Far(post), 4, function=tasks.fail_at_two)
    for i in range(4):
        line.put(i, SAME)

    def go_on():
        while True:
            while post.bundles:
                post.answer()
            line.advance()

    with pytest.raises(WorkerError, match="ZeroDivisionError: two"):
        go_on()
    assert {number for number, _ in told} == {0, 1, 3}


def test_a_dropped_task_is_never_heard_of():
    post = Post()
    line, told = line_to(Far(post), 1)
    for i in range(3):
        line.put(i, SAME)
    line.drop()
    while post.bundles:
        if post.bundles[0][0].cancelled():
            post.bundles.pop(0)
        else:
            post.answer()
    number = line.put(7, SAME)
    while not line.answers:
        if post.bundles:
            post.answer()
        line.advance()
    assert line.answers == {number: 7}
    assert told == [(number, 7)]


def test_threads_and_this_thread_answer_alike():
    with ThreadPoolExecutor(2) as pool:
        for executor in (None, pool):
            line = Crew(executor, n_threads=2).line(tasks.cube)
            assert (line.room() > 0) == (executor is not None)
            numbers = [line.put(i) for i in range(30)]
            while len(line.answers) < 30:
                line.advance()
            assert [line.answers[number] for number in numbers] == [i**3 for i in range(30)]


def test_winding_up_waits_for_what_has_begun_here_and_for_nothing_else():
    import threading

    begun, go = threading.Event(), threading.Event()

    def wait(item):
        begun.set()
        go.wait(30)
        return item

    with ThreadPoolExecutor(1) as pool:
        line = Crew(pool).line(wait)
        numbers = [line.put(i) for i in range(5)]
        begun.wait(30)
        threading.Timer(0.1, go.set).start()
        line.wind_up(0.0)
        assert line.answers == {numbers[0]: 0}
    post = Post()
    line, _ = line_to(Far(post), 1)
    line.put(1, SAME)
    line.wind_up(0.05)  # it does not come back
    assert line.answers == {}


class Clock:
    """Goes when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


class Place(Far):  # type: ignore[misc]
    """Workers elsewhere, without any."""

    def __init__(self, workers, journey, each):
        super().__init__(Post(workers))
        self._journey, self._each = journey, each

    def awake(self):
        return True


def measured(paces, clock, far, seconds, workers, busy, wall):
    """So many seconds of tasks of one length are done, by so many workers at a time."""
    until = clock.now + wall
    while clock.now < until:
        clock.now += seconds / workers
        paces.note(Done(None, seconds, busy), far)


CASES = {
    "long tasks, as many workers as threads": (0.2, 2, 0.005, 0.001, True),
    "short tasks, as many workers as threads": (0.001, 2, 0.02, 0.001, False),
    "short tasks, many workers": (0.001, 128, 0.01, 0.001, True),
    "short tasks, far away": (0.001, 128, 1.0, 0.001, False),
    "one worker against two threads": (0.2, 1, 0.005, 0.001, False),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_guess_follows_from_journey_and_tasks(name):
    seconds, workers, journey, each, pays = CASES[name]
    clock = Clock()
    paces, far = Paces(2, clock), Place(workers, journey, each)
    assert not paces.pays(far, 256)  # before anything is known
    measured(paces, clock, None, seconds, 2, seconds, WAKE_AFTER)
    assert paces.pays(far, 256) is pays


@pytest.mark.parametrize(
    ("seconds", "workers", "count", "size"),
    [(0.2, 2, 256, 1), (0.001, 2, 256, 8), (0.2, 128, 256, 1), (0.001, 2, 1, 1)],
)
def test_bundles_are_worth_the_journey_and_no_larger(seconds, workers, count, size):
    paces = Paces(2, Clock())
    paces.note(Done(None, seconds, seconds), None)
    assert paces.bundle(Place(workers, 0.005, 0.001), count) == size


def test_what_is_slower_elsewhere_comes_home_and_rarely_tries_again():
    """However wrong the guess, a twentieth of the time is spent elsewhere, and then less."""
    clock = Clock()
    paces, far = Paces(2, clock), Place(2, 0.005, 0.0001)
    away, trials = 0.0, 0
    measured(paces, clock, None, 0.01, 2, 0.01, 2.0)
    while clock.now < 200.0:
        before, out = clock.now, paces.pays(far, 256)
        if out:  # half as fast as here
            measured(paces, clock, far, 0.02, 2, 0.01, 0.1)
            away += clock.now - before
            trials += not paces.pays(far, 256)
        else:
            measured(paces, clock, None, 0.01, 2, 0.01, 0.1)
    assert trials >= 2
    assert away < 1.5 * 200.0 / REST


def test_what_is_as_fast_elsewhere_stays_there():
    clock = Clock()
    paces, far = Paces(2, clock), Place(2, 0.005, 0.0001)
    measured(paces, clock, None, 0.01, 2, 0.01, 2.0)
    for _ in range(50):
        assert paces.pays(far, 256)
        measured(paces, clock, far, 0.01 * (1.0 + SLOWER) / 2.0, 2, 0.01, 0.5)


def test_tasks_that_became_longer_are_no_slower(monkeypatch):
    """Speed is work per second, so it does not matter that tasks take ten times as long now."""
    clock = Clock()
    paces, far = Paces(2, clock), Place(2, 0.005, 0.0001)
    measured(paces, clock, None, 0.02, 2, 0.02, 2.0)
    assert paces.pays(far, 256)
    for _ in range(20):
        measured(paces, clock, far, 0.2, 2, 0.2, 2.0)
        assert paces.pays(far, 256)
    assert paces_module.SPAN_SECONDS < 2.0
