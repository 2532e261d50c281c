"""Pricing with every kind of constraints against exact enumeration."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.driver import ClusterParams
from certikmeans.bounds.cluster.marginal_costs import set_duals
from certikmeans.bounds.cluster.pricing import Pricer, PricingParams, PricingRegion
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.incumbent import NullIncumbent
from certikmeans.problem.data import Domain
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


@pytest.mark.parametrize(
    ("start", "count"),
    [(0, 4), *(pytest.param(first, 10, marks=pytest.mark.slow) for first in range(0, 40, 10))],
)
def test_sigma_is_bounded_for_mixtures(start, count):
    assert sum(check_sigma(seed) for seed in range(start, start + count)) > count // 2


@pytest.mark.parametrize("kinds", [HARD, SETS, SIZES, SOFT])
def test_sigma_is_bounded_for_each_kind(kinds):
    assert sum(check_sigma(seed, kinds) for seed in range(500, 506)) > 3


def with_disjoint_sets(seed):
    """Random problem whose only constraints are sets, no two of which overlap."""
    reduced = random_model(seed, kinds=0, largest=10)
    n, rng = reduced.n_groups, np.random.default_rng(seed)
    number = rng.integers(0, max(2, n // 3), size=n)
    sets = CannotLinkSets.of(n, [np.flatnonzero(number == i) for i in range(n // 3)])
    model = ConstraintModel.of(reduced.label_constraints.cannot_links, sets, None, None)
    return dataclasses.replace(reduced, label_constraints=model)


@pytest.mark.parametrize("seed", range(40))
def test_sigma_with_disjoint_sets(seed):
    reduced = with_disjoint_sets(seed)
    costs, pricer = column_costs(reduced), Pricer(reduced, priced=True)
    for number in range(3):
        lam = model_multipliers(reduced, 3 * seed + number)
        sigma = model_sigma(reduced, lam, costs)
        tolerance = 1e-5 * float(sigma) + 1e-12
        priced = pricer.price_exact(lam, 0.0, StopSignal(), tolerance)
        assert Fraction(priced.upper) >= sigma
        # Boxes and prices leave no gap: the sets are part of no cycle.
        assert priced.upper <= float(sigma) + 3.0 * tolerance + 8.0 * pricer.error(lam)


@pytest.mark.parametrize("seed", range(20))
def test_sigma_with_disjoint_sets_in_a_region(seed):
    reduced = with_disjoint_sets(seed)
    rng = np.random.default_rng(seed + 7)
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    ends = np.sort(rng.uniform(low, high, size=(2, reduced.n_dims)), axis=0)
    region = PricingRegion.of(reduced, ends[0], ends[1], None)
    lam = model_multipliers(reduced, seed)
    sigma = Fraction(0)
    for bits, cost in column_costs(reduced).items():
        members = [s for s in range(reduced.n_groups) if bits >> s & 1]
        if members:
            masses = [Fraction(float(reduced.weights[s])) for s in members]
            value = sum((Fraction(float(lam[s])) for s in members), Fraction(0)) - cost
            for j in range(reduced.n_dims):
                column = [Fraction(float(reduced.points[s, j])) for s in members]
                mean = sum(w * x for w, x in zip(masses, column, strict=True)) / sum(masses)
                faces = [float(v) for v in region.active_faces[:, j]]
                inside = mean
                if np.isfinite(faces[0]):
                    inside = max(inside, Fraction(faces[0]))
                if np.isfinite(faces[1]):
                    inside = min(inside, Fraction(faces[1]))
                value -= sum(masses) * (mean - inside) ** 2
            sigma = max(sigma, value)
    tolerance = 1e-6 * float(sigma) + 1e-12
    priced = Pricer(reduced, priced=True).price_exact(
        lam, 0.0, StopSignal(), tolerance, region, STALL, tolerance
    )
    assert Fraction(priced.upper) >= sigma


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_clusters", [4, 6])
def test_duals_of_sets_are_complementary(seed, n_clusters):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(8, n_clusters))
    members = [np.arange(4), np.arange(4, 8)]
    labels = np.concatenate([linear_sum_assignment(costs[one])[1] for one in members])
    own = costs[np.arange(8), labels]
    least, limits = set_duals(CannotLinkSets.of(8, members), costs, own, labels)
    for lam in (own + least, limits):
        for one in members:
            pays = np.zeros(n_clusters)
            pays[labels[one]] = (lam - own)[one]
            assert pays.min() >= -1e-12
            assert (lam[one, None] <= costs[one] + pays + 1e-12).all()
    assert (limits >= own + least - 1e-12).all()


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


def relative_gap(seed, kinds, **params):
    """Gap of the bound at the root if there is a feasible labelling, else None."""
    reduced = random_model(seed, kinds=kinds, largest=7)
    optimum = model_optimum(reduced, column_costs(reduced))
    if optimum is None:
        return None
    cost, labels = optimum
    bound = ClusterBound(ClusterParams(**params))
    model = bound.setup(BoundInput(reduced, make_assigner(reduced, labels), gap=1e-3))
    stop = StopSignal().with_work_limit(2e7)
    ctx = BoundContext(stop, at_root=True, incumbent=NullIncumbent(labels))
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
def test_bound_without_constraints_comes_first(kinds):
    gaps = [relative_gap(seed, kinds, relaxed_min_size=0) for seed in range(950, 954)]
    assert sum(gap is not None for gap in gaps) > 0


def test_ascents_are_continued_in_pieces():
    reduced = random_model(3, kinds=HARD + SOFT, largest=10)
    lam, starts = model_multipliers(reduced, 4), list(reduced.points)
    whole = Pricer(reduced, priced=True).price_heuristic(lam, starts)
    params = PricingParams(preview_min_arcs=0, continued_ascents=len(starts), continued_steps=1)
    pieces = Pricer(reduced, params=params, priced=True)
    assert pieces.slow_ascents
    found = pieces.price_heuristic(lam, starts)
    assert found[0].value == pytest.approx(whole[0].value, rel=1e-12)
    stop = StopSignal()
    stop.interrupt()
    assert pieces.price_heuristic(lam, starts, stop=stop) == []


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
    ctx = BoundContext(
        StopSignal().with_work_limit(2e9), at_root=True, incumbent=NullIncumbent(incumbent)
    )
    found = bound.compute(model, Domain.root(reduced), math.inf, ctx)
    sums, masses = reduced.cluster_sums(incumbent)
    away = reduced.points - (sums / masses[:, None])[incumbent]
    cost = float(np.sum(away * away))
    assert Pricer(reduced).constraints is not None
    assert 0.9 * cost < found.value <= cost
