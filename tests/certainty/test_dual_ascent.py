"""More than five clusters: a run keeps places instead of clusters, and certainty goes on from them.

Against enumeration where there are few points, with and without a core where there are many.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from certikmeans import Problem, Result, solve
from certikmeans.certainty import dual_ascent
from tests.certainty.enumeration import check_all_claims, sorted_costs


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
    """Whether the run has left places of clusters, but no clusters."""
    assert result.basis is not None
    (bound_artifacts,) = result.basis.bound_artifacts
    return bound_artifacts.warm_start.places is not None and not bound_artifacts.warm_start.columns


@pytest.mark.parametrize("with_aggregation", [False, True])
def test_every_statement_holds_for_every_good_labelling(monkeypatch, with_aggregation):
    if with_aggregation:
        monkeypatch.setattr(
            dual_ascent, "aggregate_problem", partial(dual_ascent.aggregate_problem, least_groups=0)
        )
        monkeypatch.setattr(dual_ascent, "MAX_REMAINING_FRACTION", 1.0)
    labellings = telling = uncertain = began_at_places = 0
    for seed in range(12):
        problem = few_points(seed)
        result = solve(problem, bound="cluster", jobs=1)
        began_at_places += only_centers_saved(result)
        next_best = sorted_costs(problem)[1 + seed % 3] / result.cost - 1.0
        certainty = result.certainty(min(1.0, 1.001 * next_best) if seed % 4 else 1e-3)
        labellings += check_all_claims(problem, result, certainty)
        telling += bool(certainty.certain.any())
        uncertain += not certainty.certain.all()
    assert began_at_places >= 6
    assert labellings >= 20
    assert telling >= 6
    assert uncertain >= 6


def many_points(n: int, k: int, cannot: int) -> Problem:
    rng = np.random.default_rng(3)
    truth = np.arange(n) % k
    middles = np.stack([np.arange(k) % 4, np.arange(k) // 4], axis=1) * 1.0
    points = 7.0 * middles[truth] + rng.normal(size=(n, 2))
    pairs = rng.integers(n, size=(4 * cannot, 2))
    pairs = pairs[truth[pairs[:, 0]] != truth[pairs[:, 1]]][:cannot]
    return Problem.from_data(points, k, cannot_link=pairs)


@pytest.mark.parametrize(("k", "cannot"), [(6, 400), (12, 0), (20, 400)])
def test_many_groups_are_raised_in_a_core(monkeypatch, k, cannot):
    result = solve(many_points(5_000, k, cannot), jobs=1)
    assert only_centers_saved(result)
    on_aggregate, raised = dual_ascent._DualAscent.on_aggregate, []

    def noted(self, warm_start, value):
        assert len(warm_start.columns) >= k  # found again, where only places were kept
        raised.append(on_aggregate(self, warm_start, value))
        return raised[-1]

    monkeypatch.setattr(dual_ascent._DualAscent, "on_aggregate", noted)
    certainty = result.certainty(1e-3)
    assert len(raised) == 1
    assert raised[0] is not None
    assert certainty.method == "regions of centres"
    assert certainty.agreement > 0.97
    assert all(len(family) == 1 for family in certainty.families)
    monkeypatch.setattr(dual_ascent, "aggregate_problem", lambda *given: None)
    without = result.certainty(1e-3)
    assert certainty.most_elsewhere <= 1.1 * without.most_elsewhere + 1
