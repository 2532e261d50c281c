"""Primal heuristics of a node, and its proof in the numbering of certificates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.assignment import AbstractAssigner, LloydRun
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.proof import LeafProof
from certikmeans.stop import StopSignal

MAX_LLOYD_STEPS = 30
COST_TOLERANCE = 1e-6  # much larger than rounding errors of costs


def certificate_leaf(presolved: PresolvedProblem, leaf: LeafProof, keep_proof: bool) -> LeafProof:
    """Return the leaf in the numbering of certificates: groups by their first points.

    Evidence takes memory: it is dropped where no proof is stored.
    """
    if not keep_proof or leaf.evidence is None:
        return LeafProof(leaf.kind)
    return LeafProof(
        leaf.kind, leaf.evidence.renumbered(np.argsort(presolved.group_representatives))
    )


def round_centers(
    presolved: PresolvedProblem,
    assigner: AbstractAssigner,
    centers: Iterable[Floats],
    stop: StopSignal,
    incumbent_cost: float = np.inf,
) -> tuple[Ints, ...]:
    """Assign groups to centers exactly, then run Lloyd (the paper's upper bound made exact)."""
    runs = []
    for initial in centers:
        if stop.reason() is not None:
            break
        labels = np.full(presolved.reduced.n_groups, -1, dtype=np.int64)
        runs.append(assigner.lloyd(initial, labels, MAX_LLOYD_STEPS, stop=stop))
    return improving_labels(presolved, runs, incumbent_cost)


def improving_labels(
    presolved: PresolvedProblem, runs: Iterable[LloydRun], incumbent_cost: float
) -> tuple[Ints, ...]:
    """Return labels of the original points, of runs that may cost less than ``incumbent_cost``.

    Others are not sent back. The caller computes the cost of labels.
    """
    cost_limit = incumbent_cost * (1.0 + COST_TOLERANCE) - presolved.reduced.offset
    return tuple(presolved.postsolve_labels(run.labels) for run in runs if run.cost <= cost_limit)
