"""The cheapest admissible labels for fixed centres."""

from certikmeans.assignment.base import AbstractAssigner, Assignment, LloydRun, StepSums
from certikmeans.assignment.cannot_link import CannotLinkAssigner, make_assigner

__all__ = [
    "AbstractAssigner",
    "Assignment",
    "CannotLinkAssigner",
    "LloydRun",
    "StepSums",
    "make_assigner",
]
