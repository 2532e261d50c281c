"""Assignment under any mix of constraints, against enumeration."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.assignment import make_assigner
from certikmeans.assignment.model import ModelAssigner
from certikmeans.kernels.label_search.matching import match_set, match_sets
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_feasible
from tests.assignment.kinds import KINDS, drawn_problem, least_cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_against_enumeration(kind, seed):
    _, done = drawn_problem(seed, kind)
    reduced = done.reduced
    assigner = make_assigner(reduced, done.feasible_labels)
    assert isinstance(assigner, ModelAssigner)
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(reduced.n_groups, reduced.n_clusters)) * 10.0 ** rng.integers(-3, 4)
    found = assigner.assign_costs(costs)
    check_feasible(reduced, found.labels)
    optimum = least_cost(reduced, costs)
    assert found.lower_bound <= optimum * (1.0 + 1e-12)
    assert found.cost >= optimum * (1.0 - 1e-12)
    rows = np.arange(reduced.n_groups)
    penalty = reduced.label_constraints.penalty(found.labels)
    assert found.cost == pytest.approx(costs[rows, found.labels].sum() + penalty, rel=1e-12)
    if found.exact:
        assert found.cost == pytest.approx(optimum, rel=1e-12)
    if kind == "sets":
        assert found.exact
        assert found.lower_bound == pytest.approx(optimum, rel=1e-9)
    again = make_assigner(reduced, done.feasible_labels).assign_costs(costs)
    assert np.array_equal(found.labels, again.labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_most_assignments_are_cheapest(kind, seed):
    """A search without proof finds the optimum of such small tables."""
    _, done = drawn_problem(seed, kind, largest=6)
    reduced = done.reduced
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(reduced.n_groups, reduced.n_clusters))
    found = make_assigner(reduced, done.feasible_labels).assign_costs(costs)
    assert found.cost <= 1.2 * least_cost(reduced, costs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_lloyd_never_rises(kind, seed):
    _, done = drawn_problem(seed, kind)
    reduced = done.reduced
    assigner = make_assigner(reduced, done.feasible_labels)
    labels = done.feasible_labels.copy()
    sums, masses = reduced.cluster_sums(labels)
    centers = sums / np.maximum(masses, 1e-9)[:, None]
    run = assigner.lloyd(centers, labels, 20)
    check_feasible(reduced, run.labels)
    assert run.cost <= _cost(reduced, done.feasible_labels) * (1.0 + 1e-9)
    assert run.cost == pytest.approx(_cost(reduced, run.labels), rel=1e-9)


def _cost(reduced, labels):
    sums, masses = reduced.cluster_sums(labels)
    filled = masses > 0.0
    square = (reduced.weights[:, None] * reduced.points**2).sum()
    inside = float(square - ((sums[filled] ** 2).sum(axis=1) / masses[filled]).sum())
    return inside + reduced.label_constraints.penalty(labels)


def test_forbidden_labels():
    done = presolve(
        Problem.from_data([[0.0], [1.0], [5.0]], 2, cannot_link_groups=[0, 0, -1]), StopSignal()
    )
    assigner = make_assigner(done.reduced, done.feasible_labels)
    found = assigner.assign_costs([[1.0, np.inf], [1.0, 7.0], [np.inf, 2.0]])
    assert found.labels.tolist() == [0, 1, 1]
    assert found.cost == 10.0
    assert found.lower_bound == pytest.approx(10.0)
    impossible = assigner.assign_costs([[np.inf, np.inf], [1.0, 7.0], [1.0, 2.0]])
    assert impossible.cost == impossible.lower_bound == np.inf
    check_feasible(done.reduced, impossible.labels)


@pytest.mark.parametrize("seed", range(40))
def test_matching_of_one_set(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    m = int(rng.integers(1, k + 1))
    # Ties, too.
    costs = rng.uniform(size=(m, k)) if seed % 2 else rng.integers(3, size=(m, k)).astype(float)
    labels, prices = np.empty(m, dtype=np.int64), np.empty(k)
    match_set(costs, labels, prices)
    assert len(set(labels.tolist())) == m
    optimum = min(costs[np.arange(m), list(one)].sum() for one in permutations(range(k), m))
    assert costs[np.arange(m), labels].sum() == pytest.approx(optimum, rel=1e-12, abs=1e-12)
    assert (prices <= 0.0).all()
    dual = (costs - prices).min(axis=1).sum() + prices.sum()
    assert dual == pytest.approx(optimum, rel=1e-9, abs=1e-12)


def test_sets_without_clash_keep_their_labels():
    costs = np.array([[0.0, 5.0], [5.0, 0.0], [1.0, 2.0]])
    labels = costs.argmin(axis=1)
    assert match_sets(costs, np.array([0, 2]), np.array([0, 1]), labels) == (0.0, 0.0)
    assert labels.tolist() == [0, 1, 0]
