"""`solve`: the stages of a run in their order."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundInput
from certikmeans.checkpoint.resume import ResumeState
from certikmeans.checkpoint.resume import resume as read_checkpoint
from certikmeans.checkpoint.writer import DEFAULT_INTERVAL, CheckpointWriter
from certikmeans.errors import InputError
from certikmeans.events import Finished, HeuristicProgress, Listener, PresolveDone
from certikmeans.heuristics.base import Centers, HeuristicContext, Labels
from certikmeans.heuristics.default import run_heuristics
from certikmeans.options import Options
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import validate_start_centers, validate_start_labels
from certikmeans.result import Result
from certikmeans.solver.bound_schedule import BoundSchedule
from certikmeans.solver.context import SolveContext
from certikmeans.solver.outcome import build_result
from certikmeans.solver.root import RootProblem, compute_initial_bound, run_bounds, run_tree
from certikmeans.solver.state import TRIVIAL, SolveState
from certikmeans.stop import StopSignal

FROM_CHECKPOINT = "run before"  # source of the incumbent of a resumed run, in events


@final
@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Labels, centres and multipliers given by the caller, and the run to resume."""

    labels: Labels | None = None
    centers: Centers | None = None
    multipliers: NDArray[np.float64] | None = None  # one per point
    resumed: ResumeState | None = None


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    executor: Any = None,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    initial_centers: Any = None,
    start_multipliers: NDArray[np.float64] | None = None,
    stop: StopSignal | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = DEFAULT_INTERVAL,
    resume: str | os.PathLike[str] | ResumeState | None = None,
    **changes: Any,
) -> Result:
    """Run all stages; see `certikmeans.solve`, which adds progress on a terminal.

    Only speed depends on ``start_multipliers``: one number per point, read at the first point of
    every group.
    """
    _check_problem(problem)
    options = (Options() if options is None else options).changed(**changes)
    start = WarmStart(
        validate_start_labels(problem, start_labels),
        validate_start_centers(problem, initial_centers),
        start_multipliers,
        _read_resumed(resume, problem, options),
    )
    if start.resumed is not None:
        options = start.resumed.options
    if checkpoint is not None:
        writer = CheckpointWriter(checkpoint, problem, options, checkpoint_interval)
        callbacks = (*callbacks, writer)
    stop = _with_time_limit(stop, options.time_limit)
    with _explain_saved_state(start):
        with SolveContext.open(options, stop, executor, callbacks) as ctx:
            state = SolveState(problem, ctx, None if start.resumed is None else start.resumed.state)
            restore_incumbent(start, state)
            presolved = run_presolve(state, ctx)
            root = None if presolved is None else prepare_root(presolved, start, state, ctx)
            if root is not None:
                try:
                    compute_initial_bound(root, state, ctx)
                    search_incumbent(root, start, state, ctx)
                    with one_blas_thread():
                        run_bounds(root, state, ctx)
                        run_tree(root, state, ctx)
                finally:
                    root.compiler.end()
                finish(start, state)
        result = build_result(state, ctx)
    ctx.events.emit(Finished(ctx.events.seconds, result))
    return result


@contextlib.contextmanager
def _explain_saved_state(start: WarmStart) -> Iterator[None]:
    """Turn errors of a run that continues from a saved state into an `InputError`.

    A checksum protects the state from damage. One that was edited, checksum included, can hold
    objects of the wrong kind anywhere, which only their use shows.
    """
    try:
        yield
    except Exception as error:
        saved = None if start.resumed is None else start.resumed.state
        if saved is None or isinstance(error, InputError) or not _raised_inside(error):
            raise
        raise InputError(
            f"the run cannot continue from this checkpoint ({type(error).__name__}: {error})",
            hint="if the file was edited, start without it; if not, this is a bug: please "
            "report it with the file",
        ) from error


