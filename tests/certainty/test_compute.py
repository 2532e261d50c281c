"""Certainty compared with enumeration: no claim may be false."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certikmeans import Problem, StopSignal, solve
from certikmeans.certainty import compute
from certikmeans.certainty.artifacts import CertaintyProblem, SolveArtifacts
from certikmeans.certainty.center_regions import OVERSTATED_BOUND
from certikmeans.certainty.compute import RELAXED, compute_certainty
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from tests.certainty.enumeration import check_all_claims, sorted_costs

SLACKS = (0.0, 1e-3, 0.02, 0.1, 0.5)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_claims_by_enumeration(first):
    n_certain = n_labellings = 0
    for seed in range(first, first + 20):
        problem = feasible_problem(seed, weightless=seed % 4 == 3, min_clusters=1 + (seed % 5 > 0))
        result = solve(problem, jobs=1)
        certainty = result.certainty(SLACKS[seed % len(SLACKS)])
        n_labellings += check_all_claims(problem, result, certainty)
        n_certain += bool(certainty.certain.any())
    assert n_labellings >= 20
    assert n_certain >= 6  # otherwise nothing was tested


def clumps(seed: int) -> Problem:
    """Two to four clumps, a point between them, pairs across them: something is uncertain."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    n = int(rng.integers(k + 3, 9))
    middles = rng.normal(size=(k, d)) * 4.0
    points = middles[np.arange(n) % k] + rng.normal(size=(n, d)) * rng.uniform(0.1, 1.2)
    if seed % 3 == 0:
        points[-1] = points[: n - 1].mean(axis=0)
    if seed % 4 == 0:
        points[1] = points[0]
    points += (0.0, 1e3, 1e7)[seed % 3]
    free = rng.permutation(n)
    cannot = [(free[0], free[1]), (free[1], free[2])][: seed % 3]
    must = [(free[-1], free[-2])] if seed % 5 == 0 else []
    weights = rng.integers(1, 4, n).astype(float) if seed % 2 else None
    return Problem.from_data(points, k, must_link=must, cannot_link=cannot, weights=weights)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_claims_for_points_between_clumps(first):
    n_certain = n_uncertain = n_labellings = 0
    for seed in range(first, first + 20):
        problem = clumps(seed)
        result = solve(problem, jobs=1)
        certainty = result.certainty((0.002, 0.05, 0.2, 0.4)[seed % 4])
        n_labellings += check_all_claims(problem, result, certainty)
        n_certain += bool(certainty.certain.any())
        n_uncertain += bool(not certainty.certain.all())
    assert n_labellings >= 20
    assert n_certain >= 10
    assert n_uncertain >= 3


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_slack_at_cost_of_another_labelling(first):
    n_certain = n_labellings = 0
    for seed in range(first, first + 10):
        problem = clumps(seed)
        result = solve(problem, jobs=1)
        costs = sorted_costs(problem)
        for cost in costs[1:4:2]:
            slack = (cost / result.cost - 1.0) * (1.0 + 1e-9) + 1e-15
            # Not by `Result.certainty`: the slack may be more than the whole cost.
            certainty = compute.compute_certainty(
                result.basis, result.labels, result.cost, max(0.0, slack)
            )
            n_labellings += check_all_claims(problem, result, certainty)
            n_certain += bool(certainty.agreement > 0.0)
    assert n_certain >= 8
    assert n_labellings >= 40


def test_perturbed_inputs_are_not_trusted(monkeypatch):
    """Other multipliers, a wrong bound, and a labelling that is not optimal."""
    rng = np.random.default_rng(5)
    found = compute.strengthened_multipliers

    def perturbed(*given):
        for known in found(*given):
            noise = rng.normal(size=len(known.multipliers)) * np.abs(known.multipliers).max()
            values = known.multipliers + noise * rng.choice([0.0, 1e-6, 1e-3, 0.05])
            bound = known.bound * rng.choice([0.9, 0.999, 1.0, 1.001, 1.1])
            columns = known.guide.columns if rng.integers(2) else ()
            guide = replace(known.guide, multipliers=values, columns=columns)
            yield replace(known, multipliers=values, bound=bound, guide=guide)

    enclose, failures = compute.enclose, []

    def recorded(*given):
        enclosure = enclose(*given)
        failures.append(enclosure.failure)
        return enclosure

    monkeypatch.setattr(compute, "strengthened_multipliers", perturbed)
    monkeypatch.setattr(compute, "enclose", recorded)
    n_certain = 0
    for seed in range(20):
        problem = clumps(seed)
        result = solve(problem, jobs=1)
        others = list(feasible_labellings(problem))
        if seed % 2:
            labels = np.array(others[int(rng.integers(len(others)))])
            cost = float(exact_cost(problem.points, problem.weights, labels)) * (1.0 + 1e-15)
            result = replace(result, labels=labels, cost=cost)
        certainty = result.certainty((0.0, 0.01, 0.1)[seed % 3])
        check_all_claims(problem, result, certainty)
        n_certain += bool(certainty.agreement > 0.0)
    assert n_certain >= 4
    assert failures.count(OVERSTATED_BOUND) >= 3


@pytest.mark.parametrize(
    "kinds",
    [
        {"cannot_link_groups": [0, 1, -1, -1, 0, 1]},
        {"size_min": 2, "size_max": 4},
        {"soft_cannot_link": [(0, 1, 0.125)], "soft_must_link": [(2, 3, 0.125)]},
    ],
)
def test_other_constraints_are_relaxed(kinds):
    """Statements hold for every labelling of the relaxation within the slack of the objective."""
    points = [[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]
    problem = Problem.from_data(points, 2, **kinds)
    labels = np.array([0, 0, 0, 1, 1, 1])
    cost = 4.0 + problem.penalty(labels)
    artifacts = SolveArtifacts(problem)
    case = CertaintyProblem.of(artifacts, labels, cost, 0.01, StopSignal())
    assert case.relaxed
    assert case.presolved.reduced.label_constraints.is_cannot_link_only
    assert case.bound_artifacts() == ()
    found = compute_certainty(artifacts, labels, cost, 0.01, StopSignal())
    assert found.certain.all() or RELAXED in found.reason
    assert found.possible[np.arange(6), labels].all()
