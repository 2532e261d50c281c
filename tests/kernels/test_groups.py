"""Groups of points: components, means, and what they cost inside, against exact sums."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans.kernels.graph.union import number_components
from certikmeans.presolve.must_link import collapse
from certikmeans.problem.numbering import number_by_appearance


@pytest.mark.parametrize("seed", range(30))
def test_components_are_those_of_a_traversal_numbered_by_their_smallest_member(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 60)), int(rng.integers(0, 60))
    pairs = rng.integers(n, size=(m, 2))
    links = coo_array((np.ones(m), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    expected = number_by_appearance(connected_components(links, directed=False)[1])
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
def test_cost_inside_groups_is_never_overstated(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 40)), int(rng.integers(1, 4))
    points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) + 10.0 ** rng.integers(0, 9)
    weights = rng.choice([0.0, 1.0, 0.1, 1e-6, 1e6, 3.0], size=n)
    group_of = number_by_appearance(rng.integers(max(1, n // 3), size=n))
    done = collapse(points, weights, group_of)
    exact = _exact_inside(points, weights, group_of)
    assert Fraction(done.offset_below) <= exact
    assert float(exact) - done.offset_below <= 1e-9 * float(exact) + 1e-6 * points.max() ** 2 * 1e-9
    for g in np.flatnonzero(done.weights == 0.0):
        np.testing.assert_allclose(done.means[g], points[group_of == g].mean(axis=0))
    averaging = Fraction(0)
    for g in np.flatnonzero(done.weights):
        rows = np.flatnonzero(group_of == g)
        mass = sum((Fraction(weights[i]) for i in rows), Fraction(0))
        assert mass <= Fraction(done.weights[g]) * Fraction(done.weight_factor)
        assert Fraction(done.weights[g]) <= mass * Fraction(done.weight_factor)
        for j in range(d):
            pull = sum(Fraction(weights[i]) * Fraction(points[i, j]) for i in rows)
            averaging += mass * (pull / mass - Fraction(done.means[g, j])) ** 2
    assert averaging <= Fraction(done.averaging) ** 2


def test_a_group_of_one_is_that_point_to_the_last_digit():
    points = np.array([[0.1, 1e9 / 3], [7.0, 2.0], [8.0, 2.0]])
    done = collapse(points, np.array([0.3, 1.0, 1.0]), np.array([0, 1, 1]))
    assert done.means[0].tolist() == points[0].tolist()
    assert done.weights[0] == 0.3
