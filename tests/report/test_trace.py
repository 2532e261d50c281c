"""Trace of incumbent and bound."""

from __future__ import annotations

import math

from certikmeans.events import BoundImproved, IncumbentFound, PresolveDone, StageStarted
from certikmeans.problem import Problem
from certikmeans.report.trace import Trace
from tests.report.examples import make_result, make_trace


def test_trace_points():
    trace = Trace()
    trace(StageStarted(0.0, "presolve"))
    presolve = PresolveDone(0.1, 4, 3, 2, 1, 3)
    trace(presolve)
    trace(BoundImproved(0.2, 5.0, "sample"))
    trace(IncumbentFound(0.3, 9.0, "lloyd"))
    trace(IncumbentFound(0.4, 8.0, "lloyd"))
    seen = [(point.seconds, point.cost, point.lower_bound) for point in trace.points]
    assert seen == [(0.2, math.inf, 5.0), (0.3, 9.0, 5.0), (0.4, 8.0, 5.0)]
    assert trace.presolve is presolve


def test_last_point_is_result():
    problem = Problem.from_data([[0.0], [1.0]], 1)
    result = make_result(problem, [0, 0])
    last = make_trace(result).points[-1]
    assert (last.cost, last.lower_bound) == (result.cost, result.lower_bound)
