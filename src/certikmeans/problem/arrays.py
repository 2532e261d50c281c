"""Array helpers: row blocks, exact sums, canonical labels, squared distances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints

# Between this and its inverse, weighted squared distances and even their squares stay normal
# numbers, which is what the rounding analyses of presolve and bounds assume.
MAX_COORDINATE = 1e60
# Approximate number of entries in a block.
BLOCK = 1 << 18
# The same where every entry is used many times: several blocks fit into the cache.
SMALL_BLOCK = 1 << 14
# Up to this many columns are reduced one by one: numpy reduces short rows slowly.
MAX_COLUMNWISE = 16


def iter_row_blocks(table: NDArray[Any], numbers: int | None = None) -> Iterator[slice]:
    """Slices of about ``numbers`` entries each that cover the rows.

    >>> list(iter_row_blocks(np.zeros((3, 2))))
    [slice(0, 3, None)]
    """
    n_rows = len(table)
    step = max(1, (numbers or BLOCK) // max(1, table.size // max(1, n_rows)))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def exact_sum(values: Floats) -> float:
    """Sum, rounded once; of several blocks, up to ``(n_blocks EPS)^2`` of the sum of sizes more.

    Blocks are added entry by entry, with error-free transformations (Knuth).

    >>> exact_sum(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    if len(values) <= BLOCK:
        return math.fsum(values.tolist())
    total, compensation = np.zeros(BLOCK), np.zeros(BLOCK)
    for rows in iter_row_blocks(values):
        block = values[rows]
        block_total, block_compensation = total[: len(block)], compensation[: len(block)]
        new_total = block_total + block
        added = new_total - block_total
        block_compensation += (block_total - (new_total - added)) + (block - added)
        block_total[:] = new_total
    return math.fsum([*total.tolist(), *compensation.tolist()])


def column_ranges(
    table: Floats,
) -> tuple[Floats, Floats]:
    """Smallest and largest number of every column; NaN where there is one.

    >>> column_ranges(np.array([[1.0, 5.0], [3.0, 4.0]]))
    (array([1., 4.]), array([3., 5.]))
    """
    if table.shape[1] > MAX_COLUMNWISE:
        return table.min(axis=0), table.max(axis=0)
    low = np.array([column.min() for column in table.T])
    return low, np.array([column.max() for column in table.T])


# Distinct integers and canonical labels.

# Below this, labels are counted block by block, without temporary arrays of their length.
MAX_SMALL_LABEL = 64


def distinct(values: Ints) -> Ints:
    """Return every value once, in order.

    By sorting: from version 2.3 on, ``np.unique`` hashes whole numbers, which takes twenty times as
    long where millions of them are different.

    >>> distinct(np.array([5, 2, 5]))
    array([2, 5])
    """
    ordered = np.sort(values, axis=None)
    if len(ordered) == 0:
        return ordered
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return np.compress(first, ordered)


def canonical_labels(labels: Ints) -> Ints:
    """Rename labels in the order in which they first occur.

    >>> canonical_labels(np.array([2, 2, 0, 1]))
    array([0, 0, 1, 2])
    """
    n = len(labels)
    if n == 0:
        return labels.astype(np.int64)
    if labels.min() >= 0 and labels.max() < MAX_SMALL_LABEL:
        return _rank_small_labels(labels)[labels]
    if labels[0] == 0 and labels.min() == 0:
        newest = np.maximum.accumulate(labels)
        if (newest[1:] - newest[:-1] <= 1).all():
            return labels.astype(np.int64)  # already canonical
    low, high = int(labels.min()), int(labels.max())
    if high - low >= 4 * n:  # sparse labels
        labels, low = np.unique(labels, return_inverse=True)[1], 0
        high = int(labels.max())
    first = np.full(high - low + 1, n, dtype=np.int64)
    first[labels[::-1] - low] = np.arange(n - 1, -1, -1)  # the last assignment counts
    used = np.flatnonzero(first < n)
    rank = np.empty(len(first), dtype=np.int64)
    rank[used[np.argsort(first[used])]] = np.arange(len(used))
    return rank[labels - low]


def _rank_small_labels(labels: Ints) -> Ints:
    """Canonical label of every label below `MAX_SMALL_LABEL`."""
    rank = np.full(MAX_SMALL_LABEL, -1, dtype=np.int64)
    count = 0
    for rows in iter_row_blocks(labels):
        block = labels[rows]
        new = np.flatnonzero((np.bincount(block, minlength=MAX_SMALL_LABEL) > 0) & (rank < 0))
        for value in sorted(new.tolist(), key=lambda value: int(np.argmax(block == value))):
            rank[value] = count
            count += 1
    return rank


# Squared distances without cancellation, in plain numpy: loads without the compiler.

# Rows times columns of a block of differences: small enough to stay in cache.
_BLOCK_CELLS = 1 << 16


def squared_distances(points: Floats, centers: Floats) -> Floats:
    """From differences: the expanded square cancels badly for data far from the origin.

    Each entry depends on its own row and centre alone, so predictions of a sample do not depend
    on other samples.
    """
    squared = np.empty((len(points), len(centers)))
    height = max(1, _BLOCK_CELLS // points.shape[1])
    for start in range(0, len(points), height):
        block = points[start : start + height]
        for k, center in enumerate(centers):
            diff = block - center
            squared[start : start + height, k] = np.einsum("ij,ij->i", diff, diff)
    return squared
