"""One task: raise the bound of one part. Plain data in and out, so that anybody can run it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.compact import CompactMultipliers, CompactStart
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.bounds.sdp.safe import safe_bound
from certikmeans.compiling.clock import CLOCK
from certikmeans.problem import AbstractRules, ReducedProblem
from certikmeans.stop import StopSignal

CHECK_EVERY = 50  # iterations between two safe bounds


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A part without its points: it names the groups of the whole."""

    rows: NDArray[np.int64]
    weights: NDArray[np.float64]
    rules: AbstractRules
    n_clusters: int

    @classmethod
    def of(cls, problem: ReducedProblem, rows: NDArray[np.int64]) -> Cut:
        """Leave out the points."""
        return cls(rows, problem.weights, problem.rules, problem.n_clusters)

    def with_points(self, points: NDArray[np.float64]) -> ReducedProblem:
        """The part, given the points of the whole."""
        own = np.ascontiguousarray(points[self.rows])
        return ReducedProblem(own, self.weights, self.rules, self.n_clusters, offset=0.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartTask:
    """What to do for a part."""

    problem: ReducedProblem | Cut
    target: float  # enough
    iterations: int
    stop: StopSignal
    start: CompactStart | None = None
    known: float = 0.0  # proven before


@final
@dataclass(frozen=True, slots=True, eq=False)
class PartAnswer:
    """What was reached; ``proof`` is None if nothing better than before."""

    value: float
    proof: CompactMultipliers | None
    start: CompactStart | None
    iterations: int
    seconds: float
    ended: bool  # more time would not help


def improve_cut(points: NDArray[np.float64], task: PartTask) -> PartAnswer:
    """The same elsewhere, where the points of the whole are there already."""
    assert isinstance(task.problem, Cut)
    return improve_part(replace(task, problem=task.problem.with_points(points)))


def improve_part(task: PartTask) -> PartAnswer:
    """Raise the bound of a part; what it returns is proven, however early it ends."""
    began = CLOCK.now()
    problem = task.problem
    assert isinstance(problem, ReducedProblem)
    n = problem.n_groups
    if problem.n_clusters >= n:  # every group may be its own centre
        return PartAnswer(0.0, CompactMultipliers.none(n), None, 0, 0.0, ended=True)
    model = SdpModel.of(problem)
    value, proof = task.known, None
    if task.start is None:
        none = CompactMultipliers.none(n)
        floor = safe_bound(model, none.full())
        if floor >= value:
            value, proof = floor, none
        if problem.n_clusters == 1 or model.total <= 0.0:  # that is the cost itself
            return PartAnswer(value, proof, None, 0, CLOCK.now() - began, ended=True)
    admm = Admm(model, None if task.start is None else task.start.full())
    now = None
    while admm.iterations < task.iterations and value < task.target:
        if task.stop.cause() is not None:
            break
        residual = admm.climb(min(CHECK_EVERY, task.iterations - admm.iterations), task.stop)
        now = CompactMultipliers.of(admm.multipliers)
        found = safe_bound(model, now.full())
        if found > value:
            value, proof = found, now
        if not math.isfinite(residual):
            break
    start = task.start if now is None else CompactStart.of(admm.state)
    return PartAnswer(value, proof, start, admm.iterations, CLOCK.now() - began, ended=False)
