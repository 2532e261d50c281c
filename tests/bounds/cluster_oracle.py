"""Random reduced problems, and exact pricing and optima by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph


def random_pairs(rng, n):
    """Draw a cannot-link graph of a random kind: none, tree, cycle, clique, star, random."""
    order = rng.permutation(n)
    kind = rng.integers(7)
    if n < 3 or kind == 0:
        return []
    if kind == 1:
        return [(order[i], order[rng.integers(i)]) for i in range(1, n)]
    if kind == 2:
        size = int(rng.integers(3, n + 1))
        ring = [(order[i], order[(i + 1) % size]) for i in range(size)]
        return ring + [(order[i], order[rng.integers(i)]) for i in range(size, n)]
    if kind == 3:
        return list(combinations(order[: rng.integers(2, min(5, n) + 1)], 2))
    if kind == 4:
        return [(order[0], other) for other in order[1:]]
    if kind == 5:  # two triangles that share a vertex, if n > 4
        return [(order[0], order[1]), (order[1], order[2]), (order[0], order[2])] + (
            [(order[2], order[3]), (order[3], order[4]), (order[2], order[4])] if n > 4 else []
        )
    return [pair for pair in combinations(range(n), 2) if rng.random() < 0.3]


def random_reduced(seed, *, largest=8, most_axes=6):
    """Small reduced problem: weights, duplicates, outliers, every kind of cannot-link graph."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, largest + 1))
    d = int(rng.integers(1, most_axes + 1))
    points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    if n > 2 and rng.random() < 0.3:
        points[rng.integers(n)] = points[rng.integers(n)]
    if rng.random() < 0.1:
        points[rng.integers(n)] *= 1e4
    if rng.random() < 0.1:
        points[:] = points[0]
    weights = rng.integers(1, 6, size=n).astype(float)
    if rng.random() < 0.3:
        weights = rng.uniform(0.01, 3.0, size=n)
    points = points - np.average(points, axis=0, weights=weights)
    return make_reduced(points, weights, random_pairs(rng, n), int(rng.integers(1, min(n, 4) + 1)))


def feasible_reduced(seed, *, largest=8, most_axes=6, linked=None):
    """Feasible problem with more groups than clusters; also its optimal cost and labels.

    ``linked`` requires a graph with edges, or without.
    """
    for number in range(1_000):
        reduced = random_reduced(1_000 * number + seed, largest=largest, most_axes=most_axes)
        if not 2 <= reduced.n_clusters < reduced.n_groups:
            continue
        if linked is None or linked == (reduced.graph.n_linked > 0):
            optimum = exact_optimum(reduced)
            if optimum is not None:
                return reduced, optimum
    raise AssertionError(f"no feasible problem in 1,000 draws from seed {seed}")


def make_reduced(points, weights, pairs, n_clusters):
    """Reduced problem with its groups in the order required by the graph."""
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    graph, order = build_cannot_link_graph(len(points), pairs)
    return ReducedProblem(
        points=np.ascontiguousarray(points[order]),
        weights=np.ascontiguousarray(weights[order]),
        label_constraints=CannotLinks(graph),
        n_clusters=n_clusters,
        offset=0.0,
    )


