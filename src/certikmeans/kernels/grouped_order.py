"""Orders of samples: close ones after each other, or far ones first. Compiled."""

import numpy as np
from numba import njit


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
        away[i] = 0.0
        for j in range(d):
            away[i] += (points[i, j] - mean[j]) ** 2
    for place in range(m):
        chosen = 0
        for i in range(1, m):
            if away[i] > away[chosen]:
                chosen = i
        order[place] = chosen
        for i in range(m):
            if away[i] < 0.0:
                continue
            apart = 0.0
            for j in range(d):
                apart += (points[i, j] - points[chosen, j]) ** 2
            if place == 0 or apart < away[i]:
                away[i] = apart
        away[chosen] = -1.0


@njit(cache=True, nogil=True)
def order_nearby(
    points,  # IN   (n, d)
    smallest,  # IN   runs of this many are not told apart further
    order,  # IN/OUT (n,) int64: any order, then close points after each other
):
    """Sort along the widest axis, then do the same to both halves."""
    starts = np.empty(128, dtype=np.int64)
    ends = np.empty(128, dtype=np.int64)
    starts[0] = 0
    ends[0] = order.size
    top = 1
    while top > 0:  # halves: at most one waits at each level, and there are fewer than 64
        top -= 1
        first, last = starts[top], ends[top]
        run = order[first:last].copy()
        widest = 0
        width = -1.0
        for j in range(points.shape[1]):
            low = np.inf
            high = -np.inf
            for i in run:
                low = min(low, points[i, j])
                high = max(high, points[i, j])
            if high - low > width:
                width = high - low
                widest = j
        keys = np.empty(run.size)
        for place in range(run.size):
            keys[place] = points[run[place], widest]
        order[first:last] = run[np.argsort(keys, kind="mergesort")]
        if run.size > smallest:
            half = first + run.size // 2
            starts[top] = half
            ends[top] = last
            starts[top + 1] = first
            ends[top + 1] = half
            top += 2
