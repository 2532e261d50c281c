"""The parts of a proof as one row of numbers, the way a certificate holds them.

The number of parts, then for every part: the number m of its groups, the number c of its cuts, m
groups, m weights, the ``m (m + 1) / 2`` multipliers of the upper triangle row by row, and four
numbers for every cut: s, t, u, which count the groups of the part (u = -1: a pair), and its
multiplier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.run import PartProof


def flat_row(
    parts: Sequence[PartProof], numbers: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the row; group g of the problem is called ``numbers[g]`` there."""
    pieces: list[NDArray[np.float64]] = [np.array([len(parts)], dtype=np.float64)]
    for part in parts:
        rows = part.rows if numbers is None else numbers[part.rows]
        given = part.multipliers
        cuts = np.column_stack([given.cuts.astype(np.float64), given.scaled(given.amounts)])
        counts = np.array([len(rows), len(cuts)], dtype=np.float64)
        pieces += [counts, rows.astype(np.float64), part.weights]
        pieces += [given.scaled(given.triangle), cuts.ravel()]
    return np.concatenate(pieces)
