"""Choice of the branching scheme."""

from __future__ import annotations

from typing import Any

from certikmeans.bounds.base import BoundInput, LowerBound
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.problem import ReducedProblem
from certikmeans.tree.center_branching import CenterBranching
from certikmeans.tree.node import BranchingScheme
from certikmeans.tree.pair_branching import PairBranching

# Beyond this many groups, merging the problem in every node of a tree on pairs takes too long.
MAX_GROUPS_FOR_PAIRS = 20_000

BRANCHING_SCHEMES: dict[str, type[PairBranching] | type[CenterBranching]] = {
    "pairs": PairBranching,
    "centers": CenterBranching,
}


def choose_branching(requested: str, bound: LowerBound[Any], problem: ReducedProblem) -> str:
    """Resolve ``auto``: pairs if the bound has a fractional solution and nodes are cheap."""
    if requested in BRANCHING_SCHEMES:
        return requested
    pairs_preferred = bound.has_fractional_solution and problem.n_groups <= MAX_GROUPS_FOR_PAIRS
    if bound.uses_center_boxes and not (pairs_preferred and problem.label_constraints.mergeable):
        return "centers"
    return "pairs"


def make_branching_scheme(
    branching: str, presolved: PresolvedProblem, bound: LowerBound[Any], inputs: BoundInput
) -> BranchingScheme[Any]:
    """Make the branching scheme of a run."""
    return BRANCHING_SCHEMES[branching](presolved, bound, inputs)
