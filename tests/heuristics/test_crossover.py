"""Matching of centres against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from certikmeans.heuristics.crossover import MAX_ENUMERATED, match_centers


@pytest.mark.parametrize("k", [1, 2, 3, MAX_ENUMERATED, MAX_ENUMERATED + 1, 20])
@pytest.mark.parametrize("seed", range(5))
def test_matching_is_optimal(k, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, k, 3))
    partner = match_centers(first, second)
    assert sorted(partner) == list(range(k))
    costs = ((first[:, None] - second[None]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(costs)
    assert costs[np.arange(k), partner].sum() == pytest.approx(costs[rows, columns].sum())


def test_permuted_centers_are_matched():
    centers = np.random.default_rng(0).normal(size=(5, 2))
    order = np.array([3, 0, 4, 1, 2])
    assert np.array_equal(order[match_centers(centers, centers[order])], np.arange(5))
