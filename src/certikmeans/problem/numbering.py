"""Whole numbers: which there are, and names by first appearance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.problem.tables import row_blocks

FEW = 64  # up to here, numbers are looked for one by one, and nothing as long as the labels is made


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
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


def number_by_appearance(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rename labels in the order in which they first occur.

    >>> number_by_appearance(np.array([2, 2, 0, 1]))
    array([0, 0, 1, 2])
    """
    n = len(labels)
    if n == 0:
        return labels.astype(np.int64)
    if labels.min() >= 0 and labels.max() < FEW:
        return _rank_of_few(labels)[labels]
    if labels[0] == 0 and labels.min() == 0:
        newest = np.maximum.accumulate(labels)
        if (newest[1:] - newest[:-1] <= 1).all():
            return labels.astype(np.int64)  # they are numbered like that already
    low, high = int(labels.min()), int(labels.max())
    if high - low >= 4 * n:  # few of many possible numbers
        labels, low = np.unique(labels, return_inverse=True)[1], 0
        high = int(labels.max())
    first = np.full(high - low + 1, n, dtype=np.int64)
    first[labels[::-1] - low] = np.arange(n - 1, -1, -1)  # of equal indices the last one counts
    used = np.flatnonzero(first < n)
    rank = np.empty(len(first), dtype=np.int64)
    rank[used[np.argsort(first[used])]] = np.arange(len(used))
    return rank[labels - low]


def _rank_of_few(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """New number of every number below `FEW`."""
    rank = np.full(FEW, -1, dtype=np.int64)
    count = 0
    for rows in row_blocks(labels):
        block = labels[rows]
        new = np.flatnonzero((np.bincount(block, minlength=FEW) > 0) & (rank < 0))
        for value in sorted(new.tolist(), key=lambda value: int(np.argmax(block == value))):
            rank[value] = count
            count += 1
    return rank
