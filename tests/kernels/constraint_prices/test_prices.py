"""Prices against all admissible sets, in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.kernels.constraint_prices.compose import update_prices
from certikmeans.kernels.constraint_prices.select import select_set
from certikmeans.kernels.constraint_prices.workspace import price_workspace
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


def priced(arrays, ids, values, effort=None):
    """Prices, the constant and the bound."""
    work = price_workspace(arrays, len(arrays.pair_indptr) - 1)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(5))
def test_selected_set_is_admissible(kind, block):
    for seed in range(20 * block, 20 * block + 20):
        model, ids, values = instance(seed, kind)
        exact, arrays = Admissible(model, ids, values), arrays_of(model)
        work = price_workspace(arrays, len(arrays.pair_indptr) - 1)
        chosen = np.full(len(ids), 9, dtype=np.uint8)
        value = select_set(arrays, ids, values, work, chosen)
        assert (work.position == -1).all()
        assert (work.set_mark == 0).all()
        if value > -np.inf:
            number = sum(1 << int(i) for i in np.flatnonzero(chosen))
            assert value == pytest.approx(float(exact.worth[number]), rel=1e-12, abs=1e-12)
