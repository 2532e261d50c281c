"""Nearest centres. Columns of points are contiguous, so that the loops over points vectorise."""

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def squared_distances(
    columns,  # IN   (n_features, n) float64
    first,  # IN   first point
    center,  # IN   (n_features,) float64
    out,  # OUT  (m,) float64, for points first .. first + m - 1
):
    """Squared distances to one centre as sums of squared differences, in a fixed order.

    Each is correct to a factor ``1 + (n_features + 2) eps``: only squares are added.
    """
    n_features, m = columns.shape[0], out.size
    last = first + m
    x0, c0 = columns[0, first:last], center[0]
    j = 1
    if n_features == 2:
        x1, c1 = columns[1, first:last], center[1]
        for i in range(m):
            a, b = x0[i] - c0, x1[i] - c1
            out[i] = a * a + b * b
        return
    for i in range(m):
        a = x0[i] - c0
        out[i] = a * a
    while j + 4 <= n_features:
        x0, c0 = columns[j, first:last], center[j]
        x1, c1 = columns[j + 1, first:last], center[j + 1]
        x2, c2 = columns[j + 2, first:last], center[j + 2]
        x3, c3 = columns[j + 3, first:last], center[j + 3]
        for i in range(m):
            a, b, c, d = x0[i] - c0, x1[i] - c1, x2[i] - c2, x3[i] - c3
            out[i] += (a * a + b * b) + (c * c + d * d)
        j += 4
    while j < n_features:
        x0, c0 = columns[j, first:last], center[j]
        for i in range(m):
            a = x0[i] - c0
            out[i] += a * a
        j += 1


@njit(cache=True, nogil=True)
def nearest_centers(
    columns,  # IN   (n_features, n) float64
    first,  # IN   first point
    centers,  # IN   (n_clusters, n_features) float64
    distances,  # OUT  (m,) float64, scratch
    best,  # OUT  (m,) float64 squared distance to the nearest centre
    labels,  # OUT  (m,) int64 nearest centre, the lowest number on a tie
):
    """Nearest centre of points ``first .. first + m - 1``."""
    m = best.size
    squared_distances(columns, first, centers[0], best)
    for i in range(m):
        labels[i] = 0
    for k in range(1, centers.shape[0]):
        squared_distances(columns, first, centers[k], distances)
        for i in range(m):
            closer = distances[i] < best[i]
            best[i] = distances[i] if closer else best[i]
            labels[i] = k if closer else labels[i]
