"""A part of the region of a search that does not count. Compiled; arrays in and out."""

import numpy as np

from certikmeans.compiling.dispatch import njit

# How far outside it is tried whether there is something, in units of its side.
A_LITTLE = 0.02


@njit(cache=True, nogil=True)
def has_hole(
    hole,  # IN   (2, d)
):
    """Whether there is one."""
    return hole[0, 0] <= hole[1, 0]


@njit(cache=True, nogil=True)
def lies_in(
    low,  # IN   (d,)
    high,  # IN   (d,)
    hole,  # IN   (2, d)
):
    """Whether a box lies in the hole."""
    inside = True
    for j in range(low.size):
        inside = inside and hole[0, j] <= low[j] and high[j] <= hole[1, j]
    return inside


@njit(cache=True, nogil=True)
def leave_hole(
    lo,  # IN   (d,): of a box
    hi,  # IN   (d,)
    hole,  # IN   (2, d)
    y,  # IN/OUT (d,): a place in the box
):
    """Move a place out of the hole, if it is in there, by the shortest way that the box has."""
    if not lies_in(y, y, hole):
        return
    axis = 0
    place = 0.0
    best = np.inf
    for j in range(y.size):
        little = A_LITTLE * (hole[1, j] - hole[0, j])
        if lo[j] < hole[0, j]:
            out = hole[0, j] - min(little, 0.5 * (hole[0, j] - lo[j]))
            if y[j] - out < best:
                best, axis, place = y[j] - out, j, out
        if hi[j] > hole[1, j]:
            out = hole[1, j] + min(little, 0.5 * (hi[j] - hole[1, j]))
            if out - y[j] < best:
                best, axis, place = out - y[j], j, out
    if best < np.inf:
        y[axis] = place
