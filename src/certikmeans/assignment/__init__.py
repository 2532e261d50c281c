"""The cheapest proper labels for fixed centres."""

from certikmeans.assignment.assigner import Assigner
from certikmeans.assignment.types import Assignment, LloydRun, StepSums

__all__ = ["Assigner", "Assignment", "LloydRun", "StepSums"]
