"""`elbow`: intervals contain the optimum, by enumeration in exact arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import certikmeans
from certikmeans.elbow_curve import Elbow, elbow
from certikmeans.errors import InputError


def least_cost(points, n_clusters, must, cannot):
    """The least cost in exact arithmetic; None if no labelling respects the pairs."""
    rows = [[Fraction(value) for value in row] for row in points.tolist()]
    best = None
    for labels in itertools.product(range(n_clusters), repeat=len(rows)):
        if any(labels[i] != labels[j] for i, j in must):
            continue
        if any(labels[i] == labels[j] for i, j in cannot):
            continue
        cost = Fraction(0)
        for cluster in set(labels):
            inside = [row for row, label in zip(rows, labels, strict=True) if label == cluster]
            for column in zip(*inside, strict=True):
                mean = sum(column) / len(inside)
                cost += sum((value - mean) ** 2 for value in column)
        best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_intervals_contain_optimum(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(7, 2)) + 100.0
    must, cannot = [(0, 1)], [(1, 2), (2, 3), (1, 3)]
    found = elbow(points, [4, 2, 1, 3], must_link=must, cannot_link=cannot, gap=0.0)

    assert found.k_values.tolist() == [1, 2, 3, 4]
    assert np.isinf(found.intervals[:2]).all()  # three that must be apart
    for k, (lower, cost) in zip(found.k_values[2:], found.intervals[2:], strict=True):
        exact = least_cost(points, k, must, cannot)
        assert exact is not None
        assert lower <= exact <= cost
        assert cost - lower <= 1e-6 * cost
    assert found.intervals.shape == (4, 2)


def test_bounds_are_monotone_in_k():
    points = np.random.default_rng(0).normal(size=(120, 5))
    found = elbow(points, range(2, 6), bound="sample", node_limit=1)

    assert (np.diff(found.lower_bound) <= 0.0).all()
    assert (np.diff(found.inertia) <= 0.0).all()
    assert (found.lower_bound <= found.inertia).all()
    for result, lower in zip(found.results, found.lower_bound, strict=True):
        assert result.lower_bound <= lower


def test_all_kinds_of_constraints_and_weights():
    points = np.random.default_rng(1).normal(size=(12, 2))
    constraints = {
        "partial_labels": ["a", "b", *[""] * 10],
        "groups": [-1, -1, 5, 5, *[-1] * 8],
        "constraints": certikmeans.Constraints.from_pairs(cannot_link=[(2, 4)]),
        "sample_weight": np.arange(1.0, 13.0),
    }
    found = elbow(points, (2, 3), **constraints)
    for result in found.results:
        labels = result.labels
        assert labels[0] != labels[1]
        assert labels[2] == labels[3] != labels[4]


def test_repr():
    made = Elbow(np.array([2, 3]), np.array([1.23456789, 1.0]), np.array([1.3, np.inf]), ())
    assert repr(made) == "Elbow(K=2: [1.23456, 1.3], K=3: [1, infinite])"


def test_plot_axes():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    made = elbow([[0.0], [1.0], [5.0]], (1, 2, 3), cannot_link=[(0, 1)])
    _, axes = pyplot.subplots()
    assert made.plot(axes) is axes
    assert [text.get_text() for text in axes.texts] == ["infeasible"]
    assert axes.get_xlabel() == "number of clusters"
    assert made.plot() is not axes
    pyplot.close("all")


@pytest.mark.parametrize(
    ("k_values", "message"),
    [([], "k_values: is empty"), (3, "k_values: expected several"), ([0], "n_clusters: 0")],
)
def test_invalid_k_values(k_values, message):
    with pytest.raises(InputError, match=message):
        elbow([[0.0], [1.0]], k_values)
