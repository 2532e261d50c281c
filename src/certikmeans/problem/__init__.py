"""What is given: points, pairs, K. Validated once, at the door."""

from certikmeans.problem.data import Problem, ReducedProblem
from certikmeans.problem.graph import ApartGraph
from certikmeans.problem.links import Links

__all__ = ["ApartGraph", "Links", "Problem", "ReducedProblem"]
