"""`ModelAssigner` with soft pairs: exact lower bounds and Lloyd runs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans.assignment import make_assigner
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import soft_problem


def reduced_problem(seed, others):
    """A presolved problem that still has soft pairs, and labels that are feasible."""
    for number in range(100):
        done = presolve(soft_problem(1000 * number + seed, others=others), StopSignal())
        assert isinstance(done, PresolvedProblem)
        if done.reduced.label_constraints.soft is not None:
            return done.reduced, done.feasible_labels
    raise AssertionError("no problem with soft pairs")


def exact_values(reduced, costs):
    """Exact cost plus penalty of every feasible labelling; clusters are not interchangeable."""
    model = reduced.label_constraints
    for found in product(range(reduced.n_clusters), repeat=reduced.n_groups):
        labels = np.array(found)
        if not model.satisfied_by(labels) or not np.array_equal(model.aligned(labels), labels):
            continue
        first, second = labels[model.soft.pairs].T
        paid = np.where((first == second) == (model.soft.bonus < 0), np.abs(model.soft.bonus), 0.0)
        terms = [*paid.tolist(), *costs[np.arange(len(labels)), labels].tolist()]
        yield sum(map(Fraction, terms), start=Fraction(0))


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_assignments_hold_for_every_labelling(seed):
    reduced, feasible = reduced_problem(seed, others=seed % 3 == 0)
    assigner = make_assigner(reduced, feasible)
    rng = np.random.default_rng(seed)
    costs = rng.uniform(size=(reduced.n_groups, reduced.n_clusters))
    costs *= 10.0 ** rng.uniform(-3, 3)

    found = assigner.assign_costs(costs)

    least = min(exact_values(reduced, costs))
    assert Fraction(found.lower_bound) <= least
    assert reduced.label_constraints.satisfied_by(found.labels)
    assert found.cost >= float(least) * (1.0 - 1e-12)
    if found.exact:
        assert found.cost <= float(least) * (1.0 + 1e-9) + 1e-300
        assert found.lower_bound >= float(least) * (1.0 - 1e-9) - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_lloyd_runs_count_penalties(seed):
    reduced, feasible = reduced_problem(50 + seed, others=False)
    assigner = make_assigner(reduced, feasible)
    labels = feasible.copy()

    run = assigner.lloyd(reduced.points[: reduced.n_clusters], labels)

    squares = sum(
        float(
            reduced.weights[run.labels == k]
            @ ((reduced.points - run.centers[k]) ** 2).sum(1)[run.labels == k]
        )
        for k in range(reduced.n_clusters)
    )
    penalty = reduced.label_constraints.penalty(run.labels)
    assert run.cost == pytest.approx(squares + penalty)
