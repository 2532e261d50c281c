"""The stages in order: presolve, bounds, heuristics, result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.cluster.bound import cluster_bound
from certikmeans.bounds.sample import SampleBound
from certikmeans.events import (
    BoundImproved,
    BoundStatistics,
    Emitter,
    Finished,
    HeuristicProgress,
    IncumbentFound,
    Listener,
    PresolveDone,
    StageFinished,
    StageStarted,
)
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.columns import CandidateCluster, ColumnSearch
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.local_search import LocalSearch, means_of
from certikmeans.incumbent import Incumbent
from certikmeans.options import DEFAULT_GAP, Options
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.start import checked_start_centers, checked_start_labels
from certikmeans.problem.subproblem import Subproblem
from certikmeans.result import Result
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause, StopSignal
from certikmeans.tolerances import check_bound, gap_reached

# Of a time limit, heuristics get at most this much, so that there is time for a proof.
HEURISTICS_SHARE = 0.5


def solve(
    problem: Problem,
    *,
    gap: float = DEFAULT_GAP,
    time_limit: float | None = None,
    bound: str = "auto",
    branching: str = "centers",
    jobs: int | None = None,
    seed: int = 0,
    callbacks: Iterable[Listener] = (),
    start_labels: Any = None,
    start_centers: Any = None,
    stop: StopSignal | None = None,
) -> Result:
    """Find the best labelling that respects every pair, and prove how good it is.

    Parameters
    ----------
    problem : Problem
        Points, K and pairs.
    gap : float
        Stop as soon as ``(cost - lower_bound) / cost`` is proven to be at most this.
    time_limit : float, optional
        Seconds for the whole run. What is known by then is returned.
    bound : {"auto", "cluster", "grouped", "sample"}
        Which lower bound to compute.
    branching : {"centers", "pairs"}
        How to split the solution set when the bound alone does not close the gap.
    jobs : int, optional
        Number of threads; by default one per core. The answer does not depend on it.
    seed : int
        Every random choice follows from it.
    callbacks : iterable of callable
        Each is called with every `certikmeans.events.Event`, in this thread.
    start_labels, start_centers : array-like, optional
        A known labelling that respects every pair, or centres, to start from.
    stop : StopSignal, optional
        ``stop.interrupt()``, called from a callback, another thread or a signal handler,
        ends the run with what is known.

    Returns
    -------
    Result
        Also for infeasible input (with a proof), and when time ran out.

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
    options = Options(gap, time_limit, bound, branching, jobs, seed)
    labels = checked_start_labels(problem, start_labels)
    centers = checked_start_centers(problem, start_centers)
    if stop is None:
        stop = StopSignal(options.time_limit_seconds)
    elif options.time_limit_seconds is not None:
        stop = stop.within(options.time_limit_seconds)
    with ThreadPoolExecutor(options.n_threads, "certikmeans") as executor:
        run = _Run(problem, options, Emitter(callbacks), stop)
        return run.execute(labels, centers, executor if options.n_threads > 1 else None)


