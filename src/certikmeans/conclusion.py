"""How a run is said to have ended: status, reason, result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.board import Board
from certikmeans.certainty.basis import Basis, Shown
from certikmeans.errors import WorkerError
from certikmeans.options import Options
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import Problem
from certikmeans.proof import Proof
from certikmeans.result import Attempt, Result
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause, StopSignal

# A result holds on to what presolve has made of a table of so many numbers (80 megabytes, and about
# as much again for pairs). Of larger ones it is made again if somebody asks for certainty.
MOST_NUMBERS_KEPT = 10_000_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """What is known at the end beside the board."""

    nodes: int = 1
    node_limit_reached: bool = False
    infeasibility: InfeasibilityProof | None = None
    failure: WorkerError | None = None
    proof: Proof | None = None
    attempts: tuple[Attempt, ...] = ()
    shown: tuple[Shown, ...] = ()  # about the whole, for certainty
    presolved: Presolved | None = None  # the groups it is about
    rounding: bool = False  # a bound was not asked: its rounding exceeds the cost


def conclude(
    problem: Problem,
    options: Options,
    board: Board,
    ending: Ending,
    stop: StopSignal,
    seconds: dict[str, float],
) -> Result:
    """Put everything together."""
    status, reason = _verdict(board, ending, stop)
    infeasible = ending.infeasibility is not None
    return Result(
        status=status,
        stop_reason=reason,
        cost=board.cost,
        lower_bound=np.inf if infeasible else board.lower,
        labels=board.labels,
        centers=board.centers,
        n_clusters=problem.n_clusters,
        n_points=problem.n_points,
        n_features=problem.n_features,
        n_must_link=len(problem.must_link),
        n_cannot_link=len(problem.cannot_link),
        nodes=0 if infeasible else ending.nodes,
        iterations=board.iterations,
        seconds=seconds,
        seed=options.seed,
        bound="infeasibility proof" if infeasible else board.source,
        infeasibility=ending.infeasibility,
        failure=None if ending.failure is None else ending.failure.message,
        proof=ending.proof,
        attempts=ending.attempts,
        basis=None if board.labels is None else _basis(problem, options, ending, seconds),
    )


def _basis(problem: Problem, options: Options, ending: Ending, seconds: dict[str, float]) -> Basis:
    """What certainty can begin from, should somebody ask."""
    presolved = ending.presolved
    return Basis(
        problem,
        shown=ending.shown,
        first_points=None if presolved is None else presolved.first_points,
        seed=options.seed,
        n_threads=options.n_threads,
        seconds=seconds.get("bounds", 0.0) + seconds.get("search", 0.0),
        presolved=presolved if problem.points.size <= MOST_NUMBERS_KEPT else None,
    )


def _verdict(board: Board, ending: Ending, stop: StopSignal) -> tuple[Status, StopReason]:
    if ending.infeasibility is not None:
        return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
    status = Status.UNKNOWN if board.labels is None else Status.FEASIBLE
    if ending.failure is not None:
        return status, StopReason.WORKER_FAILED
    if board.gap_reached():
        return Status.OPTIMAL, StopReason.GAP_REACHED
    if ending.node_limit_reached:
        return status, StopReason.NODE_LIMIT
    match stop.cause():
        case StopCause.TIME_LIMIT:
            return status, StopReason.TIME_LIMIT
        case StopCause.INTERRUPTED:
            return status, StopReason.INTERRUPTED
        case None if ending.rounding:
            return status, StopReason.ROUNDING
        case None:
            return status, StopReason.METHODS_EXHAUSTED
