"""Tall tables, a block of rows at a time: temporaries are small and stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Numbers in a block, about.
BLOCK = 1 << 18
# Up to so many columns, each is looked through by itself: numpy reduces short rows slowly.
FEW_COLUMNS = 16


def row_blocks(table: NDArray[np.float64]) -> Iterator[slice]:
    """Slices that cover the rows.

    >>> list(row_blocks(np.zeros((3, 2))))
    [slice(0, 3, None)]
    """
    n_rows = len(table)
    step = max(1, BLOCK // max(1, table.size // max(1, n_rows)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def column_ranges(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest number of every column; NaN where there is one.

    >>> column_ranges(np.array([[1.0, 5.0], [3.0, 4.0]]))
    (array([1., 4.]), array([3., 5.]))
    """
    if table.shape[1] > FEW_COLUMNS:
        return table.min(axis=0), table.max(axis=0)
    low = np.array([column.min() for column in table.T])
    return low, np.array([column.max() for column in table.T])
