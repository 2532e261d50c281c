"""Dual box: initial multipliers, and wider boxes if the relaxation has a gap."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.cluster.dual_box import DualBoxParams, make_dual_box
from certikmeans.presolve.pipeline import presolve
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost
from tests.bounds.cluster_root import cluster_bound


def crossing():
    """Uniform points with random cannot-links: the relaxation has a gap of about 3.5 %."""
    rng = np.random.default_rng(11)
    points = rng.uniform(size=(20, 2))
    pairs = [(i, j) for i in range(20) for j in range(i) if rng.random() < 0.12]
    return Problem.from_data(points, 4, cannot_link=pairs)


@pytest.mark.parametrize("min_groups", [10, 20_000])
def test_widening_keeps_initial_multipliers(min_groups):
    params = DualBoxParams(shared_variables_min_groups=min_groups)
    points = np.random.default_rng(0).uniform(size=(12, 2))
    reduced = presolve(Problem.from_data(points, 3), StopSignal()).reduced
    labels = np.arange(12) % 3
    narrow = make_dual_box(reduced, labels, params=params)
    wide = make_dual_box(reduced, labels, widening=1.0, params=params)
    first, last = (narrow.multipliers(t) for t in (0.0 * narrow.high, narrow.high))
    below, above = (wide.multipliers(t) for t in (0.0 * wide.high, wide.high))
    assert (below <= first).all()
    assert (above >= last).all()
    assert (above - below).sum() == pytest.approx(3.0 * (last - first).sum())
    assert wide.multipliers(wide.start) == pytest.approx(narrow.multipliers(narrow.start))


def test_wider_box_improves_bound():
    problem = crossing()
    labels = solve(problem, gap=1e-6).labels
    done = presolve(problem, StopSignal())
    values = []
    for widening in (0.0, 1.0):
        found = cluster_bound(
            done.reduced,
            done.presolve_labels(labels),
            target_gap=1e-3,
            stop=StopSignal(),
            box_widening=widening,
        )
        assert not found.reached
        values.append(found.value)
    cost = float(exact_cost(problem.points, problem.weights, labels))
    assert values[0] < values[1] <= cost


def test_tree_closes_relaxation_gap():
    result = solve(crossing(), gap=1e-4)
    assert result.nodes > 1
    assert result.gap <= 1e-4
