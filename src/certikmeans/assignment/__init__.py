"""The cheapest admissible labels for fixed centres."""

from certikmeans.assignment.assigner import Assigner, assigner_for
from certikmeans.assignment.types import Assignment, LloydRun, StepSums

__all__ = ["Assigner", "Assignment", "LloydRun", "StepSums", "assigner_for"]
