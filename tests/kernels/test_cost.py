"""The cost of a labelling: never below the exact one, and close to it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.kernels.cost import labelling_cost
from certikmeans.testing.oracle import exact_cost


def cost_of(points, weights, labels, n_clusters):
    centers = np.empty((n_clusters, points.shape[1]))
    value = labelling_cost(points, weights, labels, centers)
    assert np.isfinite(centers).all()
    return value


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e8, -1e15])
@pytest.mark.parametrize("scale", [1e-60, 1e-3, 1.0, 1e40])
@pytest.mark.parametrize("seed", range(12))
def test_rounded_up_and_close(seed, scale, shift):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(1, 30)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    points = (rng.normal(size=(n, d)) + shift) * scale
    weights = 10.0 ** rng.uniform(-12, 12, size=n) if seed % 3 == 0 else rng.uniform(0.1, 5, size=n)
    labels = rng.integers(0, k, size=n)
    value = cost_of(points, weights, labels, k)
    exact = exact_cost(points, weights, labels)
    assert exact <= Fraction(value)
    if seed % 3:
        # Relative to the larger of the cost and the spacing of floats at the points.
        spacing = np.spacing(np.abs(points).max()) ** 2 * weights.sum()
        assert value <= float(exact) * (1 + 1e-13) + 1e-13 * spacing + 1e-279


def test_equal_points_cost_nothing():
    for value in (0.1, 1e8 + 0.3, -7e40):
        points = np.full((7, 2), value)
        assert cost_of(points, np.full(7, 0.3), np.array([0, 0, 0, 1, 1, 0, 1]), 2) == 0.0


def test_single_points_cost_nothing():
    rng = np.random.default_rng(0)
    points = 1e8 + rng.normal(size=(9, 3))
    assert cost_of(points, rng.uniform(0.1, 2, size=9), np.arange(9), 9) == 0.0


def test_squares_that_underflow_are_not_lost():
    points = np.array([[0.0], [1e-170], [1.0]])
    value = cost_of(points, np.ones(3), np.array([0, 0, 1]), 2)
    assert exact_cost(points, np.ones(3), [0, 0, 1]) <= Fraction(value)


def test_an_empty_cluster_sits_on_another():
    points = np.array([[1.0], [3.0]])
    centers = np.empty((3, 1))
    labelling_cost(points, np.ones(2), np.array([1, 1]), centers)
    assert centers.ravel().tolist() == [2.0, 2.0, 2.0]
