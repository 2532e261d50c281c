"""Copy this file, rename the class, prove your value. CONTRIBUTING.md says what comes next."""

from __future__ import annotations

from typing import Any, ClassVar, final

from certikmeans.bounds.base import AbstractBound, BoundResult
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal


@final
class Template(AbstractBound[ReducedProblem, Subproblem]):
    """Zero: valid because a sum of squares is never negative."""

    name: ClassVar[str] = "template"

    def prepare(self, problem: ReducedProblem) -> ReducedProblem:
        """Compute once what every evaluation shares."""
        return problem

    def evaluate(
        self,
        state: ReducedProblem,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        return BoundResult(0.0, {"bound": self.name})
