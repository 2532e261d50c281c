"""From the groups of presolve to the original rows: points, labels, leaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import Assigner
from certikmeans.presolve.pipeline import Presolved
from certikmeans.proof import Leaf
from certikmeans.stop import StopSignal

LLOYD_STEPS = 30


def first_points(row_of_point: NDArray[np.int64]) -> NDArray[np.int64]:
    """Smallest original row of every group.

    >>> first_points(np.array([2, 0, 2, 1]))
    array([1, 3, 0])
    """
    first: NDArray[np.int64] = np.unique(row_of_point, return_index=True)[1]
    return first


def leaf_of(presolved: Presolved, evidence: dict[str, Any], keep_proof: bool) -> Leaf:
    """What proves a bound, with multipliers only where they are wanted."""
    bound = evidence["bound"]
    if not keep_proof or bound not in ("cluster", "sdp"):
        return Leaf(bound)
    order = np.argsort(first_points(presolved.row_of_point))
    if bound == "cluster":
        return Leaf(bound, evidence["multipliers"][order])
    from certikmeans.bounds.sdp.safe import joined_multipliers

    renumbered = joined_multipliers(evidence["matrix"], np.argsort(order), len(order))
    return Leaf(bound, matrix=renumbered)


def labellings(
    presolved: Presolved,
    assigner: Assigner,
    centers: Iterable[NDArray[np.float64]],
    stop: StopSignal,
) -> tuple[NDArray[np.int64], ...]:
    """The paper's upper bound made exact: cheapest proper labels, then Lloyd from there."""
    found = []
    for places in centers:
        if stop.cause() is not None:
            break
        labels = np.full(presolved.reduced.n_groups, -1, dtype=np.int64)
        run = assigner.lloyd(places, labels, LLOYD_STEPS, stop=stop)
        found.append(presolved.restore_labels(run.labels))
    return tuple(found)
