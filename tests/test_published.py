"""The published instances: no bound above a best known cost, no cost above it, every gap closed."""

from __future__ import annotations

import pytest

from certikmeans import Status, solve
from tests.published import published, stated


@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("row", published(), ids=lambda row: f"{row['dataset']}-{row['instance']}")
def test_published_instance(row):
    best_known = float(row["best_known_sse"])
    result = solve(stated(row), time_limit=120)
    assert result.lower_bound <= best_known * (1 + 1e-12)
    assert result.cost <= best_known * (1 + 1e-6)
    assert result.status is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("row", published(), ids=lambda row: f"{row['dataset']}-{row['instance']}")
def test_published_instance_as_far_as_the_root_goes(row):
    best_known = float(row["best_known_sse"])
    for seed in (1, 2, 3):
        result = solve(stated(row), gap=1e-6, seed=seed, time_limit=20)
        assert result.lower_bound <= best_known * (1 + 1e-12)
        assert result.cost <= best_known * (1 + 1e-6)
