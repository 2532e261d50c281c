"""Tasks in a row: put in one by one, done wherever that is soonest, answered in any order.

Whoever needs answers in the order of the tasks takes them in that order; meanwhile others are
under way. Tasks that travel go in bundles, and come again if they fail: one by one then, so that
the one that is to blame is found.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, final

from certikmeans.errors import CertikmeansError
from certikmeans.parallel.dispatch_policy import DispatchPolicy
from certikmeans.parallel.remote import (
    LOOK_SECONDS,
    MAX_TRIES,
    WORKER_FAILURES,
    RemoteExecutor,
    to_worker_error,
    wrap_worker_errors,
)
from certikmeans.parallel.worker import BatchResult, SharedData, TaskResult, run_timed

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WAIT_SECONDS = 1.0  # between two looks whether anybody is still there
# Elsewhere, tasks whose time is up know that by themselves, but cannot be told that somebody has
# pulled a signal; and a worker may hang. Those that do not come back so soon are done without.
DRAIN_SECONDS = 2.0
# For everybody who works: one to work on, and one to begin with when that is done. Threads that
# hold the interpreter keep this one from handing out more, for so long.
TASKS_PER_WORKER = 2
HELD_SECONDS = 0.02


@final
class TaskQueue(Generic[Item, Answer]):
    """Numbers tasks from 0 on; ``results`` has what has come and was not taken yet.

    Parameters
    ----------
    function : callable
        Called with an item, or with ``shared.value`` and an item.
    on_answer : callable
        Told number and answer, in this thread, whenever an answer comes.
    executor, far, paces
        Threads, workers elsewhere, and who decides between them.
    pays : callable
        Whether tasks go out, given how many are under way.
    """

    def __init__(
        self,
        function: Callable[..., Answer],
        on_result: Callable[[int, Answer], None],
        executor: Executor | None,
        remote: RemoteExecutor | None,
        dispatch_policy: DispatchPolicy,
        pays: Callable[[RemoteExecutor, int], bool],
    ) -> None:
        self._function = function
        self._on_answer = on_result
        self._executor, self._remote = executor, remote
        self._dispatch_policy, self._pays = dispatch_policy, pays
        self.results: dict[int, Answer] = {}
        self.expected = 1  # tasks that will be under way at a time, as far as is known
        self._tasks: dict[int, tuple[Item, SharedData | None]] = {}  # without an answer
        self._next = 0
        self._waiting: deque[int] = deque()  # for this thread
        self._outbox: deque[int] = deque()
        self._again: deque[int] = deque()  # sent out alone, and with all that they need
        self._tries: Counter[int] = Counter()
        self._here: dict[Future[TaskResult], int] = {}
        self._there: dict[Future[BatchResult], tuple[int, ...]] = {}
        self._came: SimpleQueue[Future[Any]] = SimpleQueue()
        self._size = 1  # of a bundle

    def put(self, item: Item, shared: SharedData | None = None) -> int:
        """Add a task; returns its number."""
        number = self._next
        self._next += 1
        self._tasks[number] = item, shared
        if self._goes_out():
            self._outbox.append(number)
            if len(self._outbox) >= self._size:
                self._send(TASKS_PER_WORKER)
        else:
            self._begin_here(number)
        return number

    def room(self) -> int:
        """How many more tasks would be of use now: nobody should have to wait for one."""
        if self._goes_out():
            assert self._remote is not None
            most = TASKS_PER_WORKER * self._remote.n_workers * self._size
        else:
            most = 0 if self._executor is None else self._dispatch_policy.threads_fill(HELD_SECONDS)
        return most - len(self._tasks)

    def advance(self) -> None:
        """Wait until another answer has come, or for a moment."""
        if self._outbox or self._again:
            self._send(TASKS_PER_WORKER if len(self._outbox) >= self._size else 1)
        try:
            if self._waiting:
                self._take_in(self._came.get_nowait())
            else:
                self._take_in(self._came.get(timeout=WAIT_SECONDS))
            while True:
                self._take_in(self._came.get_nowait())
        except Empty:
            if self._remote is not None and self._remote.no_workers():
                self.run_locally()
        if self._waiting:
            self._do(self._waiting.popleft())

    def drain(self, patience_seconds: float) -> None:
        """Drop what has not begun, and wait for the rest: here to its end, elsewhere not for long.

        For tasks that were told to stop.
        """
        self._waiting.clear()
        self._outbox.clear()
        self._again.clear()
        for future in [one for one in self._here if one.cancel()]:
            del self._here[future]
        until = time.monotonic() + patience_seconds
        while self._here or self._there:
            left = until - time.monotonic()
            waits = bool(self._here) or left > 0.0  # else only for what has come already
            try:
                self._take_in(self._came.get(waits, min(max(left, 0.01), WAIT_SECONDS)))
            except Empty:
                if not waits:
                    break
            self._again.clear()
        self.cancel_all()

    def cancel_all(self) -> None:
        """Forget everything that is under way."""
        self._waiting.clear()
        self._outbox.clear()
        self._again.clear()
        running: list[Future[Any]] = [*self._here, *self._there]
        self._here.clear()
        self._there.clear()
        for future in running:
            future.cancel()
        self._tasks.clear()
        self._dispatch_policy.interrupt()

    def _begin_here(self, number: int) -> None:
        if self._executor is None:
            self._waiting.append(number)
            return
        item, shared = self._tasks[number]
        with wrap_worker_errors():
            future = self._executor.submit(run_timed, self._function, shared, item)
        self._here[future] = number
        future.add_done_callback(self._came.put)

    def _do(self, number: int) -> None:
        item, shared = self._tasks[number]
        with wrap_worker_errors():
            done = run_timed(self._function, shared, item)
        self._note(number, done, None)

    def _note(self, number: int, done: TaskResult, remote: RemoteExecutor | None) -> None:
        self._dispatch_policy.note(done, remote)
        del self._tasks[number]
        self.results[number] = done.answer
        self._on_answer(number, done.answer)

    def _take_in(self, future: Future[Any]) -> None:
        if future in self._here:
            number = self._here.pop(future)
            with wrap_worker_errors():
                done = future.result()
            self._note(number, done, None)
        elif future in self._there:
            self._open(self._there.pop(future), future)

    def _open(self, numbers: tuple[int, ...], future: Future[BatchResult]) -> None:
        """Take in what came from elsewhere; what failed, or lacks its data, goes out again."""
        assert self._remote is not None
        try:
            parcel = future.result()
        except WORKER_FAILURES as error:
            self._failed(self._remote, numbers, error)
            return
        if parcel.missing:
            self._again.extend(numbers)
            return
        for number, done in zip(numbers, parcel.done, strict=True):
            self._note(number, done, self._remote)

    def _failed(self, remote: RemoteExecutor, numbers: Sequence[int], error: BaseException) -> None:
        """Have tasks that failed done by somebody else, unless one has failed too often."""
        ours = isinstance(error, CertikmeansError)
        for number in numbers:
            self._tries[number] += 1
            if self._tries[number] >= MAX_TRIES and not ours:
                raise to_worker_error(error) from error
        remote.record_failure(error)
        self._again.extend(numbers)

    def _goes_out(self) -> bool:
        remote, count = self._remote, max(self.expected, len(self._tasks))
        return remote is not None and self._pays(remote, count) and not remote.no_workers()

    def _send(self, bundles_each: int) -> None:
        """Send tasks out, until there are so many bundles for every worker."""
        remote = self._remote
        assert remote is not None
        while self._again and not remote.empty():
            self._submit(remote, (self._again.popleft(),), with_data=True)
        room = bundles_each * remote.n_workers - len(self._there)
        self._size = self._dispatch_policy.bundle(remote, max(self.expected, len(self._tasks)))
        while self._outbox and room > 0 and not remote.empty():
            self._submit(remote, self._next_bundle(self._size), with_data=False)
            room -= 1
        if not self._there and remote.empty():
            time.sleep(LOOK_SECONDS)

    def _next_bundle(self, size: int) -> tuple[int, ...]:
        """The next few of the outbox; what they share is the same."""
        shared = self._tasks[self._outbox[0]][1]
        numbers: list[int] = []
        while self._outbox and len(numbers) < size:
            if self._tasks[self._outbox[0]][1] is not shared:
                break
            numbers.append(self._outbox.popleft())
        return tuple(numbers)

    def _submit(self, remote: RemoteExecutor, numbers: tuple[int, ...], *, with_data: bool) -> None:
        items = [self._tasks[number][0] for number in numbers]
        shared = self._tasks[numbers[0]][1]
        try:
            future = remote.submit(self._function, items, shared, with_data=with_data)
        except WORKER_FAILURES as error:
            self._failed(remote, numbers, error)
            return
        self._there[future] = numbers
        future.add_done_callback(self._came.put)

    def run_locally(self) -> None:
        """Expect nothing from elsewhere: what is out is done here."""
        lost = [*self._outbox, *self._again]
        for future, numbers in self._there.items():
            future.cancel()
            lost += numbers
        self._outbox.clear()
        self._again.clear()
        self._there.clear()
        for number in sorted(lost):
            self._begin_here(number)
