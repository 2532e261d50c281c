"""The binary program of BLPKM-CC and encode-kmeans-post, and the loops around it."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.assignment import CannotLinkAssigner
from certikmeans.baselines import BLPKMCC, EncodeKMeansPost, _assignment
from certikmeans.baselines._assignment import MilpResult, OptimalAssignment, cheapest_labels
from certikmeans.baselines._base import MustLinkGroups
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import random_problem
from certikmeans.testing.oracle import respects
from tests.baselines.helpers import blobs, instance, least_total, pairs_from
from tests.clock import timed, within


def total(costs, labels):
    return costs[np.arange(len(costs)), labels].sum()


@pytest.mark.parametrize("fill", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_program_against_enumeration(seed, fill):
    problem = random_problem(seed, largest=6)
    groups = MustLinkGroups.of(problem)
    rng = np.random.default_rng(seed)
    costs = rng.exponential(size=(groups.n_groups, problem.n_clusters)) * 10.0 ** rng.integers(
        -6, 6
    )
    if fill:
        costs[:, 0] *= 0.01  # one cluster attracts everything: others must be filled
    expected = least_total(costs, groups, fill)
    answer = cheapest_labels(costs, groups, fill=fill)
    if expected is None:
        assert answer.labels is None
        assert answer.infeasible
    else:
        assert total(costs, answer.labels) == pytest.approx(expected, rel=1e-9)
        assert not (
            answer.labels[groups.cannot_links[:, 0]] == answer.labels[groups.cannot_links[:, 1]]
        ).any()
        assert not fill or len(set(answer.labels.tolist())) == problem.n_clusters


@pytest.mark.parametrize("seed", range(10))
def test_filling_with_many_free_groups(seed):
    # Only a few free groups enter the program; here all of them do. The groups that are cheap
    # to move are the same for every cluster, so that clusters compete for them.
    rng = np.random.default_rng(seed)
    n_groups, n_clusters = 60, 4
    problem = Problem.from_data(rng.normal(size=(n_groups, 1)), n_clusters, cannot_link=[(0, 1)])
    groups = MustLinkGroups.of(problem)
    costs = rng.exponential(size=(n_groups, 1)) * rng.uniform(1.0, 1.5, (n_groups, n_clusters))
    costs[:, 0] = 1e-3 * rng.random(n_groups)
    nearest = costs.argmin(axis=1)
    everything = np.arange(n_groups)
    empty = np.arange(n_clusters)
    whole = _assignment._solve(costs, groups, nearest, everything, empty, np.inf)
    few = cheapest_labels(costs, groups, fill=True)
    assert total(costs, few.labels) == pytest.approx(total(costs, whole.labels), rel=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_program_against_assigner(seed):
    problem = instance(seed)
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof)
    rng = np.random.default_rng(seed)
    centers = problem.points[rng.choice(problem.n_points, 3, replace=False)]
    exact = CannotLinkAssigner(done.reduced, done.feasible_labels).assign(
        done.presolve_centers(centers)
    )
    step = OptimalAssignment(
        problem, distance="squared", method="milp", fill=False, stop=StopSignal()
    )
    labels = step.labels(centers)
    assert respects(labels, problem.must_link, problem.cannot_link)
    # The assigner counts groups at their means; the rest is the same for all labels.
    assert step.total(centers, labels) == pytest.approx(exact.cost + done.reduced.offset, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_program_against_assigner_with_cycles(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=100)
    _, cannot = pairs_from(truth, 0, 190, seed)
    problem = Problem.from_data(rng.normal(size=(100, 2)), 4, cannot_link=cannot)
    costs = rng.uniform(1.0, 2.0, size=(100, 4))
    done = presolve(problem, StopSignal())
    table = np.empty_like(costs)
    table[done.group_of_point] = costs
    exact = CannotLinkAssigner(done.reduced, done.feasible_labels).assign_costs(table)
    assert exact.exact
    labels = cheapest_labels(costs, MustLinkGroups.of(problem)).labels
    assert total(costs, labels) == pytest.approx(exact.cost, rel=1e-9)


def test_solver_gap_is_zero(monkeypatch):
    options = []
    solve = _assignment.milp
    monkeypatch.setattr(
        _assignment, "milp", lambda *args, **kw: options.append(kw["options"]) or solve(*args, **kw)
    )
    problem = Problem.from_data([[0.0], [1.0]], 2, cannot_link=[(0, 1)])
    table = np.array([[0.0, 1.0], [0.0, 1.0]])
    cheapest_labels(table, MustLinkGroups.of(problem))
    cheapest_labels(table, MustLinkGroups.of(problem), seconds=5.0)
    assert options == [{"mip_rel_gap": 0.0}, {"mip_rel_gap": 0.0, "time_limit": 5.0}]


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
@pytest.mark.parametrize("seed", range(10))
def test_methods_have_equal_cost(seed, distance):
    problem = instance(seed)
    centers = problem.points[np.random.default_rng(seed).choice(problem.n_points, 3, False)]
    found = []
    for method in ("milp", "exact"):
        step = OptimalAssignment(
            problem, distance=distance, method=method, fill=True, stop=StopSignal()
        )
        labels = step.labels(centers)
        assert respects(labels, problem.must_link, problem.cannot_link)
        found.append(step.total(centers, labels))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_feasible_components_are_not_in_program(monkeypatch):
    sizes = []
    solve = _assignment._solve

    def counted(costs, groups, labels, chosen, empty, seconds):
        sizes.append(len(chosen))
        return solve(costs, groups, labels, chosen, empty, seconds)

    monkeypatch.setattr(_assignment, "_solve", counted)
    problem = Problem.from_data(np.arange(8.0)[:, None], 2, cannot_link=[(0, 7), (3, 4), (1, 2)])
    costs = np.stack([np.arange(8.0), 7.0 - np.arange(8.0)], axis=1)
    assert cheapest_labels(costs, MustLinkGroups.of(problem)).labels.tolist() == [
        0,
        0,
        1,
        0,
        1,
        1,
        1,
        1,
    ]
    assert sizes == [2]


def fitted(model, problem):
    return model.fit(problem.points, must_link=problem.must_link, cannot_link=problem.cannot_link)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("distance", ["euclidean", "squared"])
def test_blpkmcc_ends_in_fixed_point(seed, distance):
    problem = instance(seed)
    model = fitted(BLPKMCC(3, distance=distance, random_state=seed), problem)
    assert model.status_ == "converged"
    assert model.feasible_
    assert len(set(model.labels_.tolist())) == 3
    step = OptimalAssignment(
        problem, distance=distance, method="milp", fill=True, stop=StopSignal()
    )
    here = step.total(model.cluster_centers_, model.labels_)
    labels = step.labels(model.cluster_centers_)
    centers = np.array([problem.points[labels == k].mean(axis=0) for k in range(3)])
    assert step.total(centers, labels) >= here * (1 - 1e-12)


def test_blpkmcc_empty_clusters():
    points = [[0.0], [0.0], [0.0], [5.0]]
    assert len(set(BLPKMCC(3, random_state=0).fit(points).labels_)) == 3
    allowed = BLPKMCC(3, allow_empty=True, random_state=0).fit(points)
    assert len(set(allowed.labels_)) <= 2
    # Two groups cannot fill three clusters: the published program has no solution.
    too_few = BLPKMCC(3, n_init=3, random_state=0).fit(points, must_link=[(0, 1), (1, 2)])
    assert too_few.status_ == "failed"
    assert too_few.n_failed_ == 3


def test_post_processing_keeps_centers():
    problem = instance(2)
    once = fitted(EncodeKMeansPost(3, random_state=0), problem)
    assert (once.n_iter_, once.status_) == (1, "converged")
    updated = fitted(EncodeKMeansPost(3, update_centers=True, random_state=0), problem)
    assert updated.n_iter_ > 1
    assert updated.feasible_
    assert updated.inertia_ <= once.inertia_ * (1 + 1e-12)


def test_post_processing_without_pairs_is_kmeans():
    points, _ = blobs(40, seed=4)
    model = EncodeKMeansPost(3, random_state=0).fit(points)
    assert np.array_equal(model.predict(points), model.labels_)


@pytest.mark.parametrize("kind", [BLPKMCC, EncodeKMeansPost])
def test_program_timeout_is_a_failure(kind, monkeypatch):
    target = "certikmeans.baselines._assignment.cheapest_labels"
    monkeypatch.setattr(target, lambda *args, **kwargs: MilpResult(None))
    model = fitted(kind(3, random_state=0), instance(0))
    assert model.status_ == "failed"
    assert (model.labels_ == -1).all()


@pytest.mark.parametrize("kind", [BLPKMCC, EncodeKMeansPost])
@timed(4.0)
def test_time_limit_ends_restarts(kind, seconds):
    problem = instance(0, n_per_cluster=60)
    fitted(kind(3, random_state=0), problem)  # compiles
    with within(seconds):
        model = fitted(kind(3, n_init=10**6, time_limit=0.4, random_state=0), problem)
    assert model.status_ == "time_limit"
    assert model.feasible_


@timed(8.0)
def test_time_limit_ends_program(seconds):
    # A dense random graph near its chromatic number keeps the program busy for long.
    rng = np.random.default_rng(0)
    truth = rng.integers(6, size=150)
    _, cannot = pairs_from(truth, 0, 1400, seed=1)
    points = rng.normal(size=(150, 2))
    with within(seconds):
        model = BLPKMCC(6, time_limit=1.0, random_state=0).fit(points, cannot_link=cannot)
    assert model.status_ in ("time_limit", "failed")
