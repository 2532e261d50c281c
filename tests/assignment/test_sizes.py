"""`SizeAssigner`: labels within the limits, Lloyd runs, exchanges."""

from itertools import product

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.assignment import make_assigner
from certikmeans.assignment.sizes import SizeAssigner
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal


def _random_problem(seed):
    rng = np.random.default_rng(seed)
    n, k = 8, 2 + seed % 2
    points = rng.normal(size=(n, 2)) + rng.choice([0.0, 100.0])
    if seed % 4 < 2:
        demand, total = None, float(n)
    else:
        demand = rng.integers(0, 4, size=n).astype(float) if seed % 4 == 2 else rng.random(n)
        total = float(demand.sum())
    low, high = 0.4 * total / k, 1.6 * total / k
    if demand is None:
        low, high = np.floor(low), np.ceil(high)
    weights = rng.uniform(0.5, 2.0, size=n) if seed % 3 == 0 else None
    must = [(0, 1)] if seed % 5 == 0 else None
    return Problem.from_data(
        points, k, size_min=low, size_max=high, demand=demand, weights=weights, must_link=must
    )


def _feasible_labels(reduced):
    labels = product(range(reduced.n_clusters), repeat=reduced.n_groups)
    for one in labels:
        array = np.array(one)
        totals = reduced.label_constraints.sizes.totals(array)
        slack = reduced.label_constraints.sizes.tolerance
        sizes = reduced.label_constraints.sizes
        if (totals >= sizes.lower - slack).all() and (totals <= sizes.upper + slack).all():
            yield array


def _cost(reduced, labels):
    sums, masses = reduced.cluster_sums(labels)
    means = sums / np.maximum(masses, 1e-9)[:, None]
    return reduced.weights @ ((reduced.points - means[labels]) ** 2).sum(axis=1)


def _reduced(seed):
    done = presolve(_random_problem(seed), StopSignal())
    return done.reduced, make_assigner(done.reduced, next(_feasible_labels(done.reduced)))


@pytest.mark.parametrize("seed", range(24))
def test_assign_costs_against_enumeration(seed):
    reduced, assigner = _reduced(seed)
    assert isinstance(assigner, SizeAssigner)
    costs = np.random.default_rng(seed).random((reduced.n_groups, reduced.n_clusters))
    rows = np.arange(reduced.n_groups)
    expected = min(costs[rows, labels].sum() for labels in _feasible_labels(reduced))
    found = assigner.assign_costs(costs)
    assert reduced.label_constraints.satisfied_by(found.labels)
    assert found.cost == pytest.approx(costs[rows, found.labels].sum())
    assert found.lower_bound <= expected * (1.0 + 1e-12)
    assert found.cost >= expected * (1.0 - 1e-12)
    assert not found.exact or found.cost == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(24))
def test_best_of_some_lloyd_runs_is_optimal(seed):
    reduced, assigner = _reduced(seed)
    expected = min(_cost(reduced, labels) for labels in _feasible_labels(reduced))
    rng = np.random.default_rng(seed)
    costs = []
    for _ in range(20):
        rows = rng.choice(reduced.n_groups, reduced.n_clusters, replace=False)
        run = assigner.lloyd(reduced.points[rows], np.full(reduced.n_groups, -1))
        assert reduced.label_constraints.satisfied_by(run.labels)
        assert run.cost == pytest.approx(_cost(reduced, run.labels))
        costs.append(run.cost)
    assert min(costs) == pytest.approx(expected)


def test_forbidden_labels():
    points = np.arange(4.0)[:, None]
    done = presolve(Problem.from_data(points, 2, size_min=2), StopSignal())
    assigner = make_assigner(done.reduced, [0, 0, 1, 1])
    found = assigner.assign_costs([[np.inf, 0.0], [0.0, 9.0], [1.0, 9.0], [3.0, 9.0]])
    assert found.labels[0] == 1
    assert found.cost == 10.0
    found = assigner.assign_costs([[0.0, np.inf]] * 3 + [[0.0, 1.0]])
    assert found.cost == np.inf
    found = assigner.assign_costs([[np.inf, np.inf]] * 4)
    assert found.lower_bound == np.inf


def test_exchanges_leave_a_stable_point_of_lloyd():
    points = np.array([[0.0], [1.0], [1.1], [2.1], [2.2], [3.3]])
    done = presolve(Problem.from_data(points, 2, size_min=3), StopSignal())
    assigner = make_assigner(done.reduced, np.array([0, 0, 0, 1, 1, 1]))
    for labels in ([0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1]):
        sums, masses = done.reduced.cluster_sums(np.array(labels))
        run = assigner.lloyd(sums / masses[:, None], np.full(6, -1))
        assert len(set(run.labels[:3])) == 1
        assert sorted(np.bincount(run.labels)) == [3, 3]


@pytest.mark.parametrize("seed", range(2, 24, 4))
def test_integer_program_is_optimal(seed):
    reduced, assigner = _reduced(seed)
    rows = np.arange(reduced.n_groups)
    for number in range(5):
        costs = np.random.default_rng(number).random((reduced.n_groups, reduced.n_clusters))
        expected = min(costs[rows, labels].sum() for labels in _feasible_labels(reduced))
        quick = assigner.with_exact_time_limit(0.0).assign_costs(costs)
        found = assigner.with_exact_time_limit(5.0).assign_costs(costs)
        assert found.cost == pytest.approx(expected)
        assert quick.cost >= found.cost
