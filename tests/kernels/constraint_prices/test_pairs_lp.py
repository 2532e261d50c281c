"""The bound of the pairs is the value of their linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.kernels.constraint_prices.oracle import arrays_of
from tests.kernels.constraint_prices.test_prices import instance, priced


def linear_program(model, ids, values):
    """Value of the linear program with one variable per member and per soft pair."""
    position = {int(s): i for i, s in enumerate(ids)}
    m, rows, sides = len(ids), [], []
    costs, entries = list(-values), []
    hard = set(map(tuple, model.graph.edges().tolist()))
    for u, v in hard:
        if u in position and v in position:
            entries.append({position[u]: 1.0, position[v]: 1.0})
            sides.append(1.0)
    if model.soft is not None:
        for (u, v), r in zip(model.soft.pairs.tolist(), model.soft.bonus, strict=True):
            if u not in position or v not in position or (u, v) in hard:
                continue
            together = len(costs)
            costs.append(-r)
            i, j = position[u], position[v]
            if r < 0.0:
                entries.append({i: 1.0, j: 1.0, together: -1.0})
                sides.append(1.0)
            else:
                entries += [{together: 1.0, i: -1.0}, {together: 1.0, j: -1.0}]
                sides += [0.0, 0.0]
    for entry in entries:
        row = np.zeros(len(costs))
        row[list(entry)] = list(entry.values())
        rows.append(row)
    bounds = [(0.0, 1.0)] * m + [(0.0, None)] * (len(costs) - m)
    found = linprog(costs, A_ub=rows or None, b_ub=sides or None, bounds=bounds)
    return -found.fun


@pytest.mark.parametrize("kind", ["hard", "soft", "mixed"])
@pytest.mark.parametrize("block", range(5))
def test_bound_of_pairs(kind, block):
    for seed in range(12 * block, 12 * block + 12):
        model, ids, values = instance(seed, kind)
        _, _, bound = priced(arrays_of(model), ids, values)
        if len(ids):
            assert bound == pytest.approx(linear_program(model, ids, values), rel=1e-9, abs=1e-9)
