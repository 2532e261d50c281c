"""Assignment: cheapest feasible labels for fixed centres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from certikmeans.assignment.base import AbstractAssigner, Assignment, LloydRun, StepSums
from certikmeans.assignment.cannot_link import CannotLinkAssigner
from certikmeans.assignment.model import ModelAssigner
from certikmeans.assignment.params import AssignmentParams
from certikmeans.assignment.sizes import SizeAssigner, has_sizes_alone
from certikmeans.constraint_model.model import ConstraintModel, raise_unsupported
from certikmeans.problem import CannotLinks, ReducedProblem

__all__ = [
    "ASSIGNERS",
    "AbstractAssigner",
    "Assignment",
    "AssignmentParams",
    "CannotLinkAssigner",
    "LloydRun",
    "StepSums",
    "make_assigner",
]

# Assigner of every kind of constraints; called with the problem, feasible labels and settings.
ASSIGNERS: dict[str, Callable[..., AbstractAssigner]] = {
    CannotLinks.kind: CannotLinkAssigner,
    ConstraintModel.kind: ModelAssigner,
}


def make_assigner(
    problem: ReducedProblem, feasible_labels: ArrayLike, **settings: Any
) -> AbstractAssigner:
    """Make the assigner for the constraints of a problem.

    ``feasible_labels`` is any feasible labelling; ``settings`` are those of the assigner.
    """
    constraints = problem.label_constraints
    make = SizeAssigner if has_sizes_alone(constraints) else ASSIGNERS.get(constraints.kind)
    if make is None:
        raise_unsupported(constraints, "the assignment of groups to clusters")
    return make(problem, feasible_labels, **settings)
