"""Who works on the parts: this thread, threads, or workers elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.improve import (
    Cut,
    PartAnswer,
    PartTask,
    improve_cut,
    improve_part,
)
from certikmeans.bounds.partition.parts import Part
from certikmeans.errors import WorkerError
from certikmeans.execution import Far, Shared
from certikmeans.execution.far import FAILURES, TRIES
from certikmeans.execution.line import EACH, PATIENCE_SECONDS
from certikmeans.execution.paces import Paces
from certikmeans.execution.there import Done, Parcel, timed_here

WAIT_SECONDS = 0.2


class HasPart(Protocol):
    """Something that a task is for."""

    part: Part


One = TypeVar("One", bound=HasPart)


@final
class Hands(Generic[One]):
    """Takes tasks, and tells what became of them.

    Parameters
    ----------
    executor : Executor, optional
        Threads; without, a task is done when it is started.
    n_threads : int
        Tasks that they do at a time.
    far : Far, optional
        Workers elsewhere.
    points : ndarray of shape (n_groups, n_axes)
        Of the whole: sent to workers once.
    """

    def __init__(
        self,
        executor: Executor | None,
        n_threads: int,
        far: Far | None,
        points: NDArray[np.float64],
    ) -> None:
        self._executor = executor
        self._n_threads = n_threads if executor is not None else 1
        self._far = far
        self._paces = Paces(self._n_threads)
        self._shared = Shared(points)
        self._tasks: dict[Future[Any], tuple[One, PartTask]] = {}
        self._there: set[Future[Any]] = set()  # those of them that were sent
        self._came: SimpleQueue[Future[Any]] = SimpleQueue()
        self.tries = 1 if far is None else TRIES  # that a part may fail

    @property
    def given_up(self) -> bool:
        """Whether too much has failed elsewhere; who asked for the bound will see it, too."""
        return self._far is not None and self._far.failure is not None

    @property
    def busy(self) -> set[int]:
        """Whose tasks are under way, by `id`."""
        return {id(one) for one, _ in self._tasks.values()}

    def room(self, waiting: int) -> int:
        """How many of the tasks that wait should be started now."""
        far = self._worthwhile(waiting + len(self._tasks))
        most = self._n_threads if far is None else max(EACH * far.n_workers, self._n_threads)
        return max(0, most - len(self._tasks))

    def start(self, one: One, task: PartTask, *, with_data: bool = False) -> None:
        """Hand a task over."""
        far = self._worthwhile(1 + len(self._tasks))
        try:
            future = (
                self._begun(one, task) if far is None else self._sent(far, one, task, with_data)
            )
        except FAILURES as error:
            future = Future()
            future.set_exception(error)
        self._tasks[future] = one, task
        if far is not None:
            self._there.add(future)
        future.add_done_callback(self._came.put)

    def _begun(self, one: One, task: PartTask) -> Future[Any]:
        if self._executor is not None:
            return self._executor.submit(timed_here, improve_part, None, task)
        future: Future[Done] = Future()
        try:
            future.set_result(timed_here(improve_part, None, task))
        except Exception as error:
            future.set_exception(error)
        return future

    def _sent(self, far: Far, one: One, task: PartTask, with_data: bool) -> Future[Any]:
        cut = replace(task, problem=Cut.of(one.part.problem, one.part.rows))
        return far.submit(improve_cut, [cut], self._shared, with_data=with_data)

    def answers(self) -> Iterator[tuple[One, PartAnswer | None]]:
        """Wait for a moment, and tell what came; None: nothing, and it may be tried again."""
        try:
            yield from self._opened(self._came.get(timeout=WAIT_SECONDS))
            while True:
                yield from self._opened(self._came.get_nowait())
        except Empty:
            if self._far is not None and self._there and self._far.deserted():
                self._bring_home()

    def wind_up(self) -> Iterator[tuple[One, PartAnswer | None]]:
        """Drop what has not begun, and wait for the rest: here to its end, elsewhere not for long.

        What is under way here ends at the stop, or soon.
        """
        for future in list(self._tasks):
            if future.cancel():
                self._forget(future)
        until = time.monotonic() + PATIENCE_SECONDS
        while self._tasks:
            if len(self._there) == len(self._tasks) and time.monotonic() > until:
                self._bring_home()
                break
            with suppress(Empty):
                yield from self._opened(self._came.get(timeout=WAIT_SECONDS), last=True)
        self._paces.interrupt()

    def _opened(
        self, future: Future[Any], *, last: bool = False
    ) -> Iterator[tuple[One, PartAnswer | None]]:
        if future not in self._tasks:
            return
        there = future in self._there
        one, task = self._forget(future)
        try:
            came = future.result()
        except FAILURES as error:
            if there:
                self._note_failure(error)
            yield one, None
            return
        if isinstance(came, Parcel) and came.missing:
            if not last:
                self.start(one, task, with_data=True)
            return
        done: Done = came.done[0] if isinstance(came, Parcel) else came
        self._paces.note(done, self._far if there else None)
        yield one, done.answer

    def _forget(self, future: Future[Any]) -> tuple[One, PartTask]:
        self._there.discard(future)
        return self._tasks.pop(future)

    def _bring_home(self) -> None:
        """Expect nothing from elsewhere: what was out may be done here, when its turn comes."""
        for future in list(self._there):
            future.cancel()
            self._forget(future)

    def _note_failure(self, error: BaseException) -> None:
        assert self._far is not None
        with suppress(WorkerError):
            self._far.note_failure(error)

    def _worthwhile(self, count: int) -> Far | None:
        far = self._far
        if far is None or self.given_up or not self._paces.pays(far, count) or far.deserted():
            return None
        return far
