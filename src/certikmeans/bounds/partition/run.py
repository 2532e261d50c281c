"""The partition bound: parts, tasks, and their sum, which rises as they finish.

For parts whose weights add up to at most the weights of the whole,

    cost(S, w) >= sum_t cost(S_t, w_t)

because each part may choose centres and labels of its own (`shares`). A part that has not been
looked at, failed or was interrupted counts with what was proven for it until then, 0 at first: no
cost is negative. Every value is proven by itself (`safe_bound`), rounding included, and the sum is
rounded down: `math.fsum` errs by half a unit in the last place, the float below it is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.bounds.partition.compact import CompactMultipliers, CompactStart
from certikmeans.bounds.partition.improve import MOST_ITERATIONS, PartAnswer, PartTask, improve_part
from certikmeans.bounds.partition.parts import Part, cut_into_parts
from certikmeans.bounds.partition.sizes import part_size, seconds_per_iteration
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

# Iterations of the first task of a part, a rough value, and of the later ones.
FIRST_ITERATIONS = 30
MORE_ITERATIONS = 100
# A part whose value is this near to its incumbent's cost is done.
NEAR = 1e-5
WAIT_SECONDS = 0.2


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartProof:
    """What a part contributes, and why."""

    rows: NDArray[np.int64]  # groups of the whole
    weights: NDArray[np.float64]
    multipliers: CompactMultipliers
    value: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionResult:
    """A proven value and the parts that prove it."""

    value: float  # at most the reduced cost of every labelling
    parts: tuple[PartProof, ...]  # those that contribute
    n_parts: int
    upper: float  # what these parts could prove at most, about
    iterations: int
    failures: int


def partition_bound(
    problem: ReducedProblem,
    labels: NDArray[np.int64],
    cutoff: float,
    stop: StopSignal,
    *,
    executor: Executor | None = None,
    n_threads: int = 1,
    size: int | None = None,
    seed: int = 0,
    on_bound: Callable[[float], None] | None = None,
) -> PartitionResult:
    """Bound the reduced cost, ``offset`` not included, of every proper labelling from below.

    Parameters
    ----------
    problem : ReducedProblem
        Any number of groups and axes.
    labels : ndarray of shape (n_groups,)
        An incumbent. Validity does not depend on it, the value does.
    cutoff : float
        Enough.
    stop : StopSignal
        Asked by every task; its remaining time decides on the size of the parts.
    executor : Executor, optional
        Runs the tasks; without one they run here, one after the other.
    n_threads : int
        How many tasks the executor runs at a time.
    size : int, optional
        Groups per part; chosen from time, threads and a measured iteration if not given.
    seed : int
        The same seed gives the same parts.
    on_bound : callable, optional
        Told every improvement of the sum, in this thread.
    """
    with threadpool_limits(limits=1):
        if size is None:
            size = _chosen_size(problem, labels, stop, n_threads)
        parts = cut_into_parts(problem, labels, size, seed)
    # One part alone may use what the others would have.
    with threadpool_limits(limits=n_threads if len(parts) == 1 else 1):
        run = _Run(parts, cutoff, stop, on_bound)
        run.work(executor, n_threads)
    return run.result()


def _chosen_size(
    problem: ReducedProblem, labels: NDArray[np.int64], stop: StopSignal, n_threads: int
) -> int:
    per_iteration = seconds_per_iteration(problem, labels, stop)
    return part_size(problem.n_groups, problem.n_clusters, stop.remaining, n_threads, per_iteration)


@final
@dataclass(slots=True, eq=False)
class _Progress:
    """How far a part is."""

    part: Part
    target: float
    value: float = 0.0
    proof: CompactMultipliers | None = None
    start: CompactStart | None = None
    rate: float = math.inf  # gain per second of the last task
    iterations: int = 0
    tasks: int = 0
    ended: bool = False


@final
class _Run:
    def __init__(
        self,
        parts: tuple[Part, ...],
        cutoff: float,
        stop: StopSignal,
        on_bound: Callable[[float], None] | None,
    ) -> None:
        self._cutoff, self._stop, self._on_bound = cutoff, stop, on_bound
        self._upper = math.fsum(part.upper for part in parts)
        # Each its share of the cutoff, if they can reach it at all.
        ratio = min(1.0 - NEAR, cutoff / self._upper * (1.0 + 1e-9)) if self._upper > 0.0 else 0.0
        self._all = [_Progress(part, ratio * part.upper) for part in parts]
        self._failures = 0
        self._best = 0.0

    @property
    def value(self) -> float:
        """The sum, rounded down."""
        total = math.fsum(one.value for one in self._all)
        return max(0.0, math.nextafter(total, -math.inf))

    def work(self, executor: Executor | None, n_threads: int) -> None:
        """Run tasks until the cutoff, the end of time, or the end of progress."""
        running: dict[Future[PartAnswer], _Progress] = {}
        try:
            while not self._enough():
                waiting = self._queue(set(map(id, running.values())))
                if executor is None:
                    if not waiting:
                        break
                    self._here(waiting[0])
                    continue
                for one in waiting[: max(0, n_threads - len(running))]:
                    running[executor.submit(improve_part, self._task(one))] = one
                if not running:
                    break
                done, _ = wait(running, WAIT_SECONDS, FIRST_COMPLETED)
                for future in done:
                    self._note(running.pop(future), future)
        finally:
            for future in running:
                future.cancel()
            self._collect(running)

    def _collect(self, running: dict[Future[PartAnswer], _Progress]) -> None:
        """What was still under way ends at the stop, or soon; it counts too."""
        for future, one in running.items():
            if not future.cancelled():
                self._note(one, future)

    def _enough(self) -> bool:
        return self._stop.cause() is not None or self.value >= self._cutoff

    def _queue(self, busy: set[int]) -> list[_Progress]:
        """Parts to go on with: the new ones, then those that gained most per second."""
        idle = [one for one in self._all if not one.ended and id(one) not in busy]
        return sorted(idle, key=lambda one: -one.rate)

    def _task(self, one: _Progress) -> PartTask:
        iterations = MORE_ITERATIONS if one.tasks else FIRST_ITERATIONS
        return PartTask(one.part.problem, one.target, iterations, self._stop, one.start, one.value)

    def _here(self, one: _Progress) -> None:
        future: Future[PartAnswer] = Future()
        try:
            future.set_result(improve_part(self._task(one)))
        except Exception as error:
            future.set_exception(error)
        self._note(one, future)

    def _note(self, one: _Progress, future: Future[PartAnswer]) -> None:
        one.tasks += 1
        if future.exception() is not None:
            # What was proven before stays; without the part the sum is only smaller.
            self._failures += 1
            one.ended = True
            return
        answer = future.result()
        one.iterations += answer.iterations
        one.rate = (answer.value - one.value) / max(answer.seconds, 1e-3)
        if answer.proof is not None:
            one.value, one.proof = answer.value, answer.proof
        one.start = answer.start
        done = one.start is None or one.value >= one.target or one.iterations >= MOST_ITERATIONS
        one.ended = answer.ended or done
        if self.value > self._best:
            self._best = self.value
            if self._on_bound is not None:
                self._on_bound(self._best)

    def result(self) -> PartitionResult:
        """Everything that contributes."""
        parts = tuple(
            PartProof(one.part.rows, one.part.problem.weights, one.proof, one.value)
            for one in self._all
            if one.proof is not None and one.value > 0.0
        )
        return PartitionResult(
            value=self.value,
            parts=parts,
            n_parts=len(self._all),
            upper=self._upper,
            iterations=sum(one.iterations for one in self._all),
            failures=self._failures,
        )
