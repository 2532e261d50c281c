"""Whole runs under every mixture of constraints against enumeration in rational arithmetic.

The fast suite has a few seeds of every bound; the slow suite is a fuzz.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import InputError, Problem, solve
from certikmeans.bounds.registry import BOUNDS
from certikmeans.certificate import check_certificate
from certikmeans.certificate import format as form
from certikmeans.certificate.write import make_certificate
from certikmeans.testing.oracle import (
    brute_force,
    exact_cost,
    exact_penalty,
    respects,
    respects_sets,
    respects_sizes,
)

KINDS = ("links", "sets", "sizes", "soft")
FAST = 6
SEEDS = [*range(FAST), *range(50, 110)]  # those from 50 on are in the slow suite


def random_problem(seed):
    """Tiny problem with a random mixture of kinds, weights, duplicates, far from the origin."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3)
    if rng.random() < 0.3:
        points = np.round(points)
    if rng.random() < 0.2:
        points += 1e6 * rng.normal(size=d)
    if rng.random() < 0.2:
        points[1] = points[0]
    scale = float(((points - points.mean(axis=0)) ** 2).sum()) / n + 1e-12
    chosen = {kind for kind in KINDS if rng.random() < 0.5} or {"sizes"}
    fields = {}
    if rng.random() < 0.4:
        fields["weights"] = rng.choice([0.5, 1.0, 3.0], size=n)

    def pairs(count):
        drawn = rng.integers(0, n, size=(count, 2))
        return drawn[drawn[:, 0] != drawn[:, 1]]

    if "links" in chosen:
        fields["cannot_link"] = pairs(int(rng.integers(1, n)))
    if rng.random() < 0.3:
        fields["must_link"] = pairs(1)
    if "sets" in chosen:
        columns = [rng.integers(-1, 3, size=n) for _ in range(int(rng.integers(1, 3)))]
        fields["cannot_link_groups"] = columns
    if "sizes" in chosen:
        if rng.random() < 0.3:
            fields["demand"] = rng.choice([0.5, 1.0, 2.5], size=n)
        total = float(np.sum(fields.get("demand", np.ones(n))))
        low = math.floor(total / k * rng.choice([0.0, 0.5, 1.0]))
        fields["size_min"] = low
        fields["size_max"] = math.ceil(total / k * rng.choice([1.0, 1.5])) + int(rng.integers(2))
        if rng.random() < 0.2:
            fields["size_min"] = [0] + [low] * (k - 1)
    if "soft" in chosen:
        for name in ("soft_must_link", "soft_cannot_link"):
            drawn = rng.integers(0, n, size=(int(rng.integers(1, 6)), 2))
            prices = scale * rng.choice([0.1, 1.0, 5.0], size=len(drawn))
            fields[name] = np.column_stack([drawn, prices])
    return Problem.from_data(points, k, **fields)


def exact_objective(problem, labels):
    """Cost and penalties of labels; they have to satisfy every hard constraint."""
    assert respects(labels, problem.must_link, problem.cannot_link)
    assert respects_sets(labels, problem.cannot_link_groups)
    assert respects_sizes(problem, labels)
    return exact_cost(problem.points, problem.weights, labels) + exact_penalty(problem, labels)


def check_run(problem, result, optimum):
    """Labels feasible, cost at least theirs, bound at most the optimum."""
    if optimum is None:
        assert result.labels is None
        return
    assert result.infeasibility is None
    if result.labels is not None:
        assert exact_objective(problem, result.labels) <= Fraction(result.cost)
    assert Fraction(result.lower_bound) <= optimum


@pytest.mark.parametrize("seed", SEEDS)
def test_defaults(seed):
    problem = random_problem(seed)
    best = brute_force(problem)
    result = solve(problem, jobs=1, gap=1e-4, keep_proof=True)
    check_run(problem, result, None if best is None else best[0])


@pytest.mark.parametrize("bound", sorted(BOUNDS))
@pytest.mark.parametrize("seed", range(200, 240))
def test_bounds(bound, seed):
    problem = random_problem(seed)
    best = brute_force(problem)
    branching = ("auto", "pairs", "centers")[seed % 3]
    try:
        result = solve(problem, bound=bound, branching=branching, jobs=1, gap=1e-3, node_limit=7)
    except InputError:  # the bound or the branching does not support the constraints
        result = solve(problem, jobs=1, gap=1e-3, node_limit=7)
    check_run(problem, result, None if best is None else best[0])


@pytest.mark.parametrize(
    "seed",
    [*range(1_000, 1_004), *(pytest.param(s, marks=pytest.mark.slow) for s in range(1_004, 1_050))],
)
def test_certificates(seed):
    """Genuine certificates are accepted, and a claim above the optimum never is."""
    problem = random_problem(seed)
    best = brute_force(problem)
    result = solve(problem, jobs=1, gap=1e-3, keep_proof=True, node_limit=30)
    check_run(problem, result, None if best is None else best[0])
    try:
        made = make_certificate(problem, result)
    except InputError:
        made = None
    if made is not None:
        answer = check_certificate(problem.points, form.encode(made))
        assert answer.accepted or answer.reason is form.Reason.LIMIT, answer.message
        if best is not None:
            above = float(best[0])
            while Fraction(above) <= best[0]:
                above = math.nextafter(above, math.inf)
            false = form.encode(_claiming(made, above))
            assert not check_certificate(problem.points, false).accepted


def _claiming(made, value):
    from dataclasses import replace

    return replace(made, lower_bound=value, cost=max(made.cost, value))


def test_problems_are_of_all_kinds():
    drawn = [random_problem(seed) for seed in range(60)]
    assert sum(problem.has_sizes for problem in drawn) > 10
    assert sum(problem.has_soft_pairs for problem in drawn) > 10
    assert sum(len(problem.cannot_link_groups) > 0 for problem in drawn) > 10
    assert 3 < sum(brute_force(problem) is None for problem in drawn) < 50
