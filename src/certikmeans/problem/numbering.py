"""One way of naming groups and clusters: by first appearance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def number_by_appearance(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rename labels in the order in which they first occur.

    >>> number_by_appearance(np.array([2, 2, 0, 1]))
    array([0, 0, 1, 2])
    """
    _, first, compact = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[compact]
