"""Matrices of the clustering SDP: distances, and the entrywise half of an ADMM step."""

import numpy as np

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def shift_entries(
    spectral,  # IN   (n, n) float64: what the other half returned
    entrywise,  # IN   (n, n) float64
    dual,  # IN OUT (n, n) float64: becomes the shifted matrix, upper triangle
    cut_sum,  # IN   (n, n) float64: of the multipliers of cuts, upper triangle
    relaxation,  # IN   float64
    unclipped,  # OUT  (n, n) float64, upper triangle: shifted, cuts taken off
):
    """Over-relax, add the dual, take off the cuts."""
    n = spectral.shape[0]
    for i in range(n):
        for j in range(i, n):
            y = entrywise[i, j]
            shifted = y + relaxation * (spectral[i, j] - y) + dual[i, j]
            dual[i, j] = shifted
            unclipped[i, j] = shifted - cut_sum[i, j]


@njit(cache=True, nogil=True)
def clip_entries(
    spectral,  # IN   (n, n) float64
    unclipped,  # IN   (n, n) float64, upper triangle
    fixed,  # IN   (n, n) bool: entries that are 0
    entrywise,  # IN OUT (n, n) float64, symmetric
    dual,  # IN OUT (n, n) float64: shifted (upper triangle) on entry, symmetric on exit
    cut_sum,  # OUT  (n, n) float64, upper triangle
):
    """Clip, and return squares: both halves' difference, the change, the entries, the dual."""
    n = spectral.shape[0]
    apart = moved = size = weight = 0.0
    for i in range(n):
        for j in range(i, n):
            shifted = dual[i, j]
            raw = unclipped[i, j]
            cut_sum[i, j] = shifted - raw
            y = 0.0 if fixed[i, j] or raw < 0.0 else raw
            factor = 1.0 if i == j else 2.0
            d = spectral[i, j] - y
            c = y - entrywise[i, j]
            u = shifted - y
            apart += factor * d * d
            moved += factor * c * c
            size += factor * y * y
            weight += factor * u * u
            entrywise[i, j] = y
            dual[i, j] = u
    mirror(entrywise)
    mirror(dual)
    return np.array([apart, moved, size, weight])


@njit(cache=True, nogil=True)
def mirror(matrix):  # IN OUT (n, n) float64: the lower triangle is copied from the upper
    """Make symmetric, in blocks that fit the cache."""
    n = matrix.shape[0]
    block = 32
    for top in range(0, n, block):
        for left in range(top, n, block):
            for i in range(top, min(top + block, n)):
                for j in range(max(left, i + 1), min(left + block, n)):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True)
def all_squared_distances(
    points,  # IN   (n, d) float64
    squares,  # OUT  (n, n) float64, symmetric
):
    """From differences, so that every entry errs by (d + 2) units in the last place at most."""
    n, d = points.shape
    for i in range(n):
        squares[i, i] = 0.0
        for j in range(i + 1, n):
            # Four sums: they do not wait for each other.
            a = b = c = e = 0.0
            for k in range(0, d - 3, 4):
                p = points[i, k] - points[j, k]
                q = points[i, k + 1] - points[j, k + 1]
                r = points[i, k + 2] - points[j, k + 2]
                t = points[i, k + 3] - points[j, k + 3]
                a += p * p
                b += q * q
                c += r * r
                e += t * t
            for k in range(d - d % 4, d):
                p = points[i, k] - points[j, k]
                a += p * p
            squares[i, j] = (a + b) + (c + e)
    mirror(squares)
