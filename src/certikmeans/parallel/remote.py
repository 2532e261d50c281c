"""Tasks in other processes or on other machines: what a worker does, and the executor.

Tasks name their shared data, which a worker caches. A task that names data which its worker does
not have (a new worker, or one that has dropped them) raises `SharedDataMissing` and is sent again
together with the data.

The executor sends tasks and their shared data, and repeats what fails. Tasks are pure functions, so
a failed one may run again on another worker: failures cost time and never change a result. One
dispatcher thread owns all communication: calls of an executor may block (a scheduler that does not
respond), and the callbacks of a process pool must not submit, since they hold its lock when the
pool breaks.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from traceback import extract_tb
from typing import Any, final

from certikmeans.errors import CertikmeansError, WorkerError
from certikmeans.parallel.blas import one_blas_thread

MAX_CACHED = 16  # shared values that a worker keeps
FAILED_AT = "failed_at"  # attribute of an exception: address of the Dask worker that raised it

_cache: OrderedDict[str, Any] = OrderedDict()


@final
class SharedData:
    """A read-only value that many tasks need; sent to each worker once."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = uuid.uuid4().hex
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """Return the pickled value; computed once."""
        if self._packed is None:
            self._packed = pickle.dumps(self.value, protocol=5)
        return self._packed


class SharedDataMissing(Exception):
    """The worker has no copy of the shared data that a task names."""


def call(function: Callable[..., Any], arguments: Sequence[Any], shared: SharedData | None) -> Any:
    """Run a task in this process."""
    return function(*arguments) if shared is None else function(shared.value, *arguments)


def run_task(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    key: str | None = None,
    packed: bytes | None = None,
) -> Any:
    """Run a task in a worker; ``key`` names its shared data, ``packed`` holds them if sent.

    Workers share processors, so BLAS is limited to one thread, as in the calling process.
    """
    try:
        with one_blas_thread():
            if key is None:
                return function(*arguments)
            return function(_shared_value(key, packed), *arguments)
    except Exception as error:
        error.__dict__[FAILED_AT] = _dask_address()  # pickled along with the exception
        raise


def _shared_value(key: str, packed: bytes | None) -> Any:
    try:
        return _cache[key]  # no check before: another thread may drop it in between
    except KeyError:
        if packed is None:
            raise SharedDataMissing(key) from None
    value = _cache[key] = pickle.loads(packed)
    while len(_cache) > MAX_CACHED:
        _cache.popitem(last=False)
    return value


def _dask_address() -> str | None:
    """Address of this Dask worker; None in other workers."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        address: str = distributed.get_worker().address
    except ValueError:
        return None
    return address


HINT = "the labelling and the bound from before are returned"
# Exceptions of a worker or of its connection; others are not failures of a task.
WORKER_FAILURES = (Exception, asyncio.CancelledError)


@final
@dataclass(frozen=True, slots=True)
class RemoteParams:
    """Limits of a remote executor."""

    max_attempts: int = 3  # of a task
    max_failures: int = 20  # of all tasks together
    no_workers_seconds: float = 30.0  # without any Dask worker, until its tasks run locally
    refresh_seconds: float = 0.5  # between two requests for the number of Dask workers ...
    refresh_factor: float = 20.0  # ... and at least this multiple of what a request takes
    scheduler_timeout: float = 5.0  # for a Dask scheduler to respond
    scatter_timeout: float = 10.0  # for data to be spread over Dask workers

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.refresh_seconds <= 0.0:
            raise ValueError("max_attempts and refresh_seconds must be positive")


DEFAULT_PARAMS = RemoteParams()


@final
@dataclass(eq=False)
class RemoteTask(Future[Any]):
    """Future of a task, with what is needed to send it again."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    shared: SharedData | None
    threads: Executor | None  # run it if there are no workers
    executor: Executor | None = None  # that it was sent to; None if it runs locally
    attempt: Future[Any] | None = None
    failures: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def cancel(self) -> bool:
        """Cancel the task, also at the executor if it has not begun there."""
        cancelled = super().cancel()
        if cancelled and self.attempt is not None:
            self.attempt.cancel()
        return cancelled


