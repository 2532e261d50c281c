"""Tall tables, a block of rows at a time: temporaries are small and stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Numbers in a block, about.
BLOCK = 1 << 18
# The same where every number is used many times: several of them fit into the cache at once.
SMALL_BLOCK = 1 << 14
# Up to so many columns, each is looked through by itself: numpy reduces short rows slowly.
FEW_COLUMNS = 16


def row_blocks(table: NDArray[Any], numbers: int | None = None) -> Iterator[slice]:
    """Slices that cover the rows, of so many numbers each, about.

    >>> list(row_blocks(np.zeros((3, 2))))
    [slice(0, 3, None)]
    """
    n_rows = len(table)
    step = max(1, (numbers or BLOCK) // max(1, table.size // max(1, n_rows)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def exact_total(values: NDArray[np.float64]) -> float:
    """Sum, rounded once; of several blocks, up to ``(n_blocks EPS)^2`` of the sum of sizes more.

    Blocks are added place by place, and what each addition loses is added up beside it (Knuth).

    >>> exact_total(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    if len(values) <= BLOCK:
        return math.fsum(values.tolist())
    total, lost = np.zeros(BLOCK), np.zeros(BLOCK)
    for rows in row_blocks(values):
        block = values[rows]
        here, missed = total[: len(block)], lost[: len(block)]
        raised = here + block
        added = raised - here
        missed += (here - (raised - added)) + (block - added)
        here[:] = raised
    return math.fsum([*total.tolist(), *lost.tolist()])


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
