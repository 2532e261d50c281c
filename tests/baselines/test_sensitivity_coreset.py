"""Sensitivity sampling: unbiased weights, small error, must-links, no cannot-links."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certikmeans.baselines import SensitivityCoreset
from certikmeans.baselines._kmeans import best_kmeans
from certikmeans.errors import InputError
from certikmeans.generate import gaussian_clusters, random_pairs
from certikmeans.presolve.reductions import aggregate, must_link_groups
from certikmeans.problem.arrays import squared_distances
from certikmeans.stop import StopSignal


def cost_at(points, weights, centers):
    return weights @ squared_distances(points, centers).min(axis=1)


@pytest.fixture(scope="module")
def clustered():
    points, truth = gaussian_clusters(6000, spread=2.0, seed=3)
    must, _ = random_pairs(truth, 1500, 0, seed=3)
    return points, must


def test_cost_within_eps_of_kmeans(clustered):
    points, must = clustered
    whole = aggregate(points, np.ones(len(points)), must_link_groups(len(points), must))
    full = best_kmeans(
        whole.means,
        whole.weights,
        3,
        np.random.default_rng(0),
        n_init=10,
        max_iter=300,
        stop=StopSignal(),
    )
    for seed in range(10):
        model = SensitivityCoreset(3, random_state=seed).fit(points, must_link=must)
        assert model.feasible_
        assert len(model.coreset_indices_) <= math.ceil(3 * math.log(30) / 0.01)
        assert model.inertia_ <= 1.1 * (full.cost + whole.offset)


def test_coreset_costs_within_eps(clustered):
    points, must = clustered
    whole = aggregate(points, np.ones(len(points)), must_link_groups(len(points), must))
    rng = np.random.default_rng(1)
    model = SensitivityCoreset(3, random_state=0).fit(points, must_link=must)
    sample, masses = whole.means[model.coreset_indices_], model.coreset_weights_
    errors = []
    for _ in range(100):
        centers = whole.means[rng.choice(len(whole.means), 3, replace=False)]
        truth = cost_at(whole.means, whole.weights, centers)
        errors.append(abs(cost_at(sample, masses, centers) / truth - 1.0))
    assert np.mean(np.array(errors) <= 0.1) >= 0.9


def test_weights_are_unbiased(clustered):
    points, _ = clustered
    totals = [
        SensitivityCoreset(3, coreset_size=50, kmeans_n_init=1, random_state=seed)
        .fit(points)
        .coreset_weights_.sum()
        for seed in range(150)
    ]
    error = np.std(totals) / math.sqrt(len(totals))
    assert abs(np.mean(totals) - len(points)) < 4.0 * error


def test_small_data_are_not_sampled():
    points = np.random.default_rng(0).normal(size=(40, 2))
    model = SensitivityCoreset(3, random_state=0).fit(points, sample_weight=2.0)
    assert model.coreset_indices_.tolist() == list(range(40))
    assert model.coreset_weights_.tolist() == [2.0] * 40
    double = SensitivityCoreset(3, random_state=0).fit(points)
    assert model.inertia_ == pytest.approx(2.0 * double.inertia_)


def test_equal_points():
    model = SensitivityCoreset(3, coreset_size=5, random_state=0).fit(np.zeros((40, 2)))
    assert model.inertia_ == 0.0


def test_cannot_links_are_rejected():
    with pytest.raises(InputError, match="must-links only, got 2 cannot-links") as error:
        SensitivityCoreset(2).fit(np.eye(4), cannot_link=[(0, 1), (2, 3)])
    assert error.value.hint


def test_time_limit_ends_draws(clustered):
    model = SensitivityCoreset(3, n_init=10**6, time_limit=0.3, random_state=0).fit(clustered[0])
    assert model.status_ == "time_limit"
    assert model.feasible_
