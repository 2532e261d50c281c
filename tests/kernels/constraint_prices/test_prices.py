"""Prices against all admissible sets, in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.kernels.constraint_prices.compose import update_prices
from certikmeans.kernels.constraint_prices.select import select_set
from certikmeans.kernels.constraint_prices.workspace import price_workspace
from certikmeans.problem.graph_builder import build_cannot_link_graph
from tests.kernels.constraint_prices.oracle import (
    KINDS,
    Admissible,
    arrays_of,
    random_model,
    random_values,
)


def instance(seed, kind):
    """Constraints, members and values; half of the time some groups are left out."""
    model = random_model(seed, kind)
    n = model.graph.n_vertices
    rng = np.random.default_rng([seed, 5])
    ids = np.flatnonzero(rng.random(n) < (0.8 if seed % 2 else 2.0)).astype(np.int32)
    return model, ids, random_values(seed, len(ids))


def priced(arrays, ids, values, effort=None, target=-np.inf):
    """Prices, the constant and the bound."""
    work = price_workspace(arrays, len(arrays.pair_indptr) - 1)
    work.target[0] = target
    if effort is not None:
        work.effort[0] = effort
    price = np.full(len(ids), np.nan)
    constant = update_prices(arrays, ids, values, work, price)
    assert (work.position == -1).all()
    assert (work.set_mark == 0).all()
    return price, constant, constant + np.maximum(values - price, 0.0).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(10))
def test_prices_valid_for_every_set(kind, block):
    for seed in range(10 * block, 10 * block + 10):
        model, ids, values = instance(seed, kind)
        exact = Admissible(model, ids, values)
        for effort in (0, 3, 1 << 40):
            price, constant, bound = priced(arrays_of(model), ids, values, effort)
            if constant == -np.inf:
                assert exact.best is None
            elif exact.best is not None:
                assert exact.largest_violation(values, price, constant) <= 0
                assert bound >= float(exact.best) - 1e-12 * (1.0 + abs(float(exact.best)))


def is_exact(model, ids):
    """Whether bound and selection are claimed to be exact."""
    pairs = [] if model.soft is None else model.soft.pairs.tolist()
    n_sets = 0 if model.sets is None else model.sets.n_sets
    kinds = (bool(pairs or len(model.graph.neighbors)), n_sets > 0, model.sizes is not None)
    if kinds == (True, False, False):
        edges = {tuple(pair) for pair in pairs} | {tuple(e) for e in model.graph.edges().tolist()}
        return is_forest(edges, ids)
    if kinds == (False, True, False):
        return model.sets.disjoint
    return kinds == (False, False, True) and model.sizes.unit


def is_forest(edges, ids):
    root = {int(s): int(s) for s in ids}
    for u, v in edges:
        if u in root and v in root:
            while root[u] != u:
                u = root[u]
            while root[v] != v:
                v = root[v]
            if u == v:
                return False
            root[u] = v
    return True


@pytest.mark.parametrize("kind", ["hard", "mixed", "all"])
@pytest.mark.parametrize("block", range(5))
def test_odd_cycles(kind, block):
    for seed in range(20 * block, 20 * block + 20):
        model, ids, values = instance(seed, kind)
        arrays = arrays_of(model)
        values = np.abs(values) if seed % 2 else values
        exact = Admissible(model, ids, values)
        if exact.best is not None:
            _, constant, before = priced(arrays, ids, values)
            target = before - 0.29 * max(constant, 0.0) - 1e-9
            price, constant, bound = priced(arrays, ids, values, target=target)
            assert bound <= before
            assert exact.largest_violation(values, price, constant) <= 0


@pytest.mark.parametrize("length", [3, 5])
def test_one_odd_cycle_is_exact(length):
    pairs = np.sort([(i, (i + 1) % length) for i in range(length)], axis=1)
    graph, _ = build_cannot_link_graph(length, pairs)
    arrays = arrays_of(ConstraintModel(graph))
    ids, values = np.arange(length, dtype=np.int32), np.full(length, 3.0)
    _, _, weak = priced(arrays, ids, values)
    _, _, bound = priced(arrays, ids, values, target=weak - 1e-3)
    assert weak == pytest.approx(1.5 * length)
    assert bound == pytest.approx(1.5 * (length - 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(5))
def test_selected_set(kind, block):
    for seed in range(20 * block, 20 * block + 20):
        model, ids, values = instance(seed, kind)
        exact, arrays = Admissible(model, ids, values), arrays_of(model)
        work = price_workspace(arrays, len(arrays.pair_indptr) - 1)
        chosen = np.full(len(ids), 9, dtype=np.uint8)
        value = select_set(arrays, ids, values, -np.inf, work, chosen)
        _, _, bound = priced(arrays, ids, values)
        assert (work.position == -1).all()
        assert (work.set_mark == 0).all()
        assert (work.zeros == 0.0).all()
        if value > -np.inf:
            number = sum(1 << int(i) for i in np.flatnonzero(chosen))
            assert value == pytest.approx(float(exact.values[number]), rel=1e-12, abs=1e-12)
        if is_exact(model, ids) and exact.best is not None:
            assert value == pytest.approx(float(exact.best), rel=1e-12, abs=1e-12)
            assert bound == pytest.approx(float(exact.best), rel=1e-9, abs=1e-9)
        if exact.best is not None:  # a selection gives up only where no set has a larger value
            below = float(exact.best) - 1e-6 * (1.0 + abs(float(exact.best)))
            assert select_set(arrays, ids, values, below, work, chosen) == value
            above = bound + 1e-6 * (1.0 + abs(bound))
            assert select_set(arrays, ids, values, above, work, chosen) == -np.inf
            assert (work.position == -1).all()
