"""Workers elsewhere: how far away they are, what they were sent, and what to do when they fail.

Tasks are pure: they may be done again, by another worker. So whatever goes wrong with one costs
time, never a proof. A task is given to the workers `MAX_TRIES` times. A worker of Dask at which one has
failed gets no more while there are others: if it is broken, it fails sooner than others answer, and
would get them all. A pool of processes that has broken is replaced `MAX_REPLACED_POOLS` times by one like
it, and after `MAX_FAILURES` failures in all the run ends with what was proven.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, final

from certikmeans.errors import CertikmeansError, WorkerError
from certikmeans.parallel.worker import (
    FAILED_AT,
    BatchResult,
    SharedData,
    echo,
    preload_modules,
    receive_by_mpi,
    run_batch,
)

MAX_TRIES = 3
MAX_REPLACED_POOLS = 2
MAX_FAILURES = 20
PROBES, BURST = 3, 16  # tasks that measure the journey: one after the other, and all at once
PROBE_SECONDS = 1.0  # that one of them is waited for: then workers are busy, which is as far away
REFRESH_SECONDS, LOOK_SECONDS = 5.0, 0.5  # between two looks at who is there, at rest and in doubt
LEAST_REST = 20.0  # the same, as a multiple of what a look takes: a scheduler may be slow, or gone
SEEN_SECONDS = 5.0  # for a scheduler to say who is there; else nobody is
SCATTER_SECONDS = 10.0  # for data to begin their way
NO_WORKERS_SECONDS = 30.0  # without any worker: then tasks are done here
HINT = "the labelling and the bound from before are returned"
# What a worker or its connection may raise; a BaseException of another kind is not about a task.
WORKER_FAILURES = (Exception, asyncio.CancelledError)
_one_at_a_time = threading.Lock()
_passing_on: list[Future[bool]] = []  # tasks of the last broadcast of this process


@final
class RemoteExecutor:
    """Workers behind an executor.

    Parameters
    ----------
    executor : Executor
        Takes tasks.
    client : object, optional
        Of Dask: spreads data over its workers, and knows how many there are.
    """

    def __init__(self, executor: Executor, client: Any = None) -> None:
        self._executor = executor
        self._client = client
        self._own: list[Executor] = []  # pools that have taken the place of broken ones
        self._sent: dict[str, int] = {}  # tasks that took this thing with them
        self._scattered: dict[str, Any] = {}  # things that Dask or MPI has spread
        self._first: Future[int] | None = None  # task that was sent to see whether one comes back
        self._latency: float | None = None
        self._per_task_overhead = 0.0
        self._n_workers = 1
        self._addresses: frozenset[str] = frozenset()  # workers of Dask
        self._avoided: frozenset[str] = frozenset()  # those at which a task has failed
        self._chosen: frozenset[str] = frozenset()  # those that tasks go to; empty: to any
        self._looked, self._look_took = -float("inf"), 0.0
        self._since = self._last_seen = time.monotonic()
        self._preloading: list[Future[Any]] | None = None
        self._failures = 0
        self.failure: WorkerError | None = None  # why nothing should be sent any more
        self.sent = 0  # tasks
        self.data_sent = 0  # times that data went along, or were spread

    @property
    def age(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._since

    @property
    def n_workers(self) -> int:
        """How many tasks are done at a time."""
        self._look(REFRESH_SECONDS)
        return max(1, self._n_workers)

    def empty(self) -> bool:
        """Whether there is no worker just now. Those of Dask come and go."""
        if self._client is None:
            return False
        self._look(LOOK_SECONDS)
        return self._n_workers == 0

    def no_workers(self) -> bool:
        """Whether there has been no worker for long."""
        return self.empty() and time.monotonic() - self._last_seen > NO_WORKERS_SECONDS

    def _look(self, every_seconds: float) -> None:
        began = time.monotonic()
        if began - self._looked > max(every_seconds, LEAST_REST * self._look_took):
            if self._client is not None:
                self._addresses, self._n_workers = _dask_workers(self._client)
                self._choose()
            else:
                self._n_workers = _count(self._executor)
            self._looked = time.monotonic()
            self._look_took = self._looked - began
            if self._n_workers:
                self._last_seen = self._looked

    def _choose(self) -> None:
        """Leave out workers at which a task has failed, while there are others."""
        others = self._addresses - self._avoided if self._avoided & self._addresses else frozenset()
        if others != self._chosen:
            self._chosen = others
            where = {"workers": sorted(others), "allow_other_workers": True} if others else {}
            self._executor = self._client.get_executor(pure=False, **where)

    def reached(self) -> bool:
        """Whether a task has come back from there; sends one when asked first, and does not wait.

        Workers of a cluster may still stand in a queue, and those of a pool be busy for others.
        """
        if self._first is None:
            self._first = self._taken(echo, bytes(1))
        return self._first.done()

    def latency(self) -> float:
        """Seconds that a task is on its way, there and back; measured once, if it was reached."""
        if self._latency is None:
            self._measure()
        assert self._latency is not None
        return self._latency

    def per_task_overhead(self) -> float:
        """Seconds by which another task delays those that go out with it; measured once."""
        self.latency()
        return self._per_task_overhead

    def _measure(self) -> None:
        try:
            self._latency = min(self._probe(1) for _ in range(PROBES))
            self._per_task_overhead = max(0.0, self._probe(BURST) - self._latency) / (BURST - 1)
        except WORKER_FAILURES as error:
            raise _rejects_tasks(error) from error

    def _taken(self, function: Callable[..., Any], argument: Any) -> Future[Any]:
        try:
            return self._executor.submit(function, argument)
        except WORKER_FAILURES as error:
            raise _rejects_tasks(error) from error

    def _probe(self, count: int) -> float:
        began = time.perf_counter()
        sent = [self._executor.submit(echo, bytes(1)) for _ in range(count)]
        done, late = wait(sent, PROBE_SECONDS)
        for future in late:
            future.cancel()
        for future in done:
            future.result()
        return time.perf_counter() - began

    def workers_ready(self) -> bool:
        """Whether the workers have loaded what they need; asks them to, when asked first."""
        if self._preloading is None:
            self._preloading = [self._taken(preload_modules, i) for i in range(self.n_workers)]
        return all(future.done() for future in self._preloading)

    def submit(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        shared: SharedData | None = None,
        *,
        with_data: bool = False,
    ) -> Future[BatchResult]:
        """Send a bundle of tasks; what all tasks share goes along only where it has to."""
        self.sent += len(items)
        if shared is None:
            return self._executor.submit(run_batch, function, items)
        if self._client is not None:
            if shared.key not in self._scattered:
                self.data_sent += 1
                self._scattered[shared.key] = _scattered(self._client, shared.packed())
            packed = self._scattered[shared.key]
        elif self._is_broadcast(shared):
            packed = shared.packed() if with_data else None
            self.data_sent += with_data
        else:
            times = self._sent.get(shared.key, 0)
            first = times < self.n_workers  # one for each, if they share them out evenly
            self._sent[shared.key] = times + 1
            packed = shared.packed() if first or with_data else None
            self.data_sent += packed is not None
        return self._executor.submit(run_batch, function, items, shared.key, packed)

    def _is_broadcast(self, shared: SharedData) -> bool:
        """Whether workers of MPI have passed a thing on to each other; asked first, they do."""
        by_mpi = type(self._executor).__module__.startswith("mpi4py.") and self.n_workers > 1
        if by_mpi and shared.key not in self._scattered:
            self._scattered[shared.key] = self._broadcast(shared)
            self.data_sent += bool(self._scattered[shared.key])
        return by_mpi and bool(self._scattered[shared.key])

    def _broadcast(self, shared: SharedData) -> list[Future[bool]]:
        """Send a thing to one worker, and have it passed on to all; empty: it has to go to each.

        As many tasks as there are workers: none ends before all have begun, so each has one. What
        is sent after them finds the thing there; where it does not, it asks for it. While another
        run has its data passed on, some workers would wait for that one and some for this one, for
        ever.
        """
        loads = [shared.packed(), *[None] * (self.n_workers - 1)]
        with _one_at_a_time:
            if not all(future.done() for future in _passing_on):
                return []
            _passing_on[:] = [
                self._executor.submit(receive_by_mpi, shared.key, load) for load in loads
            ]
            return list(_passing_on)

    def record_failure(self, error: BaseException) -> None:
        """Make the best of a failure: whoever calls may try again. Raises if that is hopeless."""
        if isinstance(error, CertikmeansError):
            raise error
        if isinstance(error, BrokenExecutor) and _works(self._executor):
            return  # all tasks of a pool end with it; the first one has seen to it
        self._looked = -float("inf")
        place = getattr(error, FAILED_AT, None)
        # What had been sent to a worker before it was known to be broken does not count again.
        if place not in self._avoided or not self._addresses - self._avoided:
            self._failures += 1
        if place is not None and self._client is not None:
            self._avoided |= {place}
        if self._failures > MAX_FAILURES:
            raise self._give_up(error, "too many tasks failed") from error
        if self._client is not None:
            self._scattered.clear()  # who had it may be gone
        if isinstance(error, BrokenExecutor):
            self._replace(error)

    def _give_up(self, error: BaseException, what: str) -> WorkerError:
        self.failure = to_worker_error(error, what)
        return self.failure

    def _replace(self, error: BrokenExecutor) -> None:
        """Put another pool in the place of a broken one."""
        made = _similar_pool(self._executor) if len(self._own) < MAX_REPLACED_POOLS else None
        if made is None:
            raise self._give_up(error, "a pool of workers broke") from error
        self._own.append(made)
        self._executor = made
        self._sent.clear()

    def close(self) -> None:
        """End what was made for the run; the executor itself belongs to somebody else."""
        for future in (self._first, *(self._preloading or ())):
            if future is not None:
                future.cancel()
        for executor in self._own:
            executor.shutdown(wait=False, cancel_futures=True)
        self._scattered.clear()


@contextmanager
def wrap_worker_errors() -> Iterator[None]:
    """Whatever goes wrong here comes out as a `WorkerError`; our own errors as they are."""
    try:
        yield
    except CertikmeansError:
        raise
    except WORKER_FAILURES as error:
        raise to_worker_error(error) from error


def to_worker_error(error: BaseException, what: str = "a worker failed") -> WorkerError:
    """The error that ends a run with what was proven."""
    import traceback
    from pathlib import Path

    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return WorkerError(f"{what}: {type(error).__name__}: {error}{place}", hint=HINT)


def _rejects_tasks(error: BaseException) -> WorkerError:
    return WorkerError(f"the executor takes no tasks: {type(error).__name__}: {error}", hint=HINT)


def _scattered(client: Any, packed: bytes) -> Any:
    return client.scatter(packed, broadcast=True, hash=False, timeout=SCATTER_SECONDS)


def _dask_workers(client: Any) -> tuple[frozenset[str], int]:
    """Workers of Dask that are there, and how many tasks they do at a time."""
    try:
        threads = client.nthreads(callback_timeout=SEEN_SECONDS)
    except WORKER_FAILURES:
        return frozenset(), 0
    return frozenset(threads), sum(threads.values())


def _count(executor: Executor) -> int:
    """Workers, as far as the executor says."""
    try:
        for name in ("num_workers", "_max_workers"):  # of mpi4py; of the standard library and loky
            number = getattr(executor, name, None)
            if isinstance(number, int):
                return number
    except WORKER_FAILURES:
        pass
    return 1


def _works(executor: Executor) -> bool:
    try:
        executor.submit(echo, b"").cancel()
    except RuntimeError:  # a broken pool, or one that was shut down
        return False
    return True


def _similar_pool(executor: Executor) -> Executor | None:
    """A pool of the same kind; None: only its owner can make one."""
    if type(executor) is ProcessPoolExecutor:
        private: Any = executor
        return ProcessPoolExecutor(
            private._max_workers,
            mp_context=private._mp_context,
            initializer=private._initializer,
            initargs=private._initargs,
        )
    again = getattr(sys.modules.get(type(executor).__module__), "get_reusable_executor", None)
    if again is not None:  # of loky
        made: Executor = again(max_workers=_count(executor), kill_workers=True)
        return made
    return None
