"""Gap against time for solvers that tell only how they ended: run them with shorter limits too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.solvers.base import Answer, TracePoint
from certikmeans import Problem

SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
LARGEST = 300  # points; beyond, one run is dear enough

Once = Callable[[Problem, float], Answer]


def seconds_with_curve(limit: float) -> float:
    """What all runs may take together."""
    return limit * (1.0 + sum(SHARES))


def with_curve(once: Once, problem: Problem, limit: float) -> Answer:
    """One run, and for small problems shorter ones whose ends become points of its trace.

    The solvers are deterministic: a shorter run ends about where the longer one was by then.
    """
    answer = once(problem, limit)
    if problem.n_points > LARGEST:
        return answer
    points: list[TracePoint] = list(answer.trace)
    for share in SHARES:
        points += once(problem, share * min(limit, answer.seconds)).trace
    points = [point for point in points if point[0] <= answer.seconds]
    return replace(answer, trace=tuple(sorted(points, key=lambda point: point[0])))
