"""The partition bound: parts, tasks, and their sum, which rises as they finish.

For parts whose weights add up to at most the weights of the whole,

    cost(S, w) >= sum_t cost(S_t, w_t)

because each part may choose centres and labels of its own (`shares`). A part that has not been
looked at, failed or was interrupted counts with what was proven for it until then, 0 at first: no
cost is negative. Every value is proven by itself (`safe_bound`), rounding included, and the sum is
rounded down: `math.fsum` and a product err by a unit in the last place, ``CLAIMED_FRACTION`` takes off far
more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.bounds.partition.part_task import (
    CompactAdmmState,
    CompactMultipliers,
    PartResult,
    PartTask,
)
from certikmeans.bounds.partition.parts import Part, group_costs, split_into_parts
from certikmeans.bounds.partition.scheduler import PartScheduler
from certikmeans.bounds.partition.sizing import (
    MAX_LATER_PART_SIZE,
    MIN_PART_SIZE,
    first_size,
    next_size,
    part_size,
    rough_iterations,
    seconds_per_iteration,
)
from certikmeans.parallel import RemoteExecutor
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

# Iterations of the first task of a part, a rough value, and of the later ones.
FIRST_ITERATIONS = 30
LATER_ITERATIONS = 40
# A part whose value is this near to its incumbent's cost is done.
TARGET_TOLERANCE = 1e-5
# A part ends when a task brings less than this of its value, or after so many iterations ...
MIN_RELATIVE_GAIN = 5e-5
MAX_ITERATIONS = 2_000
# ... and, while coarser parts might do better, less than this of the way to its target: gains fall
# by about a third from task to task, so it would hardly get there.
MIN_GAP_FRACTION = 0.3
# What is claimed of the sum: a checker adds up in its own way, and must not come out below.
CLAIMED_FRACTION = 1.0 - 1e-10


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """What the bound needs to go on with its parts."""

    labels: NDArray[np.int64]  # the parts follow from them, and from
    size: int
    first_iterations: int = FIRST_ITERATIONS
    speed: float = 0.0
    best: PartitionResult | None = None  # of smaller parts
    part_states: tuple[dict[str, Any], ...] = ()


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
    remote: RemoteExecutor | None = None,
    kept: PartitionState | None = None,
    keep: Callable[[Callable[[], PartitionState]], None] = lambda state: None,
    progress: Callable[..., None] | None = None,
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
    far : Far, optional
        Workers elsewhere, for tasks that are worth the journey.
    kept, keep : optional
        Where a run before has left the parts, and who is told how to get there.
    on_work : callable, optional
        Told of every task that was done (``tasks=1``), in this thread.
    """
    if kept is not None:
        labels = kept.labels  # the parts follow from them
    scheduler: PartScheduler[_PartState] = PartScheduler(
        executor, n_threads, remote, problem.points
    )
    inputs = _PartitionInput(problem, labels, cutoff, stop, seed, scheduler, progress)
    with threadpool_limits(limits=1):
        if size is None and problem.n_groups <= MIN_PART_SIZE:
            size = problem.n_groups
        if size is not None:
            parts = inputs.start_run(size, on_bound)
            parts.restore(kept)
            parts.set_callback(
                functools.partial(_register_checkpoint, keep, PartitionState(labels, size), parts)
            )
            return parts.finish()
        counts = problem.n_groups, problem.n_clusters
        cost = float(group_costs(problem, labels).sum())
        if kept is None:
            speed = seconds_per_iteration(problem, labels, stop)
            size = first_size(*counts, stop.remaining, n_threads, speed)
            first_iterations = rough_iterations(
                problem.n_groups, size, stop.remaining, n_threads, speed, FIRST_ITERATIONS
            )
            stage = PartitionState(labels, size, first_iterations, speed)
        else:
            stage = kept
        while True:
            size, best = stage.size, stage.best
            report_if_better = (
                on_bound if best is None else _only_improvements(best.value, on_bound)
            )
            parts = inputs.start_run(size, report_if_better, stage.first_iterations)
            parts.restore(stage)
            parts.set_callback(functools.partial(_register_checkpoint, keep, stage, parts))
            parts.run_tasks(until_converged=size >= problem.n_groups)
            best = _better_result(best, parts.result())
            if best.value >= cutoff or stop.reason() is not None or size >= problem.n_groups:
                break
            # Parts gain little before the time is over: coarser ones lose less.
            affordable = part_size(
                *counts, stop.remaining, n_threads, stage.speed, MAX_LATER_PART_SIZE
            )
            coarser = next_size(counts[0], size, cost - best.value, cost - cutoff, affordable)
            if not coarser:
                break
            stage = PartitionState(labels, coarser, FIRST_ITERATIONS, stage.speed, best)
        return _better_result(best, parts.finish())


