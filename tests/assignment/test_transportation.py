"""Assignment with limits on cluster sizes against linear programming and enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from certikmeans.assignment.transportation import assign_sizes, transportation_bound
from certikmeans.constraint_model.sizes import SizeLimits


def _relaxation(costs, limits):
    """Value of the linear relaxation; infinite if it is infeasible."""
    n, k = costs.shape
    of_point = np.kron(np.eye(n), np.ones(k))
    of_cluster = np.kron(limits.demand, np.eye(k))
    found = linprog(
        costs.ravel() / np.abs(costs).max(),
        A_ub=np.concatenate([of_cluster, -of_cluster]),
        b_ub=np.concatenate([limits.upper, -limits.lower]),
        A_eq=of_point,
        b_eq=np.ones(n),
    )
    return found.fun * np.abs(costs).max() if found.status == 0 else np.inf


def _cheapest(costs, limits):
    """Least cost of all labellings within the limits, or infinity."""
    n, k = costs.shape
    feasible = (np.array(labels) for labels in product(range(k), repeat=n))
    totals = ((labels, np.bincount(labels, limits.demand, k)) for labels in feasible)
    slack = limits.tolerance
    return min(
        (
            costs[np.arange(n), labels].sum()
            for labels, total in totals
            if (total >= limits.lower - slack).all() and (total <= limits.upper + slack).all()
        ),
        default=np.inf,
    )


def _cost_and_bound(costs, limits, prices=None):
    """Cost and dual value of feasible, exact labels; infinite if there are none."""
    try:
        found = assign_sizes(costs, limits, prices=prices)
    except ValueError:
        return np.inf, np.inf
    assert found.exact
    assert limits.satisfied_by(found.labels)
    cost = costs[np.arange(len(costs)), found.labels].sum()
    return cost, transportation_bound(costs, limits, found.prices)


def _random_costs(rng, n, k):
    if rng.random() < 0.3:  # ties
        return rng.integers(0, 4, size=(n, k)).astype(float) + 1.0
    return rng.random((n, k)) * rng.choice([1e-6, 1.0, 1e6])


def _random_limits(rng, n, k):
    lower = np.floor(n / k * rng.random(k) * rng.choice([0.0, 1.0]))
    return lower, np.minimum(n, np.ceil(lower + rng.random(k) * 2.5 * n / k))


@pytest.mark.parametrize("seed", range(60))
def test_units_against_linear_programming(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 30)), int(rng.integers(2, 7))
    costs = _random_costs(rng, n, k)
    limits = SizeLimits(np.ones(n), *_random_limits(rng, n, k))
    prices = rng.normal(size=k) * costs.max() if seed % 2 else None
    cost, bound = _cost_and_bound(costs, limits, prices)
    assert cost == pytest.approx(_relaxation(costs, limits), rel=1e-6)
    assert bound <= cost
    assert bound == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([2, 2, 2], [2, 2, 2]),
        ([0, 0, 0], [6, 6, 6]),
        ([0, 0, 6], [6, 6, 6]),
        ([1, 0, 0], [1, 5, 4]),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_units_against_enumeration(lower, upper, seed):
    costs = np.random.default_rng(seed).normal(size=(6, 3))
    limits = SizeLimits(np.ones(6), np.array(lower, float), np.array(upper, float))
    found = assign_sizes(costs, limits)
    assert costs[np.arange(6), found.labels].sum() == pytest.approx(_cheapest(costs, limits))


@pytest.mark.parametrize("seed", range(10))
def test_groups_without_demand_and_common_demand(seed):
    rng = np.random.default_rng(seed)
    demand = np.where(rng.random(7) < 0.3, 0.0, 0.7)
    demand[0] = 0.7
    total = float(demand.sum())
    limits = SizeLimits(demand, np.full(2, 0.3 * total), np.full(2, 0.7 * total))
    costs = rng.random((7, 2))
    assert _cost_and_bound(costs, limits)[0] == pytest.approx(_cheapest(costs, limits))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_groups_are_feasible_and_bounded(whole, seed):
    rng = np.random.default_rng(seed)
    demand = rng.integers(1, 4, size=8).astype(float) if whole else rng.random(8) + 0.1
    mean = demand.sum() / 3
    lower, upper = np.full(3, np.floor(0.4 * mean)), np.full(3, np.ceil(1.6 * mean))
    limits, costs = SizeLimits(demand, lower, upper), rng.random((8, 3))
    expected = _cheapest(costs, limits)
    found = assign_sizes(costs, limits)
    cost = costs[np.arange(8), found.labels].sum()
    assert limits.satisfied_by(found.labels)
    assert transportation_bound(costs, limits, found.prices) <= expected <= cost + 1e-12
    assert not found.exact or cost == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_bound_for_any_prices(seed):
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 4, size=7).astype(float) if seed % 2 else rng.random(7)
    mean = demand.sum() / 2
    limits = SizeLimits(demand, np.array([0.2, 0.6]) * mean, np.array([1.5, 1.4]) * mean)
    costs = rng.normal(size=(7, 2))
    bound = transportation_bound(costs, limits, 2.0 * rng.normal(size=2))
    assert bound <= _cheapest(costs, limits)


def test_start_labels_where_none_are_found():
    limits = SizeLimits(np.array([3.0, 3.0, 2.0, 2.0, 2.0]), np.full(2, 6.0), np.full(2, 6.0))
    start = np.array([0, 0, 1, 1, 1])
    found = assign_sizes(np.zeros((5, 2)), limits, start_labels=start)
    assert limits.satisfied_by(found.labels)


def test_many_moves_refill_the_heaps():
    rng = np.random.default_rng(0)
    points = np.concatenate([np.zeros(2000), rng.random(40) + 5.0])
    costs = (points[:, None] - np.array([0.0, 5.0, 6.0, 7.0])) ** 2 + 0.1 * rng.random((2040, 4))
    limits = SizeLimits(np.ones(2040), np.full(4, 510.0), np.full(4, 510.0))
    found = assign_sizes(costs, limits, prices=np.array([0.0, 1e-9, 0.0, 0.0]))
    cost = costs[np.arange(2040), found.labels].sum()
    assert limits.satisfied_by(found.labels)
    assert transportation_bound(costs, limits, found.prices) == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("kind", ["one cloud", "far apart", "duplicates"])
@pytest.mark.parametrize("seed", range(6))
def test_short_heaps_are_filled_where_paths_need_more(kind, seed):
    rng = np.random.default_rng(seed)
    n, k = 4000, 3 + seed % 3
    centers = rng.normal(size=(k, 2)) * (100.0 if kind == "far apart" else 1.0)
    shares = rng.dirichlet(np.full(k, 5.0))
    points = centers[rng.choice(k, n, p=shares)] + rng.normal(size=(n, 2))
    if kind == "duplicates":
        points = np.round(points)
    costs = ((points[:, None, :] - centers) ** 2).sum(axis=2)
    sizes = np.bincount(np.argmin(costs, axis=1), minlength=k)
    # Little excess at prices of 0, and limits that the second call moves by a little.
    for shift in (10, 25):
        limits = SizeLimits(np.ones(n), np.maximum(sizes - 900.0, 0.0), sizes + shift - 20.0)
        limits.upper[0] = n
        found = assign_sizes(costs, limits, prices=np.full(k, 1e-9))
        cost = costs[np.arange(n), found.labels].sum()
        assert limits.satisfied_by(found.labels)
        assert transportation_bound(costs, limits, found.prices) == pytest.approx(cost, rel=1e-9)
