"""Many workers on a machine that has none: they sleep for as long as a task took, and answer.

The run is done once on one thread, and every task is recorded: what it found, and how long that
took. Then it is done again with workers that do nothing but wait for that long and hand out what
was recorded. Everything else is real: what is sent where and when, what is packed and unpacked,
the order in which answers are taken, and the program that has to keep up with all of them.
"""

from __future__ import annotations

import heapq
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, final

from benchmarks.solvers.base import AbstractSolver, SolverOutcome, outcome_from_result
from certikmeans import Problem, solve, warm_up
from certikmeans.bounds.partition import run as partition
from certikmeans.bounds.partition.part_task import PartResult
from certikmeans.parallel import dispatch_policy
from certikmeans.parallel.worker import BatchResult, TaskResult, preload_modules, run_batch
from certikmeans.proof import LeafProof
from certikmeans.tree.node import NodeResult

LATENCY = 0.01  # seconds for a task to go out and come back, on a cluster
# Seconds for every bundle, of this program and of the scheduler, which has one after the other.
# With Dask's on this machine, 500 tasks that do nothing took 0.34 ms each of this program, and
# 1.5 ms each in all, on two cores that were busy with other things as well.
CLIENT, SCHEDULER = 0.0005, 0.001
LOAD_SECONDS = 0.05  # seconds for a worker to say that it has loaded the code
WORKERS = (1, 2, 8, 16, 32, 64, 128)


def task_key(item: Any) -> bytes:
    """What tells a task from all others of a run."""
    if hasattr(item, "part"):  # of a tree
        part = item.part
        pairs = getattr(part, "together", None)
        where = (part.lower, part.upper) if pairs is None else (pairs, part.apart)
        return pickle.dumps((where, item.target), 5)
    return pickle.dumps((item.problem.rows, item.known, item.iterations), 5)


@final
class Recorder(Executor):
    """Does every task at once, in this thread, and remembers what came of it."""

    _max_workers = 1

    def __init__(self) -> None:
        self.answers: dict[bytes, tuple[bytes, float]] = {}

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Run a task."""
        future: Future[Any] = Future()
        try:
            found = function(*given, **named)
            if function is run_batch and not found.missing:
                for item, done in zip(given[1], found.done, strict=True):
                    packed = pickle.dumps(done.answer, 5)
                    self.answers[task_key(item)] = packed, done.busy
            future.set_result(found)
        except Exception as error:
            future.set_exception(error)
        return future


@final
class EmulatedWorkers(Executor):
    """So many workers, each with one task at a time; bundles go to whoever is free first."""

    def __init__(self, workers: int, answers: dict[bytes, tuple[bytes, float]]) -> None:
        self._max_workers = workers
        self._answers = answers
        self._usual = sum(seconds for _, seconds in answers.values()) / max(1, len(answers))
        self._free = [0.0] * workers  # when each of them is
        self._scheduled = 0.0  # when the scheduler is
        self._due: list[tuple[float, int, Future[Any], Callable[[], Any]]] = []
        self._patched = threading.Condition()
        self._ended = False
        self._count = 0
        self.unknown = 0  # tasks that were done in vain
        threading.Thread(target=self._answer, daemon=True).start()

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Send a bundle on its way."""
        future: Future[Any] = Future()
        seconds, answer = 0.0, (lambda: function(*given, **named))
        if function is preload_modules:
            seconds, answer = LOAD_SECONDS, lambda: given[0]
        elif function is run_batch:
            items = given[1]
            pickle.dumps(given, 5)
            _busy(CLIENT)
            known = [self._known(item) for item in items]
            seconds = sum(one[1] for one in known)
            answer = lambda: _batch_result(known)  # noqa: E731
        now = time.perf_counter()
        with self._patched:
            self._scheduled = max(now, self._scheduled) + SCHEDULER
            start = max(self._scheduled + 0.5 * LATENCY, self._free[0])
            heapq.heapreplace(self._free, start + seconds)
            self._count += 1
            due = start + seconds + 0.5 * LATENCY
            heapq.heappush(self._due, (due, self._count, future, answer))
            self._patched.notify()
        return future

    def _known(self, item: Any) -> tuple[bytes, float]:
        """What was recorded about a task.

        If nothing was, the run was over before its turn came, and it will be again: it is done in
        vain, as it would be on a cluster.
        """
        known = self._answers.get(task_key(item))
        if known is not None:
            return known
        self.unknown += 1
        if hasattr(item, "part"):
            empty_result: Any = NodeResult(0.0, LeafProof("trivial"), None, None, (), item.part)
        else:
            empty_result = PartResult(item.known, None, None, 0, self._usual, ended=True)
        return pickle.dumps(empty_result, 5), self._usual

    def _answer(self) -> None:
        """Hand out answers when they are due."""
        while True:
            with self._patched:
                while not self._due or self._due[0][0] > time.perf_counter():
                    if self._ended:
                        return
                    left = self._due[0][0] - time.perf_counter() if self._due else None
                    self._patched.wait(left if left is None else max(left, 0.0))
                _, _, future, answer = heapq.heappop(self._due)
            if future.set_running_or_notify_cancel():
                future.set_result(answer())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Send them home."""
        with self._patched:
            self._ended = True
            self._due.clear()
            self._patched.notify()


def _busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _batch_result(known: Sequence[tuple[bytes, float]]) -> BatchResult:
    return BatchResult(
        tuple(TaskResult(pickle.loads(packed), *2 * (busy,)) for packed, busy in known)
    )


@contextmanager
def _patched(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Have something in a module changed for a while."""
    before = vars(module)[name]
    vars(module)[name] = value
    try:
        yield
    finally:
        vars(module)[name] = before


