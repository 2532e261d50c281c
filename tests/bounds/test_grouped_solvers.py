"""Group problems: compiled search against enumeration in exact arithmetic, and SCIP."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans.bounds.grouped.bundle import group_errors, sample_magnitudes, solve_chunk
from certikmeans.kernels.grouped.solve import SearchLimits
from tests.bounds.grouped_oracle import exact_minimum, make_chunk, random_group

PLAIN = SearchLimits(relative_tolerance=0.0, quick_limit=10**6, node_limit=10**6)
DOLLS = SearchLimits(relative_tolerance=0.0, quick_limit=0, node_limit=10**6)


def solve(chunk, nu, limits, solver=solve_chunk):
    return solver(chunk, nu[None], np.full(len(chunk.points), -1), limits)


def draw_group(seed, largest, wanted):
    """A random group whose exact minimum is as wanted, its linear term, and the minimum."""
    for number in range(200):
        chunk, nu, allowed = random_group(1_000 * number + seed, largest=largest)
        exact = exact_minimum(chunk, nu, allowed)
        if wanted(exact):
            return chunk, nu, exact
    raise AssertionError("nothing to test in 200 draws")


def group_with_a_labelling(seed, largest):
    return draw_group(seed, largest, lambda exact: exact is not None)


def rounding_of(chunk, nu):
    reach = np.maximum(np.abs(chunk.lower), np.abs(chunk.upper))
    sizes = sample_magnitudes(chunk.points, chunk.weights, chunk.starts, reach)
    return Fraction(float(group_errors(sizes, chunk.starts, nu[None], reach)[0]))


@pytest.mark.parametrize("limits", [PLAIN, DOLLS], ids=["plain", "dolls"])
@pytest.mark.parametrize("seed", range(40))
def test_infeasible_group_is_infinite(seed, limits):
    chunk, nu, _ = draw_group(seed, 5, lambda exact: exact is None)
    found = solve(chunk, nu, limits)
    assert found.bounds[0] == found.values[0] == np.inf


@pytest.mark.parametrize("limits", [PLAIN, DOLLS], ids=["plain", "dolls"])
@pytest.mark.parametrize("seed", range(150))
def test_minimum_within_rounding_error(seed, limits):
    chunk, nu, exact = group_with_a_labelling(seed, largest=5)
    found = solve(chunk, nu, limits)
    slack = rounding_of(chunk, nu)
    assert exact - slack <= Fraction(found.bounds[0]) <= exact + slack
    assert abs(Fraction(found.values[0]) - exact) <= slack


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_node_limit_keeps_bound_valid(seed, limit):
    chunk, nu, exact = group_with_a_labelling(seed, largest=5)
    for quick in (0, limit):
        found = solve(chunk, nu, SearchLimits(0.0, quick, limit))
        assert Fraction(found.bounds[0]) <= exact + rounding_of(chunk, nu)


@pytest.mark.parametrize("seed", range(30))
def test_value_of_labels_and_centers(seed):
    for number in range(200):
        chunk, nu, _ = random_group(1_000 * number + seed, largest=12)
        found = solve(chunk, nu, DOLLS)
        if np.isfinite(found.values[0]):
            break
    assert np.isfinite(found.values[0])
    centers, labels = found.centers[0], found.labels
    assert (centers >= chunk.lower).all()
    assert (centers <= chunk.upper).all()
    for i in range(len(labels)):
        near = chunk.link[chunk.link_start[i] : chunk.link_start[i + 1]]
        assert (labels[near] != labels[i]).all()
    away = chunk.points - centers[labels]
    value = chunk.weights @ np.sum(away**2, axis=1) + np.sum(nu * centers)
    assert value == pytest.approx(found.values[0], rel=1e-9, abs=1e-8)


def big_group(seed, m=14, n_clusters=3):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(m, 2)) + 2.0 * rng.integers(0, 3, size=(m, 1))
    edges = [(i, (i + 1) % 5) for i in range(5)] + [(6, 7), (7, 8)]
    ends = rng.uniform(points.min(axis=0), points.max(axis=0), size=(2, n_clusters, 2))
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    if seed % 2:
        lower[:], upper[:] = points.min(axis=0), points.max(axis=0)
    allowed = np.ones((m, n_clusters), dtype=bool)
    nu = rng.normal(size=(n_clusters, 2)) * (seed % 3) * 2.0
    return make_chunk(points, rng.uniform(0.5, 2.0, size=m), edges, allowed, lower, upper), nu


@pytest.mark.parametrize("seed", range(20))
def test_plain_and_russian_doll_search_agree(seed):
    chunk, nu = big_group(seed, m=18)
    plain, dolls = solve(chunk, nu, PLAIN), solve(chunk, nu, DOLLS)
    assert plain.bounds[0] == pytest.approx(dolls.bounds[0], rel=1e-10)
    assert plain.bounds[0] == pytest.approx(plain.values[0], rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_blocks_are_below_minimum(seed):
    # Too many nodes for the limit, so that the group is cut into blocks whose bounds are added.
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(17, 3))
    lower, upper = np.zeros((3, 3)), np.ones((3, 3))
    allowed = np.ones((17, 3), dtype=bool)
    chunk = make_chunk(
        points, rng.uniform(0.5, 2.0, size=17), [(0, 1), (5, 9)], allowed, lower, upper
    )
    nu = rng.normal(size=(3, 3)) * (seed % 2)
    cut = solve(chunk, nu, SearchLimits(1e-6, 20, 150))
    full = solve(chunk, nu, SearchLimits(1e-6, 20, 10**6))
    assert cut.bounds[0] < cut.values[0]
    assert cut.bounds[0] <= full.bounds[0] + 1e-9
    assert full.bounds[0] == pytest.approx(full.values[0], rel=2e-6)
    corner = np.sum(np.minimum(nu, 0.0))
    assert cut.bounds[0] - corner >= 0.3 * (full.bounds[0] - corner)


@pytest.mark.parametrize("seed", range(25))
def test_scip_agrees(seed):
    pytest.importorskip("pyscipopt")
    from certikmeans.bounds.grouped import scip

    chunk, nu = big_group(seed, m=9) if seed in (1, 3) else group_with_a_labelling(seed, 6)[:2]
    ours = solve(chunk, nu, DOLLS)
    theirs = solve(chunk, nu, SearchLimits(1e-7, 0, 10**6), scip.solve_chunk)
    size = abs(ours.values[0]) + np.sum(np.abs(nu) * np.maximum(abs(chunk.lower), abs(chunk.upper)))
    assert theirs.values[0] == pytest.approx(ours.values[0], abs=1e-5 * size + 1e-6)
    assert theirs.bounds[0] <= ours.values[0] + 1e-9 * size + float(rounding_of(chunk, nu))
    assert theirs.bounds[0] >= ours.values[0] - 1e-2 * size - 1e-2


@pytest.mark.parametrize("seed", range(10))
def test_scip_infeasible(seed):
    pytest.importorskip("pyscipopt")
    from certikmeans.bounds.grouped import scip

    for number in range(1_000):  # every sample may go somewhere, and yet there is no labelling
        chunk, nu, allowed = random_group(1_000 * number + seed)
        if chunk.allowed.any(axis=1).all() and exact_minimum(chunk, nu, allowed) is None:
            break
    assert np.isinf(solve(chunk, nu, DOLLS).values[0])
    assert np.isinf(solve(chunk, nu, SearchLimits(1e-7, 0, 10**6), scip.solve_chunk).bounds[0])
