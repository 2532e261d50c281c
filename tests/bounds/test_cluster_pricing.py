"""Pricing against exact enumeration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.bounds.cluster.pricing import Pricer, PricingRegion
from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound, pricing_error
from certikmeans.stop import StopSignal

from .cluster_oracle import (
    clustered,
    exact_optimum,
    exact_sigma,
    exact_sigma_within,
    make_reduced,
    random_multipliers,
    random_reduced,
    subset_costs,
)


def check_against_oracle(seed):
    reduced = random_reduced(seed)
    costs = subset_costs(reduced)
    optimum = exact_optimum(reduced, costs)
    pricer = Pricer(reduced)
    for lam in (random_multipliers(reduced, seed), random_multipliers(reduced, seed + 7919)):
        sigma = exact_sigma(reduced, lam, costs)
        tolerance = 1e-6 * float(sigma) + 1e-12

        priced = pricer.price_exact(lam, 0.0, StopSignal(), tolerance=tolerance)

        error = pricing_error(reduced.points, reduced.weights, lam)
        assert Fraction(priced.upper) >= sigma
        assert Fraction(priced.upper) <= sigma + Fraction(2 * tolerance + 8 * error)
        assert priced.complete
        bound = lagrangian_lower_bound(lam, reduced.n_clusters * priced.upper)
        if optimum is not None:
            assert Fraction(bound) <= optimum[0]


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_sigma_bounded_and_tight(start):
    # If the bound on sigma were too low, the solver would certify a wrong bound.
    for seed in range(start, start + 50):
        check_against_oracle(seed)


def random_region(reduced, rng):
    """Random box among the points, sometimes degenerate, sometimes with forbidden groups."""
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    ends = np.sort(rng.uniform(low, high, size=(2, reduced.n_dims)), axis=0)
    for j in range(reduced.n_dims):
        kind = rng.integers(6)
        if kind == 0:
            ends[:, j] = low[j], high[j]
        elif kind == 1:
            ends[1, j] = ends[0, j]
        elif kind == 2:
            ends[0, j] = low[j]
    allowed = rng.random(reduced.n_groups) < 0.7 if rng.random() < 0.4 else None
    return PricingRegion.of(reduced, ends[0], ends[1], allowed)


def check_region(seed):
    reduced = random_reduced(seed)
    rng = np.random.default_rng(seed + 5)
    pricer = Pricer(reduced)
    for trial in range(3):
        lam = random_multipliers(reduced, seed + 31 * trial)
        region = random_region(reduced, rng)
        sigma = exact_sigma_within(reduced, lam, region)
        tolerance = 1e-6 * float(sigma) + 1e-12

        priced = pricer.price_exact(lam, 0.0, StopSignal(), tolerance=tolerance, region=region)
        columns = pricer.price_heuristic(
            lam, [region.clamp(p) for p in reduced.points], region=region
        )

        error = pricing_error(reduced.points, reduced.weights, lam)
        assert Fraction(priced.upper) >= sigma
        assert Fraction(priced.upper) <= sigma + Fraction(2 * tolerance + 8 * error)
        for column in columns:
            value = float(column.members @ lam) - column.cost_in_region(region)
            assert column.value == pytest.approx(value, abs=8 * error + 1e-9 * abs(value))
            assert Fraction(column.value) <= sigma + Fraction(8 * error)
            if region.allowed is not None:
                assert region.allowed[column.members == 1].all()


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_sigma_in_region_bounded_and_tight(start):
    # If the best mean lies beyond an active face, the best centre is on the face: contraction to
    # reachable means has to keep it.
    for seed in range(start, start + 50):
        check_region(seed)


@pytest.mark.parametrize("seed", range(40))
def test_several_regions_at_once(seed):
    reduced = random_reduced(seed)
    rng = np.random.default_rng(seed + 11)
    pricer, lam = Pricer(reduced), random_multipliers(reduced, seed)
    ends = np.sort(
        rng.uniform(reduced.points.min(axis=0), reduced.points.max(axis=0), (6, 2, reduced.n_dims)),
        axis=1,
    )
    regions = [pricer.full_region.subregion(low, high) for low, high in ends]
    sigmas = [exact_sigma_within(reduced, lam, region) for region in regions]
    error = Fraction(pricing_error(reduced.points, reduced.weights, lam))
    for cutoff in sorted({float(sigma) for sigma in sigmas}):
        tolerance = float(rng.choice([0.0, 1e-3, 0.1])) * cutoff
        priced = pricer.price_regions(lam, 0.9 * cutoff, StopSignal(), regions, tolerance)
        most = max(Fraction(0.9 * cutoff), max(sigmas), Fraction(0))

        assert Fraction(priced.upper) >= max(sigmas)
        assert Fraction(priced.upper) <= most + Fraction(tolerance) + 8 * error
        # An improving centre is found if one exists beyond rounding.
        assert priced.centers or max(sigmas) <= Fraction(0.9 * cutoff) + 8 * error


def test_forbidden_group_at_center():
    check_region(3613)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 2300, 100))
def test_sigma_in_region_bounded_and_tight_slow(start):
    for seed in range(start, start + 100):
        check_region(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(300, 2300, 100))
def test_sigma_bounded_and_tight_slow(start):
    for seed in range(start, start + 100):
        check_against_oracle(seed)


@pytest.mark.parametrize("seed", range(40))
def test_cutoff_confirmed_or_refuted(seed):
    reduced = random_reduced(seed)
    lam = random_multipliers(reduced, seed)
    sigma = exact_sigma(reduced, lam)
    pricer = Pricer(reduced)

    above = pricer.price_exact(lam, 1.01 * float(sigma), StopSignal())
    below = pricer.price_exact(lam, 0.99 * float(sigma), StopSignal())

    assert above.complete
    assert not above.centers
    assert Fraction(above.upper) >= sigma
    assert Fraction(below.upper) >= sigma
    if sigma > 0:
        assert below.centers


@pytest.mark.parametrize("seed", range(30))
def test_interrupted_search_valid(seed):
    reduced = random_reduced(seed)
    lam = random_multipliers(reduced, seed)
    stop = StopSignal()
    stop.interrupt()

    priced = Pricer(reduced).price_exact(lam, 0.0, stop, tolerance=0.0)

    assert priced.upper >= exact_sigma(reduced, lam)


@pytest.mark.parametrize("seed", range(60))
def test_heuristic_columns_feasible_and_below_sigma(seed):
    reduced = random_reduced(seed)
    lam = random_multipliers(reduced, seed)
    costs = subset_costs(reduced)
    sigma = exact_sigma(reduced, lam, costs)
    error = pricing_error(reduced.points, reduced.weights, lam)

    columns = Pricer(reduced).price_heuristic(lam, list(reduced.points))

    for column in columns:
        bits = sum(1 << int(s) for s in np.flatnonzero(column.members))
        assert bits in costs  # no cannot-link inside
        assert column.value <= sigma + Fraction(error)
        total = sum(Fraction(float(lam[s])) for s in np.flatnonzero(column.members))
        assert abs(Fraction(column.value) - (total - costs[bits])) <= Fraction(error)
    values = [column.value for column in columns]
    assert values == sorted(values, reverse=True)


def best_set_at(reduced, lam, y):
    """Value of the best independent set at ``y``, by recursion over each component."""
    a = lam - reduced.weights * np.sum((reduced.points - y) ** 2, axis=1)
    graph = reduced.graph
    total = float(np.maximum(a[graph.n_linked :], 0.0).sum())

    def best(rest):
        if not rest:
            return 0.0
        v = max(rest)  # breadth-first order: mostly a leaf
        near = set(graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]].tolist()) & rest
        if not near:
            return a[v] + best(rest - {v})
        return max(best(rest - {v}), a[v] + best(rest - {v} - near))

    for first, last in zip(graph.starts[:-1], graph.starts[1:], strict=True):
        total += best(frozenset(v for v in range(first, last) if a[v] > 0))
    return total


@pytest.mark.parametrize("seed", range(6))
def test_sigma_against_dense_grid(seed):
    reduced, labels = clustered(seed, n=120, d=2)
    means = np.array([reduced.points[labels == k].mean(axis=0) for k in range(3)])
    lam = 1.5 * np.sum((reduced.points - means[labels]) ** 2, axis=1) + 0.3
    priced = Pricer(reduced).price_exact(lam, 0.0, StopSignal(), tolerance=0.01)

    axes = [np.linspace(*np.percentile(column, [1, 99]), 40) for column in reduced.points.T]
    grid = [(x, y) for x in axes[0] for y in axes[1]]
    values = [best_set_at(reduced, lam, np.array(point)) for point in grid]
    start = np.array(grid[int(np.argmax(values))])

    assert priced.upper >= max(values)
    top = Pricer(reduced).price_heuristic(lam, [start, *means])[0]
    assert top.value <= priced.upper <= top.value + 0.03


def test_same_result_with_threads():
    reduced, _ = clustered(0)
    lam = np.full(reduced.n_groups, 6.0)
    one = Pricer(reduced).price_exact(lam, 0.0, StopSignal(), tolerance=1.0)
    with ThreadPoolExecutor(3) as executor:
        three = Pricer(reduced, executor).price_exact(lam, 0.0, StopSignal(), tolerance=1.0)
    assert (one.upper, one.boxes) == (three.upper, three.boxes)
    assert all(np.array_equal(a, b) for a, b in zip(one.centers, three.centers, strict=True))


def test_longer_search_not_worse():
    reduced, _ = clustered(1)
    lam = np.full(reduced.n_groups, 6.0)
    full = Pricer(reduced).price_exact(lam, 0.0, StopSignal(), tolerance=1.0)
    brief = Pricer(reduced).price_exact(lam, 0.0, StopSignal(0.002), tolerance=1.0)
    assert brief.upper >= full.upper - 1.0


def test_zero_multipliers():
    reduced, _ = clustered(2, n=20)
    priced = Pricer(reduced).price_exact(np.zeros(20), 0.0, StopSignal())
    assert priced.complete
    assert 0.0 <= priced.upper <= 1e-9


def test_value_at_a_far_point():
    """Sums about the origin cancel: the value of a cluster there is rounded up all the same."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(6, 2)) + 1e4
        reduced = make_reduced(points, rng.uniform(0.5, 2.0, size=6), [], 2)
        center = reduced.points.mean(axis=0)
        squares = np.sum((reduced.points - center) ** 2, axis=1)
        lam = reduced.weights * squares + rng.uniform(0.5, 1.5, size=6)
        region = PricingRegion.of(reduced, center, center)
        exact = exact_sigma_within(reduced, lam, region)
        upper = Pricer(reduced).price_exact(lam, 0.0, StopSignal(), region=region).upper
        assert Fraction(upper) >= exact
