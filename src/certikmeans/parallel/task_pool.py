"""Task pool on threads or an executor, and the kinds of executors that a caller may pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar, final

from certikmeans.errors import InputError
from certikmeans.parallel.remote import (
    RemoteExecutor,
    RemoteTask,
    SharedData,
    run_now,
    run_wrapped,
    to_worker_error,
)
from certikmeans.stop import StopSignal

# What to pass instead, by package and name of a class or of a base class.
ADVICE = {
    ("distributed", "Cluster"): "pass Client(cluster), of dask.distributed",
    ("joblib", ""): "pass joblib.externals.loky.get_reusable_executor(max_workers=2)",
    ("multiprocessing", ""): "pass concurrent.futures.ProcessPoolExecutor(2)",
    ("mpi4py", "Comm"): "pass mpi4py.futures.MPIPoolExecutor()",
    ("ipyparallel", ""): "pass client.executor()",
    ("builtins", "int"): "for threads, pass jobs=2; for processes, ProcessPoolExecutor(2)",
    ("builtins", "str"): "pass the executor itself, such as ProcessPoolExecutor(2)",
}
DEFAULT_ADVICE = (
    "pass a concurrent.futures executor, a Dask Client, mpi4py's MPIPoolExecutor or loky's "
    "get_reusable_executor()"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ResolvedExecutor:
    """An executor argument: threads that share memory, a remote executor, or neither."""

    threads: Executor | None = None
    remote: RemoteExecutor | None = None


def resolve_executor(executor: Any) -> ResolvedExecutor:
    """Classify an executor argument, or raise with advice on what to pass instead.

    >>> resolve_executor(None).remote is None
    True
    >>> resolve_executor(4)
    Traceback (most recent call last):
    ...
    certikmeans.errors.InputError: executor: a number of type int takes no tasks
    hint: for threads, pass jobs=2; for processes, ProcessPoolExecutor(2)
    """
    if executor is None:
        return ResolvedExecutor()
    if isinstance(executor, RemoteExecutor):
        return ResolvedExecutor(remote=executor)
    client = _dask_client(executor)
    if client is not None:
        if client.status != "running":
            raise InputError(
                f"executor: the Dask client is {client.status}",
                hint="pass a Client that is connected to a scheduler",
            )
        return ResolvedExecutor(remote=RemoteExecutor(client.get_executor(pure=False), client))
    if not isinstance(executor, Executor):
        raise InputError(f"executor: {_described(executor)} takes no tasks", hint=_advice(executor))
    closed = getattr(executor, "_shutdown", False) or getattr(executor, "_shutdown_thread", False)
    if closed is True or getattr(executor, "_broken", False):
        raise InputError(
            "executor: it was shut down or is broken",
            hint="call solve inside the with statement that opens it",
        )
    if isinstance(executor, ThreadPoolExecutor):
        return ResolvedExecutor(threads=executor)
    return ResolvedExecutor(remote=RemoteExecutor(executor))


def _dask_client(executor: Any) -> Any:
    """Return the Dask client that an executor is, or belongs to; None for other executors."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(executor).__mro__}
    if ("distributed", "Client") in kinds:
        if executor.asynchronous:
            raise InputError(
                "executor: asynchronous Dask clients are not supported",
                hint="pass Client(address), without asynchronous=True",
            )
        return executor
    if ("distributed", "ClientExecutor") in kinds:
        return executor._client
    return None


def _described(executor: Any) -> str:
    kind = type(executor)
    if kind.__module__ == "builtins":
        word = "number" if isinstance(executor, int | float) else "value"
        return f"a {word} of type {kind.__name__}"
    return f"a {kind.__module__.partition('.')[0]} {kind.__name__}"


def _advice(executor: Any) -> str:
    for kind in type(executor).__mro__:
        package = kind.__module__.partition(".")[0]
        for key in ((package, kind.__name__), (package, "")):
            if key in ADVICE:
                return ADVICE[key]
    return DEFAULT_ADVICE


Item = TypeVar("Item")
Answer = TypeVar("Answer")

