"""Bound by linear assignments between cannot-link sets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.set_assignment import SetAssignmentBound, batches_of, disjoint_sets
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import brute_force
from tests.bounds.sdp_cases import reduced_of


def value_of(problem, stop=None):
    done = reduced_of(problem)
    bound = SetAssignmentBound()
    model = bound.setup(BoundInput(done.reduced, None))
    ctx = BoundContext(stop or StopSignal())
    found = bound.compute(model, Domain.root(done.reduced), np.inf, ctx)
    return done, found


@pytest.mark.parametrize("seed", range(60))
def test_bound_below_optimum(seed):
    rng = np.random.default_rng(seed)
    n, k, shift = int(rng.integers(4, 8)), int(rng.integers(2, 5)), 10.0 ** rng.integers(0, 7)
    columns = np.full((int(rng.integers(1, 3)), n), -1)
    for column in columns:
        column[rng.permutation(n)] = np.minimum(np.arange(n) // k, rng.integers(1, 4))
        for number in np.unique(column):
            column[np.flatnonzero(column == number)[k:]] = -1
    points = np.round(rng.normal(size=(n, 2)), int(rng.integers(0, 4))) + shift * (seed % 2)
    weights = rng.uniform(0.1, 5.0, size=n) if seed % 3 else None
    must = [] if seed % 5 else [(0, 1)]
    problem = Problem.from_data(
        points, k, must_link=must, cannot_link_groups=columns, weights=weights
    )
    best = brute_force(problem)
    if best is None:
        pytest.skip("the sets contradict the must-link")
    done, found = value_of(problem)
    assert Fraction(done.postsolve_bound(found.value)) <= best[0]


@pytest.mark.parametrize("seed", range(5))
def test_tight_for_compact_clusters(seed):
    rng = np.random.default_rng(seed)
    k, m = 5, 12
    truth = np.tile(np.arange(k), m)
    points = 10.0 * np.eye(k)[truth] + rng.normal(size=(k * m, k))
    sets = np.repeat(np.arange(m), k)
    done, found = value_of(Problem.from_data(points, k, cannot_link_groups=sets))
    cost = sum(((points[truth == j] - points[truth == j].mean(0)) ** 2).sum() for j in range(k))
    assert cost * (1.0 - 1e-9) <= done.postsolve_bound(found.value) <= cost


def test_sets_that_need_not_meet_give_zero():
    points = np.arange(6.0)[:, None]
    assert (
        value_of(Problem.from_data(points, 4, cannot_link_groups=[0, 0, 1, 1, 2, 2]))[1].value == 0
    )
    assert value_of(Problem.from_data(points, 4))[1].value == 0.0


def test_batches_hold_every_set_once():
    sets = [np.arange(5 * i, 5 * i + 5) for i in range(1_000)]
    batches = batches_of(sets, 5, 3)
    assert len(batches) > 1
    numbers = sorted(int(one[0]) for batch in batches for one in batch)
    assert numbers == [5 * i for i in range(1_000)]


def test_overlapping_sets_are_made_disjoint():
    columns = [[0, 0, 0, -1, -1], [-1, -1, 1, 1, 1]]
    done = reduced_of(Problem.from_data(np.arange(5.0)[:, None], 3, cannot_link_groups=columns))
    chosen = disjoint_sets(done.reduced.label_constraints.sets, 3)
    members = np.concatenate(chosen)
    assert len(np.unique(members)) == len(members)


def test_stop_leaves_valid_value():
    stop = StopSignal()
    stop.interrupt()
    problem = Problem.from_data(np.arange(6.0)[:, None], 3, cannot_link_groups=[0, 0, 0, 1, 1, 1])
    found = value_of(problem, stop)[1]
    assert found.value == 0.0
    assert not found.finished
