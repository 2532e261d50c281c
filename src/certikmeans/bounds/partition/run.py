"""Computation of the partition bound: tasks of the parts, and the sum of their values.

For parts whose weights add up to at most the weights of the whole,

    cost(S, w) >= sum_t cost(S_t, w_t)

because each part may choose centres and labels of its own (`parts.py`). A part whose task has not
run, failed or was interrupted contributes the value proven for it before, initially 0: no cost is
negative. Every value is proven by itself (`safe_bound`), rounding included, and the sum is rounded
down: `math.fsum` and a product err by a unit in the last place, and ``CLAIMED_FRACTION`` subtracts
far more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, final

from certikmeans._types import Floats, Ints
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.partition.parts import (
    PARTITION_PARAMS,
    Part,
    PartitionParams,
    first_size,
    group_costs,
    next_size,
    part_size,
    rough_iterations,
    split_into_parts,
)
from certikmeans.bounds.partition.scheduler import (
    CompactAdmmState,
    CompactMultipliers,
    PartResult,
    PartScheduler,
    PartTask,
)
from certikmeans.bounds.sdp.admm import iteration_work
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.problem import ReducedProblem
from certikmeans.stop import UNITS_PER_SECOND

# Fraction of the sum that is claimed: the verifier adds in another order, and its sum must not be
# smaller than the claim.
CLAIMED_FRACTION = 1.0 - 1e-10


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartProof:
    """Value that a part contributes, with its evidence."""

    rows: Ints  # groups of the whole
    weights: Floats
    multipliers: CompactMultipliers
    value: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionResult:
    """A proven value and the parts that prove it."""

    value: float  # at most the reduced cost of every labelling
    parts: tuple[PartProof, ...]  # those that contribute
    n_parts: int
    upper: float  # estimate of the largest value that these parts can prove
    iterations: int
    failures: int
    state: PartitionState | None = None  # from which a computation that was stopped continues
    finished: bool = True  # False: a larger work limit would allow coarser parts


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """State of the computation: size of the parts, and progress of each."""

    labels: Ints  # labels and size determine the parts
    size: int
    first_iterations: int
    best: PartitionResult | None = None  # of smaller parts
    part_states: tuple[dict[str, Any], ...] = ()


def partition_bound(
    problem: ReducedProblem,
    labels: Ints,
    cutoff: float,
    ctx: BoundContext,
    *,
    size: int | None = None,
    seed: int = 0,
    warm_start: PartitionState | None = None,
    params: PartitionParams = PARTITION_PARAMS,
) -> PartitionResult:
    """Bound the reduced cost, ``offset`` not included, of every feasible labelling from below.

    Parameters
    ----------
    problem : ReducedProblem
        Any number of groups and axes.
    labels : ndarray of shape (n_groups,)
        An incumbent. Validity does not depend on it, the value does.
    cutoff : float
        Value at which the computation stops.
    ctx : BoundContext
        Its stop signal is checked by every task, and the time left decides on the size of the
        parts; its pool runs the tasks; every improvement of the sum is reported to it.
    size : int, optional
        Groups per part; by default chosen from the work or time left and the threads.
    seed : int
        The same seed gives the same parts.
    warm_start : PartitionState, optional
        State of a computation that was stopped.
    """
    if warm_start is not None:
        labels = warm_start.labels  # the parts follow from them
    with one_blas_thread():  # tasks share the cores; products are small
        run = _Partitioner(problem, labels, cutoff, ctx, seed, params)
        if size is None and problem.n_groups <= params.min_part_size:
            size = problem.n_groups
        if size is not None:
            first = PartitionState(labels, size, params.first_iterations)
            return run.with_fixed_size(warm_start or first)
        return run.with_growing_size(warm_start)


@final
class _Partitioner:
    """Bounds by partitions of a given size, or of sizes that grow while that helps."""

    def __init__(
        self,
        problem: ReducedProblem,
        labels: Ints,
        cutoff: float,
        ctx: BoundContext,
        seed: int,
        params: PartitionParams,
    ) -> None:
        self._problem, self._labels, self._cutoff, self._ctx = problem, labels, cutoff, ctx
        self._seed, self._params = seed, params
        self._scheduler: PartScheduler[_PartState] = PartScheduler(ctx.pool, problem.points)

    def with_fixed_size(self, state: PartitionState) -> PartitionResult:
        """Bound with parts of one size."""
        parts = self._start(state)
        parts.run_tasks(until_converged=True)
        return self._result(parts, None)

    def with_growing_size(self, state: PartitionState | None) -> PartitionResult:
        """Bound with parts of growing size: coarser parts lose less."""
        problem, stop, cutoff = self._problem, self._ctx.stop, self._cutoff
        n_groups, params = problem.n_groups, self._params
        cost = float(group_costs(problem, self._labels).sum())
        if state is None:
            size = first_size(n_groups, problem.n_clusters, *self._capacity(), params)
            few = rough_iterations(n_groups, size, *self._capacity(), params)
            state = PartitionState(self._labels, size, few)
        while True:
            parts = self._start(state)
            parts.run_tasks(until_converged=state.size >= n_groups)
            best = _better_result(state.best, parts.result())
            if best.value >= cutoff or stop.reason() is not None or state.size >= n_groups:
                break
            gaps = cost - best.value, cost - cutoff
            affordable = self._largest_size(*self._capacity())
            coarser = next_size(n_groups, state.size, *gaps, affordable, params)
            if not coarser:
                if stop.remaining_work < math.inf:
                    largest = self._largest_size(math.inf, 1)
                    if next_size(n_groups, state.size, *gaps, largest, params):
                        # A larger work limit affords coarser parts.
                        return replace(self._result(parts, best), finished=False)
                break
            state = PartitionState(self._labels, coarser, params.first_iterations, best)
        parts.run_tasks(until_converged=True)
        return self._result(parts, best)

    def _largest_size(self, seconds: float, n_threads: int) -> int:
        """Groups per part that the time affords."""
        sizes, params = (self._problem.n_groups, self._problem.n_clusters), self._params
        return part_size(*sizes, seconds, n_threads, params.max_later_part_size, params)

    def _capacity(self) -> tuple[float, int]:
        """Seconds left and number of threads; by the work limit alone, of one thread."""
        stop = self._ctx.stop
        if stop.remaining_work / UNITS_PER_SECOND <= stop.remaining * self._ctx.pool.n_threads:
            return stop.remaining_work / UNITS_PER_SECOND, 1
        return stop.remaining, self._ctx.pool.n_threads

    def _start(self, state: PartitionState) -> _PartitionRun:
        parts = split_into_parts(self._problem, self._labels, state.size, self._seed)
        run = _PartitionRun(parts, self._cutoff, self._ctx, self._scheduler, state, self._params)
        run.restore()
        return run

    def _result(self, parts: _PartitionRun, best: PartitionResult | None) -> PartitionResult:
        found = _better_result(best, parts.result())
        return replace(found, state=parts.state())


def _better_result(best: PartitionResult | None, found: PartitionResult) -> PartitionResult:
    return found if best is None or found.value > best.value else best


@final
@dataclass(slots=True, eq=False)
class _PartState:
    """Progress of a part."""

    part: Part
    target: float
    value: float = 0.0
    proof: CompactMultipliers | None = None
    start: CompactAdmmState | None = None
    last_gain: float = math.inf  # gain of the last task
    gain: float = math.inf  # the larger of the last two, since gains vary
    rate: float = math.inf  # gain per unit of work of the last one
    iterations: int = 0
    tasks: int = 0
    failures: int = 0
    ended: bool = False

    def stalled(self, until_converged: bool, params: PartitionParams) -> bool:
        """Whether more tasks would hardly help."""
        if self.ended or self.tasks < 2:
            return self.ended
        if until_converged:
            return self.gain <= params.min_relative_gain * self.value
        small = params.min_gap_fraction * (self.target - self.value)
        return self.last_gain <= max(params.min_relative_gain * self.value, small)


# Fields that change while tasks run.
STATE_FIELDS = tuple(
    field.name for field in fields(_PartState) if field.name not in ("part", "target")
)


@final
class _PartitionRun:
    """Tasks of the parts of one size, and the sum of their values."""

    def __init__(
        self,
        parts: tuple[Part, ...],
        cutoff: float,
        ctx: BoundContext,
        scheduler: PartScheduler[_PartState],
        start: PartitionState,
        params: PartitionParams,
    ) -> None:
        self._cutoff, self._ctx, self._scheduler = cutoff, ctx, scheduler
        self._start, self._params = start, params
        self._upper = math.fsum(part.upper for part in parts)
        # The target of a part is its share of the cutoff, but at most its largest possible value.
        ratio = (
            min(1.0 - params.target_tolerance, cutoff / self._upper * (1.0 + 1e-9))
            if self._upper > 0.0
            else 0.0
        )
        self._states = [_PartState(part, ratio * part.upper) for part in parts]
        self._failures = 0
        self._best = 0.0 if start.best is None else start.best.value  # reported before

    def state(self) -> PartitionState:
        """State from which another run continues."""
        part_states = tuple(
            {name: getattr(state, name) for name in STATE_FIELDS} for state in self._states
        )
        return replace(self._start, part_states=part_states)

    def restore(self) -> None:
        """Continue from the part states of the start, if it has any."""
        saved = self._start.part_states
        if len(saved) != len(self._states):
            return
        for state, values in zip(self._states, saved, strict=True):
            for name in STATE_FIELDS:
                setattr(state, name, values[name])
            if state.failures:  # other workers may succeed
                state.failures, state.ended = 0, False
        self._report_bound()

    @property
    def value(self) -> float:
        """The sum, rounded down."""
        total = math.fsum(state.value for state in self._states)
        return max(0.0, math.nextafter(CLAIMED_FRACTION * total, -math.inf))

    def run_tasks(self, *, until_converged: bool) -> None:
        """Run tasks until the cutoff is reached, the run is stopped, or all parts have stalled."""
        scheduler = self._scheduler
        try:
            while not self._finished():
                waiting = self._queue(scheduler.busy, until_converged)
                for state in waiting[: scheduler.free_slots()]:
                    scheduler.start(state, self._task(state))
                if not scheduler.busy:
                    break
                for state, result in scheduler.results():
                    self._record_result(state, result)
        finally:
            for state, result in scheduler.drain():
                self._record_result(state, result)

    def _finished(self) -> bool:
        over = self._scheduler.failed or self._ctx.stop.reason() is not None
        return over or self.value >= self._cutoff

    def _queue(self, busy: set[int], until_converged: bool) -> list[_PartState]:
        """Parts to continue: new ones, then those with the largest gain per unit of work."""
        idle = [
            state
            for state in self._states
            if not state.stalled(until_converged, self._params) and id(state) not in busy
        ]
        return sorted(idle, key=lambda state: -state.rate)

    def _task(self, state: _PartState) -> PartTask:
        later = self._params.later_iterations
        iterations = later if state.tasks else self._start.first_iterations
        return PartTask(
            state.part.problem,
            state.target,
            iterations,
            self._ctx.stop,
            state.start,
            state.value,
        )

    def _record_result(self, state: _PartState, result: PartResult | None) -> None:
        self._ctx.report(**{"rounds" if state.tasks else "parts": 1})
        over = self._ctx.stop.reason() is not None
        if result is None:
            if not over:  # otherwise the task may have been cancelled by the stop
                self._record_failure(state)
            return
        gain = result.value - state.value
        work = result.iterations * iteration_work(len(state.part.rows))
        if result.proof is not None:
            state.value, state.proof = result.value, result.proof
        state.start = result.start
        state.iterations += result.iterations
        if not over:  # otherwise the task was interrupted, and its gain is no estimate of the next
            state.tasks += 1
            state.failures = 0  # only consecutive failures count
            state.gain, state.last_gain = max(gain, state.last_gain), gain
            state.rate = gain / max(work, 1.0)
            reached = state.value >= state.target or state.iterations >= self._params.max_iterations
            state.ended = result.ended or reached
        self._report_bound()
        self._ctx.checkpoint(self.state())
        self._ctx.report(work=work)

    def _record_failure(self, state: _PartState) -> None:
        """End a part whose task failed; the value proven for it before stays valid."""
        state.failures += 1
        state.ended = True  # the pool has tried it several times
        self._failures += 1

    def _report_bound(self) -> None:
        if self.value > self._best:
            self._best = self.value
            self._ctx.report(self._best)

    def result(self) -> PartitionResult:
        """Return the sum and the parts that contribute to it."""
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
