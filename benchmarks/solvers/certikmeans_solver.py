"""`certikmeans.solve`, listened to; on demand with a certificate, written and checked."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from benchmarks.environment import peak_gigabytes
from benchmarks.solvers.base import (
    AbstractSolver,
    SkipError,
    SolverOutcome,
    TracePoint,
    finite,
    outcome_from_result,
)
from certikmeans import InputError, Problem, Result, StopSignal, solve, warm_up
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import certificate_bytes
from certikmeans.events import (
    BoundImproved,
    BoundStatistics,
    Event,
    IncumbentFound,
    TreeProgress,
)

GAP = 1e-3
TRACE_POINTS = 300
CHECKING = 4.0  # times the limit, and a minute, for a certificate to be written and checked


@final
class Recorder:
    """Listens: cost and bound against time, both before the first branching, bounds one by one."""

    def __init__(self) -> None:
        self.points: list[TracePoint] = []
        self.root: TracePoint | None = None
        self.bounds: dict[str, dict[str, float | None]] = {}
        self.statistics: dict[str, float] = {}
        self._cost: float | None = None
        self._bound: float | None = None

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, IncumbentFound):
            self._cost = finite(event.cost)
        elif isinstance(event, BoundImproved):
            self._bound = finite(event.lower_bound)
            self.bounds[event.source] = {"lower_bound": self._bound, "seconds": event.seconds}
        elif isinstance(event, TreeProgress):
            # The tree reports once before its first round: that is the root.
            if self.root is None:
                self.root = (event.seconds, self._cost, self._bound)
            return
        elif isinstance(event, BoundStatistics):
            for key, value in event.numbers.items():
                self.statistics[key] = self.statistics.get(key, 0.0) + value
            return
        else:
            return
        self.points.append((event.seconds, self._cost, self._bound))

    def thinned(self) -> tuple[TracePoint, ...]:
        """At most `TRACE_POINTS` of them, first and last included."""
        step = max(1, math.ceil(len(self.points) / TRACE_POINTS))
        kept = self.points[::step]
        if self.points and kept[-1] != self.points[-1]:
            kept.append(self.points[-1])
        return tuple(kept)


@final
@dataclass(frozen=True)
class CertikmeansSolver(AbstractSolver):
    """Ours, on all cores."""

    label: str = "certikmeans"
    gap: float = GAP
    bound: str = "auto"
    branching: str = "auto"
    certify: bool = False  # keep the proof, write the certificate, check it
    unlimited: bool = False  # without a time limit; interrupted at the limit of the row

    @property
    def name(self) -> str:
        """As given."""
        return self.label

    @property
    def options(self) -> dict[str, Any]:
        """Settings of `solve`, except limit and seed."""
        settings = {"gap": self.gap, "bound": self.bound, "branching": self.branching}
        settings |= {"certify": True} if self.certify else {}
        return settings | ({"unlimited": True} if self.unlimited else {})

    def warm_up(self) -> None:
        """Compile for every kind of pairs, tree included."""
        _warm_up_once(self.bound)

    def seconds_needed(self, limit: float) -> float:
        """The run, and the check."""
        return limit + (CHECKING * limit + 60.0 if self.certify else 0.0)

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Solve, listening; then certify."""
        recorder, stop = Recorder(), StopSignal()
        alarm = threading.Timer(limit, stop.interrupt)
        if self.unlimited:
            alarm.start()
        try:
            result = solve(
                problem,
                gap=self.gap,
                bound=self.bound,
                branching=self.branching,
                time_limit=None if self.unlimited else limit,
                seed=seed,
                keep_proof=self.certify,
                callbacks=[recorder],
                stop=stop,
            )
        except InputError as refusal:  # a bound that does not fit this problem
            raise SkipError(refusal.message) from refusal
        finally:
            alarm.cancel()
        peak = peak_gigabytes()
        end = (result.seconds["total"], finite(result.cost), finite(result.lower_bound))
        root = recorder.root or end
        details = {
            "bound": result.bound,
            "stages": result.seconds,
            "root": dict(zip(("seconds", "cost", "lower_bound"), root, strict=True)),
            "bounds": recorder.bounds,
            "statistics": recorder.statistics,
            "claimed": {"cost": finite(result.cost), "gap": finite(result.gap)},
        }
        if self.certify:
            details["certificate"] = certified(problem, result)
        return outcome_from_result(
            result,
            trace=(*recorder.thinned(), end),
            details=details,
            peak_gigabytes=peak,
        )


@cache
def _warm_up_once(bound: str) -> None:
    """Once per process, where rows share one."""
    warm_up(None if bound == "auto" else [bound])


def certified(problem: Problem, result: Result) -> dict[str, Any]:
    """Write the certificate, check it against the original rows, and return its cost."""
    began = time.perf_counter()
    try:
        content = certificate_bytes(problem, result)
    except InputError as error:
        return {"accepted": False, "reason": error.message, "size": 0, "check_seconds": 0.0}
    written = time.perf_counter()
    verdict = check_certificate(
        problem.points,
        content,
        must_link=problem.must_link,
        cannot_link=problem.cannot_link,
        weights=problem.weights,
        n_clusters=problem.n_clusters,
    )
    checked = time.perf_counter()
    counts = {key: int(verdict.details.get(key, 0)) for key in ("groups", "leaves", "boxes")}
    return {
        "accepted": verdict.accepted,
        "reason": verdict.message,
        "gap": finite(verdict.gap),
        "size": len(content),
        "write_seconds": written - began,
        "check_seconds": checked - written,
        **counts,
    }


CLUSTER = CertikmeansSolver("certikmeans/cluster", bound="cluster")
"""Our own bound; unlike the defaults, never another one."""
GROUPED = CertikmeansSolver("certikmeans/grouped", bound="grouped", branching="centers")
"""The paper's grouping-based Lagrangian bound and its branching."""
SAMPLE = CertikmeansSolver("certikmeans/sample", bound="sample", branching="centers")
"""The weakest bound that converges."""
