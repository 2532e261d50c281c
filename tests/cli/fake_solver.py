"""Run the command line with a fake solver whose behaviour is the first argument.

Started as a process by tests of the command line alone: the true solver takes seconds to import,
and cannot be made to fail.
"""

from __future__ import annotations

import sys
import time
import types
from typing import Any

import numpy as np

from certikmeans.cli import main
from certikmeans.events import BoundImproved, Finished, IncumbentFound, StageStarted
from certikmeans.problem import Problem
from certikmeans.result import Result
from certikmeans.status import StopReason
from certikmeans.stop import StopSignal
from tests.report.examples import make_result


def quick(problem: Problem, callbacks: Any, stop: StopSignal) -> Result:
    """Return at once."""
    result = make_result(problem, np.zeros(problem.n_points, dtype=np.int64))
    for event in (
        StageStarted(0.1, "bounds"),
        BoundImproved(0.2, result.lower_bound, "sample"),
        StageStarted(0.2, "heuristics"),
        IncumbentFound(0.3, result.cost, "lloyd"),
        Finished(0.4, result),
    ):
        for listener in callbacks:
            listener(event)
    return result


def patient(problem: Problem, callbacks: Any, stop: StopSignal) -> Result:
    """Return after an interrupt."""
    print("solving", file=sys.stderr, flush=True)
    while stop.reason() is None:
        time.sleep(0.01)
    labels = np.zeros(problem.n_points, dtype=np.int64)
    return make_result(problem, labels, stop_reason=StopReason(stop.reason()))


def stubborn(problem: Problem, callbacks: Any, stop: StopSignal) -> Result:
    """Never return."""
    print("solving", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.01)


def broken(problem: Problem, callbacks: Any, stop: StopSignal) -> Result:
    """Raise an unexpected error."""
    raise ZeroDivisionError("division by zero")


if __name__ == "__main__":
    behave = {"quick": quick, "patient": patient, "stubborn": stubborn, "broken": broken}[
        sys.argv.pop(1)
    ]

    def solve(problem: Problem, *_: Any, callbacks: Any, stop: StopSignal, **__: Any) -> Result:
        return behave(problem, callbacks, stop)

    module = types.ModuleType("certikmeans.solver.run")
    module.solve = solve  # type: ignore[attr-defined]
    sys.modules["certikmeans.solver.run"] = module
    main()
