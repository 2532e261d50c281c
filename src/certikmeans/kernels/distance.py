"""Squared distances: differences, squared and summed axis by axis. Compiled.

Arrays come whole, with the number of a row: a view per call would cost more than the arithmetic.
`lloyd.nearest` has the version for many points at once, which vectorises.
"""

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def squared_distance(
    points,  # IN  (n, d) float64
    i,  # IN  row of ``points``
    others,  # IN  (m, d) float64
    k,  # IN  row of ``others``
):
    """Squared distance between two rows."""
    total = 0.0
    for j in range(points.shape[1]):
        away = points[i, j] - others[k, j]
        total += away * away
    return total


@njit(cache=True, nogil=True)
def squared_distance_to(
    points,  # IN  (n, d) float64
    i,  # IN  row of ``points``
    place,  # IN  (d,) float64
):
    """Squared distance from a row to one place."""
    total = 0.0
    for j in range(place.size):
        away = points[i, j] - place[j]
        total += away * away
    return total