@final
class RemoteExecutor:
    """Sends tasks to an executor whose workers do not share memory with this process.

    A task is sent ``max_attempts`` times. A Dask worker on which one failed gets no more while
    there are others: a broken worker fails faster than others finish and would get all tasks.
    After ``max_failures`` failures, or when a process pool breaks, ``failure`` is set and all tasks
    fail with it. While a Dask cluster has no workers, tasks run locally.

    Parameters
    ----------
    executor : Executor
    client : distributed.Client, optional
        The client that ``executor`` belongs to.
    params : RemoteParams
    """

    def __init__(
        self, executor: Executor, client: Any = None, params: RemoteParams = DEFAULT_PARAMS
    ) -> None:
        self._executor = executor
        self._client = client
        self._params = params
        self._inbox: SimpleQueue[RemoteTask | Future[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._running: dict[Future[Any], RemoteTask] = {}  # by attempt
        self._current: RemoteTask | None = None  # being sent or received by the dispatcher
        self._times_sent: dict[str, int] = {}  # tasks sent with each shared value
        self._scattered: dict[str, Any] = {}  # shared values in the memory of a Dask cluster
        self._workers: frozenset[str] = frozenset()  # addresses of Dask workers
        self._avoided: frozenset[str] = frozenset()  # those on which a task failed
        self._n_workers = 1
        self._refreshed, self._refresh_took = -float("inf"), 0.0
        self._last_seen = time.monotonic()  # when there was a worker
        self.n_failures = 0
        self.failure: WorkerError | None = None  # why no more tasks are sent
        self.n_sent = 0  # tasks
        self.n_data_sent = 0  # copies of shared data

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at a time; 1 until the dispatcher has found out."""
        return max(1, self._n_workers)

    def submit(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        shared: SharedData | None = None,
        threads: Executor | None = None,
    ) -> RemoteTask:
        """Send a task; without workers ``threads`` run it, or else the dispatcher."""
        task = RemoteTask(function, arguments, shared, threads)
        with self._lock:
            if self._closed:
                raise RuntimeError("the remote executor was closed")
            if self._thread is None:
                self._start()
            self._inbox.put(task)
        return task

    def close(self) -> None:
        """End the dispatcher; the executor belongs to the caller."""
        with self._lock:
            self._closed = True
            self._inbox.put(None)

    def _start(self) -> None:
        if isinstance(self._executor, ProcessPoolExecutor):
            # Starts the processes. Where they are forked, that is better done in this thread than
            # in the dispatcher: they inherit locks that other threads hold.
            with suppress(RuntimeError):  # which the dispatcher reports
                self._executor.submit(int)
        self._thread = threading.Thread(target=self._dispatch, name="dispatcher", daemon=True)
        self._thread.start()

    def _dispatch(self) -> None:
        timeout = None if self._client is None else self._params.refresh_seconds
        while True:
            try:
                message = self._inbox.get(timeout=timeout)
                if message is None:
                    break
                if isinstance(message, RemoteTask):
                    self._send(message)
                else:
                    self._receive(message)
            except Empty:
                self._refresh_workers()
                self._recall_tasks()
            except WORKER_FAILURES as error:
                self._fail(error, "the remote executor failed")
        for task in self._running.values():
            task.cancel()
        self._scattered.clear()

    def _send(self, task: RemoteTask, *, with_data: bool = False) -> None:
        if task.done():
            return
        if self.failure is not None:
            _finish(task, error=self.failure)
            return
        self._current = task
        self._refresh_workers()
        if self._n_workers == 0:
            self._run_locally(task)
            return
        task.executor = self._executor
        try:
            data = self._shared_arguments(task.shared, with_data)
            attempt = self._executor.submit(run_task, task.function, task.arguments, *data)
        except WORKER_FAILURES as error:
            self._retry(task, error)
            return
        self.n_sent += 1
        self._await(attempt, task)

    def _run_locally(self, task: RemoteTask) -> None:
        task.executor = None
        function, arguments, shared = task.function, task.arguments, task.shared
        if task.threads is None:
            self._await(run_now(function, arguments, shared), task)
        else:
            self._await(task.threads.submit(run_wrapped, function, arguments, shared), task)

    def _await(self, attempt: Future[Any], task: RemoteTask) -> None:
        self._running[attempt] = task
        task.attempt = attempt
        attempt.add_done_callback(self._inbox.put)

    def _receive(self, attempt: Future[Any]) -> None:
        task = self._running.pop(attempt, None)
        if task is None or task.done():
            return
        self._current = task
        try:
            result = attempt.result()
        except SharedDataMissing:
            self._send(task, with_data=True)
        except CertikmeansError as error:
            _finish(task, error=error)
        except WORKER_FAILURES as error:
            self._retry(task, error)
        else:
            _finish(task, result)

    def _retry(self, task: RemoteTask, error: BaseException) -> None:
        task.failures += 1
        if task.executor is self._executor:  # else the worker is avoided already
            self._record_failure(error)
        if task.failures >= self._params.max_attempts and self.failure is None:
            _finish(task, error=to_worker_error(error))
        else:
            self._send(task, with_data=True)

    def _record_failure(self, error: BaseException) -> None:
        self.n_failures += 1
        self._refreshed = -float("inf")
        self._scattered.clear()  # the worker that had the data may be gone
        if isinstance(error, BrokenExecutor):
            self._fail(error, "a pool of workers broke")
        elif self.n_failures > self._params.max_failures:
            self._fail(error, "too many tasks failed")
        elif self._client is not None and getattr(error, FAILED_AT, None) is not None:
            self._avoided |= {getattr(error, FAILED_AT)}
            self._avoid_workers()

    def _avoid_workers(self) -> None:
        others = sorted(self._workers - self._avoided)
        where = {"workers": others, "allow_other_workers": True} if others else {}
        self._executor = self._client.get_executor(pure=False, **where)

    def _fail(self, error: BaseException, what: str) -> None:
        """Send no more tasks; those that are running fail."""
        self.failure = to_worker_error(error, what)
        for task in (self._current, *self._running.values()):
            if task is not None and not task.done():
                _finish(task, error=self.failure)
        for attempt in self._running:
            attempt.cancel()
        self._running.clear()

    def _shared_arguments(self, shared: SharedData | None, with_data: bool) -> tuple[Any, ...]:
        """Arguments of `run_task` for shared data; the data themselves only where needed."""
        if shared is None:
            return ()
        if self._client is not None:
            if shared.key not in self._scattered:
                self._scattered[shared.key] = self._client.scatter(
                    shared.packed(),
                    broadcast=True,
                    hash=False,
                    timeout=self._params.scatter_timeout,
                )
                self.n_data_sent += 1
            return shared.key, self._scattered[shared.key]
        times = self._times_sent[shared.key] = self._times_sent.get(shared.key, 0) + 1
        # The first tasks take the data along: one for each worker if they are spread evenly.
        with_data |= times <= self.n_workers
        self.n_data_sent += with_data
        return shared.key, shared.packed() if with_data else None

    def _refresh_workers(self) -> None:
        """Update the number of workers, unless that was done recently."""
        began, params = time.monotonic(), self._params
        interval = max(params.refresh_seconds, params.refresh_factor * self._refresh_took)
        if began - self._refreshed < interval:
            return
        if self._client is None:
            self._n_workers = _worker_count(self._executor)
        else:
            try:
                threads = self._client.nthreads(callback_timeout=params.scheduler_timeout)
            except WORKER_FAILURES:  # no connection to the scheduler
                threads = {}
            before, self._workers = self._workers, frozenset(threads)
            self._n_workers = sum(threads.values())
            if self._avoided and self._workers and self._workers != before:
                self._avoid_workers()
        self._refreshed = time.monotonic()
        self._refresh_took = self._refreshed - began
        if self._n_workers:
            self._last_seen = self._refreshed

    def _recall_tasks(self) -> None:
        """Run tasks locally when the cluster has had no workers for long."""
        silence = time.monotonic() - self._last_seen
        if self._n_workers or silence < self._params.no_workers_seconds:
            return
        lost = {one: task for one, task in self._running.items() if task.executor is not None}
        for attempt, task in lost.items():
            del self._running[attempt]
            attempt.cancel()
            if not task.done():
                self._run_locally(task)


def run_wrapped(
    function: Callable[..., Any], arguments: Sequence[Any], shared: SharedData | None = None
) -> Any:
    """Run a task in this thread; exceptions other than our own become `WorkerError`."""
    try:
        return call(function, arguments, shared)
    except CertikmeansError:
        raise
    except WORKER_FAILURES as error:
        raise to_worker_error(error) from error


def run_now(
    function: Callable[..., Any], arguments: Sequence[Any], shared: SharedData | None = None
) -> Future[Any]:
    """Run a task in this thread and return its future, which is done."""
    future: Future[Any] = Future()
    try:
        future.set_result(run_wrapped(function, arguments, shared))
    except Exception as error:
        future.set_exception(error)
    return future


def to_worker_error(error: BaseException, what: str = "a worker failed") -> WorkerError:
    """Return the error that ends a run with what was proven before."""
    frames = extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    made = WorkerError(f"{what}: {type(error).__name__}: {error}{place}", hint=HINT)
    made.__cause__ = error
    return made


def _finish(task: RemoteTask, result: Any = None, error: BaseException | None = None) -> None:
    if not task.set_running_or_notify_cancel():
        return
    if error is None:
        task.set_result(result)
    else:
        task.set_exception(error)


def _worker_count(executor: Executor) -> int:
    """Workers of an executor: mpi4py has a public attribute, the standard library has none."""
    for name in ("num_workers", "_max_workers"):
        number = getattr(executor, name, None)
        if isinstance(number, int):
            return max(1, number)
    return 1
