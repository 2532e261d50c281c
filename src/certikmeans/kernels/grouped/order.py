"""The order in which the samples of a group are labelled. Compiled."""

import numpy as np

from certikmeans.compiling.dispatch import njit
from certikmeans.kernels.distance import squared_distance, squared_distance_to


@njit(cache=True, nogil=True)
def order_farthest_first(
    points,  # IN   (m, d)
    order,  # OUT  (m,) int64
):
    """Each point as far as possible from those before it; the first, from the mean."""
    m, d = points.shape
    away = np.empty(m)
    mean = np.zeros(d)
    for i in range(m):
        for j in range(d):
            mean[j] += points[i, j] / m
    for i in range(m):
        away[i] = squared_distance_to(points, i, mean)
    for place in range(m):
        chosen = 0
        for i in range(1, m):
            if away[i] > away[chosen]:
                chosen = i
        order[place] = chosen
        for i in range(m):
            if away[i] < 0.0:
                continue
            apart = squared_distance(points, i, points, chosen)
            if place == 0 or apart < away[i]:
                away[i] = apart
        away[chosen] = -1.0