def _raised_inside(error: Exception) -> bool:
    """Whether it was raised by this package or numpy, not by a listener of the caller."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.split(".")[0] in ("certikmeans", "numpy")


def restore_incumbent(start: WarmStart, state: SolveState) -> None:
    """Set the incumbent to the labels of the caller and of the resumed run, checked again.

    A tree that was stopped may have found a better labelling in nodes that were interrupted. It
    is resumed from the state before these nodes, as if it had not been stopped; the better
    labelling is deferred to the end of the run.
    """
    if start.labels is not None:
        state.update_incumbent(start.labels, "start labels")
    resumed = start.resumed
    if resumed is None or resumed.essence.labels is None:
        return
    iterations = resumed.essence.iterations
    labels = validate_start_labels(state.problem, resumed.essence.labels)
    assert labels is not None
    if state.saved_tree is not None and state.saved_tree.labels is not None:
        state.defer_incumbent(labels, iterations)
        labels = validate_start_labels(state.problem, state.saved_tree.labels)
        assert labels is not None
    state.update_incumbent(labels, FROM_CHECKPOINT, iterations)


def run_presolve(state: SolveState, ctx: SolveContext) -> PresolvedProblem | None:
    """Reduce the problem; return None if it is infeasible."""
    with ctx.timer.stage("presolve"):
        presolved = presolve(state.problem, ctx.stop)
    if isinstance(presolved, InfeasibilityProof):
        state.infeasibility = presolved
        return None
    seconds, n_points = ctx.events.seconds, state.problem.n_points
    ctx.events.emit(PresolveDone.of(seconds, n_points, presolved.reduced))
    return presolved


def prepare_root(
    presolved: PresolvedProblem, start: WarmStart, state: SolveState, ctx: SolveContext
) -> RootProblem | None:
    """Prepare heuristics and bounds; return None if no feasible labelling is known in time."""
    reduced, options = presolved.reduced, ctx.options
    schedule = BoundSchedule(options, reduced)
    _check_supported(schedule)
    # The cost inside groups is a bound already.
    state.update_bound(presolved.postsolve_bound(0.0), TRIVIAL)
    state.set_schedule(schedule)
    resumed = start.resumed
    if resumed is not None and (resumed.proof is not None or not options.keep_proof):
        state.update_bound(resumed.essence.lower_bound, resumed.essence.bound_source)
    for run in state.bound_runs:
        state.update_bound(presolved.postsolve_bound(run.found.value), run.bound.name)
    feasible_labels = presolved.feasible_labels
    if feasible_labels is None and state.labels is not None:
        feasible_labels = presolved.presolve_labels(state.labels)
    if feasible_labels is None:
        return None
    state.presolved = presolved
    assigner = make_assigner(reduced, feasible_labels)
    multipliers = start.multipliers
    if multipliers is not None:
        multipliers = multipliers[presolved.group_representatives]
    return RootProblem(
        presolved,
        BoundInput(reduced, assigner, options.gap, options.seed, options.keep_proof),
        schedule,
        HeuristicContext(
            problem=reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_exact_time_limit(0.0),
            feasible_labels=feasible_labels,
            stop=ctx.stop,
            seed=options.seed,
            executor=ctx.threads,
            incumbent=state.reduced_view(presolved),
            on_progress=lambda trials, budget: ctx.events.emit(
                HeuristicProgress(ctx.events.seconds, trials, budget)
            ),
        ),
        multipliers,
        _compile_in_background(schedule, presolved),
    )


def search_incumbent(
    root: RootProblem, start: WarmStart, state: SolveState, ctx: SolveContext
) -> None:
    """Run the heuristics, from the saved state if an earlier run was stopped in them."""
    state.checkpoint()
    # Heuristics end as soon as the gap is closed: those of an earlier run are done then.
    state.heuristics_done |= start.resumed is not None and state.gap_closed
    if state.heuristics_done:
        return

    def save(heuristics: Any) -> None:
        if ctx.stop.reason() is None:  # an interrupted trial is repeated when resumed
            state.save_heuristics(heuristics)

    with ctx.timer.stage("heuristics"):
        heuristic_ctx = root.heuristics.replace(saved=state.heuristics, checkpoint=save)
        run_heuristics(heuristic_ctx, root.inputs.assigner, _initial_centers(root, start))
    state.heuristics_done = ctx.stop.reason() is None
    state.checkpoint()


def finish(start: WarmStart, state: SolveState) -> None:
    """Apply the deferred incumbent, write the last checkpoint, and keep the stronger proof."""
    state.apply_deferred(FROM_CHECKPOINT)
    state.checkpoint(last=True)
    before = None if start.resumed is None else start.resumed.proof
    if before is None or state.proof is None or state.proof.lower_bound >= before.lower_bound:
        return
    state.proof = before  # the run was resumed from a certificate with a stronger bound


def _check_problem(problem: Any) -> None:
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem: expected a Problem, got {type(problem).__name__}",
            hint="solve(Problem.from_data(X, n_clusters=3, must_link=[(0, 1)])); "
            "ConstrainedKMeans takes arrays",
        )


def _check_supported(schedule: BoundSchedule) -> None:
    reason = schedule.unsupported_reason()
    if reason is not None:
        raise InputError(reason, hint="use bound 'auto' (the default), or state more must-links")


def _read_resumed(
    resume: str | os.PathLike[str] | ResumeState | None, problem: Problem, options: Options
) -> ResumeState | None:
    if resume is None or isinstance(resume, ResumeState):
        return resume
    return read_checkpoint(resume, problem, options)


def _with_time_limit(stop: StopSignal | None, time_limit: float | None) -> StopSignal:
    if stop is None:
        return StopSignal(time_limit)
    return stop if time_limit is None else stop.with_time_limit(time_limit)


def _compile_in_background(
    schedule: BoundSchedule, presolved: PresolvedProblem
) -> BackgroundCompiler:
    """Compile kernels of the first bound in the background if they are not in the cache."""
    bound = schedule.first_compiled()
    if bound is None:
        return BackgroundCompiler("", ())
    problem = presolved.reduced
    linked = problem.graph.n_linked > 0
    kernels = bound.kernels_for(problem)
    call = f"compile_bound({bound.name!r}, {linked})"
    if tuple(kernels) != tuple(bound.kernels()):
        call = "compile_prices()"
    return BackgroundCompiler(f"from certikmeans import warmup; warmup.{call}", kernels)


def _initial_centers(root: RootProblem, start: WarmStart) -> tuple[Centers, ...]:
    presolved, centers = root.presolved, []
    if start.labels is not None:
        labels = presolved.presolve_labels(start.labels)
        centers.append(presolved.reduced.cluster_means(labels))
    if start.centers is not None:
        centers.append(presolved.presolve_centers(start.centers))
    return tuple(centers)
