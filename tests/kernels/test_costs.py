"""The computed cost of labels is at least the exact one, and close to it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans.kernels.costs import labels_cost, squared_distance, squared_distance_to
from certikmeans.kernels.graph import number_components
from certikmeans.kernels.rows import two_smallest
from certikmeans.presolve.reductions import aggregate
from certikmeans.problem.arrays import canonical_labels
from certikmeans.testing.oracle import exact_cost


def cost_of(points, weights, labels, n_clusters):
    centers = np.empty((n_clusters, points.shape[1]))
    value = labels_cost(points, weights, labels, centers)
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


def test_equal_points():
    for value in (0.1, 1e8 + 0.3, -7e40):
        points = np.full((7, 2), value)
        assert cost_of(points, np.full(7, 0.3), np.array([0, 0, 0, 1, 1, 0, 1]), 2) == 0.0


def test_single_points():
    rng = np.random.default_rng(0)
    points = 1e8 + rng.normal(size=(9, 3))
    assert cost_of(points, rng.uniform(0.1, 2, size=9), np.arange(9), 9) == 0.0


@pytest.mark.parametrize("share", [0.3, 0.4, 0.45])
def test_mean_between_two_floats(share):
    """The mean is no float: what is taken off for that must not be too much for many points."""
    high = int(1_000 * share)
    points = np.full((1_000, 1), 1.0)
    points[:high] = np.nextafter(1.0, 2.0)
    labels = np.zeros(1_000, dtype=np.int64)
    value, exact = (
        cost_of(points, np.ones(1_000), labels, 1),
        exact_cost(points, [1.0] * 1_000, labels),
    )
    assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 10**11))


def test_underflow():
    points = np.array([[0.0], [1e-170], [1.0]])
    value = cost_of(points, np.ones(3), np.array([0, 0, 1]), 2)
    assert exact_cost(points, np.ones(3), [0, 0, 1]) <= Fraction(value)


def test_empty_cluster():
    points = np.array([[1.0], [3.0]])
    centers = np.empty((3, 1))
    labels_cost(points, np.ones(2), np.array([1, 1]), centers)
    assert centers.ravel().tolist() == [2.0, 2.0, 2.0]


# The helpers that every kernel shares, against plain numpy.


@pytest.mark.parametrize("d", [1, 2, 5])
def test_squared_distances_of_integers(d):
    rng = np.random.default_rng(d)
    points = rng.integers(-9, 10, size=(6, d)).astype(float)
    others = rng.integers(-9, 10, size=(4, d)).astype(float)
    for i in range(6):
        for k in range(4):
            expected = np.sum((points[i] - others[k]) ** 2)
            assert squared_distance(points, i, others, k) == expected
            assert squared_distance_to(points, i, others[k]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 1.0, 2.0], (1.0, 2.0, 1)),
        ([1.0, 1.0], (1.0, 1.0, 0)),  # on a tie the first
        ([np.inf, 4.0], (4.0, np.inf, 1)),
        ([np.inf, np.inf], (np.inf, np.inf, -1)),
    ],
)
def test_two_smallest(values, expected):
    assert two_smallest(np.array(values)) == expected


# Groups of points: components, means, and what they cost inside, against exact sums.


@pytest.mark.parametrize("seed", range(30))
def test_number_components(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 60)), int(rng.integers(0, 60))
    pairs = rng.integers(n, size=(m, 2))
    links = coo_array((np.ones(m), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    expected = canonical_labels(connected_components(links, directed=False)[1])
    component = np.empty(n, dtype=np.int64)
    count = number_components(pairs, component)
    assert count == expected.max() + 1
    np.testing.assert_array_equal(component, expected)


def _exact_inside(points, weights, group_of):
    """Sum of squares inside the groups, about their exact means."""
    total = Fraction(0)
    for g in range(int(group_of.max()) + 1):
        rows = np.flatnonzero(group_of == g)
        mass = sum((Fraction(weights[i]) for i in rows), Fraction(0))
        for j in range(points.shape[1] if mass else 0):
            values = [Fraction(points[i, j]) for i in rows]
            shares = [Fraction(weights[i]) for i in rows]
            mean = sum(w * x for w, x in zip(shares, values, strict=True)) / mass
            total += sum(w * (x - mean) ** 2 for w, x in zip(shares, values, strict=True))
    return total


@pytest.mark.parametrize("seed", range(60))
def test_within_group_cost_bound(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 40)), int(rng.integers(1, 4))
    points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + 10.0 ** rng.integers(0, 9)
    weights = rng.choice([0.0, 1.0, 0.1, 1e-6, 1e6, 3.0], size=n)
    group_of = canonical_labels(rng.integers(max(1, n // 3), size=n))
    done = aggregate(points, weights, group_of)
    exact = _exact_inside(points, weights, group_of)
    assert Fraction(done.offset_lower_bound) <= exact
    assert (
        float(exact) - done.offset_lower_bound
        <= 1e-9 * float(exact) + 1e-6 * points.max() ** 2 * 1e-9
    )
    for g in np.flatnonzero(done.weights == 0.0):
        np.testing.assert_allclose(done.means[g], points[group_of == g].mean(axis=0))
    mean_error = Fraction(0)
    for g in np.flatnonzero(done.weights):
        rows = np.flatnonzero(group_of == g)
        mass = sum((Fraction(weights[i]) for i in rows), Fraction(0))
        assert mass <= Fraction(done.weights[g]) * Fraction(done.weight_factor)
        assert Fraction(done.weights[g]) <= mass * Fraction(done.weight_factor)
        for j in range(d):
            pull = sum(Fraction(weights[i]) * Fraction(points[i, j]) for i in rows)
            mean_error += mass * (pull / mass - Fraction(done.means[g, j])) ** 2
    assert mean_error <= Fraction(done.mean_error) ** 2


def test_group_of_one():
    points = np.array([[0.1, 1e9 / 3], [7.0, 2.0], [8.0, 2.0]])
    done = aggregate(points, np.array([0.3, 1.0, 1.0]), np.array([0, 1, 1]))
    assert done.means[0].tolist() == points[0].tolist()
    assert done.weights[0] == 0.3
