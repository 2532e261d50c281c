"""Result of a run: status, stop reason, and the data from which certainty is computed."""

from __future__ import annotations

import numpy as np

from certikmeans.bounds.base import BoundResult
from certikmeans.certainty.artifacts import BoundArtifact, SolveArtifacts
from certikmeans.result import Result
from certikmeans.solver.context import SolveContext
from certikmeans.solver.state import SolveState
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause

# Results keep the presolved problem of tables up to this size (80 megabytes, and about as much
# again for pairs). For larger ones, presolve is repeated if the certainty is computed.
MAX_RETAINED_VALUES = 10_000_000
# Evidence of bounds below this fraction of the best one is not kept: it adds nothing.
MIN_VALUE_FRACTION = 0.9


def build_result(state: SolveState, ctx: SolveContext) -> Result:
    """Return the result of a run that has ended."""
    status, reason = _status(state, ctx)
    problem, infeasible = state.problem, state.infeasibility is not None
    nodes = 1 if state.tree is None else state.tree.nodes
    seconds = ctx.timer.seconds()
    sum_of_squares, penalty = state.cost_parts()
    violated = () if state.labels is None else problem.violated_soft_pairs(state.labels)
    return Result(
        status=status,
        stop_reason=reason,
        cost=state.cost,
        lower_bound=np.inf if infeasible else state.lower_bound,
        labels=state.labels,
        centers=state.centers,
        n_clusters=problem.n_clusters,
        n_points=problem.n_points,
        n_features=problem.n_features,
        n_must_link=len(problem.must_link),
        n_cannot_link=len(problem.cannot_link),
        nodes=0 if infeasible else nodes,
        iterations=state.iterations,
        seconds=seconds,
        seed=ctx.options.seed,
        bound="infeasibility proof" if infeasible else state.bound_source,
        infeasibility=state.infeasibility,
        failure=None if state.failure is None else state.failure.message,
        proof=state.proof,
        attempts=tuple(state.attempts),
        basis=None if state.labels is None else _artifacts(state, ctx, seconds),
        sum_of_squares=sum_of_squares,
        penalty=penalty,
        violated_soft_pairs=violated,
        n_soft_must_link=len(problem.soft_must_link),
        n_soft_cannot_link=len(problem.soft_cannot_link),
    )


def _artifacts(state: SolveState, ctx: SolveContext, seconds: dict[str, float]) -> SolveArtifacts:
    """Return the data from which certainty is computed."""
    presolved = state.presolved
    small = state.problem.points.size <= MAX_RETAINED_VALUES
    return SolveArtifacts(
        state.problem,
        bound_artifacts=_bound_artifacts(state),
        group_representatives=None if presolved is None else presolved.group_representatives,
        seed=ctx.options.seed,
        n_threads=ctx.options.n_threads,
        seconds=seconds.get("bounds", 0.0) + seconds.get("search", 0.0),
        presolved=presolved if small else None,
    )


def _bound_artifacts(state: SolveState) -> tuple[BoundArtifact, ...]:
    """Return the evidence of the best bound of each kind, if its value is near the best one."""
    if state.presolved is None:
        return ()
    n_groups = state.presolved.reduced.n_groups
    best = max((run.found.value for run in state.bound_runs), default=0.0)
    chosen: dict[str, BoundResult] = {}
    for run in sorted(state.bound_runs, key=lambda run: run.found.value):
        evidence = run.found.leaf.evidence
        near = run.found.value >= MIN_VALUE_FRACTION * best > 0.0
        if evidence is not None and n_groups <= evidence.certainty_max_groups and near:
            chosen[run.found.leaf.kind] = run.found
    return tuple(
        BoundArtifact(found.leaf.evidence, found.value, found.warm_start)
        for found in chosen.values()
        if found.leaf.evidence is not None
    )


def _status(state: SolveState, ctx: SolveContext) -> tuple[Status, StopReason]:
    if state.infeasibility is not None:
        return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
    status = Status.UNKNOWN if state.labels is None else Status.FEASIBLE
    if state.failure is not None:
        return status, StopReason.WORKER_FAILED
    if state.gap_closed:
        return Status.OPTIMAL, StopReason.GAP_REACHED
    if state.node_limit_reached:
        return status, StopReason.NODE_LIMIT
    match ctx.stop.reason():
        case StopCause.TIME_LIMIT | StopCause.WORK_LIMIT:
            return status, StopReason.TIME_LIMIT
        case StopCause.INTERRUPTED:
            return status, StopReason.INTERRUPTED
        case None if state.rounding_dominates:
            return status, StopReason.ROUNDING
        case None:
            return status, StopReason.METHODS_EXHAUSTED
