"""Problem data: points, pairs and K, validated once."""

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
