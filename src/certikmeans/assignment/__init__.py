"""The cheapest admissible labels for fixed centres."""

from certikmeans.assignment.assigner import Assigner
from certikmeans.assignment.base import AbstractAssigner
from certikmeans.assignment.choice import assigner_for
from certikmeans.assignment.types import Assignment, LloydRun, StepSums

__all__ = ["AbstractAssigner", "Assigner", "Assignment", "LloydRun", "StepSums", "assigner_for"]
