"""What workers of both trees do beside bounding: labellings from centres, leaves for proofs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner, LloydRun
from certikmeans.presolve.pipeline import Presolved
from certikmeans.proof import Leaf
from certikmeans.stop import StopSignal

LLOYD_STEPS = 30
ABOUT = 1e-6  # far more than costs are off by rounding


def stated_leaf(presolved: Presolved, leaf: Leaf, keep_proof: bool) -> Leaf:
    """The leaf as a certificate states it: groups in the order of their first points.

    Evidence takes room: it is dropped where no proof is kept.
    """
    if not keep_proof or leaf.evidence is None:
        return Leaf(leaf.kind)
    return Leaf(leaf.kind, leaf.evidence.renumbered(np.argsort(presolved.first_points)))


def labellings(
    presolved: Presolved,
    assigner: AbstractAssigner,
    centers: Iterable[NDArray[np.float64]],
    stop: StopSignal,
    known: float = np.inf,
) -> tuple[NDArray[np.int64], ...]:
    """The paper's upper bound made exact: cheapest proper labels, then Lloyd from there."""
    runs = []
    for places in centers:
        if stop.cause() is not None:
            break
        labels = np.full(presolved.reduced.n_groups, -1, dtype=np.int64)
        runs.append(assigner.lloyd(places, labels, LLOYD_STEPS, stop=stop))
    return useful(presolved, runs, known)


def useful(
    presolved: Presolved, runs: Iterable[LloydRun], known: float
) -> tuple[NDArray[np.int64], ...]:
    """Labels of the original points, of those that may cost less than ``known``, as stated.

    Nobody has any use for the others: they need not travel. What labels cost is computed elsewhere.
    """
    most = known * (1.0 + ABOUT) - presolved.reduced.offset
    return tuple(presolved.restore_labels(run.labels) for run in runs if run.cost <= most)
