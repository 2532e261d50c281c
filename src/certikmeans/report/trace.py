"""Bound and incumbent over time, collected while the solver runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from certikmeans.events import BoundImproved, Event, Finished, IncumbentFound, PresolveDone


@final
@dataclass(frozen=True, slots=True)
class TracePoint:
    """Cost and bound known ``seconds`` after the start."""

    seconds: float
    cost: float  # infinite while no labelling is known
    lower_bound: float  # 0 while no bound is known


@final
class Trace:
    """Listener that records improvements of incumbent and bound.

    Examples
    --------
    >>> trace = Trace()
    >>> trace(IncumbentFound(0.5, 12.0, "lloyd"))
    >>> trace(BoundImproved(0.9, 11.0, "sample"))
    >>> [(p.seconds, p.cost, p.lower_bound) for p in trace.points]
    [(0.5, 12.0, 0.0), (0.9, 12.0, 11.0)]
    """

    def __init__(self) -> None:
        self.points: list[TracePoint] = []
        self.presolve: PresolveDone | None = None

    def __call__(self, event: Event) -> None:
        """Record ``event``."""
        cost = self.points[-1].cost if self.points else math.inf
        lower_bound = self.points[-1].lower_bound if self.points else 0.0
        match event:
            case PresolveDone():
                self.presolve = event
            case IncumbentFound():
                self.points.append(TracePoint(event.seconds, event.cost, lower_bound))
            case BoundImproved():
                self.points.append(TracePoint(event.seconds, cost, event.lower_bound))
            case Finished():
                result = event.result
                self.points.append(TracePoint(event.seconds, result.cost, result.lower_bound))
            case _:
                pass
