"""Certainty against enumeration: one false statement is a bug of the worst kind."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.testing.instances import feasible_problem
from tests.certainty.every_labelling import check_every_statement

SLACKS = (0.0, 1e-3, 0.02, 0.1, 0.5)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_every_statement_holds_for_every_good_labelling(first):
    telling = labellings = 0
    for seed in range(first, first + 20):
        problem = feasible_problem(
            seed, weightless=seed % 4 == 3, least_clusters=1 + (seed % 5 > 0)
        )
        result = solve(problem, jobs=1)
        sure = result.certainty(SLACKS[seed % len(SLACKS)])
        labellings += check_every_statement(problem, result, sure)
        telling += bool(sure.certain.any())
    assert labellings >= 20
    assert telling >= 6  # or nothing was tested


def clumps(seed: int) -> Problem:
    """Two to four clumps, a point between them, pairs that cut through: something is uncertain."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    n = int(rng.integers(k + 3, 9))
    middles = rng.normal(size=(k, d)) * 4.0
    points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * rng.uniform(0.1, 1.2)
    if seed % 3 == 0:
        points[-1] = points[: n - 1].mean(axis=0)
    if seed % 4 == 0:
        points[1] = points[0]
    points += (0.0, 1e3, 1e7)[seed % 3]
    free = rng.permutation(n)
    cannot = [(free[0], free[1]), (free[1], free[2])][: seed % 3]
    must = [(free[-1], free[-2])] if seed % 5 == 0 else []
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    return Problem.from_data(points, k, must_link=must, cannot_link=cannot, weights=weights)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_points_between_clumps(first):
    telling = uncertain = labellings = 0
    for seed in range(first, first + 20):
        problem = clumps(seed)
        result = solve(problem, jobs=1)
        sure = result.certainty((0.002, 0.05, 0.2, 0.4)[seed % 4])
        labellings += check_every_statement(problem, result, sure)
        telling += bool(sure.certain.any())
        uncertain += bool(not sure.certain.all())
    assert labellings >= 20
    assert telling >= 10
    assert uncertain >= 3
