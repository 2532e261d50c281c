"""The paper's cone program as a whole by SCIP, the open stand-in for CPLEX."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import ClassVar, final

from benchmarks.datasets.base import Sizes
from benchmarks.solvers.base import AbstractSolver, Answer, finite
from benchmarks.solvers.curve import seconds_with_curve, with_curve
from certikmeans import Problem

LARGEST = 2_500


@final
class ScipSolver(AbstractSolver):
    """Equation (2). Its bound is SCIP's, in floating point within its tolerances."""

    name: ClassVar[str] = "scip"

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Where even stating the program takes the time there is."""
        if find_spec("pyscipopt") is None:
            return "PySCIPOpt is not installed (pip install 'certikmeans[scip]')"
        if sizes.n_points > LARGEST:
            return f"more than {LARGEST:,} points"
        return None

    def warm_up(self) -> None:
        """Load SCIP."""
        self._once(Problem.from_data([[0.0], [1.0], [5.0]], 2), 5.0)

    def seconds_needed(self, limit: float) -> float:
        """The run, and shorter ones for the curve of gap against time."""
        return seconds_with_curve(limit)

    def run(self, problem: Problem, limit: float, seed: int) -> Answer:
        """Solve. SCIP's own seed stays as it is."""
        return with_curve(self._once, problem, limit)

    def _once(self, problem: Problem, limit: float) -> Answer:
        from certikmeans.baselines import MISOCP

        model = MISOCP(problem.n_clusters, time_limit=limit)
        began = time.perf_counter()
        model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
        seconds = time.perf_counter() - began
        bound = finite(float(model.lower_bound_))
        return Answer(
            labels=None if finite(model.inertia_) is None else model.labels_,
            lower_bound=bound,
            nodes=model.nodes_,
            seconds=seconds,
            stop_reason="optimal" if model.status_ == "optimal" else "time_limit",
            trace=((seconds, finite(model.inertia_), bound),),
        )
