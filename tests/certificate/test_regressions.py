"""False certificates that were once accepted, and genuine ones that were once rejected."""

from __future__ import annotations

import dataclasses
from concurrent.futures import Executor, Future

import numpy as np
import pytest

from certikmeans import Problem, StopReason, StopSignal, solve
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.format import Certificate, Reason
from certikmeans.certificate.write import make_certificate
from certikmeans.testing.instances import feasible_problem
from tests.tree.helpers import entangled

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def grid_tree(positions):
    """Split the centers of two clusters along axis 0 at all positions; leaves are sample leaves."""
    kinds, first, values = [], [], []

    def divide(cluster, low, high, then):
        if high - low <= 1:
            then()
        else:
            middle = (low + high) // 2
            kinds.append(0)
            first.append(cluster)
            values.append(positions[middle])
            divide(cluster, low, middle, then)
            divide(cluster, middle, high, then)

    def leaf():
        kinds.append(3)
        first.append(-1)
        values.append(0.0)

    last = len(positions) - 1
    divide(0, 0, last, lambda: divide(1, 0, last, leaf))
    second = np.where(np.array(kinds) == 0, 0, -1)
    return np.array(kinds, np.uint8), np.array(first), second, np.array(values)


@pytest.mark.parametrize("size", [1e-100, 1.5e-162, 2.7e-162, 1e-170])
@pytest.mark.parametrize("weights", [None, np.full(3, 1e12)])
def test_underflow_of_axes(size, weights):
    points = np.array([[0.0], [0.5e60], [1e60]])
    axes = np.array([[size]])
    positions = np.linspace(0.0, float(points[-1, 0] * size), 13)
    kinds, first, second, values = grid_tree(positions)
    false = Certificate(
        n_points=3, n_features=1, n_clusters=2, cost=1e140, lower_bound=1e139,
        data_sha256=form.hash_points(points), pairs_sha256=form.hash_pairs(NO_PAIRS, NO_PAIRS),
        must_link=NO_PAIRS, cannot_link=NO_PAIRS, weights=weights, labels=np.array([0, 0, 1]),
        center=np.zeros(1), axes=axes, kinds=kinds, first=first, second=second, values=values,
        lengths=np.zeros(0, np.int64), multipliers=np.zeros(0),
    )  # fmt: skip
    # The optimum is at most 1.25e131.
    assert not check_certificate(points, form.encode(false)).accepted


@pytest.fixture(scope="module")
def honest():
    problem = Problem.from_data(np.random.default_rng(0).normal(size=(12, 2)), 2)
    return problem, make_certificate(problem, solve(problem, keep_proof=True))


def test_more_axes_than_features(honest):
    problem, made = honest
    wide = dataclasses.replace(made, axes=np.zeros((2, 4_000)))
    verdict = check_certificate(problem.points, form.encode(wide))
    assert (verdict.accepted, verdict.reason) == (False, Reason.FIELD)


def test_rows_without_multipliers(honest):
    problem, made = honest
    empty = np.zeros(100_000, dtype=np.int64)
    many = dataclasses.replace(made, lengths=np.concatenate([made.lengths, empty]))
    verdict = check_certificate(problem.points, form.encode(many))
    assert (verdict.accepted, verdict.reason) == (False, Reason.TREE)


def test_bound_above_cost(honest):
    problem, made = honest
    above = dataclasses.replace(made, lower_bound=made.cost * 2.0)
    verdict = check_certificate(problem.points, form.encode(above))
    assert (verdict.accepted, verdict.reason) == (False, Reason.BOUND)


def test_expected_number_of_clusters(honest):
    problem, made = honest
    assert check_certificate(problem.points, form.encode(made), n_clusters=2).accepted
    verdict = check_certificate(problem.points, form.encode(made), n_clusters=3)
    assert (verdict.accepted, verdict.reason) == (False, Reason.PROBLEM)


class InterruptingExecutor(Executor):
    """Runs tasks in place, after interrupting the solve."""

    def __init__(self, stop):
        self.stop = stop

    def submit(self, function, /, *arguments, **named):
        self.stop.interrupt()
        future = Future()
        future.set_result(function(*arguments, **named))
        return future


@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_inherited_proof(branching):
    # The must-link child has one group less: multipliers of the root have to be aggregated.
    problem, stop = entangled(), StopSignal()
    result = solve(
        problem, gap=1e-6, keep_proof=True, branching=branching, stop=stop,
        executor=InterruptingExecutor(stop),
    )  # fmt: skip
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.nodes > 1
    verdict = check_certificate(problem.points, form.encode(make_certificate(problem, result)))
    assert verdict.accepted, verdict.message


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_sample_leaves(seed, branching):
    problem = feasible_problem(seed, largest=9)
    result = solve(
        problem, bound="sample", branching=branching, keep_proof=True, gap=1e-3, node_limit=60
    )
    verdict = check_certificate(problem.points, form.encode(make_certificate(problem, result)))
    assert verdict.accepted, verdict.message
