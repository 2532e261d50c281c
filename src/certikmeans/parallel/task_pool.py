"""Task pool: runs tasks locally, or remotely where that is faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypeVar, final

from certikmeans.parallel.dispatch_policy import DispatchPolicy
from certikmeans.parallel.remote import RemoteExecutor, wrap_worker_errors
from certikmeans.parallel.task_queue import TaskQueue
from certikmeans.parallel.worker import SharedData, TaskResult, run_timed
from certikmeans.stop import StopSignal

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ignore_result(number: int, answer: Any) -> None:
    """Tell nobody."""


@final
class TaskPool:
    """Runs a function over items and returns the answers in the order of the items.

    Functions are defined at the top of a module and take and return plain data, so that threads,
    processes and machines elsewhere can run them alike. Whatever goes wrong in a worker comes
    out as a `WorkerError`; only our own errors (wrong input, a `BoundError`) come out as they are.

    Parameters
    ----------
    executor : Executor, optional
        Threads beside this one; without, tasks are done one after the other.
    far : Far, optional
        Workers elsewhere.
    n_threads : int
        How many tasks ``executor`` runs at a time.

    Examples
    --------
    >>> TaskPool().map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(
        self,
        executor: Executor | None = None,
        remote: RemoteExecutor | None = None,
        n_threads: int = 1,
    ) -> None:
        self._executor = executor
        self._remote = remote
        self._n_threads = max(1, n_threads)
        self._dispatch_policy = DispatchPolicy(max(1, n_threads))

    @property
    def executor(self) -> Executor | None:
        """Local threads, or None if tasks run in the calling thread."""
        return self._executor

    @property
    def remote(self) -> RemoteExecutor | None:
        """Workers in other processes or on other machines, if any."""
        return self._remote

    @property
    def n_workers(self) -> int:
        """Number of local tasks that run at a time."""
        return self._n_threads

    def pays(self, remote: RemoteExecutor, count: int) -> bool:
        """Whether tasks go out, of which ``count`` are under way."""
        return self._dispatch_policy.pays(remote, count)

    def task_queue(
        self,
        function: Callable[..., Answer],
        on_result: Callable[[int, Answer], None] = ignore_result,
    ) -> TaskQueue[Any, Answer]:
        """Tasks of a kind, to be put in and taken out one by one."""
        return TaskQueue(
            function, on_result, self._executor, self._remote, self._dispatch_policy, self.pays
        )

    def map(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_result: Callable[[int, Answer], None] = ignore_result,
        shared: SharedData | None = None,
        stop: StopSignal | None = None,
    ) -> list[Answer]:
        """Return ``[function(item) for item in items]``; tell every answer as it comes.

        With ``shared``, ``function(shared.value, item)``: what all tasks need, sent once. When
        ``stop`` is pulled, tasks know that by themselves, but those elsewhere may not: they are
        done here, where they end at once.
        """
        if self._remote is None or len(items) < 2:
            return self._map_locally(function, items, on_result, shared)
        task_queue = self.task_queue(function, on_result)
        task_queue.expected = len(items)
        try:
            for item in items:
                task_queue.put(item, shared)
            while len(task_queue.results) < len(items):
                if stop is not None and stop.reason() is not None:
                    task_queue.run_locally()
                task_queue.advance()
        finally:
            task_queue.cancel_all()
        return [task_queue.results[number] for number in range(len(items))]

    def _map_locally(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_result: Callable[[int, Answer], None],
        shared: SharedData | None,
    ) -> list[Answer]:
        """The same without a line: boxes of a bound come by the thousand."""
        running: list[Future[TaskResult]] = []
        results: list[Answer] = []
        try:
            with wrap_worker_errors():
                if self._executor is not None and len(items) > 1:
                    submit = self._executor.submit
                    running += [submit(run_timed, function, shared, item) for item in items]
                for place, item in enumerate(items):
                    one = running[place].result() if running else run_timed(function, shared, item)
                    results.append(one.answer)
                    on_result(place, one.answer)
            return results
        finally:
            for task in running:
                task.cancel()  # those that wait behind one that failed
