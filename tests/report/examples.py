"""Results and traces made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from certikmeans.events import BoundImproved, Finished, IncumbentFound, PresolveDone
from certikmeans.problem import Problem
from certikmeans.report.trace import Trace
from certikmeans.result import Result
from certikmeans.status import Status, StopReason


def make_result(problem: Problem, labels: Any, **changes: Any) -> Result:
    """Return a result with the true cost of ``labels`` and a bound of 80 % of it."""
    labels = None if labels is None else np.asarray(labels, dtype=np.int64)
    cost, centers = np.inf, None
    if labels is not None:
        centers = np.array(
            [
                problem.points[labels == k if (labels == k).any() else slice(None)].mean(axis=0)
                for k in range(problem.n_clusters)
            ]
        )
        cost = float(((problem.points - centers[labels]) ** 2).sum())
    fields: dict[str, Any] = {
        "status": Status.UNKNOWN if labels is None else Status.FEASIBLE,
        "stop_reason": StopReason.METHODS_EXHAUSTED,
        "cost": cost,
        "lower_bound": 0.0 if labels is None else 0.8 * cost,
        "labels": labels,
        "centers": centers,
        "n_clusters": problem.n_clusters,
        "n_points": problem.n_points,
        "n_features": problem.n_features,
        "n_must_link": len(problem.must_link),
        "n_cannot_link": len(problem.cannot_link),
        "nodes": 1,
        "iterations": 3,
        "seconds": {"total": 2.0, "presolve": 0.1, "bounds": 0.4, "heuristics": 1.5},
        "seed": 0,
        "bound": "sample",
    }
    return Result(**{**fields, **changes})


def make_trace(result: Result) -> Trace:
    """Return the trace of a run that ended with ``result``."""
    trace = Trace()
    trace(PresolveDone(0.1, result.n_points, result.n_points, 2, 0, 0))
    trace(BoundImproved(0.5, result.lower_bound, "sample"))
    if result.labels is not None:
        trace(IncumbentFound(0.7, 1.4 * result.cost, "lloyd"))
        trace(IncumbentFound(1.2, result.cost, "population"))
    trace(Finished(2.0, result))
    return trace
