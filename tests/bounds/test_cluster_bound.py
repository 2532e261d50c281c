"""The whole cluster bound against brute force, on odd shapes, and under a clock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from certikmeans import Problem, Status, solve
from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.cluster import dual_box
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound
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
def test_bound_is_below_the_optimum(start):
    proven = 0
    for seed in range(start, start + 30):
        reduced, (cost, labels) = feasible_reduced(seed, largest=7, most_axes=3)

        bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))

        assert 0.0 <= bound.value <= cost
        # The multipliers are the evidence: the same value follows from them alone.
        if bound.value > 0.0:
            proven += 1
            priced = Pricer(reduced).price_exact(
                bound.multipliers, 0.0, StopSignal(), tolerance=1e-6 * float(cost)
            )
            again = lagrangian_lower_bound(bound.multipliers, reduced.n_clusters * priced.upper)
            assert again >= bound.value - 1e-5 * reduced.n_clusters * float(cost)
    assert proven > 20


def test_one_cluster_is_below_its_cost():
    for seed in range(20):
        drawn = random_reduced(seed, largest=7, most_axes=3)
        reduced = make_reduced(drawn.points, drawn.weights, [], 1)
        cost, labels = exact_optimum(reduced)
        bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))
        assert 0.0 <= bound.value <= cost


@pytest.mark.parametrize("seed", range(20))
def test_bound_stays_below_the_optimum_when_the_labels_are_poor(seed):
    reduced, (cost, _) = feasible_reduced(seed, largest=7, most_axes=2, linked=False)
    labels = np.random.default_rng(seed).integers(reduced.n_clusters, size=reduced.n_groups)
    bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(5.0))
    assert Fraction(bound.value) <= cost


def test_gap_is_closed_on_separated_clusters():
    reduced, labels = clustered(3)
    seen = []
    bound = cluster_bound(
        reduced, labels, target_gap=1e-3, stop=StopSignal(60.0), on_bound=seen.append
    )
    assert bound.reached
    assert seen == sorted(seen)
    assert bound.value == seen[-1]


def test_better_labels_are_asked_for_when_the_goal_is_out_of_reach():
    reduced, good = clustered(5)
    poor = np.random.default_rng(0).permutation(3)[good]
    loose = np.flatnonzero(np.arange(reduced.n_groups) >= reduced.graph.n_linked)
    poor[loose] = (good[loose] + 1) % 3  # free groups may go anywhere: proper, and costly
    asked = []

    def improve(columns):
        asked.append(len(columns))
        return good

    bound = cluster_bound(reduced, poor, target_gap=1e-2, stop=StopSignal(60.0), improve=improve)

    assert asked
    assert np.array_equal(bound.labels, good)
    assert bound.reached


def test_goal_out_of_reach_still_gives_the_best_bound():
    reduced, good = clustered(5)
    poor = good.copy()
    poor[-20:] = (good[-20:] + 1) % 3
    best = cluster_bound(reduced, good, target_gap=1e-3, stop=StopSignal(60.0))
    bound = cluster_bound(reduced, poor, target_gap=1e-3, stop=StopSignal(10.0))
    assert best.reached
    assert not bound.reached
    assert 0.5 * best.value <= bound.value <= best.value * (1.0 + 2e-3)


def test_threads_change_nothing():
    reduced, labels = clustered(3)
    one = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    with ThreadPoolExecutor(3) as executor:
        three = cluster_bound(
            reduced, labels, target_gap=1e-3, stop=StopSignal(), executor=executor
        )
    assert one.value == three.value
    assert np.array_equal(one.multipliers, three.multipliers)


def test_shared_multipliers_still_bound(monkeypatch):
    monkeypatch.setattr(dual_box, "SHARED_VARIABLES_MIN_GROUPS", 100)
    monkeypatch.setattr(dual_box, "N_CELLS", 60)
    reduced, labels = clustered(3)
    bound = cluster_bound(reduced, labels, target_gap=1e-2, stop=StopSignal(60.0))
    assert bound.reached


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_equal_points(n_clusters):
    reduced = make_reduced(np.zeros((4, 2)), np.ones(4), [], n_clusters)
    labels = np.arange(4) % n_clusters
    bound = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0
    assert bound.reached


def test_one_cluster_is_exact():
    points = np.array([[-2.0], [-1.0], [3.0]])
    reduced = make_reduced(points, np.ones(3), [], 1)
    bound = cluster_bound(reduced, np.zeros(3, dtype=np.int64), target_gap=1e-6, stop=StopSignal())
    assert 14.0 - 1e-9 <= bound.value <= 14.0
    assert bound.reached


def test_a_cluster_per_group():
    reduced = make_reduced(np.arange(4.0)[:, None] - 1.5, np.ones(4), [(0, 1)], 4)
    bound = cluster_bound(reduced, np.arange(4), target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0
    assert bound.reached


def test_a_single_group():
    reduced = make_reduced(np.zeros((1, 1)), np.array([5.0]), [], 1)
    bound = cluster_bound(reduced, np.zeros(1, dtype=np.int64), target_gap=1e-3, stop=StopSignal())
    assert bound.value == 0.0


@pytest.mark.parametrize("seconds", [0.0, 0.01])
def test_no_time_still_gives_a_valid_bound(seconds):
    reduced, labels = clustered(4)
    full = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal())
    brief = cluster_bound(reduced, labels, target_gap=1e-3, stop=StopSignal(seconds))
    assert brief.value >= 0.0
    assert brief.value <= full.value * (1 + 2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_what_rounding_takes_off_is_asked_for_beforehand(seed):
    # Clusters far apart: rounding takes off a good part of so small a gap, as it does of an
    # ordinary one where there are a hundred million points.
    rng = np.random.default_rng(seed)
    places = np.array([(0.0, 0.0), (60.0, 0.0), (0.0, 60.0)])
    points = np.concatenate([place + rng.normal(size=(40, 2)) for place in places])
    result = solve(Problem.from_data(points, 3), gap=1e-8, bound="cluster", node_limit=1)
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-8


# The bundle against the linear program whose dual it climbs, on cases small enough to list.

GAP = 1e-4


def relaxed_cost(problem: Problem) -> float:
    """Cheapest mixture of clusters that holds every point once, at most K in all: by listing."""
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
def test_the_root_reaches_the_optimum_of_the_relaxation(seed, n_pairs):
    rng = np.random.default_rng([seed, n_pairs])
    points = rng.uniform(size=(11, 2))
    pairs = np.stack(np.triu_indices(11, 1), axis=1)
    apart = pairs[rng.choice(len(pairs), n_pairs, replace=False)]
    problem = Problem.from_data(points, 6, cannot_link=apart)
    relaxed = relaxed_cost(problem)

    result = solve(problem, gap=GAP, bound="cluster", node_limit=1)

    assert result.lower_bound <= relaxed * (1.0 + 1e-9)
    assert result.lower_bound >= relaxed * (1.0 - GAP)


# Published instances: the bound closes the gap and never passes the best known value.


def check(row):
    best_known = float(row["best_known_sse"])
    done = presolve(stated(row), StopSignal())
    assert isinstance(done, PresolvedProblem)
    assert done.feasible_labels is not None
    workshop = HeuristicContext(
        done.reduced,
        CannotLinkAssigner(done.reduced, done.feasible_labels),
        done.feasible_labels,
        StopSignal(20.0),
    )
    labels = DefaultSearch().search(workshop)

    bound = cluster_bound(done.reduced, labels, target_gap=1e-3, stop=StopSignal(20.0))

    lower = done.postsolve_bound(bound.value)
    assert lower <= best_known * (1.0 + 1e-9)
    assert bound.reached
    assert lower >= best_known * (1.0 - 1.1e-3)


@pytest.mark.skipif(not published(), reason="the published instances are not here")
@pytest.mark.parametrize("start", range(0, 8))
def test_published_instances_close_at_the_root(start):
    for row in published()[start::24]:
        check(row)


@pytest.mark.slow
@pytest.mark.skipif(not published(), reason="the published instances are not here")
def test_all_published_instances_close_at_the_root():
    for row in published():
        check(row)
