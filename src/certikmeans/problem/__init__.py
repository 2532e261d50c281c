"""What is given: points, pairs, K. Validated once, at the door."""

from certikmeans.problem.data import Problem, ReducedProblem
from certikmeans.problem.graph import ApartGraph
from certikmeans.problem.links import Links
from certikmeans.problem.rules import AbstractRules, CannotLinks

__all__ = ["AbstractRules", "ApartGraph", "CannotLinks", "Links", "Problem", "ReducedProblem"]
