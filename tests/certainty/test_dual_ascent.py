"""Certainty with more than five clusters, where a run keeps centers of columns instead of columns.

Compared with enumeration for few points, with and without aggregation for many.
"""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, Result, solve
from certikmeans.certainty import dual_ascent
from certikmeans.certainty.params import AggregationParams
from tests.certainty.enumeration import (
    certainty_with_aggregation,
    check_all_claims,
    sorted_costs,
)


def few_points(seed: int) -> Problem:
    """Six clusters of eight points: two of them hold two; some have a point between two others."""
    rng = np.random.default_rng(seed)
    k, d, n = 6, int(rng.integers(1, 4)), 8
    middles = rng.uniform(0.0, 10.0, size=(k, d))
    points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * rng.uniform(0.05, 1.0)
    if seed % 3 == 0:
        points[-1] = points[:2].mean(axis=0)
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    cannot = [(0, k), (1, 2), (2, 3)][: seed % 4]
    return Problem.from_data(points, k, cannot_link=cannot, weights=weights)


def only_centers_saved(result: Result) -> bool:
    """Whether the run has kept centers of columns, but no columns."""
    assert result.basis is not None
    (artifact,) = result.basis.bound_artifacts
    return artifact.warm_start.column_centers is not None and not artifact.warm_start.columns


@pytest.mark.parametrize("with_aggregation", [False, True])
def test_claims_by_enumeration(with_aggregation):
    params = AggregationParams()
    if with_aggregation:
        params = AggregationParams(min_groups=0, max_remaining_fraction=1.0)
    n_labellings = n_certain = n_uncertain = n_from_centers = 0
    for seed in range(12):
        problem = few_points(seed)
        result = solve(problem, bound="cluster", jobs=1)
        n_from_centers += only_centers_saved(result)
        next_best = sorted_costs(problem)[1 + seed % 3] / result.cost - 1.0
        slack = min(1.0, 1.001 * next_best) if seed % 4 else 1e-3
        certainty = certainty_with_aggregation(result, slack, params)
        n_labellings += check_all_claims(problem, result, certainty)
        n_certain += bool(certainty.certain.any())
        n_uncertain += not certainty.certain.all()
    assert n_from_centers >= 6
    assert n_labellings >= 20
    assert n_certain >= 6
    assert n_uncertain >= 6


def many_points(n: int, k: int, cannot: int) -> Problem:
    rng = np.random.default_rng(3)
    truth = np.arange(n) % k
    middles = np.stack([np.arange(k) % 4, np.arange(k) // 4], axis=1) * 1.0
    points = 7.0 * middles[truth] + rng.normal(size=(n, 2))
    pairs = rng.integers(n, size=(4 * cannot, 2))
    pairs = pairs[truth[pairs[:, 0]] != truth[pairs[:, 1]]][:cannot]
    return Problem.from_data(points, k, cannot_link=pairs)


@pytest.mark.parametrize(("k", "cannot"), [(6, 400), (12, 0), (20, 400)])
def test_aggregation_with_many_groups(monkeypatch, k, cannot):
    result = solve(many_points(5_000, k, cannot), jobs=1)
    assert only_centers_saved(result)
    on_aggregate, found = dual_ascent._DualAscent.on_aggregate, []

    def recorded(self, warm_start, bound):
        assert len(warm_start.columns) >= k  # priced again at the saved centers
        found.append(on_aggregate(self, warm_start, bound))
        return found[-1]

    monkeypatch.setattr(dual_ascent._DualAscent, "on_aggregate", recorded)
    certainty = result.certainty(1e-3)
    assert len(found) == 1
    assert found[0] is not None
    assert certainty.method == "regions of centres"
    assert certainty.agreement > 0.97
    assert all(len(family) == 1 for family in certainty.families)
    without = certainty_with_aggregation(result, 1e-3, AggregationParams(min_groups=10**9))
    assert certainty.most_elsewhere <= 1.1 * without.most_elsewhere + 1
