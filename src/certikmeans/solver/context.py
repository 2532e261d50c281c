"""Context of a run: the objects that every stage uses and none of them changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

from certikmeans.errors import WorkerError
from certikmeans.events import EventBus, Listener, Timer
from certikmeans.options import Options
from certikmeans.parallel import TaskPool
from certikmeans.parallel.task_pool import resolve_executor
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, eq=False)
class SolveContext:
    """Options, stop signal, task pool and events of one run.

    Attributes
    ----------
    options : Options
        Settings of the run.
    stop : StopSignal
        Time limit and interrupts.
    pool : TaskPool
        Runs tasks of bounds and nodes of the tree, on threads or on remote workers.
    threads : Executor, optional
        Threads of the run; None with one thread. Heuristics, which share memory, use them.
    events : EventBus
        Passes events to the listeners.
    timer : Timer
        Times of the stages.
    """

    options: Options = field(default_factory=Options)
    stop: StopSignal = field(default_factory=StopSignal)
    pool: TaskPool = field(default_factory=TaskPool)
    threads: Executor | None = None
    events: EventBus = field(default_factory=EventBus)
    timer: Timer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "timer", Timer(self.events))

    @classmethod
    @contextmanager
    def open(
        cls, options: Options, stop: StopSignal, executor: Any, callbacks: Iterable[Listener]
    ) -> Iterator[SolveContext]:
        """Start threads, connect to the executor of the caller, and release both at the end."""
        workers = resolve_executor(executor)
        events = EventBus(callbacks)
        with ThreadPoolExecutor(options.n_threads, "certikmeans") as own:
            threads = own if options.n_threads > 1 else None
            pool = TaskPool(workers.threads or threads, workers.remote, options.n_threads)
            try:
                yield cls(options, stop, pool, threads, events)
            finally:
                if workers.remote is not None:
                    workers.remote.close()

    @property
    def worker_failure(self) -> WorkerError | None:
        """Error after which remote workers are no longer used, if there was one."""
        return None if self.pool.remote is None else self.pool.remote.failure
