"""Selection of a set under pairs that are nearly a forest, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certikmeans.bounds.cluster.priced import PricedConstraints
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.kernels.pricing.forest_selection import select_by_forest
from certikmeans.problem.graph_builder import build_cannot_link_graph


def random_model(seed):
    """A forest of soft pairs and cannot-links, and values of the groups."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 10))
    edges = np.array([(rng.integers(i), i) for i in range(1, n) if rng.random() < 0.9])
    hard = rng.random(len(edges)) < 0.3
    graph: CannotLinkGraph
    graph, order = build_cannot_link_graph(n, edges[hard])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    bonus = rng.normal(size=int((~hard).sum()))
    soft = SoftPairs.of(n, place[edges[~hard]], bonus, float(bonus[bonus > 0].sum()), 0.0)
    return ConstraintModel(graph, None, None, soft), rng.normal(size=n), rng


def value_of(model, values, chosen):
    """Value with bonuses; -inf with a cannot-link inside."""
    links = model.graph.edges()
    if chosen[links].all(axis=1).any():
        return -np.inf
    total = float(values[chosen].sum())
    if model.soft is not None:
        total += float(model.soft.bonus[chosen[model.soft.pairs].all(axis=1)].sum())
    return total


@pytest.mark.parametrize("seed", range(40))
def test_best_set_of_forest(seed):
    model, values, rng = random_model(seed)
    n = len(values)
    values[rng.integers(n)] = -np.inf  # this one must not be chosen
    priced = PricedConstraints.of(model)
    chosen, delta = np.empty(n, dtype=np.uint8), np.empty(n)

    select_by_forest(priced.arrays, priced.forest, values, delta, chosen)

    sets = (np.array(one, dtype=np.bool_) for one in product((0, 1), repeat=n))
    best = max(value_of(model, values, one) for one in sets)
    assert value_of(model, values, chosen.astype(np.bool_)) == pytest.approx(best, abs=1e-12)


def test_many_cycles_are_left_to_the_linear_program():
    pairs = np.array([(i, j) for i in range(6) for j in range(i)])
    soft = SoftPairs.of(6, pairs, np.ones(len(pairs)), float(len(pairs)), 0.0)
    graph, _ = build_cannot_link_graph(6, np.empty((0, 2), dtype=np.int64))
    priced = PricedConstraints.of(ConstraintModel(graph, None, None, soft))
    assert len(priced.forest.order) == 0
