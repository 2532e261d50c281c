"""How a run is said to have ended: status, reason, result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certainty.artifacts import BoundArtifact, SolveArtifacts
from certikmeans.errors import WorkerError
from certikmeans.options import Options
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import Problem
from certikmeans.proof import Proof
from certikmeans.result import Attempt, Result
from certikmeans.solver.state import SolveState
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause, StopSignal

# A result holds on to what presolve has made of a table of so many numbers (80 megabytes, and about
# as much again for pairs). Of larger ones it is made again if somebody asks for certainty.
MAX_RETAINED_VALUES = 10_000_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Termination:
    """What is known at the end beside the board."""

    nodes: int = 1
    node_limit_reached: bool = False
    infeasibility: InfeasibilityProof | None = None
    failure: WorkerError | None = None
    proof: Proof | None = None
    attempts: tuple[Attempt, ...] = ()
    bound_artifacts: tuple[BoundArtifact, ...] = ()  # about the whole, for certainty
    presolved: PresolvedProblem | None = None  # the groups it is about
    rounding: bool = False  # a bound was not asked: its rounding exceeds the cost


def build_result(
    problem: Problem,
    options: Options,
    board: SolveState,
    termination: Termination,
    stop: StopSignal,
    seconds: dict[str, float],
) -> Result:
    """Put everything together."""
    status, reason = _status(board, termination, stop)
    infeasible = termination.infeasibility is not None
    return Result(
        status=status,
        stop_reason=reason,
        cost=board.cost,
        lower_bound=np.inf if infeasible else board.lower_bound,
        labels=board.labels,
        centers=board.centers,
        n_clusters=problem.n_clusters,
        n_points=problem.n_points,
        n_features=problem.n_features,
        n_must_link=len(problem.must_link),
        n_cannot_link=len(problem.cannot_link),
        nodes=0 if infeasible else termination.nodes,
        iterations=board.iterations,
        seconds=seconds,
        seed=options.seed,
        bound="infeasibility proof" if infeasible else board.bound_source,
        infeasibility=termination.infeasibility,
        failure=None if termination.failure is None else termination.failure.message,
        proof=termination.proof,
        attempts=termination.attempts,
        basis=None if board.labels is None else _basis(problem, options, termination, seconds),
    )


def _basis(
    problem: Problem, options: Options, termination: Termination, seconds: dict[str, float]
) -> SolveArtifacts:
    """What certainty can begin from, should somebody ask."""
    presolved = termination.presolved
    return SolveArtifacts(
        problem,
        bound_artifacts=termination.bound_artifacts,
        group_representatives=None if presolved is None else presolved.group_representatives,
        seed=options.seed,
        n_threads=options.n_threads,
        seconds=seconds.get("bounds", 0.0) + seconds.get("search", 0.0),
        presolved=presolved if problem.points.size <= MAX_RETAINED_VALUES else None,
    )


def _status(
    board: SolveState, termination: Termination, stop: StopSignal
) -> tuple[Status, StopReason]:
    if termination.infeasibility is not None:
        return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
    status = Status.UNKNOWN if board.labels is None else Status.FEASIBLE
    if termination.failure is not None:
        return status, StopReason.WORKER_FAILED
    if board.gap_reached():
        return Status.OPTIMAL, StopReason.GAP_REACHED
    if termination.node_limit_reached:
        return status, StopReason.NODE_LIMIT
    match stop.reason():
        case StopCause.TIME_LIMIT | StopCause.WORK_LIMIT:
            return status, StopReason.TIME_LIMIT
        case StopCause.INTERRUPTED:
            return status, StopReason.INTERRUPTED
        case None if termination.rounding:
            return status, StopReason.ROUNDING
        case None:
            return status, StopReason.METHODS_EXHAUSTED
