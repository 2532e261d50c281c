"""One task: raise the bound of one part. Plain data in and out, so that anybody can run it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.clock import CLOCK
from certikmeans.bounds.sdp.admm import Admm, AdmmState
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import Matrix, MatrixMultipliers, SdpModel
from certikmeans.problem import LabelConstraints, ReducedProblem
from certikmeans.stop import StopSignal

CHECK_INTERVAL = 50  # iterations between two safe bounds


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartSpec:
    """A part without its points: it names the groups of the whole."""

    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    label_constraints: LabelConstraints
    n_clusters: int

    @classmethod
    def of(cls, problem: ReducedProblem, rows: NDArray[np.int64]) -> PartSpec:
        """Leave out the points."""
        return cls(rows, problem.weights, problem.label_constraints, problem.n_clusters)

    def with_points(self, points: NDArray[np.float64]) -> ReducedProblem:
        """The part, given the points of the whole."""
        own = np.ascontiguousarray(points[self.rows])
        return ReducedProblem(
            own, self.weights, self.label_constraints, self.n_clusters, offset=0.0
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartTask:
    """What to do for a part."""

    problem: ReducedProblem | PartSpec
    target: float  # enough
    iterations: int
    stop: StopSignal
    start: CompactAdmmState | None = None
    known: float = 0.0  # proven before


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartResult:
    """What was reached; ``proof`` is None if nothing better than before."""

    value: float
    proof: CompactMultipliers | None
    start: CompactAdmmState | None
    iterations: int
    seconds: float
    ended: bool  # more time would not help


def solve_part_spec(points: NDArray[np.float64], task: PartTask) -> PartResult:
    """The same elsewhere, where the points of the whole are there already."""
    assert isinstance(task.problem, PartSpec)
    return solve_part(replace(task, problem=task.problem.with_points(points)))


def solve_part(task: PartTask) -> PartResult:
    """Raise the bound of a part; what it returns is proven, however early it ends."""
    started = CLOCK.now()
    problem = task.problem
    assert isinstance(problem, ReducedProblem)
    n = problem.n_groups
    if problem.n_clusters >= n:  # every group may be its own centre
        return PartResult(0.0, CompactMultipliers.zeros(n), None, 0, 0.0, ended=True)
    model = SdpModel.of(problem)
    value, proof = task.known, None
    if task.start is None:
        zeros = CompactMultipliers.zeros(n)
        floor = safe_bound(model, zeros.full())
        if floor >= value:
            value, proof = floor, zeros
        if problem.n_clusters == 1 or model.total <= 0.0:  # that is the cost itself
            return PartResult(value, proof, None, 0, CLOCK.now() - started, ended=True)
    admm = Admm(model, None if task.start is None else task.start.full())
    now = None
    while admm.iterations < task.iterations and value < task.target:
        if task.stop.reason() is not None:
            break
        residual = admm.run(min(CHECK_INTERVAL, task.iterations - admm.iterations), task.stop)
        now = CompactMultipliers.of(admm.multipliers)
        found = safe_bound(model, now.full())
        if found > value:
            value, proof = found, now
        if not math.isfinite(residual):
            break
    start = task.start if now is None else CompactAdmmState.of(admm.state)
    return PartResult(value, proof, start, admm.iterations, CLOCK.now() - started, ended=False)


# Multipliers of a part in little space, and the flat row that a certificate holds.
#
# Any multipliers prove something, so they may be rounded; what is claimed is what the rounded ones
# prove. Short mantissas make small files.

MANTISSA_BITS = 12  # of 23


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactMultipliers:
    """`MatrixMultipliers` as float32: the upper triangle row by row, and the cuts in use.

    All times ``2^exponent``, so that data of any scale fit into float32.
    """

    n_groups: int
    triangle: NDArray[np.float32]  # (n (n + 1) / 2,)
    cuts: NDArray[np.int32]  # (m, 3)
    cut_multipliers: NDArray[np.float32]  # (m,)
    exponent: int = 0

    @classmethod
    def of(cls, multipliers: MatrixMultipliers, *, short: bool = True) -> CompactMultipliers:
        """Round, to short mantissas or to float32 alone."""
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
        """Symmetric, in double precision."""
        return MatrixMultipliers(
            from_upper_triangle(self.scaled(self.triangle), self.n_groups),
            self.cuts.astype(np.int64),
            self.scaled(self.cut_multipliers),
        )

    def scaled(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """The values that are meant, exactly."""
        return np.ldexp(values.astype(np.float64), self.exponent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactAdmmState:
    """Where a part may go on from."""

    multipliers: CompactMultipliers
    z: NDArray[np.float32]  # upper triangle
    penalty: float

    @classmethod
    def of(cls, start: AdmmState) -> CompactAdmmState:
        """Keep half of what is symmetric."""
        multipliers = CompactMultipliers.of(start.multipliers, short=False)
        upper = start.z[np.triu_indices(multipliers.n_groups)].astype(np.float32)
        return cls(multipliers, upper, start.penalty)

    def full(self) -> AdmmState:
        """What the solver takes."""
        z = from_upper_triangle(self.z, self.multipliers.n_groups)
        return AdmmState(self.multipliers.full(), z, self.penalty)


def round_mantissa(values: NDArray[np.float64]) -> NDArray[np.float32]:
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


def _to_float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)


def from_upper_triangle(triangle: NDArray[Any], n: int) -> Matrix:
    """The matrix whose upper triangle, row by row, is given."""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = triangle
    matrix += np.triu(matrix, 1).T
    return matrix
