"""Pricing kernels against direct computations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.box_bound import (
    IN,
    OUT,
    Forest,
    Instance,
    build_forest,
    filter_reachable,
    forest_workspace,
    maximize_in_box,
    overestimate,
    tree_ranges,
)
from certikmeans.kernels.pricing.boxes import select_at, shrink_to_means, shrink_to_objective
from certikmeans.kernels.pricing.search import search_boxes
from certikmeans.stop import StopSignal
from tests.bounds.cluster_oracle import make_reduced, random_multipliers, random_reduced


def values_at(reduced, lam, y):
    return lam - reduced.weights * np.sum((reduced.points - y) ** 2, axis=1)


def best_set_value(reduced, lam, y):
    """Value of the best independent set at ``y``, by enumeration."""
    a = values_at(reduced, lam, y)
    linked = {tuple(edge) for edge in reduced.graph.edges().tolist()}
    good = np.flatnonzero(a > 0).tolist()
    best = 0.0
    for size in range(1, len(good) + 1):
        for chosen in combinations(good, size):
            if not any(pair in linked for pair in combinations(chosen, 2)):
                best = max(best, float(a[list(chosen)].sum()))
    return best


def instance_of(reduced, lam):
    """Return the instance as `Pricer` makes it."""
    return Pricer(reduced).instance(lam)


def bounded_box(reduced, lam, lo, hi):
    """Upper bound of one box; returns all intermediate results."""
    n, d = reduced.points.shape
    instance = instance_of(reduced, lam)
    space = forest_workspace(n, np.full(reduced.graph.n_linked, -1, dtype=np.int32))
    state = np.empty(n, dtype=np.uint8)
    upper, lower, gain, coefficient = (np.empty(n) for _ in range(4))
    members = np.arange(n, dtype=np.int32)
    m = filter_reachable(instance, members, lo, hi, space.ids, upper, lower)
    forest = build_forest(instance, space.ids[:m], space)
    assert np.all(space.position == -1)
    tree_ranges(forest, upper, lower, gain, coefficient)
    fixed_sums, estimate = np.zeros(d + 2), np.zeros(d + 2)
    overestimate(instance, forest, upper, lower, state, coefficient, fixed_sums, estimate)
    peak, y = np.empty(d), np.empty(d)
    bound = maximize_in_box(fixed_sums, estimate, lo, hi, peak, y)
    return bound, fixed_sums + estimate, forest.ids, state[:m], coefficient[:m], peak, y


@pytest.mark.parametrize("seed", range(120))
def test_quadratic_above_best_set(seed):
    reduced = random_reduced(seed, largest=7, most_axes=4)
    lam = random_multipliers(reduced, seed)
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(-2, 2, size=(2, reduced.n_dims)), axis=0)
    corners *= np.abs(reduced.points).max() + 1e-9
    lo, hi = corners[0].copy(), corners[1].copy()

    bound, sums, _, _, coefficient, _, _ = bounded_box(reduced, lam, lo, hi)

    assert np.all((coefficient >= 0.0) & (coefficient <= 1.0))
    size = np.abs(lam).sum() + np.sum(reduced.weights) * 30 * np.abs(corners).max() ** 2
    for _ in range(20):
        y = rng.uniform(lo, hi)
        quadratic = sums[0] + 2.0 * sums[2:] @ y - sums[1] * y @ y
        assert quadratic >= best_set_value(reduced, lam, y) - 1e-13 * size
        assert bound >= quadratic - 1e-13 * size


@pytest.mark.parametrize("seed", range(80))
def test_decided_groups_hold_in_box(seed):
    # Groups decided as in or out must not lower the best value anywhere in the box.
    reduced = random_reduced(seed, largest=7, most_axes=3)
    lam = random_multipliers(reduced, seed)
    rng = np.random.default_rng(seed)
    middle = reduced.points[rng.integers(reduced.n_groups)]
    half = 0.05 * (np.abs(reduced.points).max() + 1e-9)
    lo, hi = middle - half, middle + half

    _, _, ids, state, _, _, _ = bounded_box(reduced, lam, lo, hi)

    inside = ids[state == IN]
    gone = np.setdiff1d(np.arange(reduced.n_groups), ids[state != OUT])
    adjacency = {v: set() for v in range(reduced.n_groups)}
    for u, v in reduced.graph.edges().tolist():
        adjacency[u].add(v)
        adjacency[v].add(u)
    for _ in range(10):
        y = rng.uniform(lo, hi)
        forced = lam.copy()
        forced[gone] = -1.0
        for v in inside:
            forced[list(adjacency[int(v)])] = -1.0
        a = values_at(reduced, lam, y)
        forced[inside] = -1.0
        rest = best_set_value(reduced, forced, y)
        expected = best_set_value(reduced, lam, y)
        assert rest + a[inside].sum() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_objective_contraction(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    lo, hi = -rng.uniform(0.1, 2, size=d), rng.uniform(0.1, 2, size=d)
    peak, mass = rng.normal(size=d) * 2, float(rng.uniform(0.1, 5))
    y = np.clip(peak, lo, hi)
    room = float(rng.uniform(0.01, 3))
    small_lo, small_hi = lo.copy(), hi.copy()
    shrink_to_objective(room, mass, peak, y, np.zeros(d), small_lo, small_hi)
    for z in rng.uniform(lo, hi, size=(200, d)):
        loss = mass * (np.sum((z - peak) ** 2) - np.sum((y - peak) ** 2))
        if loss <= room:
            assert np.all((z >= small_lo) & (z <= small_hi))


@pytest.mark.parametrize("seed", range(60))
def test_mean_contraction(seed):
    rng = np.random.default_rng(seed)
    d, n_in, n_open = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(0, 7))
    points = rng.normal(size=(n_in + n_open, d))
    weights = rng.uniform(0.1, 3.0, size=n_in + n_open)
    fixed_sums = np.zeros(d + 2)
    fixed_sums[1] = weights[:n_in].sum()
    fixed_sums[2:] = weights[:n_in] @ points[:n_in]
    ends = np.sort(rng.normal(size=(2, d)), axis=0)
    lo, hi = ends[0].copy(), ends[1].copy()
    open_ids = np.arange(n_in, n_in + n_open, dtype=np.int32)
    active_faces = np.array([np.full(d, -np.inf), np.full(d, np.inf)])
    for side in range(2):
        touched = rng.random(d) < 0.5
        active_faces[side, touched] = ends[side, touched]

    nothing = np.empty(0, dtype=np.int64)
    instance = Instance(
        points, weights, weights, weights, nothing, nothing.astype(np.uint8), nothing, nothing
    )

    alive = shrink_to_means(instance, open_ids, fixed_sums, np.full(d, 1e-12), active_faces, lo, hi)

    for bits in range(1 << n_open):
        rows = [*range(n_in), *(n_in + k for k in range(n_open) if bits >> k & 1)]
        mean = np.average(points[rows], axis=0, weights=weights[rows])
        mean = np.clip(mean, active_faces[0], active_faces[1])
        if np.all((mean >= ends[0]) & (mean <= ends[1])):
            assert alive
            assert np.all((mean >= lo) & (mean <= hi))


@pytest.mark.parametrize("seed", range(80))
def test_forest_selection_optimal(seed):
    for number in range(100):
        reduced = random_reduced(1_000 * number + seed, largest=7, most_axes=2)
        if not reduced.graph.n_extra_edges.any():
            break
    assert not reduced.graph.n_extra_edges.any()
    lam = random_multipliers(reduced, seed)
    n, linked = reduced.n_groups, reduced.graph.n_linked
    parent, order = np.full(n, -1, dtype=np.int32), np.arange(n, dtype=np.int32)
    parent[:linked] = reduced.graph.parents
    chosen, delta = np.empty(n, dtype=np.uint8), np.empty(n)
    y = reduced.points[0]
    forest = Forest(order, parent, order, np.zeros(n, dtype=np.uint8), linked, 0)
    value = select_at(instance_of(reduced, lam), forest, y, delta, chosen)
    assert value == pytest.approx(best_set_value(reduced, lam, y), rel=1e-9, abs=1e-12)
    assert values_at(reduced, lam, y)[chosen == 1].sum() == pytest.approx(
        value, rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(60))
def test_ascent_selection_with_cycles(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 2))
    pairs = [pair for pair in combinations(range(9), 2) if rng.random() < 0.45]
    reduced = make_reduced(points - points.mean(axis=0), rng.uniform(0.5, 2, size=9), pairs, 2)
    lam = rng.uniform(0.5, 6, size=9)
    y, members = reduced.points[0].copy(), np.empty(9, dtype=np.uint8)
    start, sums = y.copy(), np.empty(4)
    active_faces = np.array([[-np.inf, -np.inf], [np.inf, np.inf]])
    value, _ = ascend(
        instance_of(reduced, lam), active_faces, y, sums, members, 1, 0.0
    )  # one selection, then its mean
    assert value >= best_set_value(reduced, lam, start) - 1e-9


def test_kernels_compiled():
    pricer = Pricer(make_reduced(np.arange(6.0).reshape(-1, 1), np.ones(6), [(0, 1)], 2))
    pricer.price_exact(np.ones(6), 0.0, StopSignal())
    pricer.price_heuristic(np.ones(6), [np.zeros(1)])
    for kernel in (search_boxes, ascend):  # the others are compiled into these
        assert kernel.nopython_signatures
