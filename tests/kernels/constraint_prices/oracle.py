"""Random constraints and all admissible sets, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from certikmeans.constraint_model.arrays import constraint_arrays
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.problem.graph_builder import build_cannot_link_graph

KINDS = ("hard", "soft", "mixed", "sets", "disjoint", "units", "demands", "all")


def random_pairs(rng, n):
    """A forest, an odd cycle, a clique, a bipartite, sparse or dense graph."""
    shape = rng.integers(6)
    order = rng.permutation(n)
    if shape == 0:
        pairs = [(order[i], order[rng.integers(i)]) for i in range(1, n) if rng.random() < 0.8]
    elif shape == 1:
        length = min(n, int(rng.choice([3, 5, 7])))
        pairs = [(order[i], order[(i + 1) % length]) for i in range(length)] if length > 2 else []
    elif shape == 2:
        pairs = list(combinations(order[: min(n, int(rng.integers(3, 7)))], 2))
    elif shape == 3:
        pairs = [(u, v) for u in order[: n // 2] for v in order[n // 2 :] if rng.random() < 0.5]
    else:
        share = 0.3 if shape == 4 else 0.7
        pairs = [pair for pair in combinations(range(n), 2) if rng.random() < share]
    return np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=1)


def random_model(seed, kind, largest=9):
    """Model of one kind of constraint, or of a mixture."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(2, largest + 1))
    none = np.empty((0, 2), dtype=np.int64)
    present = {
        name for name in KINDS[:-1] if kind == name or (kind == "all" and rng.random() < 0.5)
    }
    hard = random_pairs(rng, n) if present & {"hard", "mixed"} else none
    graph, _ = build_cannot_link_graph(n, hard)
    soft = None
    if present & {"soft", "mixed"}:
        pairs = random_pairs(rng, n)
        bonus = rng.normal(size=len(pairs)) * 10.0 ** rng.integers(-1, 2)
        if rng.random() < 0.3:
            bonus = np.abs(bonus) * rng.choice([-1.0, 1.0])
        soft = SoftPairs.of(n, pairs, bonus, 0.0, 0.0)
    sets = None
    if present & {"sets", "disjoint"}:
        if "sets" in present:
            found = [
                rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
                for _ in range(rng.integers(1, 5))
            ]
        else:
            column = rng.integers(0, 3, size=n)
            found = [np.flatnonzero(column == c) for c in range(3)]
        sets = CannotLinkSets.of(n, found)
    sizes = None
    if present & {"units", "demands"}:
        demand = np.ones(n)
        if "demands" in present:
            demand = rng.uniform(0.0, 3.0, size=n) if rng.random() < 0.5 else rng.integers(0, 4, n)
        total = float(demand.sum())
        low, high = np.sort(rng.uniform(0.0, total, size=2))
        low = 0.0 if rng.random() < 0.4 else np.floor(low)
        high = float(np.ceil(high))
        sizes = SizeLimits(demand.astype(float), np.array([low, low]), np.array([high, high]))
    return ConstraintModel(graph, sets, sizes, soft)


def random_values(seed, n):
    """Values of mixed signs, with ties, at several scales."""
    rng = np.random.default_rng([seed, 99])
    values = rng.normal(size=n) + rng.choice([-1.0, 0.0, 0.5, 1.0])
    if rng.random() < 0.3:
        values = np.round(values)
    return values * 10.0 ** rng.integers(-3, 4) if rng.random() < 0.3 else values


class Admissible:
    """All admissible sets among ``ids`` with their exact values."""

    def __init__(self, model, ids, values):
        n, m = model.graph.n_vertices, len(ids)
        hard = {tuple(edge) for edge in model.graph.edges().tolist()}
        if model.sets is not None:
            hard |= {tuple(sorted(pair)) for pair in model.sets.pairs().tolist()}
        bonus = {}
        if model.soft is not None:
            bonus = {
                tuple(pair): Fraction(float(r))
                for pair, r in zip(model.soft.pairs.tolist(), model.soft.bonus, strict=True)
            }
        demand = [Fraction(0)] * n
        low, high = Fraction(0), Fraction(1)
        if model.sizes is not None:
            demand = [Fraction(float(a)) for a in model.sizes.demand]
            slack = model.sizes.tolerance
            low = Fraction(float(model.sizes.lower.min()) - slack)
            high = Fraction(float(model.sizes.upper.max()) + slack)
        exact = [Fraction(float(v)) for v in values]
        sums, load = {0: Fraction(0)}, {0: Fraction(0)}
        for number in range(1, 1 << m):
            i = number.bit_length() - 1
            rest = number ^ (1 << i)
            if rest not in sums:
                continue
            s, total, allowed = int(ids[i]), sums[rest] + exact[i], True
            for j in range(i):
                if rest >> j & 1:
                    pair = (int(ids[j]), s)
                    allowed &= pair not in hard
                    total += bonus.get(pair, 0)
            if allowed:
                sums[number], load[number] = total, load[rest] + demand[s]
        self.values = {k: w for k, w in sums.items() if low <= load[k] <= high}
        self.best = max(self.values.values(), default=None)

    def largest_violation(self, values, price, constant):
        """Largest excess of a set over ``constant + sum (values - price)``; at most 0 if valid."""
        margin = [
            Fraction(float(v)) - Fraction(float(p)) for v, p in zip(values, price, strict=True)
        ]
        sums, worst = {0: Fraction(0)}, None
        for number in range(1 << len(values)):
            if number:
                i = number.bit_length() - 1
                sums[number] = sums[number ^ (1 << i)] + margin[i]
            if number in self.values:
                excess = self.values[number] - sums[number]
                worst = excess if worst is None else max(worst, excess)
        return None if worst is None else worst - Fraction(constant)


def arrays_of(model):
    """Arrays of a model."""
    return constraint_arrays(model)
