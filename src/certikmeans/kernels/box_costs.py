"""Costs of points at the nearest or farthest point of a box, rounded to the safe side."""

from certikmeans._jit.dispatcher import njit
from certikmeans.rounding import EPS


@njit(cache=True, nogil=True)
def box_costs(
    points,  # IN   (n, d) float64
    weights,  # IN   (n,) float64
    lower,  # IN   (K, d) float64
    upper,  # IN   (K, d) float64
    farthest,  # IN   bool: farthest point of the box, rounded up; else nearest, rounded down
    costs,  # OUT  (n, K) float64
):
    """Weighted squared distance from every point to every box, rounded to the safe side.

    A difference, its square, the sum over the axes and the weight round at most ``d + 4`` times,
    each by EPS/2 in relative terms, and all terms are non-negative: in all by less than
    ``(d + 6) EPS``, with the factor itself.
    """
    n_dims = points.shape[1]
    error = (n_dims + 6) * EPS
    factor = 1.0 + error if farthest else 1.0 - error
    for s in range(points.shape[0]):
        for k in range(lower.shape[0]):
            total = 0.0
            for j in range(n_dims):
                below = lower[k, j] - points[s, j]
                above = points[s, j] - upper[k, j]
                away = max(-below, -above) if farthest else max(max(below, above), 0.0)
                total += away * away
            costs[s, k] = total * weights[s] * factor
