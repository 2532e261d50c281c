"""PCKMeans: objective, moves, initial centres."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.baselines import PCKMeans
from certikmeans.baselines._base import MustLinkGroups
from certikmeans.baselines.pckmeans import _neighborhood_centers
from tests.baselines.helpers import blobs, instance
from tests.baselines.test_cop_kmeans import closure
from tests.clock import timed, within


def objective(problem, labels, price, centers):
    """Half the sum of squares plus the price of every broken pair of the closure."""
    must, cannot = closure(problem)
    broken = sum(labels[i] != labels[j] for i, j in must)
    broken += sum(labels[i] == labels[j] for i, j in cannot)
    return 0.5 * ((problem.points - centers[labels]) ** 2).sum() + price * broken


def fitted(model, problem):
    return model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)


@pytest.mark.parametrize("price", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(8))
def test_ends_in_local_optimum(seed, price):
    for number in range(100):
        problem = instance(seed + 100 * number, n_per_cluster=6)
        model = fitted(PCKMeans(3, w=price, random_state=seed), problem)
        assert model.status_ == "converged"
        here = objective(problem, model.labels_, price, model.cluster_centers_)
        assert model.objective_ == pytest.approx(here, rel=1e-9)
        if len(set(model.labels_.tolist())) == 3:  # an empty cluster's centre is not published
            break
    assert len(set(model.labels_.tolist())) == 3
    for i, k in itertools.product(range(problem.n_points), range(3)):
        moved = model.labels_.copy()
        moved[i] = k
        assert objective(problem, moved, price, model.cluster_centers_) >= here * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_objective_decreases(seed):
    problem = instance(seed)
    values = [
        fitted(PCKMeans(3, w=3.0, max_iter=n, random_state=seed), problem).objective_
        for n in range(1, 8)
    ]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))


def test_penalty_weight():
    points = [[0.0], [1.0], [9.0], [10.0]]
    for pairs in ({"cannot_link": [(0, 1)]}, {"must_link": [(1, 2)]}):
        cheap = PCKMeans(2, w=1e-6, n_init=5, random_state=0).fit(points, **pairs)
        dear = PCKMeans(2, w=1e6, n_init=5, random_state=0).fit(points, **pairs)
        assert (cheap.violated_, cheap.feasible_) == (1, False)
        assert (dear.violated_, dear.feasible_) == (0, True)
        assert cheap.inertia_ < dear.inertia_


def test_contradictory_pairs_are_counted():
    model = PCKMeans(2, w=10.0, random_state=0)
    model.fit(np.eye(4), must_link=[(0, 1)], cannot_link=[(0, 1)])
    assert model.violated_ == 1


def test_starts_at_largest_neighborhoods():
    points = np.arange(9.0)[:, None]
    must = [(0, 1), (2, 3), (3, 4), (5, 6)]
    problem = Problem.from_data(points, 2, must_link=must)
    start = _neighborhood_centers(problem, MustLinkGroups.of(problem), np.random.default_rng(0))
    assert start.ravel().tolist() == [3.0, 0.5]


def test_start_linked_to_all_neighborhoods():
    points = np.arange(9.0)[:, None]
    pairs = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(7, 0), (7, 2), (8, 0)]}
    problem = Problem.from_data(points, 4, **pairs)
    start = _neighborhood_centers(problem, MustLinkGroups.of(problem), np.random.default_rng(0))
    assert start[:3].ravel().tolist() == [0.5, 2.5, 7.0]


@timed(3.0)
def test_time_limit_ends_runs(seconds):
    points, _ = blobs(2000)
    PCKMeans(3, random_state=0).fit(points)  # compiles
    with within(seconds):
        model = PCKMeans(3, n_init=10**6, time_limit=0.3, random_state=0).fit(points)
    assert model.status_ == "time_limit"
