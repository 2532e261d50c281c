"""Ours, with one of its bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, final

from benchmarks.solvers.base import (
    AbstractSolver,
    Answer,
    Sizes,
    TracePoint,
    finite,
    tiny_problem,
)
from certikmeans import Problem, solve
from certikmeans.events import BoundImproved, Event, IncumbentFound, TreeProgress

GAP = 1e-3
TRACE_POINTS = 300


@final
class Recorder:
    """Listens: cost and bound against time, and both as they were before the first branching."""

    def __init__(self) -> None:
        self.points: list[TracePoint] = []
        self.root: TracePoint | None = None
        self._cost: float | None = None
        self._bound: float | None = None

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, IncumbentFound):
            self._cost = finite(event.cost)
        elif isinstance(event, BoundImproved):
            self._bound = finite(event.lower_bound)
        elif isinstance(event, TreeProgress):
            # The tree reports once before its first round: that is the root.
            if self.root is None:
                self.root = (event.seconds, self._cost, self._bound)
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


class SdcGbb(AbstractSolver):
    """`certikmeans.solve` to a gap of 0.1 %, on all cores."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Bound and branching."""

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Never: it returns what it has when time is up."""
        return None

    def warm_up(self) -> None:
        """Compile for every kind of pairs, tree included."""
        for must, cannot in ((True, False), (False, True), (True, True)):
            problem = tiny_problem(must, cannot)
            solve(problem, gap=0.0, time_limit=20, node_limit=8, **self.options)

    def run(self, problem: Problem, limit: float, seed: int) -> Answer:
        """Solve, listening."""
        recorder = Recorder()
        result = solve(
            problem, gap=GAP, time_limit=limit, seed=seed, callbacks=[recorder], **self.options
        )
        end = (result.seconds["total"], finite(result.cost), finite(result.lower_bound))
        root = recorder.root or end
        return Answer(
            labels=result.labels,
            lower_bound=finite(result.lower_bound),
            nodes=result.nodes,
            seconds=result.seconds["total"],
            stop_reason=str(result.stop_reason),
            trace=(*recorder.thinned(), end),
            details={
                "bound": result.bound,
                "stages": result.seconds,
                "root": dict(zip(("seconds", "cost", "lower_bound"), root, strict=True)),
                "claimed": {"cost": finite(result.cost), "gap": finite(result.gap)},
            },
        )


@final
class ClusterSolver(SdcGbb):
    """With our own bound, `cluster`; unlike the defaults, never with another one."""

    name: ClassVar[str] = "sdc-gbb/cluster"

    @property
    def options(self) -> dict[str, Any]:
        """The bound that ``auto`` begins with, and the branching that ``auto`` chooses."""
        return {"bound": "cluster"}


@final
class GroupedSolver(SdcGbb):
    """With the paper's grouping-based Lagrangian bound and its branching."""

    name: ClassVar[str] = "sdc-gbb/grouped"

    @property
    def options(self) -> dict[str, Any]:
        """The paper's method."""
        return {"bound": "grouped", "branching": "centers"}


@final
class SampleSolver(SdcGbb):
    """With the sample bound alone."""

    name: ClassVar[str] = "sdc-gbb/sample"

    @property
    def options(self) -> dict[str, Any]:
        """The weakest bound that converges."""
        return {"bound": "sample", "branching": "centers"}
