"""Problem data: points, pairs and K, validated once."""

from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import CannotLinks, LabelConstraints
from certikmeans.problem.data import Problem, ReducedProblem
from certikmeans.problem.links import Links

__all__ = [
    "CannotLinkGraph",
    "CannotLinks",
    "LabelConstraints",
    "Links",
    "Problem",
    "ReducedProblem",
]
