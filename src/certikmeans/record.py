"""What a run knows so far: the incumbent, the bound, the clock. Every change is an event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import WorkerError
from certikmeans.events import (
    BoundImproved,
    Emitter,
    Finished,
    IncumbentFound,
    StageFinished,
    StageStarted,
)
from certikmeans.incumbent import Incumbent
from certikmeans.options import Options
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.problem import Problem
from certikmeans.proof import Proof
from certikmeans.result import Result
from certikmeans.status import Status, StopReason
from certikmeans.stop import StopCause, StopSignal
from certikmeans.tolerances import check_bound, gap_reached, relative_gap

Labels = NDArray[np.int64]


@final
class Record:
    """The best labelling and the best bound of one call of `solve`, and how it ends."""

    def __init__(
        self, problem: Problem, options: Options, emitter: Emitter, stop: StopSignal
    ) -> None:
        self.problem = problem
        self.options = options
        self.emitter = emitter
        self.stop = stop
        self.incumbent = Incumbent(problem)
        self.lower = 0.0
        self.nodes = 1
        self.node_limit_reached = False
        self.failure: WorkerError | None = None
        self.proof: Proof | None = None
        self._bound = "trivial"
        self._seconds: dict[str, float] = {}

    @property
    def gap(self) -> float:
        """Relative gap between the incumbent and the bound."""
        return relative_gap(self.incumbent.cost, self.lower)

    def gap_reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return gap_reached(self.incumbent.cost, self.lower, self.options.gap)

    def known(self) -> tuple[float, Labels]:
        """Cost and labels of the incumbent; there is one from the heuristics on."""
        assert self.incumbent.labels is not None
        return self.incumbent.cost, self.incumbent.labels

    def offer(self, labels: Labels, iterations: int, source: str) -> None:
        """Take a labelling of the points if it is better."""
        if self.incumbent.offer(labels, iterations):
            check_bound(self.incumbent.cost, self.lower, self._bound)
            self.emitter.emit(IncumbentFound(self.emitter.seconds, self.incumbent.cost, source))

    def raise_bound(self, value: float, source: str) -> None:
        """Take a bound, as stated, if it is better."""
        check_bound(self.incumbent.cost, value, source)
        if value > self.lower or self._bound == "trivial":
            self.lower = max(self.lower, value)
            self._bound = source
            self.emitter.emit(BoundImproved(self.emitter.seconds, self.lower, source))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Tell that a stage begins and ends, however it ends, and add up its time."""
        self.emitter.emit(StageStarted(self.emitter.seconds, name))
        began = self.emitter.seconds
        try:
            yield
        finally:
            spent = self.emitter.seconds - began
            self._seconds[name] = self._seconds.get(name, 0.0) + spent
            self.emitter.emit(StageFinished(self.emitter.seconds, name))

    def finish(self, infeasibility: InfeasibilityProof | None = None) -> Result:
        """Close the record."""
        status, reason = self._verdict(infeasibility)
        problem, incumbent = self.problem, self.incumbent
        result = Result(
            status=status,
            stop_reason=reason,
            cost=incumbent.cost,
            lower_bound=np.inf if infeasibility is not None else self.lower,
            labels=incumbent.labels,
            centers=incumbent.centers,
            n_clusters=problem.n_clusters,
            n_points=problem.n_points,
            n_features=problem.n_features,
            n_must_link=len(problem.must_link),
            n_cannot_link=len(problem.cannot_link),
            nodes=0 if infeasibility is not None else self.nodes,
            iterations=incumbent.iterations,
            seconds={"total": self.emitter.seconds, **self._seconds},
            seed=self.options.seed,
            bound="infeasibility proof" if infeasibility is not None else self._bound,
            infeasibility=infeasibility,
            failure=None if self.failure is None else self.failure.message,
            proof=self.proof,
        )
        self.emitter.emit(Finished(self.emitter.seconds, result))
        return result

    def _verdict(self, infeasibility: InfeasibilityProof | None) -> tuple[Status, StopReason]:
        if infeasibility is not None:
            return Status.INFEASIBLE, StopReason.PROVEN_INFEASIBLE
        status = Status.UNKNOWN if self.incumbent.labels is None else Status.FEASIBLE
        if self.failure is not None:
            return status, StopReason.WORKER_FAILED
        if self.gap_reached():
            return Status.OPTIMAL, StopReason.GAP_REACHED
        if self.node_limit_reached:
            return status, StopReason.NODE_LIMIT
        match self.stop.cause():
            case StopCause.TIME_LIMIT:
                return status, StopReason.TIME_LIMIT
            case StopCause.INTERRUPTED:
                return status, StopReason.INTERRUPTED
            case None:
                return status, StopReason.METHODS_EXHAUSTED
