"""Cost of a labelling, rounded up. Compiled; arrays in, numbers out."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.rounding import EPS, UNDERFLOW


@njit(cache=True, nogil=True)
def labelling_cost(
    points,  # IN   (n_points, n_features) float64
    weights,  # IN   (n_points,) float64, > 0
    labels,  # IN   (n_points,) int64
    centers,  # OUT  (n_clusters, n_features): means; an empty cluster sits on cluster labels[0]
):
    """Cost of ``labels`` with every cluster at its exact mean, rounded up.

    With ``c`` the computed mean of a cluster, ``W`` its mass and ``g = sum w_i (x_i - c)``, the
    exact cost is ``sum w_i |x_i - c|^2 - |g|^2 / W``. The second term matters only where points
    are so far from zero that their mean is not a float; it is rounded down, the first one up.
    The terms of the first are not negative: a difference errs by EPS/2 in relative terms, its
    square and weight by 4 times that, the sum over features by n_features times, and the sum
    over points, being compensated, by 2 times plus something of order n EPS^2.
    """
    n_points, n_features = points.shape
    masses = np.zeros(centers.shape[0])
    sizes = np.zeros(centers.shape[0])
    for i in range(n_points):
        k = labels[i]
        if sizes[k] == 0.0:
            for j in range(n_features):  # element by element: slices take long to compile
                centers[k, j] = points[i, j]
        masses[k] += weights[i]
        sizes[k] += 1.0
    # From the first member to the mean, so that equal points have their mean exactly; then
    # once more, because with uneven weights the first result may be far off for its cluster.
    for _ in range(2):
        shift = np.zeros(centers.shape)
        for i in range(n_points):
            k = labels[i]
            for j in range(n_features):
                shift[k, j] += weights[i] * (points[i, j] - centers[k, j])
        for k in range(centers.shape[0]):
            for j in range(n_features if masses[k] > 0.0 else 0):
                centers[k, j] += shift[k, j] / masses[k]
    for k in range(centers.shape[0]):
        if masses[k] == 0.0:
            for j in range(n_features):
                centers[k, j] = centers[labels[0], j]

    signed = np.zeros(centers.shape)
    absolute = np.zeros(centers.shape)
    total, lost, scattered = 0.0, 0.0, False
    for i in range(n_points):
        k = labels[i]
        squares = 0.0
        for j in range(n_features):
            away = points[i, j] - centers[k, j]
            squares += away * away
            scattered |= away != 0.0
            signed[k, j] += weights[i] * away
            absolute[k, j] += weights[i] * abs(away)
        term = weights[i] * squares
        # Neumaier's compensation: what the sum lost is kept beside it.
        raised = total + term
        lost += (total - raised) + term if total >= term else (term - raised) + total
        total = raised
    excess = 0.0
    for k in range(centers.shape[0]):
        for j in range(n_features if masses[k] > 0.0 else 0):
            pull = abs(signed[k, j]) - (sizes[k] + 4.0) * EPS * absolute[k, j]
            if pull > 0.0:
                excess += pull * (pull / masses[k]) * (1.0 - (sizes[k] + 8.0) * EPS)
    excess *= 1.0 - centers.size * EPS
    above = (total + lost) * (1.0 + (n_features + 10) * EPS) - excess
    return max(0.0, above) * (1.0 + 2.0 * EPS) + UNDERFLOW if scattered else 0.0
