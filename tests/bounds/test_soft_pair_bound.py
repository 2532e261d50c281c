"""Semidefinite bound for soft pairs: sizes that it proves, and its value."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.base import BoundInput
from certikmeans.bounds.light_clusters import largest_block_sums, light_cluster_bounds
from certikmeans.bounds.soft_pairs import SoftPairBound
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem, soft_problem
from certikmeans.testing.oracle import brute_force, exact_cost, feasible_labellings
from tests.bounds.contexts import RecordingContext
from tests.bounds.sdp_cases import reduced_of
from tests.contract.test_continuation import encoded_and_decoded


@pytest.mark.parametrize("seed", range(60))
def test_bounds_of_labellings_with_light_cluster(seed):
    base = feasible_problem(seed, largest=8)
    problem = replace(base, weights=None, must_link=None)
    if problem.n_clusters < 2:
        problem = replace(problem, n_clusters=2)
    done = reduced_of(problem)
    reduced = done.reduced
    bounds = light_cluster_bounds(reduced, StopSignal())
    if reduced.n_groups <= reduced.n_clusters:
        assert bounds is None
        pytest.skip("a cluster for every group")
    for labels in feasible_labellings(problem):
        groups = done.presolve_labels(np.array(labels))
        sizes = np.bincount(groups, minlength=reduced.n_clusters)
        exact = exact_cost(reduced.points, reduced.weights, groups)
        if sizes.min() == 0:
            assert Fraction(bounds.empty) <= exact
        for s, size in enumerate(sizes[groups].tolist()):
            if size <= bounds.values.shape[1]:
                assert Fraction(float(bounds.values[s, size - 1])) <= exact


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_sizes_are_proven_on_blobs(n_clusters):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_clusters), 20)
    points = 6.0 * np.eye(n_clusters)[truth] + rng.normal(size=(len(truth), n_clusters))
    reduced = reduced_of(Problem.from_data(points, n_clusters)).reduced
    bounds = light_cluster_bounds(reduced, StopSignal())
    means = [points[truth == k].mean(axis=0) for k in range(n_clusters)]
    cost = sum(((points[truth == k] - means[k]) ** 2).sum() for k in range(n_clusters))
    assumed, limit = bounds.reaching(cost)
    assert assumed.nonempty
    assert assumed.least.min() >= 10.0
    assert limit >= cost


@pytest.mark.parametrize("seed", range(20))
def test_block_sums(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 6))
    matrix += matrix.T
    bounds = largest_block_sums(matrix, 5)
    for _ in range(50):
        rows = rng.permutation(6)[: rng.integers(1, 6)]
        assert matrix[np.ix_(rows, rows)].sum() <= bounds[rows, len(rows) - 1].min() + 1e-12


@pytest.mark.parametrize("unweighted", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_bound_below_optimum(seed, unweighted):
    problem = soft_problem(seed, others=seed % 2 == 0)
    if unweighted:
        problem = replace(problem, weights=None)
    done = reduced_of(problem)
    best = brute_force(problem)[0]
    bound = SoftPairBound(max_iterations=100)
    model = bound.setup(BoundInput(done.reduced, None))
    cutoffs = [np.inf, float(best) - done.reduced.offset, 0.5 * float(best)]
    for cutoff in cutoffs:
        ctx = RecordingContext(StopSignal())
        found = bound.compute(model, Domain.root(done.reduced), max(cutoff, 0.0), ctx)
        for value in (found.value, *ctx.values):
            assert Fraction(done.postsolve_bound(max(0.0, value))) <= best


def test_continues_where_it_was_stopped():
    problem, cost = wrong_pairs()
    done = reduced_of(problem)
    bound = SoftPairBound(max_iterations=100)
    model = bound.setup(BoundInput(done.reduced, None))
    root = Domain.root(done.reduced)
    whole = bound.compute(model, root, cost, RecordingContext(StopSignal()))
    found, turns = None, 0
    while found is None or not found.finished:
        stop = StopSignal().with_work_limit(3e7)
        warm_start = None if found is None else encoded_and_decoded(found.warm_start)
        found = bound.compute(model, root, cost, RecordingContext(stop), warm_start)
        turns += 1
        assert turns < 60
    assert turns > 2
    assert found.value == pytest.approx(whole.value, rel=1e-9)


def wrong_pairs():
    """Two clusters with wrong must-links, and the cost of the clusters."""
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], 20)
    points = 4.0 * np.eye(2)[truth] + rng.normal(size=(40, 2))
    wrong = [(i, i + 20, 2.0) for i in range(5)]
    means = [points[truth == k].mean(axis=0) for k in range(2)]
    cost = sum(((points[truth == k] - means[k]) ** 2).sum() for k in range(2)) + 10.0
    return Problem.from_data(points, 2, soft_must_link=wrong), cost


def test_sees_more_of_penalties_than_without_sizes():
    problem, cost = wrong_pairs()
    done = reduced_of(problem)
    values = {}
    for name, cutoff in (("without", np.inf), ("with", cost)):
        bound = SoftPairBound(max_iterations=300)
        model = bound.setup(BoundInput(done.reduced, None))
        found = bound.compute(
            model, Domain.root(done.reduced), cutoff, RecordingContext(StopSignal())
        )
        values[name] = done.postsolve_bound(found.value)
    assert values["without"] < values["with"] <= cost
    assert found.numbers["min_size"] >= 5
