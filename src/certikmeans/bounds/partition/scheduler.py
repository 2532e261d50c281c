"""Scheduler of part tasks: this thread, a thread pool, or remote workers."""

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

from certikmeans.bounds.partition.part_task import (
    PartResult,
    PartSpec,
    PartTask,
    solve_part,
    solve_part_spec,
)
from certikmeans.bounds.partition.parts import Part
from certikmeans.errors import WorkerError
from certikmeans.parallel import RemoteExecutor, SharedData
from certikmeans.parallel.dispatch_policy import DispatchPolicy
from certikmeans.parallel.remote import MAX_TRIES, WORKER_FAILURES
from certikmeans.parallel.task_queue import DRAIN_SECONDS, TASKS_PER_WORKER
from certikmeans.parallel.worker import BatchResult, TaskResult, run_timed

WAIT_SECONDS = 0.2


class HasPart(Protocol):
    """Something that a task is for."""

    part: Part


One = TypeVar("One", bound=HasPart)


@final
class PartScheduler(Generic[One]):
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
        remote: RemoteExecutor | None,
        points: NDArray[np.float64],
    ) -> None:
        self._executor = executor
        self._n_threads = n_threads if executor is not None else 1
        self._remote = remote
        self._dispatch_policy = DispatchPolicy(self._n_threads)
        self._shared = SharedData(points)
        self._tasks: dict[Future[Any], tuple[One, PartTask]] = {}
        self._remote_tasks: set[Future[Any]] = set()  # those of them that were sent
        self._completed: SimpleQueue[Future[Any]] = SimpleQueue()
        self.max_attempts = 1 if remote is None else MAX_TRIES  # that a part may fail

    @property
    def failed(self) -> bool:
        """Whether too much has failed elsewhere; who asked for the bound will see it, too."""
        return self._remote is not None and self._remote.failure is not None

    @property
    def busy(self) -> set[int]:
        """Whose tasks are under way, by `id`."""
        return {id(item) for item, _ in self._tasks.values()}

    def free_slots(self, waiting: int) -> int:
        """How many of the tasks that wait should be started now."""
        remote = self._remote_if_worthwhile(waiting + len(self._tasks))
        capacity = (
            self._n_threads
            if remote is None
            else max(TASKS_PER_WORKER * remote.n_workers, self._n_threads)
        )
        return max(0, capacity - len(self._tasks))

    def start(self, item: One, task: PartTask, *, with_data: bool = False) -> None:
        """Hand a task over."""
        remote = self._remote_if_worthwhile(1 + len(self._tasks))
        try:
            future = (
                self._run_local(item, task)
                if remote is None
                else self._send(remote, item, task, with_data)
            )
        except WORKER_FAILURES as error:
            future = Future()
            future.set_exception(error)
        self._tasks[future] = item, task
        if remote is not None:
            self._remote_tasks.add(future)
        future.add_done_callback(self._completed.put)

    def _run_local(self, item: One, task: PartTask) -> Future[Any]:
        if self._executor is not None:
            return self._executor.submit(run_timed, solve_part, None, task)
        future: Future[TaskResult] = Future()
        try:
            future.set_result(run_timed(solve_part, None, task))
        except Exception as error:
            future.set_exception(error)
        return future

    def _send(
        self, remote: RemoteExecutor, item: One, task: PartTask, with_data: bool
    ) -> Future[Any]:
        spec = replace(task, problem=PartSpec.of(item.part.problem, item.part.rows))
        return remote.submit(solve_part_spec, [spec], self._shared, with_data=with_data)

    def results(self) -> Iterator[tuple[One, PartResult | None]]:
        """Wait for a moment, and tell what came; None: nothing, and it may be tried again."""
        try:
            yield from self._unpack(self._completed.get(timeout=WAIT_SECONDS))
            while True:
                yield from self._unpack(self._completed.get_nowait())
        except Empty:
            if self._remote is not None and self._remote_tasks and self._remote.no_workers():
                self._abandon_remote()

    def drain(self) -> Iterator[tuple[One, PartResult | None]]:
        """Drop what has not begun, and wait for the rest: here to its end, elsewhere not for long.

        What is under way here ends at the stop, or soon.
        """
        for future in list(self._tasks):
            if future.cancel():
                self._discard(future)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._tasks:
            if len(self._remote_tasks) == len(self._tasks) and time.monotonic() > deadline:
                self._abandon_remote()
                break
            with suppress(Empty):
                yield from self._unpack(self._completed.get(timeout=WAIT_SECONDS), last=True)
        self._dispatch_policy.interrupt()

    def _unpack(
        self, future: Future[Any], *, last: bool = False
    ) -> Iterator[tuple[One, PartResult | None]]:
        if future not in self._tasks:
            return
        there = future in self._remote_tasks
        item, task = self._discard(future)
        try:
            outcome = future.result()
        except WORKER_FAILURES as error:
            if there:
                self._record_failure(error)
            yield item, None
            return
        if isinstance(outcome, BatchResult) and outcome.missing:
            if not last:
                self.start(item, task, with_data=True)
            return
        done: TaskResult = outcome.done[0] if isinstance(outcome, BatchResult) else outcome
        self._dispatch_policy.note(done, self._remote if there else None)
        yield item, done.answer

    def _discard(self, future: Future[Any]) -> tuple[One, PartTask]:
        self._remote_tasks.discard(future)
        return self._tasks.pop(future)

    def _abandon_remote(self) -> None:
        """Expect nothing from elsewhere: what was out may be done here, when its turn comes."""
        for future in list(self._remote_tasks):
            future.cancel()
            self._discard(future)

    def _record_failure(self, error: BaseException) -> None:
        assert self._remote is not None
        with suppress(WorkerError):
            self._remote.record_failure(error)

    def _remote_if_worthwhile(self, count: int) -> RemoteExecutor | None:
        remote = self._remote
        if (
            remote is None
            or self.failed
            or not self._dispatch_policy.pays(remote, count)
            or remote.no_workers()
        ):
            return None
        return remote