def _better_result(best: PartitionResult | None, found: PartitionResult) -> PartitionResult:
    return found if best is None or found.value > best.value else best


def _register_checkpoint(
    keep: Callable[[Callable[[], PartitionState]], None],
    stage: PartitionState,
    parts: _PartitionRun,
) -> None:
    """Say how to get to where the parts are."""
    keep(lambda: replace(stage, part_states=parts.part_states()))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PartitionInput:
    """What every partition of a run has in common."""

    problem: ReducedProblem
    labels: NDArray[np.int64]
    cutoff: float
    stop: StopSignal
    seed: int
    scheduler: PartScheduler[_PartState]
    progress: Callable[..., None] | None

    def start_run(
        self,
        size: int,
        on_bound: Callable[[float], None] | None,
        first_iterations: int = FIRST_ITERATIONS,
    ) -> _PartitionRun:
        """Parts of a size, ready to be worked on."""
        parts = split_into_parts(self.problem, self.labels, size, self.seed)
        return _PartitionRun(parts, self, on_bound, first_iterations)


def _only_improvements(
    known: float, on_bound: Callable[[float], None] | None
) -> Callable[[float], None] | None:
    """Tell only what is better than what is known already."""
    if on_bound is None:
        return None
    return lambda value: on_bound(value) if value > known else None


@final
@dataclass(slots=True, eq=False)
class _PartState:
    """How far a part is."""

    part: Part
    target: float
    value: float = 0.0
    proof: CompactMultipliers | None = None
    start: CompactAdmmState | None = None
    last_gain: float = math.inf  # gain of the last task
    gain: float = math.inf  # the larger of the last two: one may be unlucky
    rate: float = math.inf  # gain per second of the last one
    iterations: int = 0
    tasks: int = 0
    failures: int = 0
    ended: bool = False

    def stalled(self, until_converged: bool) -> bool:
        """Whether more tasks would hardly help."""
        if self.ended or self.tasks < 2:
            return self.ended
        if until_converged:
            return self.gain <= MIN_RELATIVE_GAIN * self.value
        gap = self.target - self.value
        return self.last_gain <= max(MIN_RELATIVE_GAIN * self.value, MIN_GAP_FRACTION * gap)


# What changes of it.
STATE_FIELDS = tuple(
    field.name for field in fields(_PartState) if field.name not in ("part", "target")
)


