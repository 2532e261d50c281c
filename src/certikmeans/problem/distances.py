"""Squared distances that do not cancel. Plain numpy: loads without the compiler."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rows times columns of a block of differences: small enough to stay in cache.
_BLOCK_CELLS = 1 << 16


def squared_distances(
    points: NDArray[np.float64], centers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """From differences: the expanded square cancels badly for data far from the origin.

    Each entry depends on its own row and centre alone, so predictions do not change with the
    company a sample is in.
    """
    squared = np.empty((len(points), len(centers)))
    height = max(1, _BLOCK_CELLS // points.shape[1])
    for start in range(0, len(points), height):
        block = points[start : start + height]
        for k, center in enumerate(centers):
            away = block - center
            squared[start : start + height, k] = np.einsum("ij,ij->i", away, away)
    return squared
