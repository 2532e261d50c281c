"""Group problems by enumeration in exact arithmetic, and random ones to try them on."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from certikmeans.bounds.grouped.bundle import Chunk
from certikmeans.kernels.box_costs import box_costs
from certikmeans.kernels.grouped.preprocessing import reduce_allowed


def random_group(seed, largest=6):
    """A chunk of one group, its linear term, and the viable table before it was narrowed."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(1, largest + 1)), int(rng.integers(1, 4))
    n_clusters = int(rng.integers(1, 4))
    points = rng.normal(size=(m, d)) + rng.choice([0.0, 100.0])
    if rng.random() < 0.3:
        points = np.round(points, 1)
    weights = rng.choice([np.ones(m), rng.uniform(0.1, 3.0, size=m)])
    density = rng.choice([0.0, 0.2, 0.6])
    edges = [pair for pair in combinations(range(m), 2) if rng.random() < density]
    allowed = rng.random((m, n_clusters)) < rng.choice([1.0, 0.8])
    middle = points.mean(axis=0)
    ends = middle + rng.uniform(-2.5, 2.5, size=(2, n_clusters, d))
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    if rng.random() < 0.4:
        lower[:], upper[:] = points.min(axis=0), points.max(axis=0)
    nu = rng.normal(size=(n_clusters, d)) * rng.choice([0.0, 1.0, 8.0])
    if rng.random() < 0.3:
        nu[:] = nu[0]
    return make_chunk(points, weights, edges, allowed, lower, upper), nu, allowed


def make_chunk(points, weights, edges, allowed, lower, upper):
    """A chunk of one group, narrowed as the bound does it."""
    m = len(points)
    neighbours = [
        sorted([b for a, b in edges if a == i] + [a for a, b in edges if b == i]) for i in range(m)
    ]
    link_start = np.cumsum([0] + [len(row) for row in neighbours]).astype(np.int64)
    link = np.array([j for row in neighbours for j in row], dtype=np.int64)
    nearest, farthest = np.empty(allowed.shape), np.empty(allowed.shape)
    box_costs(points, np.ones(m), lower, upper, False, nearest)
    box_costs(points, np.ones(m), lower, upper, True, farthest)
    narrowed = allowed.copy()
    if not reduce_allowed(nearest, farthest, link_start, link, narrowed):
        narrowed[:] = False
    starts = np.array([0, m])
    return Chunk(starts, points, weights, link_start, link, narrowed, nearest, lower, upper)


def exact_minimum(chunk, nu, allowed):
    """The minimum over labels and centres in the boxes; None if there is no labelling."""
    m, n_clusters = allowed.shape
    x = [[Fraction(float(v)) for v in row] for row in chunk.points]
    w = [Fraction(float(v)) for v in chunk.weights]
    links = [
        (i, int(j))
        for i in range(m)
        for j in chunk.link[chunk.link_start[i] : chunk.link_start[i + 1]]
    ]
    best = None
    for labels in product(range(n_clusters), repeat=m):
        proper = not any(labels[i] == labels[j] for i, j in links)
        if not proper or not all(allowed[i, k] for i, k in enumerate(labels)):
            continue
        cost = sum(
            _exact_cluster(chunk, nu, x, w, k, [i for i in range(m) if labels[i] == k])
            for k in range(n_clusters)
        )
        best = cost if best is None else min(best, cost)
    return best


def _exact_cluster(chunk, nu, x, w, k, members):
    total = Fraction(0)
    mass = sum((w[i] for i in members), Fraction(0))
    for j in range(nu.shape[1]):
        low, high = Fraction(float(chunk.lower[k, j])), Fraction(float(chunk.upper[k, j]))
        pull = Fraction(float(nu[k, j]))
        if mass:
            center = (sum(w[i] * x[i][j] for i in members) - pull / 2) / mass
            center = min(max(center, low), high)
        else:
            center = high if pull < 0 else low
        total += sum(w[i] * (x[i][j] - center) ** 2 for i in members) + pull * center
    return total
