"""Assignment: cheapest feasible labels for fixed centres."""

from certikmeans.assignment.base import AbstractAssigner, Assignment, LloydRun, StepSums
from certikmeans.assignment.cannot_link import CannotLinkAssigner, make_assigner
from certikmeans.assignment.params import AssignmentParams

__all__ = [
    "AbstractAssigner",
    "Assignment",
    "AssignmentParams",
    "CannotLinkAssigner",
    "LloydRun",
    "StepSums",
    "make_assigner",
]