@contextmanager
def _constant_iteration_time() -> Iterator[None]:
    """Parts are sized by a clock; here, all of them by the same look at it."""
    name = "seconds_per_iteration"
    measure, speed = vars(partition)[name], list[float]()

    def once(*given: Any) -> float:
        if not speed:
            speed.append(measure(*given))
        return speed[0]

    with _patched(partition, name, once):
        yield


@final
@dataclass(frozen=True)
class EmulatedClusterSolver(AbstractSolver):
    """Ours on one thread, recorded, and then with many workers that sleep."""

    gap: float = 1e-3
    bound: str = "auto"
    branching: str = "auto"
    node_limit: int = 1_000_000
    workers: tuple[int, ...] = field(default=WORKERS)

    @property
    def name(self) -> str:
        """What it is."""
        return "emulated"

    @property
    def options(self) -> dict[str, Any]:
        """What `solve` is asked, besides limit and seed."""
        asked = ("gap", "bound", "branching", "node_limit")
        return {name: getattr(self, name) for name in asked}

    def warm_up(self) -> None:
        """Compile."""
        warm_up()

    def seconds_needed(self, limit: float) -> float:
        """The run on one thread, and those with more."""
        return 3.0 * limit + 120.0

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Record, then have it done by many."""
        with _constant_iteration_time():
            return self._run(problem, seed)

    def _run(self, problem: Problem, seed: int) -> SolverOutcome:
        recorder = Recorder()
        with _patched(dispatch_policy, "OFFLOAD_AFTER_SECONDS", 0.0):
            alone = solve(problem, executor=recorder, jobs=1, seed=seed, **self.options)
        times = [seconds for _, seconds in recorder.answers.values()]
        details: dict[str, Any] = {
            "tasks": len(times),
            "task_seconds": sum(times),
            "stages": alone.seconds,
            "runs": {},
        }
        for workers in self.workers:
            sleepers = EmulatedWorkers(workers, recorder.answers)
            result = solve(problem, executor=sleepers, jobs=1, seed=seed, **self.options)
            sleepers.shutdown()
            details["runs"][str(workers)] = {
                "stages": result.seconds,
                "unknown": sleepers.unknown,
                "same": (result.nodes, result.cost) == (alone.nodes, alone.cost)
                and abs(result.lower_bound - alone.lower_bound) <= 1e-3 * alone.lower_bound,
                "same_bound": result.lower_bound == alone.lower_bound,
            }
        return outcome_from_result(
            alone,
            details=details,
        )
