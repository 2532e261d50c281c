"""Exact baselines (SCIP, SDP relaxation) and their gap as a function of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import ClassVar, final

from benchmarks.datasets.base import Sizes
from benchmarks.solvers.base import AbstractSolver, SolverOutcome, TracePoint, finite, tiny_problem
from certikmeans import Problem

TIME_FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
MAX_CURVE_POINTS = 300  # points; beyond, one run is dear enough

SingleRun = Callable[[Problem, float], SolverOutcome]


def total_curve_seconds(limit: float) -> float:
    """What all runs may take together."""
    return limit * (1.0 + sum(TIME_FRACTIONS))


def run_with_curve(once: SingleRun, problem: Problem, limit: float) -> SolverOutcome:
    """One run, and for small problems shorter ones whose ends become points of its trace.

    The solvers are deterministic: a shorter run ends about where the longer one was by then.
    """
    answer = once(problem, limit)
    if problem.n_points > MAX_CURVE_POINTS:
        return answer
    points: list[TracePoint] = list(answer.trace)
    for share in TIME_FRACTIONS:
        points += once(problem, share * min(limit, answer.seconds)).trace
    points = [point for point in points if point[0] <= answer.seconds]
    return replace(answer, trace=tuple(sorted(points, key=lambda point: point[0])))


# The paper's cone program as a whole by SCIP, the open stand-in for CPLEX.

SCIP_MAX_POINTS = 2_500


@final
class ScipSolver(AbstractSolver):
    """Equation (2). Its bound is SCIP's, in floating point within its tolerances."""

    name: ClassVar[str] = "scip"

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Where even stating the program takes the time there is."""
        if find_spec("pyscipopt") is None:
            return "PySCIPOpt is not installed (pip install 'certikmeans[scip]')"
        if sizes.n_points > SCIP_MAX_POINTS:
            return f"more than {SCIP_MAX_POINTS:,} points"
        return None

    def warm_up(self) -> None:
        """Load SCIP."""
        self._once(Problem.from_data([[0.0], [1.0], [5.0]], 2), 5.0)

    def seconds_needed(self, limit: float) -> float:
        """The run, and shorter ones for the curve of gap against time."""
        return total_curve_seconds(limit)

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Solve. SCIP's own seed stays as it is."""
        return run_with_curve(self._once, problem, limit)

    def _once(self, problem: Problem, limit: float) -> SolverOutcome:
        from certikmeans.baselines import MISOCP

        model = MISOCP(problem.n_clusters, time_limit=limit)
        began = time.perf_counter()
        model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
        seconds = time.perf_counter() - began
        bound = finite(float(model.lower_bound_))
        return SolverOutcome(
            labels=None if finite(model.inertia_) is None else model.labels_,
            lower_bound=bound,
            nodes=model.nodes_,
            seconds=seconds,
            stop_reason="optimal" if model.status_ == "optimal" else "time_limit",
            trace=((seconds, finite(model.inertia_), bound),),
        )


# PC-SOS-SDP's relaxation at the root: the Peng-Wei SDP with pairs and cuts.

SDP_MAX_GROUPS = 300


@final
class SdpSolver(AbstractSolver):
    """Relaxation, safe dual bound and rounding; no branching, so one node."""

    name: ClassVar[str] = "sdp"

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """The matrix has a row and a column per group, and is taken apart in every iteration."""
        if sizes.n_groups > SDP_MAX_GROUPS:
            return f"more than {SDP_MAX_GROUPS} groups"
        return None

    def warm_up(self) -> None:
        """Compile."""
        self._once(tiny_problem(), 10.0)

    def seconds_needed(self, limit: float) -> float:
        """The run, and shorter ones for the curve of gap against time."""
        return total_curve_seconds(limit)

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Solve. The method has no seed."""
        return run_with_curve(self._once, problem, limit)

    def _once(self, problem: Problem, limit: float) -> SolverOutcome:
        from certikmeans.baselines import PengWeiSDP

        model = PengWeiSDP(problem.n_clusters, time_limit=limit)
        began = time.perf_counter()
        model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
        seconds = time.perf_counter() - began
        bound = finite(float(model.lower_bound_))
        late = seconds >= limit and model.status_ != "optimal"
        return SolverOutcome(
            labels=None if finite(model.inertia_) is None else model.labels_,
            lower_bound=bound,
            nodes=1,
            seconds=seconds,
            stop_reason="time_limit" if late else str(model.status_),
            trace=((seconds, finite(model.inertia_), bound),),
            details={"cuts": int(model.n_cuts_), "iterations": int(model.n_iter_)},
        )