@final
class _Run:
    """One call of `solve`: what is known so far, and the clock."""

    def __init__(
        self, problem: Problem, options: Options, emitter: Emitter, stop: StopSignal
    ) -> None:
        self._problem = problem
        self._options = options
        self._emitter = emitter
        self._stop = stop
        self._incumbent = Incumbent(problem)
        self._lower = 0.0
        self._bound = "trivial"
        self._seconds: dict[str, float] = {}

    def execute(
        self, labels: Labels | None, centers: Centers | None, executor: Executor | None
    ) -> Result:
        """Run the stages; whatever ends them early, return what is known."""
        if labels is not None:
            self._offer(labels, 0, "start labels")
        with self._stage("presolve"):
            reduced = presolve(self._problem, self._stop)
        if isinstance(reduced, InfeasibilityProof):
            return self._finish(infeasibility=reduced)
        self._tell_presolve(reduced)
        witness = reduced.witness
        if witness is None and labels is not None:
            witness = reduced.reduce_labels(labels)
        if witness is None:
            self._raise_bound(reduced.restore_bound(0.0), "trivial")
            return self._finish()

        with self._stage("bounds"):
            assigner = Assigner(reduced.reduced, witness)
            self._sample_bound(reduced, assigner)
        workshop = self._workshop(reduced, assigner, witness, executor)
        with_cluster_bound = self._options.bound != "sample"
        share = HEURISTICS_SHARE if with_cluster_bound else 1.0
        with self._stage("heuristics"):
            hurried = workshop.but(
                starts=_starts(reduced, labels, centers),
                stop=self._stop.within(share * self._stop.remaining),
            )
            self._search(reduced, hurried, assigner)
        if with_cluster_bound and not workshop.finished():
            with self._stage("bounds"):
                self._cluster_bound(reduced, workshop)
        return self._finish()

    def _sample_bound(self, reduced: Presolved, assigner: Assigner) -> None:
        bound = SampleBound(assigner)
        state = bound.prepare(reduced.reduced)
        root = Subproblem.root(reduced.reduced)
        found = bound.evaluate(state, root, self._incumbent.cost, self._stop)
        self._raise_bound(reduced.restore_bound(found.value), bound.name)

    def _workshop(
        self, reduced: Presolved, assigner: Assigner, witness: Labels, executor: Executor | None
    ) -> Workshop:
        return Workshop(
            problem=reduced.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_hard_seconds(0.0),
            witness=witness,
            stop=self._stop,
            seed=self._options.seed,
            executor=executor,
            on_labels=lambda labels, steps, source: self._offer(
                reduced.restore_labels(labels), steps, source
            ),
            on_progress=lambda trials, budget: self._emitter.emit(
                HeuristicProgress(self._emitter.seconds, trials, budget)
            ),
            good_enough=self._gap_reached,
        )

    def _search(self, reduced: Presolved, workshop: Workshop, assigner: Assigner) -> None:
        labels = DefaultSearch().search(workshop)
        self._offer(reduced.restore_labels(labels), self._incumbent.iterations, "heuristics")
        if not workshop.finished():
            # Once more with time for components that a short search does not finish.
            patient = workshop.but(assigner=assigner)
            polished = LocalSearch(reduced.reduced, assigner).from_labels(labels, patient)
            self._offer(reduced.restore_labels(polished.labels), polished.iterations, "polish")

    def _cluster_bound(self, reduced: Presolved, workshop: Workshop) -> None:
        """Raise the bound; where it cannot reach the incumbent, look for a better one."""

        def improve(columns: Sequence[CandidateCluster]) -> Labels | None:
            before = self._incumbent.cost
            ColumnSearch(columns, incumbent()).search(workshop)
            return incumbent() if self._incumbent.cost < before else None

        def incumbent() -> Labels:
            assert self._incumbent.labels is not None
            return reduced.reduce_labels(self._incumbent.labels)

        found = cluster_bound(
            reduced.reduced,
            incumbent(),
            target_gap=self._options.gap,
            stop=self._stop,
            executor=workshop.executor,
            improve=improve,
            on_bound=lambda value: self._raise_bound(reduced.restore_bound(value), "cluster"),
            seed=self._options.seed,
        )
        self._raise_bound(reduced.restore_bound(found.value), "cluster")
        numbers = dataclasses.asdict(found.statistics)
        self._emitter.emit(BoundStatistics(self._emitter.seconds, "cluster", numbers))

    def _offer(self, labels: Labels, iterations: int, source: str) -> None:
        if self._incumbent.offer(labels, iterations):
            check_bound(self._incumbent.cost, self._lower, self._bound)
            self._emitter.emit(IncumbentFound(self._emitter.seconds, self._incumbent.cost, source))

    def _raise_bound(self, value: float, source: str) -> None:
        check_bound(self._incumbent.cost, value, source)
        if value > self._lower or self._bound == "trivial":
            self._lower = max(self._lower, value)
            self._bound = source
            self._emitter.emit(BoundImproved(self._emitter.seconds, self._lower, source))

    def _gap_reached(self) -> bool:
        return gap_reached(self._incumbent.cost, self._lower, self._options.gap)

    def _tell_presolve(self, reduced: Presolved) -> None:
        graph = reduced.reduced.graph
        self._emitter.emit(
            PresolveDone(
                self._emitter.seconds,
                n_points=self._problem.n_points,
                n_groups=reduced.reduced.n_groups,
                n_axes=reduced.reduced.n_axes,
                n_components=graph.n_components,
                largest_component=int(np.diff(graph.starts).max(initial=1)),
            )
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._emitter.emit(StageStarted(self._emitter.seconds, name))
        began = self._emitter.seconds
        try:
            yield
        finally:
            spent = self._emitter.seconds - began
            self._seconds[name] = self._seconds.get(name, 0.0) + spent
        self._emitter.emit(StageFinished(self._emitter.seconds, name))

    def _finish(self, infeasibility: InfeasibilityProof | None = None) -> Result:
        status, reason = self._verdict(infeasibility)
        problem, incumbent = self._problem, self._incumbent
        result = Result(
            status=status,
            stop_reason=reason,
            cost=incumbent.cost,
            lower_bound=np.inf if infeasibility is not None else self._lower,
            labels=incumbent.labels,
            centers=incumbent.centers,
            n_clusters=problem.n_clusters,
            n_points=problem.n_points,
            n_features=problem.n_features,
            n_must_link=len(problem.must_link),
            n_cannot_link=len(problem.cannot_link),
            nodes=0 if infeasibility is not None else 1,
            iterations=incumbent.iterations,
            seconds={"total": self._emitter.seconds, **self._seconds},
            seed=self._options.seed,
            bound="infeasibility proof" if infeasibility is not None else self._bound,
            infeasibility=infeasibility,
        )
        self._emitter.emit(Finished(self._emitter.seconds, result))
        return result

    def _verdict(self, infeasibility: InfeasibilityProof | None) -> tuple[Status, StopReason]:
        if infeasibility is not None:
            return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
        if self._gap_reached():
            return Status.OPTIMAL, StopReason.GAP_REACHED
        status = Status.UNKNOWN if self._incumbent.labels is None else Status.FEASIBLE
        match self._stop.cause():
            case StopCause.TIME_LIMIT:
                return status, StopReason.TIME_LIMIT
            case StopCause.INTERRUPTED:
                return status, StopReason.INTERRUPTED
            case None:
                return status, StopReason.METHODS_EXHAUSTED


def _starts(
    reduced: Presolved, labels: Labels | None, centers: Centers | None
) -> tuple[Centers, ...]:
    starts = []
    if labels is not None:
        starts.append(means_of(reduced.reduced, reduced.reduce_labels(labels)))
    if centers is not None:
        starts.append(reduced.reduce_centers(centers))
    return tuple(starts)
