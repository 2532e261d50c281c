"""The projection with many cuts: against an accurate reference and linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from certikmeans.bounds.cluster import interior
from certikmeans.bounds.cluster.cuts import Cuts, Rows
from certikmeans.bounds.cluster.interior import highest, reach
from certikmeans.stop import StopSignal

TOLERANCE = 1e-7


def draw(seed):
    """Cuts of up to three families, and a position that is often on the border of the box."""
    rng = np.random.default_rng(seed)
    while True:
        cuts, reference = draw_any(rng)
        if highest_value(cuts) > cuts.value(reference) + 1e-3:
            return cuts, reference


def draw_any(rng):
    n, p, n_families = (int(rng.integers(1, most)) for most in (12, 10, 4))
    scale = rng.uniform(0.5, 2.0, size=n)
    cuts = Cuts(
        rows=Rows.of(rng.integers(0, 2, size=(p, n)) * scale),
        constants=rng.normal(scale=0.5, size=p),
        family=rng.integers(n_families, size=p),
        counts=rng.integers(1, 4, size=n_families).astype(float),
        total=scale,
        base=float(rng.normal()),
        high=rng.uniform(0.0, 2.0, size=n) * (rng.random(n) > 0.1),
    )
    reference = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(size=n) * cuts.high)
    return cuts, reference


def constraints(cuts):
    """``A x <= b`` for ``x = (t, v)``."""
    one_of = np.zeros((len(cuts.rows), len(cuts.counts)))
    one_of[np.arange(len(cuts.rows)), cuts.family] = 1.0
    return np.c_[cuts.rows.full(), -one_of], -cuts.constants


def highest_value(cuts):
    matrix, limits = constraints(cuts)
    ranges = [*((0.0, top) for top in cuts.high), *((0.0, None) for _ in cuts.counts)]
    answer = linprog(np.r_[-cuts.total, cuts.counts], A_ub=matrix, b_ub=limits, bounds=ranges)
    assert answer.status == 0
    return cuts.base - answer.fun


def nearest_distance(cuts, reference, level):
    """Half the squared distance to the level, or None where the reference gives up."""
    matrix, limits = constraints(cuts)
    n, n_families = len(reference), len(cuts.counts)
    aim = np.r_[cuts.total, -cuts.counts]
    first = np.r_[reference, cuts.family_worth(reference)]
    answer = minimize(
        lambda x: 0.5 * np.sum((x[:n] - reference) ** 2),
        first,
        jac=lambda x: np.r_[x[:n] - reference, np.zeros(n_families)],
        bounds=[*((0.0, top) for top in cuts.high), *((0.0, None) for _ in cuts.counts)],
        constraints=[
            {"type": "ineq", "fun": lambda x: limits - matrix @ x, "jac": lambda x: -matrix},
            {"type": "ineq", "fun": lambda x: [cuts.base + aim @ x - level], "jac": lambda x: aim},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return answer.fun if answer.success else None


@pytest.mark.parametrize("seed", range(100))
def test_projection_reaches_the_level_nearby(seed):
    cuts, reference = draw(seed)
    height, here = highest_value(cuts), cuts.value(reference)
    level = here + 0.7 * (height - here)

    found = reach(cuts, reference, level, TOLERANCE)

    assert not found.infeasible(level)
    assert np.all((found.point >= 0.0) & (found.point <= cuts.high))
    assert cuts.value(found.point) >= level - 2.0 * TOLERANCE
    exact = nearest_distance(cuts, reference, level)
    if exact is not None:
        distance = 0.5 * float(np.sum((found.point - reference) ** 2))
        assert distance <= 2.0 * exact + 1e-3 * (height - here) ** 2 + 1e-6


def test_most_references_were_accurate():
    solved = 0
    for seed in range(30):
        cuts, reference = draw(seed)
        level = 0.3 * cuts.value(reference) + 0.7 * highest_value(cuts)
        solved += nearest_distance(cuts, reference, level) is not None
    assert solved >= 20


@pytest.mark.parametrize("beyond", [1e-3, 0.1, 10.0])
def test_impossible_levels_are_recognised(beyond):
    for seed in range(150):
        cuts, reference = draw(seed)
        height = highest_value(cuts)
        found = reach(cuts, reference, height + beyond, TOLERANCE)
        assert found.infeasible(height + beyond)
        assert found.ceiling >= height - 1e-9  # the verdict is never exaggerated


def test_possible_levels_are_never_called_impossible():
    for seed in range(150):
        cuts, reference = draw(seed)
        level = highest_value(cuts) - 1e-6
        assert not reach(cuts, reference, level, TOLERANCE).infeasible(level)


def test_the_height_is_that_of_the_linear_program():
    for seed in range(150):
        cuts, reference = draw(seed)
        found = highest(cuts, reference, 1e-6)
        height = highest_value(cuts)
        assert height - 1e-9 <= found.ceiling <= height + 2e-6
        assert cuts.value(found.point) >= height - 2e-6


def test_the_ceiling_belongs_to_its_weights():
    for seed in range(50):
        cuts, reference = draw(seed)
        found = reach(cuts, reference, highest_value(cuts) + 0.1, TOLERANCE)
        masses = np.bincount(cuts.family, found.weights, minlength=len(cuts.counts))
        assert np.all(found.weights >= 0.0)
        assert np.all(masses <= cuts.counts * (1.0 + 1e-9))
        assert cuts.ceiling(found.weights) == pytest.approx(found.ceiling)


def test_an_earlier_solution_is_a_good_start():
    cold = warm = 0
    for seed in range(50):
        cuts, reference = draw(seed)
        here, height = cuts.value(reference), highest_value(cuts)
        first = reach(cuts, reference, here + 0.6 * (height - here), 1e-4)
        level = here + 0.65 * (height - here)
        again = reach(cuts, reference, level, 1e-4, first.mu)
        assert cuts.value(again.point) >= level - 2e-4
        warm += again.steps
        cold += reach(cuts, reference, level, 1e-4).steps
    assert warm <= cold


def test_starting_on_the_bounds_moves():
    cuts = Cuts(
        rows=Rows.of(np.array([[0.0, 1.0, 0.0]])),
        constants=np.zeros(1),
        family=np.zeros(1, dtype=np.int64),
        counts=np.array([3.0]),
        total=np.ones(3),
        base=0.0,
        high=np.ones(3),
    )
    found = reach(cuts, np.zeros(3), 1.0, 1e-9)
    assert np.allclose(found.point, [0.5, 0.0, 0.5], atol=0.25)


def test_rows_are_kept_and_chosen():
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 2, size=(7, 5)) * rng.uniform(1.0, 2.0, size=(7, 5))
    rows = Rows.of(matrix[:3])
    more = [np.flatnonzero(row) for row in matrix[3:]]
    rows = rows.extended(
        [ids.astype(np.int32) for ids in more],
        [row[ids] for row, ids in zip(matrix[3:], more, strict=True)],
    )
    assert np.array_equal(rows.full(), matrix)
    keep = np.array([0, 2, 6])
    assert np.array_equal(rows.chosen(keep).full(), matrix[keep])
    point, weights = rng.normal(size=5), rng.normal(size=7)
    assert np.allclose(rows.times(point), matrix @ point)
    assert np.allclose(rows.mix(weights), weights @ matrix)


@pytest.mark.parametrize("search", ["reach", "highest"])
def test_without_time_no_step_is_begun_and_nothing_is_claimed(search):
    cuts, reference = draw(0)
    height = highest_value(cuts)
    late = StopSignal(0.0)
    if search == "reach":
        found = reach(cuts, reference, height, TOLERANCE, stop=late)
    else:
        found = highest(cuts, reference, 1e-6, stop=late)
    assert found.steps == 0
    assert found.ceiling >= height - 1e-9
    assert ((found.point >= 0.0) & (found.point <= cuts.high)).all()


def test_a_step_that_would_end_too_late_is_not_begun(monkeypatch):
    cuts, reference = draw(0)
    level = highest_value(cuts)
    assert reach(cuts, reference, level, TOLERANCE, stop=StopSignal(1000.0)).steps > 0
    monkeypatch.setattr(interior, "PER_SECOND", 1e-6)
    assert reach(cuts, reference, level, TOLERANCE, stop=StopSignal(1000.0)).steps == 0