TASKS_PER_WORKER = 2  # one that runs, and one that the worker starts next
STOP_POLL_SECONDS = 0.2  # between two checks of a stop signal while waiting for a remote task
# Remote tasks observe time limits, but not an interrupt; and a worker may hang.
DRAIN_SECONDS = 2.0


@final
class TaskPool:
    """Runs tasks on the remote executor if there is one, else on local threads.

    A task is a function defined at module level and plain data, so that threads, processes and
    other machines can run it alike. Exceptions of tasks are raised as `WorkerError`; errors of
    this package (wrong input, a `BoundError`) are raised unchanged.

    Parameters
    ----------
    executor : Executor, optional
        Local threads. Without it, local tasks run in the calling thread.
    remote : RemoteExecutor, optional
        Workers in other processes or on other machines.
    n_threads : int
        Number of tasks that ``executor`` runs at a time.

    Examples
    --------
    >>> TaskPool().map(abs, [-1, 2])
    [1, 2]
    >>> TaskPool().submit(pow, 2, 3).result()
    8
    """

    def __init__(
        self,
        executor: Executor | None = None,
        remote: RemoteExecutor | None = None,
        n_threads: int = 1,
    ) -> None:
        self.executor = executor
        self.remote = remote
        self.n_threads = max(1, n_threads) if executor is not None else 1

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at a time; those of a Dask cluster come and go."""
        return self.n_threads if self.remote is None else self.remote.n_workers

    @property
    def capacity(self) -> int:
        """Number of submitted tasks that keeps all workers busy; 1 in the calling thread."""
        serial = self.remote is None and self.executor is None
        return 1 if serial else TASKS_PER_WORKER * self.n_workers

    def submit(
        self, function: Callable[..., Answer], *arguments: Any, shared: SharedData | None = None
    ) -> Future[Answer]:
        """Run ``function(*arguments)``, or ``function(shared.value, *arguments)``.

        Without threads and remote executor, the future is done when this returns.
        """
        if self.remote is not None:
            return self.remote.submit(function, arguments, shared, self.executor)
        if self.executor is None:
            return run_now(function, arguments, shared)
        try:
            return self.executor.submit(run_wrapped, function, arguments, shared)
        except RuntimeError as error:  # the executor was shut down meanwhile
            raise to_worker_error(error) from error

    def map(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        shared: SharedData | None = None,
        stop: StopSignal | None = None,
    ) -> list[Answer]:
        """Return ``[function(item) for item in items]``, the results in order.

        With ``shared``, the calls are ``function(shared.value, item)``. Remote workers do not see
        an interrupt of ``stop``: unfinished tasks then run here, where they end at once.
        """
        if len(items) < 2 or (self.remote is None and self.executor is None):
            return [run_wrapped(function, (item,), shared) for item in items]
        futures = [self.submit(function, item, shared=shared) for item in items]
        results: list[Answer] = []
        try:
            for future, item in zip(futures, items, strict=True):
                if self.remote is None or _finished_before(stop, future):
                    results.append(future.result())
                else:
                    results.append(run_wrapped(function, (item,), shared))
            return results
        finally:
            _cancel(futures)

    def drain(self, futures: Collection[Future[Any]], timeout: float = DRAIN_SECONDS) -> None:
        """Cancel tasks that have not begun, and wait for the others.

        Local tasks are waited for to their end, which a stop signal makes soon. Remote ones that
        are not back after ``timeout`` seconds are cancelled.
        """
        deadline = time.monotonic() + timeout
        remote = [one for one in futures if isinstance(one, RemoteTask) and not one.cancelled()]
        wait([one for one in futures if not isinstance(one, RemoteTask) and not one.cancel()])
        wait(remote, max(0.0, deadline - time.monotonic()))
        _cancel(remote)

    def close(self) -> None:
        """Release what was made for the remote executor; the executors belong to the caller."""
        if self.remote is not None:
            self.remote.close()


def _finished_before(stop: StopSignal | None, future: Future[Any]) -> bool:
    """Wait until the future is done or the stop signal is set."""
    while stop is None or stop.reason() is None:
        if wait([future], STOP_POLL_SECONDS).done:
            return True
    return future.done()


def _cancel(futures: Collection[Future[Any]]) -> None:
    for future in futures:
        future.cancel()
