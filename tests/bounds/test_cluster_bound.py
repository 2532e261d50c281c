"""Cluster bound against brute force, in degenerate cases, and with a time limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from certikmeans import Problem, Status, solve
from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.cluster.bundle import Bundle
from certikmeans.bounds.cluster.dual_box import DualBoxParams, make_dual_box
from certikmeans.bounds.cluster.initial_point import BundleStart, columns_of
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound
from certikmeans.bounds.cluster.step_rule import BundleStatus, Target
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.heuristics.base import HeuristicContext
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.stop import StopSignal
from tests.published import published, stated

from .cluster_oracle import (
    clustered,
    exact_optimum,
    feasible_reduced,
    make_reduced,
    random_reduced,
)
from .cluster_root import cluster_bound


@pytest.mark.parametrize("start", range(0, 90, 30))
def test_bound_below_optimum(start):
    proven = 0
    for seed in range(start, start + 30):
        reduced, (cost, labels) = feasible_reduced(seed, largest=7, most_axes=3)

        bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))

        assert 0.0 <= bound.value <= cost
        # The multipliers are the evidence: the value follows from them alone.
        if bound.value > 0.0:
            proven += 1
            priced = Pricer(reduced).price_exact(
                bound.multipliers, 0.0, StopSignal(), tolerance=1e-6 * float(cost)
            )
            again = lagrangian_lower_bound(bound.multipliers, reduced.n_clusters * priced.upper)
            assert again >= bound.value - 1e-5 * reduced.n_clusters * float(cost)
    assert proven > 20


def test_one_cluster_bound_below_cost():
    for seed in range(20):
        drawn = random_reduced(seed, largest=7, most_axes=3)
        reduced = make_reduced(drawn.points, drawn.weights, [], 1)
        cost, labels = exact_optimum(reduced)
        bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))
        assert 0.0 <= bound.value <= cost


@pytest.mark.parametrize("seed", range(20))
def test_bound_below_optimum_with_poor_labels(seed):
    reduced, (cost, _) = feasible_reduced(seed, largest=7, most_axes=2, linked=False)
    labels = np.random.default_rng(seed).integers(reduced.n_clusters, size=reduced.n_groups)
    bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))
    assert Fraction(bound.value) <= cost


def test_gap_closed_on_separated_clusters():
    reduced, labels = clustered(3)
    seen = []
    bound = cluster_bound(
        reduced, labels, target_gap=1e-3, stop=StopSignal(60.0), on_bound=seen.append
    )
    assert bound.reached
    assert seen == sorted(seen)
    assert bound.value == seen[-1]


def test_incumbent_improved_if_target_unreachable():
    reduced, good = clustered(5)
    poor = np.random.default_rng(0).permutation(3)[good]
    loose = np.flatnonzero(np.arange(reduced.n_groups) >= reduced.graph.n_linked)
    poor[loose] = (good[loose] + 1) % 3  # free groups: feasible, and of high cost
    n_columns = []

    def improve(columns):
        n_columns.append(len(columns))
        return good

    bound = cluster_bound(reduced, poor, target_gap=1e-2, stop=StopSignal(60.0), improve=improve)

    assert n_columns
    assert np.array_equal(bound.labels, good)
    assert bound.reached


def test_best_bound_if_target_unreachable():
    reduced, good = clustered(5)
    poor = good.copy()
    poor[-20:] = (good[-20:] + 1) % 3
    best = cluster_bound(reduced, good, target_gap=1e-3, stop=StopSignal(60.0))
    bound = cluster_bound(reduced, poor, target_gap=1e-3, stop=StopSignal(10.0))
    assert best.reached
    assert not bound.reached
    assert 0.5 * best.value <= bound.value <= best.value * (1.0 + 2e-3)


def test_same_result_with_threads():
    reduced, labels = clustered(3)
    one = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    with ThreadPoolExecutor(3) as executor:
        three = cluster_bound(
            reduced, labels, target_gap=1e-3, stop=StopSignal(), executor=executor
        )
    assert one.value == three.value
    assert np.array_equal(one.multipliers, three.multipliers)


def test_target_reached_with_shared_variables():
    reduced, labels = clustered(3)
    params = DualBoxParams(shared_variables_min_groups=100, n_cells=60)
    dual_box = make_dual_box(reduced, labels, params=params)
    assert len(dual_box.high) < reduced.n_groups
    pricer, columns = Pricer(reduced), columns_of(reduced, labels)
    start = BundleStart([(0, column) for column in columns])
    bundle = Bundle(pricer, dual_box, [SymmetryClass(pricer.full_region, (0, 1, 2))], start)
    cost = sum(column.cost for column in columns)
    abs_gap = 1e-2 * cost
    target = Target(bound=cost - abs_gap, level=cost - 0.25 * abs_gap, abs_gap=abs_gap)
    assert bundle.run(target, StopSignal(60.0)) is BundleStatus.PROVEN
    assert cost - abs_gap <= bundle.lower_bound <= cost


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_coincident_points(n_clusters):
    reduced = make_reduced(np.zeros((4, 2)), np.ones(4), [], n_clusters)
    labels = np.arange(4) % n_clusters
    bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0
    assert bound.reached


def test_one_cluster_exact():
    points = np.array([[-2.0], [-1.0], [3.0]])
    reduced = make_reduced(points, np.ones(3), [], 1)
    bound = cluster_bound(reduced, np.zeros(3, dtype=np.int64), target_gap=1e-6, stop=StopSignal())
    assert 14.0 - 1e-9 <= bound.value <= 14.0
    assert bound.reached


def test_one_cluster_per_group():
    reduced = make_reduced(np.arange(4.0)[:, None] - 1.5, np.ones(4), [(0, 1)], 4)
    bound = cluster_bound(reduced, np.arange(4), target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0
    assert bound.reached


def test_single_group():
    reduced = make_reduced(np.zeros((1, 1)), np.array([5.0]), [], 1)
    bound = cluster_bound(reduced, np.zeros(1, dtype=np.int64), target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_valid_bound_without_time(seconds):
    reduced, labels = clustered(4)
    full = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    brief = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(seconds))
    assert brief.value >= 0.0
    assert brief.value <= full.value * (1 + 2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_target_includes_rounding_margin(seed):
    # For separated clusters the rounding margin is a large fraction of so small a gap, as it is of
    # an ordinary gap with a hundred million points.
    rng = np.random.default_rng(seed)
    centers = np.array([(0.0, 0.0), (60.0, 0.0), (0.0, 60.0)])
    points = np.concatenate([center + rng.normal(size=(40, 2)) for center in centers])
    result = solve(Problem.from_data(points, 3), gap=1e-8, bound="cluster", node_limit=1)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-8


# The bundle against the linear program over all clusters.

GAP = 1e-4


def relaxed_cost(problem: Problem) -> float:
    """Cost of the cheapest fractional solution, by enumeration of all clusters."""
    n = problem.n_points
    inside = ((np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    first, second = problem.cannot_link.T
    inside = inside[~(inside[:, first] * inside[:, second]).any(axis=1)]
    sizes = inside.sum(axis=1)
    means = inside @ problem.points / sizes[:, None]
    squares = (problem.points**2).sum(axis=1)
    costs = inside @ squares - sizes * (means**2).sum(axis=1)
    found = linprog(
        costs,
        A_eq=inside.T,
        b_eq=np.ones(n),
        A_ub=np.ones((1, len(costs))),
        b_ub=[problem.n_clusters],
    )
    return float(found.fun)


@pytest.mark.parametrize("n_pairs", [0, 6, 14])
@pytest.mark.parametrize("seed", range(4))
def test_root_reaches_relaxation_optimum(seed, n_pairs):
    rng = np.random.default_rng([seed, n_pairs])
    points = rng.uniform(size=(11, 2))
    pairs = np.stack(np.triu_indices(11, 1), axis=1)
    apart = pairs[rng.choice(len(pairs), n_pairs, replace=False)]
    problem = Problem.from_data(points, 6, cannot_link=apart)
    relaxed = relaxed_cost(problem)

    result = solve(problem, gap=GAP, bound="cluster", node_limit=1)

    assert result.lower_bound <= relaxed * (1.0 + 1e-9)
    assert result.lower_bound >= relaxed * (1.0 - GAP)


# Published instances: the bound closes the gap and never exceeds the best known value.


def check(row):
    best_known = float(row["best_known_sse"])
    done = presolve(stated(row), StopSignal())
    assert isinstance(done, PresolvedProblem)
    assert done.feasible_labels is not None
    context = HeuristicContext(
        done.reduced,
        CannotLinkAssigner(done.reduced, done.feasible_labels),
        done.feasible_labels,
        StopSignal(20.0),
    )
    labels = DefaultSearch().search(context)

    bound = cluster_bound(done.reduced, labels, target_gap=1e-3, stop=StopSignal(20.0))

    lower = done.postsolve_bound(bound.value)
    assert lower <= best_known * (1.0 + 1e-9)
    assert bound.reached
    assert lower >= best_known * (1.0 - 1.1e-3)


@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("start", range(24))
def test_published_instances_closed_at_root(start):
    for row in published()[start::24]:
        check(row)
