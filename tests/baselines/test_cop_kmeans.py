"""COP-k-means: the published pass, failures and restarts."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.baselines import COPKMeans
from certikmeans.baselines._base import MustLinkGroups
from certikmeans.baselines._kernels import cop_pass
from certikmeans.testing.instances import random_problem
from certikmeans.testing.oracle import respects
from tests.baselines.helpers import STUCK, blobs, instance
from tests.clock import timed, within


def closure(problem):
    """Every must-link and cannot-link that follows from the stated ones."""
    groups = MustLinkGroups.of(problem)
    cannot_links = {tuple(pair) for pair in groups.cannot_links.tolist()}
    cannot_links |= {(g, g) for g in groups.conflicting.tolist()}
    must, cannot = [], []
    for i in range(problem.n_points):
        for j in range(i):
            a, b = sorted((int(groups.of_point[i]), int(groups.of_point[j])))
            if a == b:
                must.append((i, j))
            if (a, b) in cannot_links:
                cannot.append((i, j))
    return must, cannot


def published_pass(problem, centers, order):
    """Wagstaff's assignment, point by point, under closed pairs; None if it gets stuck."""
    must, cannot = closure(problem)
    labels = {}
    for i in order:
        i = int(i)
        away = ((problem.points[i] - centers) ** 2).sum(axis=1)
        for k in np.argsort(away, kind="stable"):
            mates = [a + b - i for a, b in must if i in (a, b)]
            foes = [a + b - i for a, b in cannot if i in (a, b)]
            if all(labels.get(j, k) == k for j in mates) and all(labels.get(j) != k for j in foes):
                labels[i] = k
                break
        else:
            return None
    return np.array([labels[i] for i in range(problem.n_points)])


@pytest.mark.parametrize("seed", range(60))
def test_pass_as_published(seed):
    problem = random_problem(seed, largest=8)
    rng = np.random.default_rng(seed)
    order = rng.permutation(problem.n_points)
    shape = (problem.n_clusters, problem.n_features)
    centers = problem.points.mean(axis=0) + problem.points.std(axis=0) * rng.normal(size=shape)
    groups = MustLinkGroups.of(problem)
    _, turn = np.unique(groups.of_point[order], return_index=True)
    labels = np.empty(groups.n_groups, dtype=np.int64)
    links = groups.neighbors(loops=True)
    stuck = cop_pass(problem.points, order[turn], np.argsort(turn), *links, centers, labels)
    expected = published_pass(problem, centers, order)
    if len(groups.conflicting):
        # The group is stuck at its first member, the published pass at a later one.
        assert stuck >= 0
        assert expected is None
    elif expected is None:
        assert stuck >= 0
    else:
        assert stuck == -1
        assert np.array_equal(labels[groups.of_point], expected)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("shuffle", [False, True])
def test_success_satisfies_all_pairs(seed, shuffle):
    problem = instance(seed, n_per_cluster=8)
    model = COPKMeans(3, shuffle=shuffle, random_state=seed)
    model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
    assert model.feasible_ == (model.status_ != "failed")
    if model.feasible_:
        assert respects(model.labels_, problem.must_link, problem.cannot_link)


@pytest.mark.parametrize("seed", range(10))
def test_fails_on_feasible_instance(seed):
    model = COPKMeans(2, random_state=seed).fit(**STUCK)
    assert model.status_ == "failed"
    assert not model.feasible_
    assert model.labels_.tolist() == [-1, -1, -1]
    assert model.inertia_ == np.inf
    assert np.isnan(model.cluster_centers_).all()
    assert model.n_failed_ == 1
    # Restarts in the same order do not help; other orders do.
    assert COPKMeans(2, n_init=20, random_state=seed).fit(**STUCK).n_failed_ == 20
    shuffled = COPKMeans(2, n_init=20, shuffle=True, random_state=seed).fit(**STUCK)
    assert shuffled.feasible_
    assert 0 < shuffled.n_failed_ < 20
    assert shuffled.inertia_ == pytest.approx(50.0)


def test_contradictory_pairs_always_fail():
    model = COPKMeans(2, n_init=5, shuffle=True, random_state=0)
    model.fit(np.eye(4), must_link=[(0, 1)], cannot_link=[(0, 1)])
    assert model.status_ == "failed"


def test_without_pairs():
    points, _ = blobs(30, seed=1)
    model = COPKMeans(3, n_init=5, random_state=0).fit(points)
    assert model.status_ == "converged"
    assert np.array_equal(model.predict(points), model.labels_)


def test_max_iter():
    points, _ = blobs(30, seed=1)
    model = COPKMeans(3, max_iter=1, random_state=0).fit(points)
    assert (model.status_, model.n_iter_) == ("max_iter", 1)


@timed(3.0)
def test_time_limit_ends_restarts(seconds):
    points, truth = blobs(2000, seed=1)
    rng = np.random.default_rng(0)
    must = np.array([rng.choice(np.flatnonzero(truth == k), 2, False) for k in range(3)])
    COPKMeans(3, random_state=0).fit(points, must_link=must)  # compiles
    endless = COPKMeans(3, n_init=10**6, time_limit=0.3, random_state=0)
    with within(seconds):
        model = endless.fit(points, must_link=must)
    assert model.status_ == "time_limit"
    assert model.feasible_
    assert 1 <= model.n_runs_ < 10**6


def test_transitive_pairs():
    # 0 and 1 are one group, so 2 may not join 1 either, although only (0, 2) is stated.
    problem = Problem.from_data(
        [[0.0], [1.0], [1.1], [9.0]], 2, must_link=[(0, 1)], cannot_link=[(0, 2)]
    )
    for seed in range(10):
        model = COPKMeans(2, random_state=seed)
        model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)
        assert model.feasible_
        assert model.labels_[1] != model.labels_[2]
