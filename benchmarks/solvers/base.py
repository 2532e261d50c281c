"""Protocol of solvers. Their results are recomputed by the harness."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import Sizes
from certikmeans import Problem, Result

TracePoint = tuple[float, float | None, float | None]
"""Seconds since the start, cost of the best labelling by then, lower bound by then."""


class SkipError(Exception):
    """Raised by a solver that finds, once it is given the problem, that it does not take it."""


@dataclass(frozen=True)
class SolverOutcome:
    """Result of a solver. Cost and feasibility are recomputed from ``labels``."""

    labels: NDArray[np.int64] | None  # None: it found none
    lower_bound: float | None  # None: it does not bound
    nodes: int | None
    seconds: float
    stop_reason: str
    trace: tuple[TracePoint, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)  # plain data, for the page
    peak_gigabytes: float | None = None  # where more is done than what was timed


class AbstractSolver(ABC):
    """One way of solving. Sent to the process that runs it, so it can be pickled."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Short and, within a study, unique: rows are found by it."""

    @property
    def options(self) -> dict[str, Any]:
        """Settings, as plain data: a row measured with others answers another question."""
        return {}

    def skip(self, sizes: Sizes, limit: float) -> str | None:
        """Why not to start at all (size, memory, missing extra); None to run.

        Sizes instead of the problem, so that a row can be skipped before a large one is made.
        """
        return None

    def warm_up(self) -> None:  # noqa: B027 - some have nothing to prepare
        """Load and compile before the time is measured."""

    def seconds_needed(self, limit: float) -> float:
        """Seconds that a run may take in all, before it counts as one that ignores its limit."""
        return limit

    @abstractmethod
    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Solve within ``limit`` seconds."""


def outcome_from_result(result: Result, **more: Any) -> SolverOutcome:
    """What `solve` has returned, and whatever else there is to say."""
    return SolverOutcome(
        labels=result.labels,
        lower_bound=finite(result.lower_bound),
        nodes=result.nodes,
        seconds=result.seconds["total"],
        stop_reason=str(result.stop_reason),
        **more,
    )


def finite(value: float | None) -> float | None:
    """The value, or None for what a results file cannot hold.

    >>> finite(1.5), finite(math.inf), finite(None)
    (1.5, None, None)
    """
    return value if value is not None and math.isfinite(value) else None


def tiny_problem(must: bool = True, cannot: bool = True) -> Problem:
    """A few points to warm up with; pairs with a cycle, as solvers compile other code for it."""
    points = np.random.default_rng(0).normal(size=(30, 2))
    apart = [(0, 1), (1, 2), (2, 0), (2, 3), (8, 9)]
    return Problem.from_data(
        points,
        3,
        must_link=[(4, 5), (6, 7)] if must else None,
        cannot_link=apart if cannot else None,
    )