@final
class _PartitionRun:
    def __init__(
        self,
        parts: tuple[Part, ...],
        inputs: _PartitionInput,
        on_bound: Callable[[float], None] | None,
        first_iterations: int,
    ) -> None:
        cutoff = inputs.cutoff
        self._first_iterations = first_iterations
        self._cutoff, self._stop, self._on_bound = cutoff, inputs.stop, on_bound
        self._scheduler = inputs.scheduler
        self._on_work = inputs.progress
        self._upper = math.fsum(part.upper for part in parts)
        # Each its share of the cutoff, if they can reach it at all.
        ratio = (
            min(1.0 - TARGET_TOLERANCE, cutoff / self._upper * (1.0 + 1e-9))
            if self._upper > 0.0
            else 0.0
        )
        self._states = [_PartState(part, ratio * part.upper) for part in parts]
        self._failures = 0
        self._best = 0.0
        self._on_result: Callable[[], None] = lambda: None

    def set_callback(self, on_result: Callable[[], None]) -> None:
        """Have somebody called after every answer."""
        self._on_result = on_result

    def part_states(self) -> tuple[dict[str, Any], ...]:
        """How far the parts are."""
        return tuple(
            {name: getattr(state, name) for name in STATE_FIELDS} for state in self._states
        )

    def restore(self, before: PartitionState | None) -> None:
        """Go on where a run before was."""
        if before is not None and len(before.part_states) == len(self._states):
            for state, fields in zip(self._states, before.part_states, strict=True):
                for name in STATE_FIELDS:
                    setattr(state, name, fields[name])
                if state.failures:  # somebody else may do better
                    state.failures, state.ended = 0, False
            self._report_bound()

    @property
    def value(self) -> float:
        """The sum, rounded down."""
        total = math.fsum(state.value for state in self._states)
        return max(0.0, math.nextafter(CLAIMED_FRACTION * total, -math.inf))

    def run_tasks(self, *, until_converged: bool) -> None:
        """Run tasks until the cutoff, the end of time, or the end of progress."""
        with threadpool_limits(limits=1):  # tasks share the cores; products are small
            self._run_tasks(self._scheduler, until_converged)

    def finish(self) -> PartitionResult:
        """To the very end."""
        self.run_tasks(until_converged=True)
        return self.result()

    def _run_tasks(self, scheduler: PartScheduler[_PartState], until_converged: bool) -> None:
        try:
            while not self._finished():
                waiting = self._queue(scheduler.busy, until_converged)
                for state in waiting[: scheduler.free_slots(len(waiting))]:
                    scheduler.start(state, self._task(state))
                if not scheduler.busy:
                    break
                for state, result in scheduler.results():
                    self._record_result(state, result)
        finally:
            for state, result in scheduler.drain():
                self._record_result(state, result)

    def _finished(self) -> bool:
        over = self._scheduler.failed or self._stop.reason() is not None
        return over or self.value >= self._cutoff

    def _queue(self, busy: set[int], until_converged: bool) -> list[_PartState]:
        """Parts to go on with: the new ones, then those that gained most per second."""
        idle = [
            state
            for state in self._states
            if not state.stalled(until_converged) and id(state) not in busy
        ]
        return sorted(idle, key=lambda state: -state.rate)

    def _task(self, state: _PartState) -> PartTask:
        iterations = LATER_ITERATIONS if state.tasks else self._first_iterations
        return PartTask(
            state.part.problem, state.target, iterations, self._stop, state.start, state.value
        )

    def _record_result(self, state: _PartState, result: PartResult | None) -> None:
        if self._on_work is not None:
            self._on_work(**{"rounds" if state.tasks else "parts": 1})
        over = self._stop.reason() is not None
        if result is None:
            if not over:  # else it may be that nobody waited for it
                self._record_failure(state)
            return
        gain = result.value - state.value
        if result.proof is not None:
            state.value, state.proof = result.value, result.proof
        state.start = result.start
        state.iterations += result.iterations
        if not over:  # else it was cut short: how it went says nothing about how it would go on
            state.tasks += 1
            state.failures = 0  # those that count are in a row
            state.gain, state.last_gain = max(gain, state.last_gain), gain
            state.rate = gain / max(result.seconds, 1e-3)
            reached = state.value >= state.target or state.iterations >= MAX_ITERATIONS
            state.ended = result.ended or reached
        self._report_bound()
        self._on_result()

    def _record_failure(self, state: _PartState) -> None:
        """What was proven before stays; without the part the sum is only smaller."""
        state.failures += 1
        state.ended = state.failures >= self._scheduler.max_attempts
        self._failures += int(state.ended)

    def _report_bound(self) -> None:
        if self.value > self._best:
            self._best = self.value
            if self._on_bound is not None:
                self._on_bound(self._best)

    def result(self) -> PartitionResult:
        """Everything that contributes."""
        parts = tuple(
            PartProof(state.part.rows, state.part.problem.weights, state.proof, state.value)
            for state in self._states
            if state.proof is not None and state.value > 0.0
        )
        return PartitionResult(
            value=self.value,
            parts=parts,
            n_parts=len(self._states),
            upper=self._upper,
            iterations=sum(state.iterations for state in self._states),
            failures=self._failures,
        )
