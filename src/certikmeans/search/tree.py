"""Which tree to grow: on pairs or on centres, and who works on it."""

from __future__ import annotations

from typing import Any

from certikmeans.bounds.base import AbstractBound, Setting
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import ReducedProblem
from certikmeans.search.centers import CenterWorker
from certikmeans.search.node import AbstractWorker
from certikmeans.search.pairs import PairWorker

# Up to this many groups, pairs; beyond, a problem of its own for every node costs too much.
PAIRS_UP_TO = 20_000

WORKERS: dict[str, type[PairWorker] | type[CenterWorker]] = {
    "pairs": PairWorker,
    "centers": CenterWorker,
}


def chosen_branching(asked: str, bound: AbstractBound[Any], problem: ReducedProblem) -> str:
    """Resolve ``auto``: pairs where the bound says which, and nodes are cheap; else centres."""
    if asked in WORKERS:
        return asked
    pairs_pay = bound.suggests_pairs and problem.n_groups <= PAIRS_UP_TO
    if bound.uses_boxes and not (pairs_pay and problem.rules.only_apart):
        return "centers"
    return "pairs"


def make_worker(
    branching: str, presolved: Presolved, bound: AbstractBound[Any], setting: Setting
) -> AbstractWorker[Any]:
    """Make who bounds and splits the nodes."""
    return WORKERS[branching](presolved, bound, setting)
