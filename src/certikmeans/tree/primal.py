"""Primal heuristics of a node, and its proof in the numbering of certificates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner, LloydRun
from certikmeans.presolve.pipeline import PresolvedProblem
from certikmeans.proof import LeafProof
from certikmeans.stop import StopSignal

MAX_LLOYD_STEPS = 30
COST_TOLERANCE = 1e-6  # far more than costs are off by rounding


def certificate_leaf(presolved: PresolvedProblem, leaf: LeafProof, keep_proof: bool) -> LeafProof:
    """The leaf as a certificate states it: groups in the order of their first points.

    Evidence takes room: it is dropped where no proof is kept.
    """
    if not keep_proof or leaf.evidence is None:
        return LeafProof(leaf.kind)
    return LeafProof(
        leaf.kind, leaf.evidence.renumbered(np.argsort(presolved.group_representatives))
    )


def round_centers(
    presolved: PresolvedProblem,
    assigner: AbstractAssigner,
    centers: Iterable[NDArray[np.float64]],
    stop: StopSignal,
    incumbent_cost: float = np.inf,
) -> tuple[NDArray[np.int64], ...]:
    """The paper's upper bound made exact: cheapest proper labels, then Lloyd from there."""
    runs = []
    for initial in centers:
        if stop.reason() is not None:
            break
        labels = np.full(presolved.reduced.n_groups, -1, dtype=np.int64)
        runs.append(assigner.lloyd(initial, labels, MAX_LLOYD_STEPS, stop=stop))
    return improving_labels(presolved, runs, incumbent_cost)


def improving_labels(
    presolved: PresolvedProblem, runs: Iterable[LloydRun], incumbent_cost: float
) -> tuple[NDArray[np.int64], ...]:
    """Labels of the original points, of those that may cost less than ``incumbent_cost``, as stated.

    Nobody has any use for the others: they need not travel. What labels cost is computed elsewhere.
    """
    cost_limit = incumbent_cost * (1.0 + COST_TOLERANCE) - presolved.reduced.offset
    return tuple(presolved.postsolve_labels(run.labels) for run in runs if run.cost <= cost_limit)
