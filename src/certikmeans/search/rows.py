"""From the order of presolve to the order of the original rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.pipeline import Presolved
from certikmeans.proof import Leaf


def groups_by_first_row(row_of_point: NDArray[np.int64]) -> NDArray[np.int64]:
    """Reduced rows in the order of the smallest original row of each.

    >>> groups_by_first_row(np.array([2, 0, 2, 1]))
    array([2, 0, 1])
    """
    rows, first = np.unique(row_of_point, return_index=True)
    order: NDArray[np.int64] = rows[np.argsort(first)]
    return order


def leaf_of(presolved: Presolved, evidence: dict[str, Any], keep_proof: bool) -> Leaf:
    """What proves a bound, with multipliers only where they are wanted."""
    bound = evidence["bound"]
    if not keep_proof or bound not in ("cluster", "sdp"):
        return Leaf(bound)
    order = groups_by_first_row(presolved.row_of_point)
    if bound == "cluster":
        return Leaf(bound, evidence["multipliers"][order])
    from certikmeans.bounds.sdp.safe import joined_multipliers

    renumbered = joined_multipliers(evidence["matrix"], np.argsort(order), len(order))
    return Leaf(bound, matrix=renumbered)
