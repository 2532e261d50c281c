"""The bundle with many clusters: hundreds of cuts at once, and a bound that stays one."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import Setting
from certikmeans.bounds.cluster import bundle as bundle_module
from certikmeans.bounds.cluster.aim import Aim, Outcome
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.bundle import Bundle
from certikmeans.bounds.cluster.columns import Known
from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.level import LevelMover
from certikmeans.bounds.cluster.multipliers import multiplier_space
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_below, total_above
from certikmeans.bounds.cluster.smooth import SmoothMover
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal

N_CLUSTERS = 20


def column_of(reduced, members):
    weights, points = reduced.weights[members], reduced.points[members]
    mean = weights @ points / weights.sum()
    cost = float(weights @ ((points - mean) ** 2).sum(axis=1))
    return Column.of(mean, members.astype(np.uint8), float(weights.sum()), cost, 0.0)


def bundle_of(seed, on_bound):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.0, 20.0, size=(N_CLUSTERS, 2))
    points = centres[rng.integers(N_CLUSTERS, size=400)] + rng.normal(scale=1.0, size=(400, 2))
    reduced = presolve(Problem.from_data(points, N_CLUSTERS), StopSignal()).reduced
    labels = KMeans(N_CLUSTERS, n_init=60, random_state=0).fit(reduced.points).labels_
    incumbent = [column_of(reduced, labels == k) for k in range(N_CLUSTERS)]
    pricer = Pricer(reduced)
    families = [Family(pricer.everywhere, tuple(range(N_CLUSTERS)))]
    space = multiplier_space(reduced, labels.astype(np.int64))
    known = Known([(0, column) for column in incumbent])
    bundle = Bundle(pricer, space, families, known, on_bound=on_bound)
    return bundle, sum(column.cost for column in incumbent)


@pytest.mark.parametrize("seed", range(2))
def test_many_clusters_converge(seed):
    bounds = []
    bundle, cost = bundle_of(seed, bounds.append)
    unit = 0.01 * cost

    outcome = bundle.run(Aim(goal=cost - unit, level=cost - 0.25 * unit, unit=unit), StopSignal())

    assert outcome is not Outcome.STOPPED
    assert isinstance(bundle.mover, SmoothMover)
    assert bounds == sorted(bounds)
    assert bundle.proven <= cost
    # It ends only when the goal is proven, or nearly all that the cuts allow.
    assert bundle.proven >= min(cost - unit, bundle.ceiling - 0.5 * unit)
    priced = bundle.pricer.exact(bundle.proven_lam, 0.0, StopSignal(), tolerance=1e-3 * unit)
    spent = total_above(0.0, N_CLUSTERS, priced.upper)
    again = lagrangian_below(bundle.proven_lam, spent)
    assert again == pytest.approx(bundle.proven, abs=0.3 * unit)


@pytest.mark.parametrize("projections", [2, 12])
def test_with_many_groups_projections_are_tried_first(monkeypatch, projections):
    monkeypatch.setattr(bundle_module, "PROJECTED_FROM", 100)
    monkeypatch.setattr(bundle_module, "PROJECTIONS", projections)
    movers = []
    bundle, cost = bundle_of(0, lambda value: None)
    unit = 3e-4 * cost
    aim = Aim(goal=cost - unit, level=cost - 0.25 * unit, unit=unit)
    bundle.run(aim, StopSignal(), on_round=lambda: movers.append(type(bundle.mover)))
    assert movers.index(SmoothMover) == projections  # not enough of them: the climb goes on
    assert set(movers[:projections]) == {LevelMover}
    assert bundle.proven <= cost
    assert bundle.ceiling < cost - unit  # out of reach: as high as it gets, or nearly
    assert bundle.proven >= bundle.ceiling - 0.1 * (cost - bundle.ceiling)


def test_who_goes_on_tries_no_more_projections_than_were_left(monkeypatch):
    monkeypatch.setattr(bundle_module, "PROJECTED_FROM", 100)
    monkeypatch.setattr(bundle_module, "PROJECTIONS", 12)
    first, cost = bundle_of(0, lambda value: None)
    unit = 3e-4 * cost
    aim, saved = Aim(goal=cost - unit, level=cost - 0.25 * unit, unit=unit), []
    first.run(
        aim,
        StopSignal(),
        most_rounds=6,
        on_round=lambda: saved.append(copy.deepcopy(first.kept())),
    )
    again, movers = bundle_of(0, lambda value: None)[0], []
    again.restore(saved[5])
    again.run(aim, StopSignal(), most_rounds=12, on_round=lambda: movers.append(type(again.mover)))
    assert movers.index(SmoothMover) == 12 - 5


def test_where_few_projections_are_enough_nothing_is_climbed(monkeypatch):
    monkeypatch.setattr(bundle_module, "PROJECTED_FROM", 100)
    monkeypatch.setattr(bundle_module, "PROJECTIONS", 60)
    bundle, cost = bundle_of(0, lambda value: None)
    unit = 0.05 * cost
    outcome = bundle.run(Aim(cost - unit, cost - 0.25 * unit, unit), StopSignal())
    assert outcome is Outcome.PROVEN
    assert isinstance(bundle.mover, LevelMover)
    assert cost - unit <= bundle.proven <= cost


def test_weights_are_a_mixture_of_columns():
    bundle, cost = bundle_of(3, lambda value: None)
    unit = 1e-3 * cost
    bundle.run(Aim(cost - unit, cost - 0.25 * unit, unit), StopSignal(), most_rounds=12)
    weights = bundle.model.weights
    assert len(weights) == len(bundle.model.columns)
    assert np.all(weights >= 0.0)
    assert 0.9 * N_CLUSTERS <= weights.sum() <= N_CLUSTERS * (1.0 + 1e-9)


def test_a_part_with_as_many_clusters_as_groups_costs_nothing():
    # What a tree on pairs comes to: nothing is left to be raised, and nothing to divide by.
    points = np.random.default_rng(0).normal(size=(8, 2))
    problem = Problem.from_data(points, 6, must_link=[(0, 1), (2, 3)])
    done = presolve(problem, StopSignal())
    setting = Setting(done.reduced, assigner_for(done.reduced, done.witness))
    bound = ClusterBound()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bound.evaluate(
            bound.prepare(setting), Subproblem.root(done.reduced), 1.0, StopSignal()
        )
    assert found.value == 0.0
    assert np.isfinite(found.restart.multipliers).all()
