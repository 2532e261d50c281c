"""Which assigner answers for which rules. A new kind of rules is a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from certikmeans.assignment.assigner import Assigner
from certikmeans.assignment.base import AbstractAssigner
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.rules import refuse

# By the kind of rules: called with the problem, a witness and ``hard_seconds``.
ASSIGNERS: dict[str, Callable[..., AbstractAssigner]] = {CannotLinks.kind: Assigner}


def assigner_for(problem: ReducedProblem, witness: ArrayLike, **settings: Any) -> AbstractAssigner:
    """Return what answers "the cheapest admissible labels" for the rules of a problem.

    ``witness`` is any admissible labelling; ``settings`` are those of the assigner.
    """
    make = ASSIGNERS.get(problem.rules.kind)
    if make is None:
        refuse(problem.rules, "the assignment of groups to clusters")
    return make(problem, witness, **settings)
