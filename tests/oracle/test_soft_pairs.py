"""Whole runs on problems with soft pairs, against enumeration in exact arithmetic."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import InputError, solve
from certikmeans.options import BOUNDS, BRANCHINGS
from certikmeans.result import Result
from certikmeans.testing.instances import soft_problem
from certikmeans.testing.oracle import brute_force, exact_cost, exact_penalty, feasible_labellings


def check(problem, result):
    """Compare cost, parts of the cost and lower bound with exact values."""
    optimum = brute_force(problem)
    assert optimum is not None
    assert Fraction(result.lower_bound) <= optimum[0]
    labels = result.labels
    assert labels is not None
    assert any(np.array_equal(labels, found) for found in feasible_labellings(problem))
    squares = exact_cost(problem.points, problem.weights, labels)
    penalty = exact_penalty(problem, labels)
    assert optimum[0] <= squares + penalty <= Fraction(result.cost)
    assert squares <= Fraction(result.sum_of_squares)
    assert penalty <= Fraction(result.penalty)
    assert result.cost == pytest.approx(result.sum_of_squares + result.penalty, rel=1e-12)
    paid = math.fsum(one.penalty for one in result.violated_soft_pairs)
    assert paid == pytest.approx(float(penalty), rel=1e-12)
    for one in result.violated_soft_pairs:
        assert (labels[one.first] == labels[one.second]) == (one.kind == "cannot_link")


@pytest.mark.parametrize("seed", range(20))
def test_default_run(seed):
    problem = soft_problem(seed, others=seed % 2 == 1)
    result = solve(problem, gap=1e-6, node_limit=40)
    check(problem, result)
    again = Result.from_json(result.to_json())
    assert again.violated_soft_pairs == result.violated_soft_pairs
    assert (again.sum_of_squares, again.penalty) == (result.sum_of_squares, result.penalty)


def runs(bound, branching):
    """Problems with results; a bound that does not support the branching is left out."""
    for seed in range(100, 105):
        problem = soft_problem(seed, largest=6, others=seed % 3 == 0)
        with contextlib.suppress(InputError):
            result = solve(problem, gap=1e-6, node_limit=15, bound=bound, branching=branching)
            yield problem, result


@pytest.mark.slow
@pytest.mark.parametrize("bound", [bound for bound in BOUNDS if bound != "auto"])
@pytest.mark.parametrize("branching", BRANCHINGS)
def test_every_bound_and_branching(bound, branching):
    for problem, result in runs(bound, branching):
        check(problem, result)


@pytest.mark.parametrize("seed", range(12))
def test_small_problems_are_solved_to_the_optimum(seed):
    """The heuristics find the optimum, so the cost is not an upper bound only."""
    problem = soft_problem(500 + seed)
    optimum = brute_force(problem)
    assert optimum is not None
    result = solve(problem, gap=1e-6, node_limit=1)
    assert result.cost <= float(optimum[0]) * (1.0 + 1e-6) + 1e-6 * problem.penalty(result.labels)
