"""Bundle with many clusters: convergence, step rules, continuation."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.bundle import Bundle, BundleParams
from certikmeans.bounds.cluster.dual_box import make_dual_box
from certikmeans.bounds.cluster.initial_point import BundleStart
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound, sum_upper_bound
from certikmeans.bounds.cluster.step_rule import BundleStatus, LevelStep, SmoothedAscent, Target
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal

N_CLUSTERS = 20


def column_of(reduced, members):
    weights, points = reduced.weights[members], reduced.points[members]
    mean = weights @ points / weights.sum()
    cost = float(weights @ ((points - mean) ** 2).sum(axis=1))
    return Column.of(mean, members.astype(np.uint8), float(weights.sum()), cost, 0.0)


def bundle_of(seed, on_bound=lambda value: None, **params):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.0, 20.0, size=(N_CLUSTERS, 2))
    points = centers[rng.integers(N_CLUSTERS, size=400)] + rng.normal(scale=1.0, size=(400, 2))
    reduced = presolve(Problem.from_data(points, N_CLUSTERS), StopSignal()).reduced
    labels = KMeans(N_CLUSTERS, n_init=60, random_state=0).fit(reduced.points).labels_
    incumbent = [column_of(reduced, labels == k) for k in range(N_CLUSTERS)]
    pricer = Pricer(reduced)
    sym_classes = [SymmetryClass(pricer.full_region, tuple(range(N_CLUSTERS)))]
    dual_box = make_dual_box(reduced, labels.astype(np.int64))
    known = BundleStart([(0, column) for column in incumbent])
    bundle = Bundle(
        pricer, dual_box, sym_classes, known, on_bound=on_bound, params=BundleParams(**params)
    )
    return bundle, sum(column.cost for column in incumbent)


@pytest.mark.parametrize("seed", range(2))
def test_many_clusters_converge(seed):
    bounds = []
    bundle, cost = bundle_of(seed, bounds.append)
    abs_gap = 0.01 * cost

    status = bundle.run(
        Target(bound=cost - abs_gap, level=cost - 0.25 * abs_gap, abs_gap=abs_gap), StopSignal()
    )

    assert status is not BundleStatus.STOPPED
    assert isinstance(bundle.step_rule, SmoothedAscent)
    assert bounds == sorted(bounds)
    assert bundle.lower_bound <= cost
    # The target is proven, or the bound is close to the maximum of the model.
    assert bundle.lower_bound >= min(cost - abs_gap, bundle.upper_bound - 0.5 * abs_gap)
    priced = bundle.pricer.price_exact(
        bundle.lower_bound_multipliers, 0.0, StopSignal(), tolerance=1e-3 * abs_gap
    )
    spent = sum_upper_bound(0.0, N_CLUSTERS, priced.upper)
    again = lagrangian_lower_bound(bundle.lower_bound_multipliers, spent)
    assert again == pytest.approx(bundle.lower_bound, abs=0.3 * abs_gap)


@pytest.mark.parametrize("projections", [2, 12])
def test_projections_first_with_many_groups(projections):
    step_rules = []
    bundle, cost = bundle_of(0, projection_min_groups=100, max_initial_projections=projections)
    abs_gap = 3e-4 * cost
    target = Target(bound=cost - abs_gap, level=cost - 0.25 * abs_gap, abs_gap=abs_gap)
    bundle.run(target, StopSignal(), on_round=lambda: step_rules.append(type(bundle.step_rule)))
    # Step rules of all rounds: the smoothed ascent begins after the projections.
    assert step_rules.index(SmoothedAscent) + 1 == projections
    assert set(step_rules[: projections - 1]) == {LevelStep}
    assert bundle.lower_bound <= cost
    assert bundle.upper_bound < cost - abs_gap  # out of reach: as high as it gets, or nearly
    assert bundle.lower_bound >= bundle.upper_bound - 0.1 * (cost - bundle.upper_bound)


def test_continued_bundle_keeps_projection_budget():
    first, cost = bundle_of(0, projection_min_groups=100, max_initial_projections=12)
    abs_gap = 3e-4 * cost
    target, saved = Target(bound=cost - abs_gap, level=cost - 0.25 * abs_gap, abs_gap=abs_gap), []
    first.run(
        target,
        StopSignal(),
        max_rounds=6,
        on_round=lambda: saved.append(copy.deepcopy(first.state())),
    )
    step_rules = []
    again = Bundle.from_state(first.pricer, lambda value: None, saved[4])  # after five rounds
    again.run(
        target,
        StopSignal(),
        max_rounds=12,
        on_round=lambda: step_rules.append(type(again.step_rule)),
    )
    assert step_rules.index(SmoothedAscent) + 1 == 12 - 5


def test_no_smoothed_ascent_if_projections_suffice():
    bundle, cost = bundle_of(0, projection_min_groups=100, max_initial_projections=60)
    abs_gap = 0.05 * cost
    status = bundle.run(Target(cost - abs_gap, cost - 0.25 * abs_gap, abs_gap), StopSignal())
    assert status is BundleStatus.PROVEN
    assert isinstance(bundle.step_rule, LevelStep)
    assert cost - abs_gap <= bundle.lower_bound <= cost


def test_weights_sum_to_cluster_count():
    bundle, cost = bundle_of(3)
    abs_gap = 1e-3 * cost
    bundle.run(Target(cost - abs_gap, cost - 0.25 * abs_gap, abs_gap), StopSignal(), max_rounds=12)
    weights = bundle.model.weights
    assert len(weights) == len(bundle.model.columns)
    assert np.all(weights >= 0.0)
    assert 0.9 * N_CLUSTERS <= weights.sum() <= N_CLUSTERS * (1.0 + 1e-9)


def test_as_many_clusters_as_groups():
    # What a tree on pairs comes to: nothing is left to be raised, and nothing to divide by.
    points = np.random.default_rng(0).normal(size=(8, 2))
    problem = Problem.from_data(points, 6, must_link=[(0, 1), (2, 3)])
    done = presolve(problem, StopSignal())
    inputs = BoundInput(done.reduced, make_assigner(done.reduced, done.feasible_labels))
    bound = ClusterBound()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bound.compute(bound.setup(inputs), Domain.root(done.reduced), 1.0, BoundContext())
    assert found.value == 0.0
    assert np.isfinite(found.warm_start.multipliers).all()