def clustered(seed, n=400, d=3, spread=4.0):
    """Three overlapping clusters, Lloyd-stable labels, and n / 4 satisfied cannot-links."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    points = rng.normal(size=(n, d)) + spread * rng.normal(size=(3, d))[labels]
    points -= points.mean(axis=0)
    for _ in range(30):
        centres = np.array([points[labels == k].mean(axis=0) for k in range(3)])
        labels = np.argmin(((points[:, None] - centres) ** 2).sum(axis=2), axis=1)
    pairs = [(i, j) for i, j in rng.integers(n, size=(2 * n, 2)) if labels[i] != labels[j]]
    graph_pairs = np.array(pairs[: n // 4], dtype=np.int64)
    _, order = build_cannot_link_graph(n, graph_pairs)
    return make_reduced(points, np.ones(n), graph_pairs, 3), labels[order]


def random_multipliers(reduced, seed):
    """Multipliers of the size of the costs; some zero, some negative, some huge."""
    rng = np.random.default_rng(seed + 10**6)
    spread = np.max(reduced.weights) * np.max(np.sum(reduced.points**2, axis=1)) + 1e-9
    lam = rng.uniform(0.0, 1.5, size=reduced.n_groups) * spread * 10.0 ** rng.uniform(-2, 0.5)
    lam[rng.random(reduced.n_groups) < 0.1] *= -1.0
    lam[rng.random(reduced.n_groups) < 0.1] = 0.0
    if rng.random() < 0.2:
        lam[rng.integers(reduced.n_groups)] *= 100.0
    return lam


def subset_costs(reduced):
    """Exact cost of every independent set, keyed by the bits of its members."""
    n, d = reduced.points.shape
    rows = [[Fraction(float(v)) for v in row] for row in reduced.points]
    masses = [Fraction(float(w)) for w in reduced.weights]
    linked = [0] * n
    for u, v in reduced.graph.edges():
        linked[u] |= 1 << int(v)
        linked[v] |= 1 << int(u)
    costs = {0: Fraction(0)}
    sums = {0: (Fraction(0), [Fraction(0)] * d, Fraction(0))}
    for s in range(n):
        square = sum(v * v for v in rows[s])
        for bits, (mass, first, second) in list(sums.items()):
            if bits & linked[s]:
                continue
            more = (
                mass + masses[s],
                [a + masses[s] * b for a, b in zip(first, rows[s], strict=True)],
                second + masses[s] * square,
            )
            sums[bits | 1 << s] = more
            costs[bits | 1 << s] = more[2] - sum(v * v for v in more[1]) / more[0]
    return costs


def exact_sigma(reduced, lam, costs=None):
    """Largest ``sum lam - cost`` over independent sets, the empty one included."""
    costs = subset_costs(reduced) if costs is None else costs
    multipliers = [Fraction(float(v)) for v in lam]
    return max(
        sum((multipliers[s] for s in range(len(multipliers)) if bits >> s & 1), Fraction(0)) - cost
        for bits, cost in costs.items()
    )


def exact_optimum(reduced, costs=None):
    """Least cost of a partition into at most K independent sets, and labels; None if none."""
    costs = subset_costs(reduced) if costs is None else costs
    everything = (1 << reduced.n_groups) - 1
    best = {0: (Fraction(0), ())}
    for _ in range(reduced.n_clusters):
        grown = dict(best)
        for done, (cost, parts) in best.items():
            rest = everything & ~done
            lowest = rest & -rest  # the next cluster contains the first group left
            for bits, more in costs.items():
                if bits & done or not bits & lowest:
                    continue
                total = cost + more
                if done | bits not in grown or total < grown[done | bits][0]:
                    grown[done | bits] = (total, (*parts, bits))
        best = grown
    if everything not in best:
        return None
    cost, parts = best[everything]
    labels = np.zeros(reduced.n_groups, dtype=np.int64)
    for k, bits in enumerate(parts):
        labels[[s for s in range(reduced.n_groups) if bits >> s & 1]] = k
    return cost, labels


def exact_sigma_within(reduced, lam, region):
    """Largest ``sum lam - cost about the best center in the region`` over sets allowed there."""
    n, d = reduced.points.shape
    rows = [[Fraction(float(v)) for v in row] for row in reduced.points]
    masses = [Fraction(float(w)) for w in reduced.weights]
    multipliers = [Fraction(float(v)) for v in lam]
    low = [Fraction(float(v)) for v in region.low]
    high = [Fraction(float(v)) for v in region.high]
    best = Fraction(0)
    for bits, cost in subset_costs(reduced).items():
        members = [s for s in range(n) if bits >> s & 1]
        if not members or (region.allowed is not None and not region.allowed[members].all()):
            continue
        mass = sum(masses[s] for s in members)
        for j in range(d):
            mean = sum(masses[s] * rows[s][j] for s in members) / mass
            away = mean - min(max(mean, low[j]), high[j])
            cost += mass * away * away
        best = max(best, sum(multipliers[s] for s in members) - cost)
    return best
