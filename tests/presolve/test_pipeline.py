"""Presolve against exact arithmetic: costs change by a bounded rounding error only."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem, random_problem
from certikmeans.testing.oracle import brute_force, exact_cost, feasible_labellings, respects


def reduced_cost(done: PresolvedProblem, labels: np.ndarray) -> Fraction:
    return exact_cost(done.reduced.points, done.reduced.weights, labels)


@pytest.mark.parametrize("seed", range(200))
def test_feasibility_against_enumeration(seed):
    problem = random_problem(seed)
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof):
        assert brute_force(problem) is None
        assert done.check(problem)
    else:
        assert respects(
            done.postsolve_labels(done.feasible_labels), problem.must_link, problem.cannot_link
        )
        assert done.feasible_labels.max() < problem.n_clusters


@pytest.mark.parametrize("seed", range(300))
def test_postsolved_cost_is_tight_lower_bound(seed):
    # The lift must hold for every labelling, not only for the best: a lower bound may
    # have been proven through any of them.
    problem = feasible_problem(seed, largest=6, min_clusters=1)
    done = presolve(problem, StopSignal())
    scatter = exact_cost(problem.points, problem.weights, [0] * problem.n_points)
    for labels in feasible_labellings(problem):
        reduced = reduced_cost(done, done.presolve_labels(np.array(labels)))
        lifted = done.postsolve_bound(np.nextafter(float(reduced), -np.inf))
        exact = exact_cost(problem.points, problem.weights, labels)
        assert Fraction(lifted) <= exact
        assert exact - Fraction(lifted) <= Fraction(1e-13) * scatter + Fraction(1e-280)
        total = float(reduced) + done.reduced.offset
        assert abs(total - float(exact)) <= 1e-12 * float(scatter)


def test_component_rows_are_contiguous():
    problem = random_problem(5)
    done = presolve(problem, StopSignal())
    assert isinstance(done, PresolvedProblem)
    edges = {tuple(sorted(done.group_of_point[pair])) for pair in problem.cannot_link}
    assert edges == {tuple(edge) for edge in done.reduced.graph.edges()}


def test_points_far_from_origin():
    # At 1e8 the spacing of floats is 1.5e-8: subtracting the mean first keeps all of it.
    rng = np.random.default_rng(0)
    points = 1e8 + rng.normal(size=(8, 2))
    problem = Problem.from_data(points, 2, must_link=[(0, 1), (1, 2)])
    done = presolve(problem, StopSignal())
    labels = [0, 0, 0, 1, 1, 0, 1, 1]
    exact = exact_cost(points, problem.weights, labels)
    lifted = done.postsolve_bound(float(reduced_cost(done, done.presolve_labels(np.array(labels)))))
    assert float(exact) * (1 - 1e-12) <= lifted <= exact


def test_null_directions_are_removed():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 5)) + 7.0
    done = presolve(Problem.from_data(plane, 3), StopSignal())
    assert done.reduced.n_dims == 2


@pytest.mark.parametrize("points", [np.zeros((4, 3)), np.full((3, 1), 5.0)])
def test_identical_points_keep_one_axis(points):
    done = presolve(Problem.from_data(points, 2), StopSignal())
    assert done.reduced.n_dims == 1
    assert not done.reduced.points.any()
    assert done.postsolve_bound(0.0) == 0.0


def test_more_features_than_points():
    rng = np.random.default_rng(2)
    problem = Problem.from_data(rng.normal(size=(5, 40)), 2)
    done = presolve(problem, StopSignal())
    assert done.reduced.n_dims <= 5
    labels = [0, 1, 1, 0, 1]
    exact = float(exact_cost(problem.points, problem.weights, labels))
    assert float(reduced_cost(done, done.presolve_labels(np.array(labels)))) == pytest.approx(exact)
