"""`solve`: the one call that does everything, and the stages in their order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._jit.background_compiler import BackgroundCompiler
from certikmeans.assignment import AbstractAssigner, make_assigner
from certikmeans.bounds.base import BoundInput
from certikmeans.checkpoint.resume import ResumeState
from certikmeans.checkpoint.resume import resume as resumed_from
from certikmeans.checkpoint.writer import DEFAULT_INTERVAL, CheckpointWriter
from certikmeans.errors import InputError
from certikmeans.events import (
    EventBus,
    Finished,
    HeuristicProgress,
    Listener,
    PresolveDone,
    Timer,
)
from certikmeans.heuristics.base import Centers, HeuristicContext, Labels
from certikmeans.heuristics.default import run_heuristics
from certikmeans.heuristics.local_search import means_of
from certikmeans.heuristics.set_partitioning import SetPartitioningHeuristic
from certikmeans.incumbent import CandidateCluster
from certikmeans.options import Options
from certikmeans.parallel.blas import one_blas_thread
from certikmeans.parallel.resolve import ResolvedExecutor, resolve_executor
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import validate_start_centers, validate_start_labels
from certikmeans.result import Result
from certikmeans.solver.bound_schedule import BoundSchedule
from certikmeans.solver.root import RootContext, initial_bound, root_artifacts, solve_root
from certikmeans.solver.snapshot import CheckpointManager
from certikmeans.solver.state import TRIVIAL, SolveState
from certikmeans.solver.termination import Termination, build_result
from certikmeans.stop import StopSignal

Multipliers = NDArray[np.float64]


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    executor: Any = None,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    initial_centers: Any = None,
    start_multipliers: Multipliers | None = None,
    stop: StopSignal | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = DEFAULT_INTERVAL,
    resume: str | os.PathLike[str] | ResumeState | None = None,
    **changes: Any,
) -> Result:
    """Find the best labelling that respects every pair, and prove how good it is.

    What `certikmeans.solve` calls, without progress on a terminal: see there. Only speed depends
    on ``start_multipliers``: one number per point, read at the first point of every group.

    Examples
    --------
    >>> problem = Problem.from_data(
    ...     [[0.0], [1.0], [5.0], [6.0]], n_clusters=2, cannot_link=[(0, 1)], must_link=[(2, 3)]
    ... )
    >>> result = solve(problem)
    >>> result.labels
    array([0, 1, 1, 1])
    >>> print(round(result.cost, 9), result.status, result.gap <= 0.001)
    14.0 optimal True
    """
    if not isinstance(problem, Problem):
        raise InputError(
            f"problem: expected a Problem, got {type(problem).__name__}",
            hint="solve(Problem.from_data(X, n_clusters=3, must_link=[(0, 1)])); "
            "ConstrainedKMeans takes arrays",
        )
    workers = resolve_executor(executor)
    options = (Options() if options is None else options).changed(**changes)
    start = _UserStart(
        validate_start_labels(problem, start_labels),
        validate_start_centers(problem, initial_centers),
        start_multipliers,
    )
    before: ResumeState | None = None
    if isinstance(resume, ResumeState):
        before = resume
    elif resume is not None:
        before = resumed_from(resume, problem, options)
    if before is not None:
        options = before.options
    if checkpoint is not None:
        saved = CheckpointWriter(checkpoint, problem, options, checkpoint_interval)
        callbacks = (*callbacks, saved)
    if stop is None:
        stop = StopSignal(options.time_limit)
    elif options.time_limit is not None:
        stop = stop.with_time_limit(options.time_limit)
    emitter = EventBus(callbacks)
    timer, board = Timer(emitter), SolveState(problem, options.gap, emitter, stop)
    with ThreadPoolExecutor(options.n_threads, "certikmeans") as pool:
        threads = pool if options.n_threads > 1 else None
        run = _Run(problem, options, start, board, emitter, timer, stop, threads, workers, before)
        try:
            termination = run.run()
        finally:
            if workers.remote is not None:
                workers.remote.close()
    result = build_result(problem, options, board, termination, stop, timer.seconds())
    emitter.emit(Finished(emitter.seconds, result))
    return result


@final
@dataclass(frozen=True, slots=True, eq=False)
class _UserStart:
    """What the caller knows already."""

    labels: Labels | None
    centers: Centers | None
    multipliers: Multipliers | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One call of `solve`."""

    problem: Problem
    options: Options
    start: _UserStart
    board: SolveState
    emitter: EventBus
    timer: Timer
    stop: StopSignal
    threads: Executor | None  # share memory with the heuristics
    workers: ResolvedExecutor  # may run bounds and nodes instead
    before: ResumeState | None  # what a run before has found out

    def run(self) -> Termination:
        """Presolve, heuristics, bounds, search; whatever ends them early, say what is known."""
        board, start = self.board, self.start
        if start.labels is not None:
            board.update_incumbent(start.labels, "start labels")
        self._restore_incumbent()
        with self.timer.stage("presolve"):
            presolved = presolve(self.problem, self.stop)
        if isinstance(presolved, InfeasibilityProof):
            return Termination(infeasibility=presolved)
        self.emitter.emit(
            PresolveDone.of(self.emitter.seconds, self.problem.n_points, presolved.reduced)
        )
        schedule = BoundSchedule(self.options, presolved.reduced)
        _refuse(schedule.unsupported_reason())
        # What must-links cost inside their groups is a bound already.
        board.update_bound(presolved.postsolve_bound(0.0), TRIVIAL)
        snapshots = self._make_snapshots(presolved, schedule)
        feasible_labels = presolved.feasible_labels
        if feasible_labels is None and board.labels is not None:
            feasible_labels = presolved.presolve_labels(board.labels)
        if feasible_labels is None:
            return Termination()
        assigner = make_assigner(presolved.reduced, feasible_labels)
        workshop = self._workshop(presolved, assigner, feasible_labels)
        options, known = self.options, start.multipliers
        if known is not None:
            known = known[presolved.group_representatives]
        inputs = BoundInput(
            presolved.reduced, assigner, options.gap, options.seed, options.keep_proof
        )
        background_compiler = _compile_in_background(schedule, presolved)
        root_ctx = self._make_root_context(
            presolved, workshop, snapshots, background_compiler, known
        )
        try:
            with self.timer.counted("bounds"):
                initial_bound(presolved, inputs, schedule, root_ctx)
            snapshots.save_point()
            # Where they had found enough, heuristics would have ended.
            snapshots.heuristics_done |= self.before is not None and board.gap_reached()
            if not snapshots.heuristics_done:
                with self.timer.stage("heuristics"):
                    saved = workshop.replace(
                        saved=snapshots.heuristics, checkpoint=self._heuristic_saver(snapshots)
                    )
                    run_heuristics(saved, assigner, _initial_centers(presolved, start))
                snapshots.heuristics_done = self.stop.reason() is None
                snapshots.save_point()
            with one_blas_thread():
                termination = solve_root(presolved, inputs, schedule, root_ctx)
        finally:
            background_compiler.end()
        board.apply_deferred(FROM_CHECKPOINT)
        snapshots.save_point(last=True)
        bound_artifacts = root_artifacts(snapshots.asked, presolved.reduced.n_groups)
        termination = replace(termination, bound_artifacts=bound_artifacts, presolved=presolved)
        return self._with_better_proof(termination)

    def _with_better_proof(self, termination: Termination) -> Termination:
        """The proof that this run began with stands where it shows more."""
        before, now = None if self.before is None else self.before.proof, termination.proof
        if before is None or now is None or now.lower_bound >= before.lower_bound:
            return termination
        return replace(termination, proof=before)

    def _restore_incumbent(self) -> None:
        """The labelling of the run before; that it respects every pair is not taken on trust.

        A tree that was told to stop may have found a better one in what was cut short. It goes on
        from before that, as if it had not been stopped; the better one is kept for the end.
        """
        before = self.before
        if before is None or before.essence.labels is None:
            return
        iterations = before.essence.iterations
        labels = validate_start_labels(self.problem, before.essence.labels)
        assert labels is not None
        tree = None if before.state is None else before.state.tree
        if tree is not None and tree.labels is not None:
            self.board.defer_incumbent(labels, iterations)
            labels = validate_start_labels(self.problem, tree.labels)
            assert labels is not None
        self.board.update_incumbent(labels, FROM_CHECKPOINT, iterations)

    def _make_snapshots(
        self, presolved: PresolvedProblem, schedule: BoundSchedule
    ) -> CheckpointManager:
        """The course of the run before, as far as it holds."""
        before = self.before
        snapshots = CheckpointManager(
            self.board, self.emitter, None if before is None else before.state
        )
        snapshots.restore(schedule)
        if before is not None and (before.proof is not None or not self.options.keep_proof):
            self.board.update_bound(
                before.essence.lower_bound, before.essence.bound_source
            )  # else see below
        for one in snapshots.asked:
            self.board.update_bound(presolved.postsolve_bound(one.found.value), one.bound.name)
        return snapshots

    def _workshop(
        self, presolved: PresolvedProblem, assigner: AbstractAssigner, feasible_labels: Labels
    ) -> HeuristicContext:
        emitter = self.emitter

        def tell(trials: int, budget: int) -> None:
            emitter.emit(HeuristicProgress(emitter.seconds, trials, budget))

        return HeuristicContext(
            problem=presolved.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_exact_time_limit(0.0),
            feasible_labels=feasible_labels,
            stop=self.stop,
            seed=self.options.seed,
            executor=self.threads,
            incumbent=self.board.reduced_view(presolved),
            on_progress=tell,
        )

    def _heuristic_saver(self, snapshots: CheckpointManager) -> Callable[[Any], None]:
        def checkpoint(state: Any) -> None:
            if self.stop.reason() is None:  # a trial that was cut short is made again
                snapshots.keep_heuristics(state)

        return checkpoint

    def _make_root_context(
        self,
        presolved: PresolvedProblem,
        workshop: HeuristicContext,
        snapshots: CheckpointManager,
        background_compiler: BackgroundCompiler,
        start_multipliers: Multipliers | None,
    ) -> RootContext:
        view = self.board.reduced_view(presolved)

        def improve_incumbent(clusters: Sequence[CandidateCluster]) -> None:
            SetPartitioningHeuristic(clusters, view.labels()).search(workshop)

        return RootContext(
            self.options,
            self.board,
            self.emitter,
            self.timer,
            self.stop,
            self.workers.threads or self.threads,
            self.workers.remote,
            improve_incumbent,
            snapshots,
            background_compiler,
            start_multipliers,
        )


FROM_CHECKPOINT = "run before"  # who is credited with its labelling


def _compile_in_background(
    schedule: BoundSchedule, presolved: PresolvedProblem
) -> BackgroundCompiler:
    """Have the kernels of the first bound compiled meanwhile, where they never were."""
    bound = schedule.compiled_first()
    if bound is None:
        return BackgroundCompiler("", ())
    linked = presolved.reduced.graph.n_linked > 0
    task = f"from certikmeans.warmup import compile_bound; compile_bound({bound.name!r}, {linked})"
    return BackgroundCompiler(task, bound.kernels())


def _refuse(unsupported_reason: str | None) -> None:
    if unsupported_reason is not None:
        raise InputError(
            unsupported_reason, hint="use bound 'auto' (the default), or state more must-links"
        )


def _initial_centers(presolved: PresolvedProblem, start: _UserStart) -> tuple[Centers, ...]:
    starts = []
    if start.labels is not None:
        labels = presolved.presolve_labels(start.labels)
        starts.append(means_of(presolved.reduced, labels))
    if start.centers is not None:
        starts.append(presolved.presolve_centers(start.centers))
    return tuple(starts)
