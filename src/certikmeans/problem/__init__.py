"""What is given: points, pairs, K. Validated once, at the door."""

from certikmeans.problem.data import Problem, ReducedProblem
from certikmeans.problem.label_constraints import CannotLinkGraph, CannotLinks, LabelConstraints
from certikmeans.problem.links import Links

__all__ = [
    "CannotLinkGraph",
    "CannotLinks",
    "LabelConstraints",
    "Links",
    "Problem",
    "ReducedProblem",
]
