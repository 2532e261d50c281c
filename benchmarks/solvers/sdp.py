"""PC-SOS-SDP's relaxation at the root: the Peng-Wei SDP with pairs and cuts."""

from __future__ import annotations

import time
from typing import ClassVar, final

from benchmarks.datasets.base import Sizes
from benchmarks.solvers.base import AbstractSolver, Answer, finite, tiny_problem
from benchmarks.solvers.curve import seconds_with_curve, with_curve
from certikmeans import Problem

LARGEST = 300


@final
class SdpSolver(AbstractSolver):
    """Relaxation, safe dual bound and rounding; no branching, so one node."""

    name: ClassVar[str] = "sdp"

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """The matrix has a row and a column per group, and is taken apart in every iteration."""
        if sizes.n_groups > LARGEST:
            return f"more than {LARGEST} groups"
        return None

    def warm_up(self) -> None:
        """Compile."""
        self._once(tiny_problem(), 10.0)

    def seconds_needed(self, limit: float) -> float:
        """The run, and shorter ones for the curve of gap against time."""
        return seconds_with_curve(limit)

    def run(self, problem: Problem, limit: float, seed: int) -> Answer:
        """Solve. The method has no seed."""
        return with_curve(self._once, problem, limit)

    def _once(self, problem: Problem, limit: float) -> Answer:
        from certikmeans.baselines import PengWeiSDP

        model = PengWeiSDP(problem.n_clusters, time_limit=limit)
        began = time.perf_counter()
        model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
        seconds = time.perf_counter() - began
        bound = finite(float(model.lower_bound_))
        late = seconds >= limit and model.status_ != "optimal"
        return Answer(
            labels=None if finite(model.inertia_) is None else model.labels_,
            lower_bound=bound,
            nodes=1,
            seconds=seconds,
            stop_reason="time_limit" if late else str(model.status_),
            trace=((seconds, finite(model.inertia_), bound),),
            details={"cuts": int(model.n_cuts_), "iterations": int(model.n_iter_)},
        )
