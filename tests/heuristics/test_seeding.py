"""Subsamples consist of whole components of the constraints; seedings have a work limit."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.heuristics import local_search
from certikmeans.heuristics.local_search import draw_sample, kmeanspp_centers
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal


@pytest.fixture(scope="module")
def reduced():
    rng = np.random.default_rng(0)
    n = 400
    pairs = rng.integers(0, n, size=(120, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    points = rng.normal(size=(n, 3))
    return presolve(Problem.from_data(points, 4, cannot_link=pairs), StopSignal()).reduced


@pytest.mark.parametrize("seed", range(20))
def test_sample_keeps_links_of_its_groups(reduced, seed):
    sample = draw_sample(reduced, 150, np.random.default_rng(seed))
    part, rows = sample.problem, sample.rows
    assert np.array_equal(part.points, reduced.points[rows])
    inside = np.isin(reduced.graph.edges(), rows).all(axis=1)
    expected = np.searchsorted(rows, reduced.graph.edges()[inside])
    assert np.array_equal(part.graph.edges(), expected)
    assert part.graph.n_linked == (np.diff(part.graph.indptr) > 0).sum()
    assert np.array_equal(
        np.diff(part.graph.starts) - 1 + part.graph.n_extra_edges,
        [
            np.sum((expected[:, 0] >= a) & (expected[:, 0] < b))
            for a, b in zip(part.graph.starts[:-1], part.graph.starts[1:], strict=True)
        ],
    )
    for child, parent in enumerate(part.graph.parents):
        if parent >= 0:
            assert parent < child
            assert [parent, child] in expected.tolist()


def test_too_small_sample_is_enlarged(reduced):
    sample = draw_sample(reduced, 1, np.random.default_rng(0))
    assert len(sample.rows) in (reduced.n_groups, *range(4, 20))
    assert sample.problem.n_groups >= reduced.n_clusters


@pytest.mark.parametrize(("most", "expected"), [(2e8, 3), (3_200.0, 2), (10.0, 1)])
def test_trials_of_a_seeding_are_limited(reduced, monkeypatch, most, expected):
    """With 400 groups and 4 clusters there are usually 3 trials of 1,600 distances."""
    trials = []
    seeding = local_search.kmeanspp_seeds

    def recording(points, weights, uniforms, seeds):
        trials.append(uniforms.shape[1])
        seeding(points, weights, uniforms, seeds)

    monkeypatch.setattr(local_search, "kmeanspp_seeds", recording)
    monkeypatch.setattr(local_search, "MAX_SEEDING_DISTANCES", most)
    centers = kmeanspp_centers(reduced, np.random.default_rng(0))
    assert trials == [expected]
    assert len(np.unique(centers, axis=0)) == 4
