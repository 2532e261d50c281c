"""Random reduced problems with every kind of constraints, and exact values by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.graph_builder import build_cannot_link_graph

HARD, SETS, SIZES, SOFT = 1, 2, 4, 8


def random_model(seed, *, kinds=None, largest=8):
    """Draw a problem; ``kinds`` is a sum of the constants above, random by default."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, largest + 1))
    k = int(rng.integers(2, 4))
    kinds = int(rng.integers(1, 16)) if kinds is None else kinds
    points = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-2, 3)
    if rng.random() < 0.3:
        points[0] = points[1]
    if rng.random() < 0.2:
        points += 1e4 * np.abs(points).max()
    weights = rng.integers(1, 4, size=n).astype(float)
    if rng.random() < 0.3:
        weights = rng.uniform(0.1, 3.0, n)
    scale = float(np.var(points, axis=0).sum()) + 1e-9
    pairs = list(combinations(range(n), 2))
    density = rng.choice([0.1, 0.3, 0.6])
    hard = [pair for pair in pairs if kinds & HARD and rng.random() < density]
    graph, order = build_cannot_link_graph(n, np.array(hard, dtype=np.int64).reshape(-1, 2))
    sets = sizes = soft = None
    if kinds & SETS:
        drawn = [
            rng.choice(n, size=min(n, int(rng.integers(2, 4))), replace=False)
            for _ in range(rng.integers(1, 4))
        ]
        sets = CannotLinkSets.of(n, [one.astype(np.int64) for one in drawn])
    if kinds & SIZES:
        demand = np.ones(n) if rng.random() < 0.6 else rng.integers(1, 4, size=n).astype(float)
        mean = demand.sum() / k
        low, high = np.floor(rng.uniform(0, 1) * mean), np.ceil(rng.uniform(1, 1.6) * mean)
        sizes = SizeLimits(demand, np.full(k, low), np.full(k, high))
    if kinds & SOFT:
        count = min(int(rng.integers(1, 10)), len(pairs))
        chosen = np.array([pairs[i] for i in rng.choice(len(pairs), size=count, replace=False)])
        bonus = rng.normal(size=count) * scale * 10.0 ** rng.uniform(-1, 1)
        constant = float(np.maximum(bonus, 0.0).sum())
        soft = SoftPairs.of(n, chosen.astype(np.int64), bonus, constant, 0.0)
    return ReducedProblem(
        np.ascontiguousarray(points[order]),
        np.ascontiguousarray(weights[order]),
        ConstraintModel.of(graph, sets, sizes, soft),
        k,
        0.0,
    )


def column_costs(reduced):
    """Sum of squares minus bonuses of every admissible set, exactly, by the bits of its members."""
    model, n = reduced.label_constraints, reduced.n_groups
    rows = [[Fraction(float(v)) for v in row] for row in reduced.points]
    masses = [Fraction(float(w)) for w in reduced.weights]
    forbidden = [(int(u), int(v)) for u, v in model.cannot_links.edges()]
    if model.sets is not None:
        forbidden += [pair for one in model.sets.as_list() for pair in combinations(one, 2)]
    bonuses = []
    if model.soft is not None:
        bonuses = [
            (int(u), int(v), Fraction(float(r)))
            for (u, v), r in zip(model.soft.pairs, model.soft.bonus, strict=True)
        ]
    costs = {}
    for bits in range(1 << n):
        members = [s for s in range(n) if bits >> s & 1]
        if any(bits >> int(u) & 1 and bits >> int(v) & 1 for u, v in forbidden):
            continue
        if model.sizes is not None:
            total = model.sizes.demand[members].sum()
            if not model.sizes.lower.min() <= total <= model.sizes.upper.max():
                continue
        cost = Fraction(0)
        if members:
            mass = sum(masses[s] for s in members)
            for j in range(reduced.n_dims):
                first = sum(masses[s] * rows[s][j] for s in members)
                cost += sum(masses[s] * rows[s][j] ** 2 for s in members) - first * first / mass
        cost -= sum(r for u, v, r in bonuses if bits >> u & 1 and bits >> v & 1)
        costs[bits] = cost
    return costs


def model_sigma(reduced, lam, costs):
    """Largest value of an admissible set."""
    multipliers = [Fraction(float(v)) for v in lam]
    return max(
        sum((multipliers[s] for s in range(len(multipliers)) if bits >> s & 1), Fraction(0)) - cost
        for bits, cost in costs.items()
    )


def model_optimum(reduced, costs):
    """Least cost of a feasible labelling with its labels; None if there is none."""
    n, k = reduced.n_groups, reduced.n_clusters
    soft = reduced.label_constraints.soft
    constant = Fraction(0) if soft is None else Fraction(soft.constant)
    best = None
    for labels in product(range(k), repeat=n - 1):
        parts = [0] * k
        for s, label in enumerate((0, *labels)):
            parts[label] |= 1 << s
        if all(bits in costs for bits in parts):
            cost = sum(costs[bits] for bits in parts) + constant
            if best is None or cost < best[0]:
                best = cost, np.array((0, *labels), dtype=np.int64)
    return best


def model_multipliers(reduced, seed):
    """Multipliers of the size of the costs and bonuses, of any sign."""
    rng = np.random.default_rng(seed + 10**6)
    scale = float(np.var(reduced.points, axis=0).sum()) * reduced.weights.max() + 1e-9
    return rng.uniform(-0.3, 3.0, size=reduced.n_groups) * scale * 10.0 ** rng.uniform(-1, 0.5)
