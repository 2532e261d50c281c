"""Tasks of the partition bound, and their scheduler on a task pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.clock import CLOCK
from certikmeans._types import Floats, Ints
from certikmeans.bounds.partition.parts import Part
from certikmeans.bounds.sdp.admm import Admm, AdmmState
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.errors import CertikmeansError
from certikmeans.parallel import SharedData, TaskPool
from certikmeans.problem import LabelConstraints, ReducedProblem
from certikmeans.stop import StopSignal

CHECK_INTERVAL = 50  # iterations between two safe bounds


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartSpec:
    """A part without its points: indices of the groups of the whole problem."""

    rows: Ints
    weights: Floats
    label_constraints: LabelConstraints
    n_clusters: int

    @classmethod
    def of(cls, problem: ReducedProblem, rows: Ints) -> PartSpec:
        """Specification of a part."""
        return cls(rows, problem.weights, problem.label_constraints, problem.n_clusters)

    def with_points(self, points: Floats) -> ReducedProblem:
        """The part, given the points of the whole problem."""
        own = np.ascontiguousarray(points[self.rows])
        return ReducedProblem(
            own, self.weights, self.label_constraints, self.n_clusters, offset=0.0
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartTask:
    """Bound of a part to be computed."""

    problem: ReducedProblem | PartSpec
    target: float  # the task ends once the bound reaches it
    iterations: int
    stop: StopSignal
    start: CompactAdmmState | None = None
    known: float = 0.0  # bound proven before


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartResult:
    """Bound of a part; ``proof`` is None if it is not better than the known one."""

    value: float
    proof: CompactMultipliers | None
    start: CompactAdmmState | None
    iterations: int
    seconds: float
    ended: bool  # the bound cannot be improved


def solve_part_spec(points: Floats, task: PartTask) -> PartResult:
    """Run a task given by a specification, with the points of the whole problem."""
    assert isinstance(task.problem, PartSpec)
    return solve_part(replace(task, problem=task.problem.with_points(points)))


def solve_part(task: PartTask) -> PartResult:
    """Compute the bound of a part; the result is proven, also if the task is stopped."""
    started = CLOCK.now()
    problem = task.problem
    assert isinstance(problem, ReducedProblem)
    n = problem.n_groups
    if problem.n_clusters >= n:  # a cluster per group: the cost is 0
        return PartResult(0.0, CompactMultipliers.zeros(n), None, 0, 0.0, ended=True)
    model = replace(SdpModel.of(problem), size_rule=None)  # size cuts are not kept
    value, proof = task.known, None
    if task.start is None:
        zeros = CompactMultipliers.zeros(n)
        initial = safe_bound(model, zeros.full())
        if initial >= value:
            value, proof = initial, zeros
        if problem.n_clusters == 1 or model.total <= 0.0:  # the bound is exact
            return PartResult(value, proof, None, 0, CLOCK.now() - started, ended=True)
    admm = Admm(model, None if task.start is None else task.start.full())
    latest = None
    while admm.iterations < task.iterations and value < task.target:
        if task.stop.reason() is not None:
            break
        residual = admm.run(min(CHECK_INTERVAL, task.iterations - admm.iterations), task.stop)
        latest = CompactMultipliers.of(admm.multipliers)
        found = safe_bound(model, latest.full())
        if found > value:
            value, proof = found, latest
        if not math.isfinite(residual):
            break
    start = task.start if latest is None else CompactAdmmState.of(admm.state)
    return PartResult(value, proof, start, admm.iterations, CLOCK.now() - started, ended=False)


# Any multipliers give a valid bound, so they may be rounded; the bound claimed is that of the
# rounded ones. Short mantissas make small files.
MANTISSA_BITS = 12  # of 23


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactMultipliers:
    """`MatrixMultipliers` as float32: the upper triangle row by row, and the active cuts.

    Values are scaled by ``2^exponent``, so that data of any scale fit into float32.
    """

    n_groups: int
    triangle: NDArray[np.float32]  # (n (n + 1) / 2,)
    cuts: NDArray[np.int32]  # (m, 3)
    cut_multipliers: NDArray[np.float32]  # (m,)
    exponent: int = 0

    @classmethod
    def of(cls, multipliers: MatrixMultipliers, *, short: bool = True) -> CompactMultipliers:
        """Round to short mantissas, or only to float32."""
        n = len(multipliers.entries)
        rounded = round_mantissa if short else _to_float32
        entries = multipliers.entries[np.triu_indices(n)]
        largest = max(
            np.abs(entries).max(initial=0.0), multipliers.cut_multipliers.max(initial=0.0)
        )
        exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
        triangle = rounded(np.ldexp(entries, -exponent))
        cut_multipliers = rounded(np.ldexp(multipliers.cut_multipliers, -exponent))
        used = cut_multipliers > 0.0
        return cls(
            n, triangle, multipliers.cuts[used].astype(np.int32), cut_multipliers[used], exponent
        )

    @classmethod
    def zeros(cls, n_groups: int) -> CompactMultipliers:
        """All zero."""
        return cls.of(MatrixMultipliers.zeros(n_groups))

    def full(self) -> MatrixMultipliers:
        """The multipliers in double precision."""
        return MatrixMultipliers(
            from_upper_triangle(self.scaled(self.triangle), self.n_groups),
            self.cuts.astype(np.int64),
            self.scaled(self.cut_multipliers),
        )

    def scaled(self, values: NDArray[np.float32]) -> Floats:
        """Values times the scale, exactly."""
        return np.ldexp(values.astype(np.float64), self.exponent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactAdmmState:
    """`AdmmState` as float32."""

    multipliers: CompactMultipliers
    z: NDArray[np.float32]  # upper triangle
    penalty: float

    @classmethod
    def of(cls, start: AdmmState) -> CompactAdmmState:
        """Round to float32 and keep the upper triangle."""
        multipliers = CompactMultipliers.of(start.multipliers, short=False)
        upper = start.z[np.triu_indices(multipliers.n_groups)].astype(np.float32)
        return cls(multipliers, upper, start.penalty)

    def full(self) -> AdmmState:
        """The state in double precision."""
        z = from_upper_triangle(self.z, self.multipliers.n_groups)
        return AdmmState(self.multipliers.full(), z, self.penalty)


def round_mantissa(values: Floats) -> NDArray[np.float32]:
    """Nearest float32 with a short mantissa.

    >>> round_mantissa(np.array([1.0, -0.1, 0.0]))
    array([ 1.       , -0.1000061,  0.       ], dtype=float32)
    """
    short = values.astype(np.float32)
    dropped = 23 - MANTISSA_BITS
    bits = short.view(np.int32)
    bits += 1 << (dropped - 1)
    bits &= -1 << dropped
    return short


def _to_float32(values: Floats) -> NDArray[np.float32]:
    return values.astype(np.float32)


def from_upper_triangle(triangle: NDArray[Any], n: int) -> Floats:
    """Symmetric matrix with the given upper triangle, row by row."""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = triangle
    matrix += np.triu(matrix, 1).T
    return matrix


WAIT_SECONDS = 0.2  # between two checks of the stop signal


class HasPart(Protocol):
    """State of a part that tasks work on."""

    part: Part


Item = TypeVar("Item", bound=HasPart)


@final
class PartScheduler(Generic[Item]):
    """Runs the tasks of parts and yields their results as they come.

    Parameters
    ----------
    pool : TaskPool
    points : ndarray of shape (n_groups, n_axes)
        Points of the whole problem; remote workers get them once, tasks name rows.
    """

    def __init__(self, pool: TaskPool, points: Floats) -> None:
        self._pool = pool
        self._shared = SharedData(points)
        self._tasks: dict[Future[PartResult], Item] = {}
        self._completed: SimpleQueue[Future[PartResult]] = SimpleQueue()

    @property
    def failed(self) -> bool:
        """Whether the remote executor has given up."""
        return self._pool.remote is not None and self._pool.remote.failure is not None

    @property
    def busy(self) -> set[int]:
        """Items with a running task, by `id`."""
        return {id(item) for item in self._tasks.values()}

    def free_slots(self) -> int:
        """Number of tasks to start now.

        Local threads take a task only when one is free: parts that gain most go first, and which
        those are changes with every result.
        """
        pool = self._pool
        capacity = pool.n_workers if pool.remote is None else pool.capacity
        return max(0, capacity - len(self._tasks))

    def start(self, item: Item, task: PartTask) -> None:
        """Submit the task of an item."""
        if self._pool.remote is None:
            future = self._pool.submit(solve_part, task)
        else:
            spec = replace(task, problem=PartSpec.of(item.part.problem, item.part.rows))
            future = self._pool.submit(solve_part_spec, spec, shared=self._shared)
        self._tasks[future] = item
        future.add_done_callback(self._completed.put)

    def results(self) -> Iterator[tuple[Item, PartResult | None]]:
        """Wait briefly and yield the results that arrived; None for a task that failed."""
        with suppress(Empty):
            yield from self._unpack(self._completed.get(timeout=WAIT_SECONDS))
            while True:
                yield from self._unpack(self._completed.get_nowait())

    def drain(self) -> Iterator[tuple[Item, PartResult | None]]:
        """Cancel tasks that have not begun and yield the results of the others."""
        self._pool.drain(self._tasks)
        for future in list(self._tasks):
            yield from self._unpack(future)

    def _unpack(self, future: Future[PartResult]) -> Iterator[tuple[Item, PartResult | None]]:
        item = self._tasks.pop(future, None)
        if item is None or future.cancelled():
            return
        failed = isinstance(future.exception(), CertikmeansError)
        yield item, None if failed else future.result()
