"""Boxes of centers: no center outside of them reaches the threshold; the aggregated problem."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.cluster.lagrangian_dual import LagrangianDual
from certikmeans.certainty import center_regions, dual_ascent
from certikmeans.certainty.artifacts import CertaintyProblem
from certikmeans.certainty.dual_ascent import (
    aggregate_problem,
    max_reduced_cost,
    strengthened_multipliers,
)
from certikmeans.certainty.params import AggregationParams, RegionParams
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal
from tests.certainty.enumeration import certainty_with_aggregation
from tests.certainty.test_compute import clumps


def independent_sets(reduced: ReducedProblem) -> list[np.ndarray]:
    edges = reduced.graph.edges()
    sets = [
        np.array(chosen, dtype=bool) for chosen in product((False, True), repeat=reduced.n_groups)
    ]
    return [one for one in sets if one.any() and not one[edges].all(axis=1).any()]


def exact_value(reduced: ReducedProblem, lam, members, place) -> Fraction:
    total = Fraction(0)
    for s in np.flatnonzero(members):
        away = [Fraction(float(x)) - y for x, y in zip(reduced.points[s], place, strict=True)]
        square = sum((a * a for a in away), Fraction(0))
        total += Fraction(float(lam[s])) - Fraction(float(reduced.weights[s])) * square
    return total


def exact_mean(reduced: ReducedProblem, members) -> list[Fraction]:
    rows = np.flatnonzero(members)
    mass = sum((Fraction(float(reduced.weights[s])) for s in rows), Fraction(0))
    return [
        sum(
            (
                Fraction(float(reduced.weights[s])) * Fraction(float(reduced.points[s, j]))
                for s in rows
            ),
            Fraction(0),
        )
        / mass
        for j in range(reduced.n_dims)
    ]


def enclosed(seed: int, slack: float) -> tuple[ReducedProblem, center_regions.Enclosure] | None:
    problem = clumps(seed)
    result = solve(problem, jobs=1)
    stop = StopSignal()
    case = CertaintyProblem.of(result.basis, result.labels, result.cost, slack, stop)
    reduced = case.presolved.reduced
    dual = LagrangianDual(reduced)
    most = max_reduced_cost(case.presolved, case.cost, slack)
    sums, masses = reduced.cluster_sums(case.groups)
    found = next(strengthened_multipliers(case, dual, None, stop), None)
    if found is None:
        return None
    centers = sums / masses[:, None]
    enclosure = center_regions.enclose(dual, found, most, centers, stop, RegionParams())
    return (reduced, enclosure) if enclosure.failure is None else None


def in_a_region(enclosure, place) -> bool:
    return any(
        all(
            Fraction(float(a)) <= y <= Fraction(b)
            for a, b, y in zip(one.low, one.high, place, strict=True)
        )
        for one in enclosure.regions
    )


def approximate_value(reduced: ReducedProblem, lam, members) -> float:
    mass, points = reduced.weights[members], reduced.points[members]
    away = points - mass @ points / mass.sum()
    return float(lam[members].sum() - mass @ np.sum(away * away, axis=1))


@pytest.mark.parametrize("shrunk", [False, True])
def test_means_of_good_sets_in_regions(monkeypatch, shrunk):
    """Also with candidate boxes that are too small: they have to grow."""
    prove, grown = center_regions.prove_exclusion, 0

    def prove_exclusion(dual, level, candidates, stop, params):
        nonlocal grown
        if shrunk:
            candidates.boxes = [
                (0.8 * low + 0.2 * high, 0.2 * low + 0.8 * high) for low, high in candidates.boxes
            ]
        before = candidates.boxes
        failure = prove(dual, level, candidates, stop, params)
        grown += candidates.boxes is not before
        return failure

    monkeypatch.setattr(center_regions, "prove_exclusion", prove_exclusion)
    found = [enclosed(seed, (0.01, 0.1)[seed % 2]) for seed in range(12)]
    good = [good_sets_in_regions(*one) for one in found if one is not None]
    assert len(good) >= 6
    assert sum(good) >= 20
    assert grown >= 6 * shrunk


def good_sets_in_regions(reduced: ReducedProblem, enclosure: center_regions.Enclosure) -> int:
    """Count sets of value at least the threshold; each must have its mean in a region."""
    level = enclosure.level
    good = 0
    for members in independent_sets(reduced):
        if approximate_value(reduced, level.multipliers, members) >= 0.999 * level.threshold:
            mean = exact_mean(reduced, members)
            value = exact_value(reduced, level.multipliers, members, mean)
            assert value <= Fraction(level.sigma)
            if value >= Fraction(level.threshold):
                good += 1
                assert in_a_region(enclosure, mean)
    return good


def points_near(
    reduced: ReducedProblem, enclosure: center_regions.Enclosure, rng
) -> list[np.ndarray]:
    """Points near corners of the regions, outside of them, within the box of all points."""
    low, high = reduced.points.min(axis=0), reduced.points.max(axis=0)
    corners = [end for one in enclosure.regions for end in (one.low, one.high)]
    wide = 0.05 * (high - low) + 1e-9
    places = [p for end in corners for p in end + rng.normal(size=(6, len(low))) * wide]
    return [
        place
        for place in places
        if np.all(low <= place)
        and np.all(place <= high)
        and not in_a_region(enclosure, [Fraction(float(y)) for y in place])
    ]


def test_value_outside_regions_below_threshold():
    """At any point, not only at means."""
    outside = 0
    rng = np.random.default_rng(0)
    found = [enclosed(seed, 0.02) for seed in range(0, 12, 2)]
    for reduced, enclosure in (one for one in found if one is not None):
        level, sets = enclosure.level, independent_sets(reduced)
        for place in points_near(reduced, enclosure, rng):
            about = [
                level.multipliers[one].sum()
                - reduced.weights[one] @ np.sum((reduced.points[one] - place) ** 2, axis=1)
                for one in sets
            ]
            best, exact = sets[int(np.argmax(about))], [Fraction(float(y)) for y in place]
            assert exact_value(reduced, level.multipliers, best, exact) < Fraction(level.threshold)
            outside += 1
    assert outside >= 20


def gaussians(n: int, cannot: int) -> Problem:
    rng = np.random.default_rng(1)
    truth = np.arange(n) % 3
    points = 6.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[truth] + rng.normal(size=(n, 2))
    pairs = rng.integers(n, size=(4 * cannot, 2))
    pairs = pairs[truth[pairs[:, 0]] != truth[pairs[:, 1]]][:cannot]
    return Problem.from_data(points, 3, cannot_link=pairs)


def test_aggregated_values():
    result = solve(gaussians(600, 100), jobs=1)
    presolved, (artifact,) = result.basis.presolved, result.basis.bound_artifacts
    reduced, labels = presolved.reduced, presolved.presolve_labels(result.labels)
    lam = artifact.evidence.values
    params, budget = AggregationParams(min_groups=0), 2e-3 * result.cost
    aggregated = aggregate_problem(LagrangianDual(reduced), labels, lam, budget, params)
    assert aggregated.problem.n_groups < 0.3 * reduced.n_groups
    assert aggregated.problem.weights.sum() == pytest.approx(reduced.weights.sum())
    np.testing.assert_allclose(aggregated.disaggregate(aggregated.multipliers), lam)
    inner, others = aggregated.warm_start(artifact.warm_start, params.partial_column_tolerance)
    assert len(inner.columns) >= 3
    assert len(inner.columns) + len(others) <= len(artifact.warm_start.columns)
    moved = aggregated.multipliers + np.random.default_rng(0).normal(
        size=aggregated.problem.n_groups
    )
    apart = aggregated.disaggregate(moved)
    for column in inner.columns:
        members = column.members[aggregated.group_of].astype(bool)
        about = reduced.weights[members] @ reduced.points[members] / reduced.weights[members].sum()
        cost = reduced.weights[members] @ np.sum((reduced.points[members] - about) ** 2, axis=1)
        value = moved @ column.members - column.cost
        assert apart[members].sum() - cost == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("cannot", [0, 800])
def test_aggregation_loses_little(cannot):
    result = solve(gaussians(5_000, cannot), jobs=1)
    with_aggregation = result.certainty(1e-3)
    without = certainty_with_aggregation(result, 1e-3, AggregationParams(min_groups=10**9))
    assert with_aggregation.method == without.method == "regions of centres"
    assert with_aggregation.most_elsewhere <= 1.1 * without.most_elsewhere + 1
    assert with_aggregation.certain.sum() >= 0.95 * without.certain.sum()


def test_overstated_bound_of_aggregation_detected(monkeypatch):
    """Multipliers from the aggregated problem with a bound that they do not prove."""
    result = solve(gaussians(5_000, 0), jobs=1)
    plain = result.certainty(1e-3)
    honest = dual_ascent._DualAscent.on_aggregate
    tried = []

    def overstated(self, warm_start, bound):
        found = honest(self, warm_start, bound)
        tried.append(found)
        lam = found.multipliers * np.where(np.arange(len(found.multipliers)) % 7, 1.0, 1.5)
        return dual_ascent.StrengthenedDual(lam, found.bound, found.target_gain, found.guide)

    monkeypatch.setattr(dual_ascent._DualAscent, "on_aggregate", overstated)
    certainty = result.certainty(1e-3)
    assert len(tried) == 1
    assert tried[0] is not None
    assert certainty.method == plain.method
    assert abs(certainty.most_elsewhere - plain.most_elsewhere) <= 2
