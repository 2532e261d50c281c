"""The partition bound: parts, tasks, and their sum, which rises as they finish.

For parts whose weights add up to at most the weights of the whole,

    cost(S, w) >= sum_t cost(S_t, w_t)

because each part may choose centres and labels of its own (`shares`). A part that has not been
looked at, failed or was interrupted counts with what was proven for it until then, 0 at first: no
cost is negative. Every value is proven by itself (`safe_bound`), rounding included, and the sum is
rounded down: `math.fsum` and a product err by a unit in the last place, ``CLAIMED`` takes off far
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

from certikmeans.bounds.partition.compact import CompactMultipliers, CompactStart
from certikmeans.bounds.partition.hands import Hands
from certikmeans.bounds.partition.improve import PartAnswer, PartTask
from certikmeans.bounds.partition.parts import Part, cut_into_parts
from certikmeans.bounds.partition.shares import group_costs
from certikmeans.bounds.partition.sizes import (
    LARGEST_LATER,
    SMALLEST,
    first_size,
    next_size,
    part_size,
    rough_iterations,
    seconds_per_iteration,
)
from certikmeans.execution import Far
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

# Iterations of the first task of a part, a rough value, and of the later ones.
FIRST_ITERATIONS = 30
MORE_ITERATIONS = 40
# A part whose value is this near to its incumbent's cost is done.
NEAR = 1e-5
# A part ends when a task brings less than this of its value, or after so many iterations ...
LEAST_GAIN = 5e-5
MOST_ITERATIONS = 2_000
# ... and, while coarser parts might do better, less than this of the way to its target: gains fall
# by about a third from task to task, so it would hardly get there.
LEAST_OF_THE_WAY = 0.3
# What is claimed of the sum: a checker adds up in its own way, and must not come out below.
CLAIMED = 1.0 - 1e-10


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
class PartitionKept:
    """What the bound needs to go on with its parts."""

    labels: NDArray[np.int64]  # the parts follow from them, and from
    size: int
    first_iterations: int = FIRST_ITERATIONS
    speed: float = 0.0
    best: PartitionResult | None = None  # of smaller parts
    progress: tuple[dict[str, Any], ...] = ()


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
    far: Far | None = None,
    kept: PartitionKept | None = None,
    keep: Callable[[Callable[[], PartitionKept]], None] = lambda state: None,
    on_work: Callable[..., None] | None = None,
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
    hands: Hands[_Progress] = Hands(executor, n_threads, far, problem.points)
    once = _Once(problem, labels, cutoff, stop, seed, hands, on_work)
    with threadpool_limits(limits=1):
        if size is None and problem.n_groups <= SMALLEST:
            size = problem.n_groups
        if size is not None:
            parts = once.cut(size, on_bound)
            parts.go_on(kept)
            parts.watch(functools.partial(_told, keep, PartitionKept(labels, size), parts))
            return parts.finish()
        counts = problem.n_groups, problem.n_clusters
        cost = float(group_costs(problem, labels).sum())
        if kept is None:
            speed = seconds_per_iteration(problem, labels, stop)
            size = first_size(*counts, stop.remaining, n_threads, speed)
            few = rough_iterations(
                problem.n_groups, size, stop.remaining, n_threads, speed, FIRST_ITERATIONS
            )
            stage = PartitionKept(labels, size, few, speed)
        else:
            stage = kept
        while True:
            size, best = stage.size, stage.best
            above = on_bound if best is None else _above(best.value, on_bound)
            parts = once.cut(size, above, stage.first_iterations)
            parts.go_on(stage)
            parts.watch(functools.partial(_told, keep, stage, parts))
            parts.work(patient=size >= problem.n_groups)
            best = _better(best, parts.result())
            if best.value >= cutoff or stop.cause() is not None or size >= problem.n_groups:
                break
            # Parts gain little before the time is over: coarser ones lose less.
            most = part_size(*counts, stop.remaining, n_threads, stage.speed, LARGEST_LATER)
            coarser = next_size(counts[0], size, cost - best.value, cost - cutoff, most)
            if not coarser:
                break
            stage = PartitionKept(labels, coarser, FIRST_ITERATIONS, stage.speed, best)
        return _better(best, parts.finish())


def _better(best: PartitionResult | None, found: PartitionResult) -> PartitionResult:
    return found if best is None or found.value > best.value else best


def _told(
    keep: Callable[[Callable[[], PartitionKept]], None], stage: PartitionKept, parts: _Run
) -> None:
    """Say how to get to where the parts are."""
    keep(lambda: replace(stage, progress=parts.progress()))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Once:
    """What every partition of a run has in common."""

    problem: ReducedProblem
    labels: NDArray[np.int64]
    cutoff: float
    stop: StopSignal
    seed: int
    hands: Hands[_Progress]
    on_work: Callable[..., None] | None

    def cut(
        self,
        size: int,
        on_bound: Callable[[float], None] | None,
        first_iterations: int = FIRST_ITERATIONS,
    ) -> _Run:
        """Parts of a size, ready to be worked on."""
        parts = cut_into_parts(self.problem, self.labels, size, self.seed)
        return _Run(parts, self, on_bound, first_iterations)


def _above(
    known: float, on_bound: Callable[[float], None] | None
) -> Callable[[float], None] | None:
    """Tell only what is better than what is known already."""
    if on_bound is None:
        return None
    return lambda value: on_bound(value) if value > known else None


@final
@dataclass(slots=True, eq=False)
class _Progress:
    """How far a part is."""

    part: Part
    target: float
    value: float = 0.0
    proof: CompactMultipliers | None = None
    start: CompactStart | None = None
    last: float = math.inf  # gain of the last task
    gain: float = math.inf  # the larger of the last two: one may be unlucky
    rate: float = math.inf  # gain per second of the last one
    iterations: int = 0
    tasks: int = 0
    failures: int = 0
    ended: bool = False

    def stalled(self, patient: bool) -> bool:
        """Whether more tasks would hardly help."""
        if self.ended or self.tasks < 2:
            return self.ended
        if patient:
            return self.gain <= LEAST_GAIN * self.value
        way = self.target - self.value
        return self.last <= max(LEAST_GAIN * self.value, LEAST_OF_THE_WAY * way)


# What changes of it.
FAR = tuple(field.name for field in fields(_Progress) if field.name not in ("part", "target"))


@final
class _Run:
    def __init__(
        self,
        parts: tuple[Part, ...],
        once: _Once,
        on_bound: Callable[[float], None] | None,
        first_iterations: int,
    ) -> None:
        cutoff = once.cutoff
        self._first_iterations = first_iterations
        self._cutoff, self._stop, self._on_bound = cutoff, once.stop, on_bound
        self._hands = once.hands
        self._on_work = once.on_work
        self._upper = math.fsum(part.upper for part in parts)
        # Each its share of the cutoff, if they can reach it at all.
        ratio = min(1.0 - NEAR, cutoff / self._upper * (1.0 + 1e-9)) if self._upper > 0.0 else 0.0
        self._all = [_Progress(part, ratio * part.upper) for part in parts]
        self._failures = 0
        self._best = 0.0
        self._on_answer: Callable[[], None] = lambda: None

    def watch(self, on_answer: Callable[[], None]) -> None:
        """Have somebody called after every answer."""
        self._on_answer = on_answer

    def progress(self) -> tuple[dict[str, Any], ...]:
        """How far the parts are."""
        return tuple({name: getattr(one, name) for name in FAR} for one in self._all)

    def go_on(self, before: PartitionKept | None) -> None:
        """Go on where a run before was."""
        if before is not None and len(before.progress) == len(self._all):
            for one, fields in zip(self._all, before.progress, strict=True):
                for name in FAR:
                    setattr(one, name, fields[name])
                if one.failures:  # somebody else may do better
                    one.failures, one.ended = 0, False
            self._tell()

    @property
    def value(self) -> float:
        """The sum, rounded down."""
        total = math.fsum(one.value for one in self._all)
        return max(0.0, math.nextafter(CLAIMED * total, -math.inf))

    def work(self, *, patient: bool) -> None:
        """Run tasks until the cutoff, the end of time, or the end of progress."""
        with threadpool_limits(limits=1):  # tasks share the cores; products are small
            self._work(self._hands, patient)

    def finish(self) -> PartitionResult:
        """To the very end."""
        self.work(patient=True)
        return self.result()

    def _work(self, hands: Hands[_Progress], patient: bool) -> None:
        try:
            while not self._enough():
                waiting = self._queue(hands.busy, patient)
                for one in waiting[: hands.room(len(waiting))]:
                    hands.start(one, self._task(one))
                if not hands.busy:
                    break
                for one, answer in hands.answers():
                    self._note(one, answer)
        finally:
            for one, answer in hands.wind_up():
                self._note(one, answer)

    def _enough(self) -> bool:
        over = self._hands.given_up or self._stop.cause() is not None
        return over or self.value >= self._cutoff

    def _queue(self, busy: set[int], patient: bool) -> list[_Progress]:
        """Parts to go on with: the new ones, then those that gained most per second."""
        idle = [one for one in self._all if not one.stalled(patient) and id(one) not in busy]
        return sorted(idle, key=lambda one: -one.rate)

    def _task(self, one: _Progress) -> PartTask:
        iterations = MORE_ITERATIONS if one.tasks else self._first_iterations
        return PartTask(one.part.problem, one.target, iterations, self._stop, one.start, one.value)

    def _note(self, one: _Progress, answer: PartAnswer | None) -> None:
        if self._on_work is not None:
            self._on_work(**{"rounds" if one.tasks else "parts": 1})
        over = self._stop.cause() is not None
        if answer is None:
            if not over:  # else it may be that nobody waited for it
                self._note_failure(one)
            return
        gain = answer.value - one.value
        if answer.proof is not None:
            one.value, one.proof = answer.value, answer.proof
        one.start = answer.start
        one.iterations += answer.iterations
        if not over:  # else it was cut short: how it went says nothing about how it would go on
            one.tasks += 1
            one.failures = 0  # those that count are in a row
            one.gain, one.last = max(gain, one.last), gain
            one.rate = gain / max(answer.seconds, 1e-3)
            reached = one.value >= one.target or one.iterations >= MOST_ITERATIONS
            one.ended = answer.ended or reached
        self._tell()
        self._on_answer()

    def _note_failure(self, one: _Progress) -> None:
        """What was proven before stays; without the part the sum is only smaller."""
        one.failures += 1
        one.ended = one.failures >= self._hands.tries
        self._failures += int(one.ended)

    def _tell(self) -> None:
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
