"""Cells of nearby points by median splits (a k-d tree)."""

from typing import NamedTuple

import numpy as np

from certikmeans._jit.dispatcher import njit


@njit(cache=True, nogil=True)
def _split_at_rank(values, rows, first, last, rank):
    """Reorder ``rows[first:last]`` so that those before ``rank`` have the smaller values.

    Quickselect with the median of three as pivot; equal values may end up on either side.
    """
    while last - first > 1:
        a, b, c = values[rows[first]], values[rows[(first + last) // 2]], values[rows[last - 1]]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last - 1
        while i <= j:
            while values[rows[i]] < pivot:
                i += 1
            while values[rows[j]] > pivot:
                j -= 1
            if i <= j:
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if rank <= j:
            last = j + 1
        elif rank >= i:
            first = i
        else:
            return


@njit(cache=True, nogil=True)
def _widest_axis(points, rows, first, last):
    """Axis of the longest side of the bounding box, -1 if the points coincide."""
    best, longest = -1, 0.0
    for j in range(points.shape[1]):
        low = high = points[rows[first], j]
        for i in range(first + 1, last):
            low = min(low, points[rows[i], j])
            high = max(high, points[rows[i], j])
        if high - low > longest:
            best, longest = j, high - low
    return best


@njit(cache=True, nogil=True)
def median_cells(
    points,  # IN   (n, d) float64
    rows,  # IN/OUT (m,) int64: the points to split; reordered
    max_size,  # IN   largest number of points in a cell, >= 1
    first_cell,  # IN   number of the first cell
    cells,  # OUT  (n,) int64: cell of every point in ``rows``
):
    """Split at medians of the widest axis until cells are small; returns their number."""
    stack = np.empty((128, 2), dtype=np.int64)
    stack[0] = 0, rows.size
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        first, last = stack[depth]
        axis = _widest_axis(points, rows, first, last) if last - first > max_size else -1
        if axis < 0:
            for i in range(first, last):
                cells[rows[i]] = first_cell + count
            count += 1
            continue
        half = (first + last) // 2
        _split_at_rank(points[:, axis], rows, first, last, half)
        stack[depth] = first, half
        stack[depth + 1] = half, last
        depth += 2
    return count


class KdSplits(NamedTuple):
    """A tree of median splits; a leaf is a cell."""

    axis: np.ndarray  # (m,) int64, -1 at a leaf
    at: np.ndarray  # (m,): smaller coordinates belong to the left child
    left: np.ndarray  # (m,) int64: left child, followed by the right one; at a leaf, its cell
    n_cells: int


@njit(cache=True, nogil=True)
def median_splits(
    points,  # IN   (n, d) float64
    rows,  # IN/OUT (m,) int64: the points whose medians are taken; reordered
    max_size,  # IN   largest number of them in a cell, >= 1
):
    """Splits of `median_cells`, as a tree."""
    capacity = max(1, 4 * (rows.size // max_size) + 4)
    axes, at = np.full(capacity, -1, dtype=np.int64), np.zeros(capacity)
    left = np.zeros(capacity, dtype=np.int64)
    stack = np.empty((128, 3), dtype=np.int64)
    stack[0] = 0, 0, rows.size
    depth, count, n_cells = 1, 1, 0
    while depth > 0:
        depth -= 1
        node, first, last = stack[depth]
        axis = _widest_axis(points, rows, first, last) if last - first > max_size else -1
        if axis < 0 or count + 2 > capacity:
            left[node] = n_cells
            n_cells += 1
            continue
        half = (first + last) // 2
        _split_at_rank(points[:, axis], rows, first, last, half)
        axes[node], at[node], left[node] = axis, points[rows[half], axis], count
        stack[depth] = count, first, half
        stack[depth + 1] = count + 1, half, last
        count += 2
        depth += 2
    return KdSplits(axes, at, left, n_cells)


@njit(cache=True, nogil=True)
def assign_cells(
    points,  # IN   (n, d) float64
    rows,  # IN   (m,) int64
    splits,  # IN   KdSplits
    first_cell,  # IN   number of the first cell
    cells,  # OUT  (n,) int64: cell of every point in ``rows``
):
    """Assign points to the cells of a tree; returns the number of cells."""
    for i in range(rows.size):
        node = 0
        while splits.axis[node] >= 0:
            right = points[rows[i], splits.axis[node]] >= splits.at[node]
            node = splits.left[node] + (1 if right else 0)
        cells[rows[i]] = first_cell + splits.left[node]
    return splits.n_cells
