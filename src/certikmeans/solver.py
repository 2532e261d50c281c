"""`solve`: the one call that does everything, and the stages in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.assignment import Assigner, assigner_for
from certikmeans.board import TRIVIAL, Board
from certikmeans.bounds.base import Setting
from certikmeans.conclusion import Ending, conclude
from certikmeans.errors import InputError
from certikmeans.events import (
    Emitter,
    Finished,
    HeuristicProgress,
    Listener,
    PresolveDone,
    Timer,
)
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
    executor: Executor | None = None,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    start_centers: Any = None,
    start_multipliers: Multipliers | None = None,
    stop: StopSignal | None = None,
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
    options = (Options() if options is None else options).changed(**changes)
    start = _Start(
        checked_start_labels(problem, start_labels),
        checked_start_centers(problem, start_centers),
        start_multipliers,
    )
    if stop is None:
        stop = StopSignal(options.time_limit)
    elif options.time_limit is not None:
        stop = stop.within(options.time_limit)
    emitter = Emitter(callbacks)
    timer, board = Timer(emitter), Board(problem, options.gap, emitter, stop)
    with ThreadPoolExecutor(options.n_threads, "certikmeans") as pool:
        threads = pool if options.n_threads > 1 else None
        run = _Run(problem, options, start, board, emitter, timer, stop, threads, executor)
        ending = run.through_all_stages()
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
    executor: Executor | None  # may run bounds and nodes instead

    def through_all_stages(self) -> Ending:
        """Presolve, heuristics, bounds, search; whatever ends them early, say what is known."""
        board, start = self.board, self.start
        if start.labels is not None:
            board.offer(start.labels, "start labels")
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
        witness = presolved.witness
        if witness is None and start.labels is not None:
            witness = presolved.reduce_labels(start.labels)
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
        around = self._surroundings(presolved, workshop)
        with self.timer.counted("bounds"):
            history = look_first(presolved, setting, policy, around)
        with self.timer.stage("heuristics"):
            find_labelling(workshop, assigner, _starts(presolved, start))
        with threadpool_limits(limits=1):  # small products: more threads get in the way
            ending = prove(presolved, setting, policy, history, around)
        return replace(ending, evidence=root_evidence(history), first_points=presolved.first_points)

    def _workshop(self, presolved: Presolved, assigner: Assigner, witness: Labels) -> Workshop:
        emitter = self.emitter
        return Workshop(
            problem=presolved.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_hard_seconds(0.0),
            witness=witness,
            stop=self.stop,
            seed=self.options.seed,
            executor=self.threads,
            news=self.board.seen_from(presolved),
            on_progress=lambda trials, budget: emitter.emit(
                HeuristicProgress(emitter.seconds, trials, budget)
            ),
        )

    def _surroundings(self, presolved: Presolved, workshop: Workshop) -> Surroundings:
        view = self.board.seen_from(presolved)

        def recombine(clusters: Sequence[Cluster]) -> None:
            ColumnSearch(clusters, view.labels()).search(workshop)

        return Surroundings(
            self.options,
            self.board,
            self.emitter,
            self.timer,
            self.stop,
            self.executor or self.threads,
            recombine,
        )


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
