"""Pricing with every kind of constraints against exact enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster import driver
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.pricing import Pricer, PricingRegion
from certikmeans.incumbent import NullIncumbent
from certikmeans.problem.domain import Domain
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal

from .cluster_oracle import (
    exact_sigma_within,
    make_reduced,
    random_multipliers,
    random_reduced,
)
from .model_oracle import (
    HARD,
    SETS,
    SIZES,
    SOFT,
    column_costs,
    model_multipliers,
    model_optimum,
    model_sigma,
    random_model,
)

STALL = 600  # boxes: prices need not be exact


class Fixed(NullIncumbent):
    """Incumbent that no update replaces."""

    def __init__(self, labels):
        self._labels = labels

    def labels(self):
        return self._labels


def check_sigma(seed, kinds=None):
    reduced = random_model(seed, kinds=kinds)
    costs = column_costs(reduced)
    if not costs:
        return 0
    pricer = Pricer(reduced, priced=True)
    for number in range(3):
        lam = model_multipliers(reduced, 3 * seed + number)
        sigma = model_sigma(reduced, lam, costs)
        tolerance = 1e-6 * abs(float(sigma)) + 1e-12
        priced = pricer.price_exact(
            lam, pricer.min_value, StopSignal(), tolerance, None, STALL, tolerance
        )
        assert Fraction(priced.upper) >= sigma
        starts = list(reduced.points[:2])
        found = (*priced.columns, *pricer.price_heuristic(lam, starts))
        for column in (column for column in found if column.mass > 0.0):
            bits = sum(1 << int(s) for s in np.flatnonzero(column.members))
            scale = float(np.abs(lam).sum()) + abs(float(costs[bits]))
            assert abs(float(costs[bits]) - column.cost) <= 1e-6 * scale
    return 1


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_sigma_is_bounded_for_mixtures(start):
    assert sum(check_sigma(seed) for seed in range(start, start + 10)) > 5


@pytest.mark.parametrize("kinds", [HARD, SETS, SIZES, SOFT])
def test_sigma_is_bounded_for_each_kind(kinds):
    assert sum(check_sigma(seed, kinds) for seed in range(500, 506)) > 3


@pytest.mark.parametrize("seed", range(25))
def test_sigma_is_bounded_in_a_region(seed):
    reduced = random_reduced(seed)
    rng = np.random.default_rng(seed + 5)
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    ends = np.sort(rng.uniform(low, high, size=(2, reduced.n_dims)), axis=0)
    allowed = rng.random(reduced.n_groups) < 0.7 if rng.random() < 0.4 else None
    region = PricingRegion.of(reduced, ends[0], ends[1], allowed)
    lam = random_multipliers(reduced, seed)
    sigma = exact_sigma_within(reduced, lam, region)
    tolerance = 1e-6 * float(sigma) + 1e-12
    priced = Pricer(reduced, priced=True).price_exact(
        lam, 0.0, StopSignal(), tolerance, region, STALL, tolerance
    )
    assert Fraction(priced.upper) >= sigma


def relative_gap(seed, kinds):
    """Gap of the bound at the root if there is a feasible labelling, else None."""
    reduced = random_model(seed, kinds=kinds, largest=7)
    optimum = model_optimum(reduced, column_costs(reduced))
    if optimum is None:
        return None
    cost, labels = optimum
    bound = ClusterBound()
    model = bound.setup(BoundInput(reduced, make_assigner(reduced, labels), gap=1e-3))
    stop = StopSignal().with_work_limit(2e7)
    ctx = BoundContext(stop, at_root=True, incumbent=Fixed(labels))
    found = bound.compute(model, Domain.root(reduced), math.inf, ctx)
    assert Fraction(found.value) <= cost
    node = bound.compute(
        model, Domain.root(reduced), float(cost), BoundContext(stop), found.warm_start
    )
    assert Fraction(node.value) <= cost
    return 0.0 if cost <= 0 else float(1 - Fraction(found.value) / cost)


@pytest.mark.parametrize("kinds", [HARD, SETS, SIZES, SOFT, SETS + SOFT, HARD + SIZES, 15])
def test_bound_below_optimum(kinds):
    gaps = [relative_gap(seed, kinds) for seed in range(900, 906)]
    assert sum(gap is not None for gap in gaps) > 1


@pytest.mark.parametrize("kinds", [HARD, SETS, SIZES, SOFT])
def test_bound_without_constraints_comes_first(kinds, monkeypatch):
    monkeypatch.setattr(driver, "RELAXED_MIN_SIZE", 0)
    gaps = [relative_gap(seed, kinds) for seed in range(950, 954)]
    assert sum(gap is not None for gap in gaps) > 0


def test_dense_links_are_priced():
    labels = np.arange(210) % 3
    rng = np.random.default_rng(5)
    points = rng.normal(size=(210, 2)) + 4.0 * np.eye(3)[labels][:, :2]
    ends = rng.integers(210, size=(900, 2))
    pairs = ends[labels[ends[:, 0]] != labels[ends[:, 1]]]
    reduced = make_reduced(points, np.ones(210), pairs, 3)
    _, order = build_cannot_link_graph(210, np.asarray(pairs, dtype=np.int64))
    incumbent = labels[order]
    bound = ClusterBound()
    model = bound.setup(BoundInput(reduced, make_assigner(reduced, incumbent), gap=1e-2))
    ctx = BoundContext(StopSignal().with_work_limit(2e9), at_root=True, incumbent=Fixed(incumbent))
    found = bound.compute(model, Domain.root(reduced), math.inf, ctx)
    sums, masses = reduced.cluster_sums(incumbent)
    away = reduced.points - (sums / masses[:, None])[incumbent]
    cost = float(np.sum(away * away))
    assert Pricer(reduced).constraints is not None
    assert 0.9 * cost < found.value <= cost
