"""The stages in order: presolve, heuristics, bounds, search, result."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.assignment import Assigner
from certikmeans.errors import WorkerError
from certikmeans.events import Emitter, HeuristicProgress, PresolveDone
from certikmeans.heuristics.base import Centers, Labels, Workshop
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.local_search import LocalSearch, means_of
from certikmeans.options import Options
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.proving import Proving
from certikmeans.record import Record
from certikmeans.result import Result
from certikmeans.search.bounding import check_size
from certikmeans.stop import StopSignal

# Of a time limit, heuristics get at most this much, so that there is time for a proof.
HEURISTICS_SHARE = 0.5


@final
@dataclass(frozen=True, slots=True)
class Crews:
    """Who works: threads share memory with the heuristics; anyone can run bounds."""

    threads: Executor | None
    bounds: Executor | None


@final
class Run:
    """One call of `solve`."""

    def __init__(
        self,
        problem: Problem,
        options: Options,
        emitter: Emitter,
        stop: StopSignal,
        crews: Crews,
    ) -> None:
        self._crews = crews
        self._record = Record(problem, options, emitter, stop)

    def execute(self, labels: Labels | None, centers: Centers | None) -> Result:
        """Run the stages; whatever ends them early, return what is known."""
        record = self._record
        if labels is not None:
            record.offer(labels, 0, "start labels")
        with record.stage("presolve"):
            reduced = presolve(record.problem, record.stop)
        if isinstance(reduced, InfeasibilityProof):
            return record.finish(infeasibility=reduced)
        self._tell_presolve(reduced)
        check_size(record.options.bound, reduced.reduced)
        # What must-links cost inside their groups is a bound already.
        record.raise_bound(reduced.restore_bound(0.0), "trivial")
        witness = reduced.witness
        if witness is None and labels is not None:
            witness = reduced.reduce_labels(labels)
        if witness is None:
            return record.finish()

        with record.stage("heuristics"):
            assigner = Assigner(reduced.reduced, witness)
            workshop = self._workshop(reduced, assigner, witness)
            hurried = workshop.but(
                starts=_starts(reduced, labels, centers),
                stop=record.stop.within(HEURISTICS_SHARE * record.stop.remaining),
            )
            self._find(reduced, hurried, assigner)
        try:
            with threadpool_limits(limits=1):  # small products: more threads get in the way
                Proving(record, reduced, assigner, workshop, self._crews.bounds).run()
        except WorkerError as failure:
            record.failure = failure
        return record.finish()

    def _workshop(self, reduced: Presolved, assigner: Assigner, witness: Labels) -> Workshop:
        record, emitter = self._record, self._record.emitter
        return Workshop(
            problem=reduced.reduced,
            # Seconds would make the answer depend on the machine, and add up over many trials.
            assigner=assigner.with_hard_seconds(0.0),
            witness=witness,
            stop=record.stop,
            seed=record.options.seed,
            executor=self._crews.threads,
            on_labels=lambda labels, steps, source: record.offer(
                reduced.restore_labels(labels), steps, source
            ),
            on_progress=lambda trials, budget: emitter.emit(
                HeuristicProgress(emitter.seconds, trials, budget)
            ),
            good_enough=record.gap_reached,
        )

    def _find(self, reduced: Presolved, workshop: Workshop, assigner: Assigner) -> None:
        record = self._record
        labels = DefaultSearch().search(workshop)
        record.offer(reduced.restore_labels(labels), record.incumbent.iterations, "heuristics")
        if not workshop.finished():
            # Once more with time for components that a short search does not finish.
            patient = workshop.but(assigner=assigner)
            polished = LocalSearch(reduced.reduced, assigner).from_labels(labels, patient)
            record.offer(reduced.restore_labels(polished.labels), polished.iterations, "polish")

    def _tell_presolve(self, reduced: Presolved) -> None:
        emitter, graph = self._record.emitter, reduced.reduced.graph
        emitter.emit(
            PresolveDone(
                emitter.seconds,
                n_points=self._record.problem.n_points,
                n_groups=reduced.reduced.n_groups,
                n_axes=reduced.reduced.n_axes,
                n_components=graph.n_components,
                largest_component=int(np.diff(graph.starts).max(initial=1)),
            )
        )


def _starts(
    reduced: Presolved, labels: Labels | None, centers: Centers | None
) -> tuple[Centers, ...]:
    starts = []
    if labels is not None:
        starts.append(means_of(reduced.reduced, reduced.reduce_labels(labels)))
    if centers is not None:
        starts.append(reduced.reduce_centers(centers))
    return tuple(starts)
