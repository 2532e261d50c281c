"""Boxes of centres: nothing outside them is worth the cut, whoever guessed them; the core."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.certainty import regions
from certikmeans.certainty.case import Case
from certikmeans.certainty.core import core_of
from certikmeans.certainty.level import most_reduced_cost
from certikmeans.certainty.raising import raised_multipliers
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal
from tests.certainty.test_certainty_oracle import clumps


def independent_sets(reduced: ReducedProblem) -> list[np.ndarray]:
    edges = reduced.graph.edges()
    sets = [
        np.array(chosen, dtype=bool) for chosen in product((False, True), repeat=reduced.n_groups)
    ]
    return [one for one in sets if one.any() and not one[edges].all(axis=1).any()]


def exact_worth(reduced: ReducedProblem, lam, members, place) -> Fraction:
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
        for j in range(reduced.n_axes)
    ]


def enclosed(seed: int, slack: float) -> tuple[ReducedProblem, regions.Enclosure] | None:
    problem = clumps(seed)
    result = solve(problem, jobs=1)
    stop = StopSignal()
    case = Case.of(result.basis, result.labels, result.cost, slack, stop)
    reduced = case.presolved.reduced
    pricer = Pricer(reduced)
    most = most_reduced_cost(case.presolved, case.cost, slack)
    sums, masses = reduced.cluster_sums(case.groups)
    raised = next(raised_multipliers(case, pricer, None, stop), None)
    if raised is None:
        return None
    found = regions.enclose(pricer, raised, most, sums / masses[:, None], stop)
    return (reduced, found) if found.failure is None else None


def in_a_region(enclosure, place) -> bool:
    return any(
        all(
            Fraction(float(a)) <= y <= Fraction(b)
            for a, b, y in zip(one.low, one.high, place, strict=True)
        )
        for one in enclosure.regions
    )


def about_worth(reduced: ReducedProblem, lam, members) -> float:
    mass, points = reduced.weights[members], reduced.points[members]
    away = points - mass @ points / mass.sum()
    return float(lam[members].sum() - mass @ np.sum(away * away, axis=1))


@pytest.mark.parametrize("shrunk", [False, True])
def test_every_set_that_is_good_enough_has_its_mean_in_a_box(monkeypatch, shrunk):
    """Also where boxes are guessed too small: then they are grown."""
    show, grown = regions.show_outside, 0

    def show_outside(pricer, level, guess, stop):
        nonlocal grown
        if shrunk:
            guess.boxes = [
                (0.8 * low + 0.2 * high, 0.2 * low + 0.8 * high) for low, high in guess.boxes
            ]
        before = guess.boxes
        failure = show(pricer, level, guess, stop)
        grown += guess.boxes is not before
        return failure

    monkeypatch.setattr(regions, "show_outside", show_outside)
    found = [enclosed(seed, (0.01, 0.1)[seed % 2]) for seed in range(12)]
    good = [good_sets_in_regions(*one) for one in found if one is not None]
    assert len(good) >= 6
    assert sum(good) >= 20
    assert grown >= 6 * shrunk


def good_sets_in_regions(reduced: ReducedProblem, enclosure: regions.Enclosure) -> int:
    """How many sets are worth the cut, each with its mean in a region."""
    level = enclosure.level
    good = 0
    for members in independent_sets(reduced):
        if about_worth(reduced, level.multipliers, members) >= 0.999 * level.cut:
            mean = exact_mean(reduced, members)
            worth = exact_worth(reduced, level.multipliers, members, mean)
            assert worth <= Fraction(level.sigma)
            if worth >= Fraction(level.cut):
                good += 1
                assert in_a_region(enclosure, mean)
    return good


def places_near(reduced: ReducedProblem, enclosure: regions.Enclosure, rng) -> list[np.ndarray]:
    """Places at corners of the regions, outside of them, but among the points."""
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


def test_nothing_outside_the_boxes_is_worth_the_cut():
    """Not only means: no place at all."""
    outside = 0
    rng = np.random.default_rng(0)
    found = [enclosed(seed, 0.02) for seed in range(0, 12, 2)]
    for reduced, enclosure in (one for one in found if one is not None):
        level, sets = enclosure.level, independent_sets(reduced)
        for place in places_near(reduced, enclosure, rng):
            about = [
                level.multipliers[one].sum()
                - reduced.weights[one] @ np.sum((reduced.points[one] - place) ** 2, axis=1)
                for one in sets
            ]
            best, exact = sets[int(np.argmax(about))], [Fraction(float(y)) for y in place]
            assert exact_worth(reduced, level.multipliers, best, exact) < Fraction(level.cut)
            outside += 1
    assert outside >= 20


def gaussians(n: int, cannot: int) -> Problem:
    rng = np.random.default_rng(1)
    truth = np.arange(n) % 3
    points = 6.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[truth] + rng.normal(size=(n, 2))
    pairs = rng.integers(n, size=(4 * cannot, 2))
    pairs = pairs[truth[pairs[:, 0]] != truth[pairs[:, 1]]][:cannot]
    return Problem.from_data(points, 3, cannot_link=pairs)


def test_a_core_is_worth_what_all_groups_are_worth():
    result = solve(gaussians(600, 100), jobs=1)
    done, (shown,) = result.basis.presolved, result.basis.shown
    reduced, labels = done.reduced, done.reduce_labels(result.labels)
    lam = shown.evidence.values
    core = core_of(Pricer(reduced), labels, lam, 2e-3 * result.cost, least_groups=0)
    assert core.problem.n_groups < 0.3 * reduced.n_groups
    assert core.problem.weights.sum() == pytest.approx(reduced.weights.sum())
    np.testing.assert_allclose(core.taken_apart(core.multipliers), lam)
    inner, others = core.restart(shown.restart)
    assert len(inner.columns) >= 3
    assert len(inner.columns) + len(others) <= len(shown.restart.columns)
    moved = core.multipliers + np.random.default_rng(0).normal(size=core.problem.n_groups)
    apart = core.taken_apart(moved)
    for column in inner.columns:
        members = column.members[core.group_of].astype(bool)
        about = reduced.weights[members] @ reduced.points[members] / reduced.weights[members].sum()
        cost = reduced.weights[members] @ np.sum((reduced.points[members] - about) ** 2, axis=1)
        worth = moved @ column.members - column.cost
        assert apart[members].sum() - cost == pytest.approx(worth, rel=1e-9)


@pytest.mark.parametrize("cannot", [0, 800])
def test_with_a_core_as_much_is_said_as_without(monkeypatch, cannot):
    result = solve(gaussians(5_000, cannot), jobs=1)
    with_core = result.certainty(1e-3)
    monkeypatch.setattr("certikmeans.certainty.raising.core_of", lambda *given: None)
    without = result.certainty(1e-3)
    assert with_core.method == without.method == "regions of centres"
    assert with_core.most_elsewhere <= 1.1 * without.most_elsewhere + 1
    assert with_core.certain.sum() >= 0.95 * without.certain.sum()


def test_a_core_that_leaves_something_out_is_found_out(monkeypatch):
    """Multipliers that a core makes look better than they are."""
    from certikmeans.certainty import raising

    result = solve(gaussians(5_000, 0), jobs=1)
    plain = result.certainty(1e-3)
    honest = raising._Raising.in_core
    tried = []

    def boasting(self, restart, value):
        found = honest(self, restart, value)
        tried.append(found)
        lam = found.multipliers * np.where(np.arange(len(found.multipliers)) % 7, 1.0, 1.5)
        return raising.Raised(lam, found.value, found.unit, found.guide)

    monkeypatch.setattr(raising._Raising, "in_core", boasting)
    sure = result.certainty(1e-3)
    assert len(tried) == 1
    assert tried[0] is not None
    assert sure.method == plain.method
    assert abs(sure.most_elsewhere - plain.most_elsewhere) <= 2
