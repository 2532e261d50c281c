"""SDP bound with sizes, sets and soft pairs: below every labelling, in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from sklearn.datasets import load_iris

from certikmeans import Problem
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.sdp import SdpBound
from certikmeans.bounds.sdp.admm import Admm
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.limits import AssumedSizes, weight_limits
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.bounds.sdp.size_cuts import SizeRule
from certikmeans.errors import InputError
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem, soft_problem
from certikmeans.testing.oracle import exact_cost, exact_penalty, feasible_labellings
from tests.bounds.sdp_cases import inaccurate_eigensolver, reduced_of


def sized_problem(seed, largest=7):
    """Equal, common or separate limits, demands; weights with or without them."""
    for number in range(1_000):
        rng = np.random.default_rng([seed, number])
        base = feasible_problem(1_000_003 * number + seed, largest=largest)
        n, k = base.n_points, base.n_clusters
        kind = rng.integers(4)
        if kind == 0:
            changes = {"size_min": n // k, "size_max": -(-n // k)}
        elif kind == 1:
            least, most = rng.integers(0, n // k + 1), rng.integers(-(-n // k), n + 1)
            changes = {"size_min": int(least), "size_max": int(most)}
        elif kind == 2:
            changes = {"size_max": rng.integers(1, n + 1, size=k).astype(float)}
        else:
            demand = np.round(rng.uniform(0.0, 3.0, size=n), int(rng.integers(0, 3)))
            share = demand.sum() / k
            changes = {"demand": demand, "size_min": float(rng.uniform(0.0, share))}
            changes["size_max"] = float(rng.uniform(share, k * share + 1.0))
        if rng.random() < 0.5:
            changes["weights"] = np.ones(n)
        try:
            problem = replace(base, **changes)
        except InputError:
            continue
        if next(feasible_labellings(problem), None) is not None:
            return problem
    raise AssertionError(f"no feasible problem from seed {seed}")


def least_cost(problem, done):
    """Least exact cost of the reduced problem, with the exact penalty of its soft pairs."""
    reduced, costs = done.reduced, []
    soft = reduced.label_constraints.soft
    for labels in feasible_labellings(problem):
        groups = done.presolve_labels(np.array(labels))
        cost = exact_cost(reduced.points, reduced.weights, groups)
        if soft is not None:
            first, second = groups[soft.pairs].T
            violated = (first == second) != (soft.bonus > 0.0)
            cost += sum(map(Fraction, np.abs(soft.bonus[violated]).tolist()), Fraction(0))
        costs.append(cost)
    return min(costs)


def random_multipliers(rng, model):
    """Multipliers of any sign and size, for entries, triangles and sets."""
    n = model.n_groups
    unit = model.total * 10.0 ** rng.integers(-4, 2) / max(model.mass, 1e-300)
    entries = rng.normal(size=(n, n)) * unit * model.mass / n
    if rng.random() < 0.5:
        entries = np.maximum(entries, 0.0)
    cuts = np.empty((0, 3), dtype=np.int64)
    if n >= 3:
        cuts = np.array([rng.choice(n, 3, replace=False) for _ in range(rng.integers(1, 20))])
    count = rng.integers(0, 4)
    return MatrixMultipliers(
        entries,
        cuts.astype(np.int64),
        rng.normal(size=len(cuts)) * unit * model.mass,
        rng.random((count, n)) < 0.5,
        rng.normal(size=count) * unit,
    )


def drawn(kind, seed):
    return sized_problem(seed) if kind == "sizes" else soft_problem(seed, others=True)


@pytest.mark.parametrize("kind", ["sizes", "soft"])
@pytest.mark.parametrize("seed", range(60))
def test_any_multipliers_give_valid_bound(seed, kind, monkeypatch):
    problem = drawn(kind, seed)
    done = reduced_of(problem)
    least = least_cost(problem, done)
    model = SdpModel.of(done.reduced)
    rng = np.random.default_rng(seed)
    if seed % 4 == 0:
        monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    for _ in range(12):
        assert Fraction(safe_bound(model, random_multipliers(rng, model))) <= least


@pytest.mark.parametrize("kind", ["sizes", "soft"])
@pytest.mark.parametrize("seed", range(40))
def test_bound_of_whole_problem(seed, kind):
    problem = drawn(kind, seed)
    done = reduced_of(problem)
    least = least_cost(problem, done)
    bound = SdpBound(max_iterations=150)
    model = bound.setup(BoundInput(done.reduced, None))
    found = bound.compute(model, Domain.root(done.reduced), np.inf, BoundContext())
    assert Fraction(found.value) <= least
    stated = min(
        exact_cost(problem.points, problem.weights, labels) + exact_penalty(problem, labels)
        for labels in feasible_labellings(problem)
    )
    assert Fraction(done.postsolve_bound(found.value)) <= stated


@pytest.mark.parametrize("seed", range(60))
def test_weight_limits_hold(seed):
    problem = sized_problem(seed)
    done = reduced_of(problem)
    limits = weight_limits(done.reduced)
    n_nonempty = []
    for labels in feasible_labellings(problem):
        groups = done.presolve_labels(np.array(labels))
        masses = [
            sum(map(Fraction, done.reduced.weights[groups == k].tolist()), Fraction(0))
            for k in np.unique(groups)
        ]
        n_nonempty.append(len(masses))
        if limits is not None:
            assert Fraction(limits.low) <= min(masses)
            assert max(masses) <= Fraction(limits.high)
    assert limits is None or limits.min_clusters <= min(n_nonempty)


def most_together(sizes, weight):
    """Largest sum of m^2 / size over parts m of the sizes with this sum."""
    parts = product(*(range(size + 1) for size in sizes))
    squares = (
        sum(Fraction(m * m, size) for m, size in zip(part, sizes, strict=True))
        for part in parts
        if sum(part) == weight
    )
    return max(squares)


@pytest.mark.parametrize(("n_points", "n_clusters"), [(7, 3), (8, 2), (9, 3), (8, 4)])
def test_least_loss_is_exact(n_points, n_clusters):
    for low in range(1, n_points // n_clusters + 1):
        for high in range(-(-n_points // n_clusters), n_points + 1):
            possible = [
                sizes
                for sizes in combinations_with_replacement(range(low, high + 1), n_clusters)
                if sum(sizes) == n_points
            ]
            rule = SizeRule(n_clusters, n_points, low, high)
            for weight in range(n_points + 1):
                exact = max(most_together(sizes, weight) for sizes in possible)
                numerator, denominator = rule.least_loss(weight)
                assert weight - Fraction(numerator, denominator) == exact
                assert exact <= Fraction(rule.right_side(weight)) <= exact + Fraction(1, 10**9)


def test_two_sites_need_size_cut():
    # 6 points on one site and 10 on the other, four clusters of 4: one cluster has 2 of each.
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(16, 1))
    points = np.repeat([[0.0], [1.0]], [6, 10], axis=0) + noise
    model = SdpModel.of(reduced_of(Problem.from_data(points, 4, size_min=4, size_max=4)).reduced)
    with_cuts = Admm(model)
    with_cuts.run(300, StopSignal())
    assert len(with_cuts.size_sets)
    assert 0.99 < safe_bound(model, with_cuts.multipliers) < 1.02
    without = Admm(replace(model, size_rule=None))
    without.run(300, StopSignal())
    assert safe_bound(model, without.multipliers) < 0.1


def test_balanced_iris():
    # CC-SOS-SDP proves 81.2778 for this copy of the data.
    points = load_iris().data
    done = reduced_of(Problem.from_data(points, 3, size_min=50, size_max=50))
    bound = SdpBound(max_iterations=400)
    model = bound.setup(BoundInput(done.reduced, None))
    found = bound.compute(model, Domain.root(done.reduced), np.inf, BoundContext())
    value = done.postsolve_bound(found.value)
    assert 81.2778 * (1.0 - 1e-5) <= value <= 81.2778 * (1.0 + 1e-5)


def test_clusters_that_may_be_empty_add_no_eigenvalue():
    """Two pairs of equal points, three clusters of at least two points or none: the optimum is 0.

    Negative multipliers on the diagonal are paid for by the least sizes; a positive eigenvalue for
    the third cluster would raise the bound above 0.
    """
    problem = Problem.from_data([[0.0], [0.0], [1.0], [1.0]], 3)
    reduced = presolve(problem, StopSignal()).reduced
    model = SdpModel.of(reduced, assumed=AssumedSizes(np.full(4, 2.0), nonempty=False))
    for size in (0.01, 0.1, 1.0):
        multipliers = replace(MatrixMultipliers.zeros(4), entries=-size * np.eye(4))
        assert safe_bound(model, multipliers) == 0.0
