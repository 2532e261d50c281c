"""Template of a bound: copy, rename the class, prove the value; see CONTRIBUTING.md."""

from __future__ import annotations

from typing import Any, ClassVar, final

from certikmeans.bounds.base import BoundContext, BoundInput, BoundResult, LowerBound
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import LeafProof


@final
class Template(LowerBound[ReducedProblem]):
    """Zero, which is valid because a sum of squares is never negative."""

    name: ClassVar[str] = "template"

    def setup(self, inputs: BoundInput) -> ReducedProblem:
        """Compute what all calls of `compute` share."""
        return inputs.problem

    def compute(
        self,
        model: ReducedProblem,
        domain: Domain,
        cutoff: float,
        ctx: BoundContext,
        warm_start: Any = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``domain``."""
        return BoundResult(0.0, LeafProof("trivial"))
