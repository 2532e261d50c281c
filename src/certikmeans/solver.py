"""`solve`: the one call that does everything, and the stages in their order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner, assigner_for
from certikmeans.board import TRIVIAL, Board
from certikmeans.bounds.base import Setting
from certikmeans.checkpoint.resuming import Resumed
from certikmeans.checkpoint.resuming import resume as resumed_from
from certikmeans.checkpoint.saving import USUAL_INTERVAL, CheckpointWriter
from certikmeans.compiling.ahead import Ahead
from certikmeans.conclusion import Ending, conclude
from certikmeans.course import Course
from certikmeans.errors import InputError
from certikmeans.events import (
    Emitter,
    Finished,
    HeuristicProgress,
    Listener,
    PresolveDone,
    Timer,
)
from certikmeans.execution.accepting import Accepted, accepted
from certikmeans.execution.blas import one_blas_thread
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.columns import ColumnSearch
from certikmeans.heuristics.finding import find_labelling
from certikmeans.heuristics.local_search import means_of
from certikmeans.news import Cluster
from certikmeans.options import Options
from certikmeans.policy import Policy
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.start import checked_start_centers, checked_start_labels
from certikmeans.proving import Surroundings, look_first, prove, root_evidence
from certikmeans.result import Result
from certikmeans.stop import StopSignal

Multipliers = NDArray[np.float64]


def solve(
    problem: Problem,
    options: Options | None = None,
    *,
    executor: Any = None,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    start_centers: Any = None,
    start_multipliers: Multipliers | None = None,
    stop: StopSignal | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_interval: float = USUAL_INTERVAL,
    resume: str | os.PathLike[str] | Resumed | None = None,
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
    workers = accepted(executor)
    options = (Options() if options is None else options).changed(**changes)
    start = _Start(
        checked_start_labels(problem, start_labels),
        checked_start_centers(problem, start_centers),
        start_multipliers,
    )
    before: Resumed | None = None
    if isinstance(resume, Resumed):
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
        stop = stop.within(options.time_limit)
    emitter = Emitter(callbacks)
    timer, board = Timer(emitter), Board(problem, options.gap, emitter, stop)
    with ThreadPoolExecutor(options.n_threads, "certikmeans") as pool:
        threads = pool if options.n_threads > 1 else None
        run = _Run(problem, options, start, board, emitter, timer, stop, threads, workers, before)
        try:
            ending = run.through_all_stages()
        finally:
            if workers.far is not None:
                workers.far.close()
    result = conclude(problem, options, board, ending, stop, timer.seconds())
    emitter.emit(Finished(emitter.seconds, result))
    return result


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Start:
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
    start: _Start
    board: Board
    emitter: Emitter
    timer: Timer
    stop: StopSignal
    threads: Executor | None  # share memory with the heuristics
    workers: Accepted  # may run bounds and nodes instead
    before: Resumed | None  # what a run before has found out

    def through_all_stages(self) -> Ending:
        """Presolve, heuristics, bounds, search; whatever ends them early, say what is known."""
        board, start = self.board, self.start
        if start.labels is not None:
            board.offer(start.labels, "start labels")
        self._take_up_labels()
        with self.timer.stage("presolve"):
            presolved = presolve(self.problem, self.stop)
        if isinstance(presolved, InfeasibilityProof):
            return Ending(infeasibility=presolved)
        self.emitter.emit(
            PresolveDone.of(self.emitter.seconds, self.problem.n_points, presolved.reduced)
        )
        policy = Policy(self.options, presolved.reduced)
        _refuse(policy.obstacle())
        # What must-links cost inside their groups is a bound already.
        board.prove(presolved.restore_bound(0.0), TRIVIAL)
        course = self._course(presolved, policy)
        witness = presolved.witness
        if witness is None and board.labels is not None:
            witness = presolved.reduce_labels(board.labels)
        if witness is None:
            return Ending()
        assigner = assigner_for(presolved.reduced, witness)
        workshop = self._workshop(presolved, assigner, witness)
        options, known = self.options, start.multipliers
        if known is not None:
            known = known[presolved.first_points]
        setting = Setting(
            presolved.reduced, assigner, options.gap, options.seed, options.keep_proof, known
        )
        ahead = _compile_ahead(policy, presolved)
        around = self._surroundings(presolved, workshop, course, ahead)
        try:
            with self.timer.counted("bounds"):
                look_first(presolved, setting, policy, around)
            course.mark()
            # Where they had found enough, heuristics would have ended.
            course.heuristics_done |= self.before is not None and board.gap_reached()
            if not course.heuristics_done:
                with self.timer.stage("heuristics"):
                    kept = workshop.but(kept=course.heuristics, keep=self._keeper(course))
                    find_labelling(kept, assigner, _starts(presolved, start))
                course.heuristics_done = self.stop.cause() is None
                course.mark()
            with one_blas_thread():
                ending = prove(presolved, setting, policy, around)
        finally:
            ahead.end()
        board.release(RESUMED)
        course.mark(last=True)
        shown = root_evidence(course.asked, presolved.reduced.n_groups)
        ending = replace(ending, shown=shown, presolved=presolved)
        return self._with_better_proof(ending)

    def _with_better_proof(self, ending: Ending) -> Ending:
        """The proof that this run began with stands where it shows more."""
        before, now = None if self.before is None else self.before.proof, ending.proof
        if before is None or now is None or now.lower_bound >= before.lower_bound:
            return ending
        return replace(ending, proof=before)

    def _take_up_labels(self) -> None:
        """The labelling of the run before; that it respects every pair is not taken on trust.

        A tree that was told to stop may have found a better one in what was cut short. It goes on
        from before that, as if it had not been stopped; the better one is kept for the end.
        """
        before = self.before
        if before is None or before.essence.labels is None:
            return
        iterations = before.essence.iterations
        labels = checked_start_labels(self.problem, before.essence.labels)
        assert labels is not None
        tree = None if before.state is None else before.state.tree
        if tree is not None and tree.labels is not None:
            self.board.hold(labels, iterations)
            labels = checked_start_labels(self.problem, tree.labels)
            assert labels is not None
        self.board.offer(labels, RESUMED, iterations)

    def _course(self, presolved: Presolved, policy: Policy) -> Course:
        """The course of the run before, as far as it holds."""
        before = self.before
        course = Course(self.board, self.emitter, None if before is None else before.state)
        course.take_up(policy)
        if before is not None and (before.proof is not None or not self.options.keep_proof):
            self.board.prove(before.essence.lower, before.essence.source)  # else see below
        for one in course.asked:
            self.board.prove(presolved.restore_bound(one.found.value), one.bound.name)
        return course

    def _workshop(
        self, presolved: Presolved, assigner: AbstractAssigner, witness: Labels
    ) -> Workshop:
        emitter = self.emitter

        def tell(trials: int, budget: int) -> None:
            emitter.emit(HeuristicProgress(emitter.seconds, trials, budget))

        return Workshop(
            problem=presolved.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_hard_seconds(0.0),
            witness=witness,
            stop=self.stop,
            seed=self.options.seed,
            executor=self.threads,
            news=self.board.seen_from(presolved),
            on_progress=tell,
        )

    def _keeper(self, course: Course) -> Callable[[Any], None]:
        def keep(state: Any) -> None:
            if self.stop.cause() is None:  # a trial that was cut short is made again
                course.keep_heuristics(state)

        return keep

    def _surroundings(
        self, presolved: Presolved, workshop: Workshop, course: Course, ahead: Ahead
    ) -> Surroundings:
        view = self.board.seen_from(presolved)

        def recombine(clusters: Sequence[Cluster]) -> None:
            ColumnSearch(clusters, view.labels()).search(workshop)

        return Surroundings(
            self.options,
            self.board,
            self.emitter,
            self.timer,
            self.stop,
            self.workers.threads or self.threads,
            self.workers.far,
            recombine,
            course,
            ahead,
        )


RESUMED = "run before"  # who is credited with its labelling


def _compile_ahead(policy: Policy, presolved: Presolved) -> Ahead:
    """Have the kernels of the first bound compiled meanwhile, where they never were."""
    bound = policy.compiled_first()
    if bound is None:
        return Ahead("", ())
    linked = presolved.reduced.graph.n_linked > 0
    task = f"from certikmeans.warming import compile_bound; compile_bound({bound.name!r}, {linked})"
    return Ahead(task, bound.kernels())


def _refuse(obstacle: str | None) -> None:
    if obstacle is not None:
        raise InputError(obstacle, hint="use bound 'auto' (the default), or state more must-links")


def _starts(presolved: Presolved, start: _Start) -> tuple[Centers, ...]:
    starts = []
    if start.labels is not None:
        labels = presolved.reduce_labels(start.labels)
        starts.append(means_of(presolved.reduced, labels))
    if start.centers is not None:
        starts.append(presolved.reduce_centers(start.centers))
    return tuple(starts)
