"""Values that are rounded to the safe side, against exact arithmetic, and the rules of stopping.

One function at a time, with numbers of very different sizes: a margin that is left out shows.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.bounds.cluster.pricing_error import lagrangian_lower_bound, sum_upper_bound
from certikmeans.bounds.grouped.bundle import lagrangian_lower_bound as grouped_lower_bound
from certikmeans.bounds.sample import bound_without_links
from certikmeans.bounds.sdp.limits import WeightLimits as SolverLimits
from certikmeans.bounds.sdp.size_cuts import SizeRule
from certikmeans.certificate.check_arithmetic import add_up, down, scatter, total, up
from certikmeans.certificate.check_coloring import box_costs
from certikmeans.certificate.check_constraints import (
    GroupConstraints,
    PricedConstraints,
    _below,
    penalty_above,
)
from certikmeans.certificate.check_domains import Domain, require_bound
from certikmeans.certificate.check_prices import PriceBound, PriceProblem, find_prices
from certikmeans.certificate.check_weight_limits import WeightLimits, price_of_limits
from certikmeans.certificate.format import Rejection, StatedConstraints
from certikmeans.certificate.leaves.cluster import _sum_of_gains
from certikmeans.errors import BoundError
from certikmeans.kernels.box_costs import box_costs as solver_box_costs
from certikmeans.stop import StopCause, StopSignal
from certikmeans.testing.oracle import exact_cost
from certikmeans.tolerances import check_bound, gap_reached, relative_gap, target_bound

ROUNDS = 60


def wild(rng, size, spread=12.0):
    """Positive numbers of very different sizes."""
    return 10.0 ** rng.uniform(-spread, spread, size=size)


def exact(values):
    return sum((Fraction(float(v)) for v in np.ravel(values)), Fraction(0))


def test_lagrangian_bound_is_rounded_down():
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        lam = wild(rng, int(rng.integers(1, 40))) * rng.choice([-1.0, 1.0, 1.0])
        sigma, constant = float(wild(rng, 1)[0]), float(rng.choice([0.0, 0.3, 1e9]))
        value = lagrangian_lower_bound(lam, sigma, constant)
        assert Fraction(value) <= exact(lam) + Fraction(constant) - Fraction(sigma)


def test_grouped_bound_takes_off_the_residual_of_its_multipliers():
    rng = np.random.default_rng(11)
    for _ in range(ROUNDS):
        shape = (int(rng.integers(1, 6)), 2, 3)
        bounds, errors = wild(rng, shape[0], 4.0), wild(rng, shape[0], 2.0) * 1e-9
        nu, reach = rng.normal(size=shape) * wild(rng, shape, 2.0) * 1e-3, wild(rng, shape[1:], 1.0)
        left = exact(bounds) - exact(errors)
        for k in range(shape[1]):
            for j in range(shape[2]):
                left -= abs(exact(nu[:, k, j])) * Fraction(reach[k, j])
        value = grouped_lower_bound(bounds, errors, nu, reach)
        assert Fraction(value) <= max(left, Fraction(0))


def test_sum_of_values_is_rounded_up():
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        known, sigma = (float(v) for v in wild(rng, 2))
        count = int(rng.integers(1, 9))
        found = sum_upper_bound(known, count, sigma)
        assert Fraction(found) >= Fraction(known) + count * Fraction(sigma)


def test_bound_without_links_is_rounded_down():
    rng = np.random.default_rng(2)
    for _ in range(ROUNDS):
        costs = wild(rng, (int(rng.integers(1, 30)), 3), 3.0)
        assert Fraction(bound_without_links(costs)) <= exact(costs.min(axis=1))


@pytest.mark.parametrize("solver", [False, True])
def test_costs_of_boxes_are_rounded_down(solver):
    rng = np.random.default_rng(3)
    strict = 0
    for _ in range(ROUNDS):
        n, d, k = 3, int(rng.integers(1, 6)), 2
        points, weights = rng.normal(size=(n, d)), wild(rng, n, 3.0)
        low = rng.normal(size=(k, d))
        high = low + rng.uniform(0.0, 0.1, size=(k, d))
        if solver:
            found = np.empty((n, k))
            solver_box_costs(points, weights, low, high, False, found)
        else:
            found = box_costs(points, weights, low, high)
        for i in range(n):
            for c in range(k):
                away = [
                    max(Fraction(low[c, j]) - x, x - Fraction(high[c, j]), Fraction(0))
                    for j, x in enumerate(map(Fraction, points[i]))
                ]
                cost = Fraction(weights[i]) * sum(v * v for v in away)
                assert Fraction(found[i, c]) <= cost
                strict += Fraction(found[i, c]) * (1 + Fraction(1, 2**52)) > cost
    assert strict == 0  # a margin of several units


def test_directed_rounding_of_the_verifier():
    rng = np.random.default_rng(4)
    for _ in range(ROUNDS):
        values = wild(rng, int(rng.integers(1, 700)), 3.0)
        found, true = total(values), exact(values)
        assert Fraction(up(found, 300)) >= true >= Fraction(down(found, 300))
        first, second = values[0], values[-1]
        assert Fraction(add_up(first, second)) >= Fraction(first) + Fraction(second)
        assert Fraction(up(first * second)) >= Fraction(first) * Fraction(second)
        assert Fraction(down(first * second)) <= Fraction(first) * Fraction(second)
        assert Fraction(_below(values.tolist())) <= true


def test_scatter_is_between_its_bounds():
    rng = np.random.default_rng(5)
    for _ in range(ROUNDS):
        n, d = int(rng.integers(2, 12)), int(rng.integers(1, 4))
        rows = rng.normal(size=(n, d)) * wild(rng, (n, 1), 4.0) + rng.choice([0.0, 1e9])
        weights, sets = wild(rng, n, 6.0), rng.integers(0, 2, size=n)
        found, true = scatter(rows, weights, sets, 2), exact_cost(rows, weights, sets)
        assert Fraction(found.below) <= true <= Fraction(found.above)
        for s in range(2):
            inside = sets == s
            assert Fraction(found.masses_below[s]) <= exact(weights[inside])
        error = Fraction(0)
        for s in set(sets.tolist()):
            mass = exact(weights[sets == s])
            for j in range(d):
                pairs = zip(weights[sets == s], rows[sets == s, j], strict=True)
                mean = sum(Fraction(w) * Fraction(x) for w, x in pairs) / mass
                error += mass * (Fraction(found.means[s, j]) - mean) ** 2
        assert Fraction(found.mean_error) >= error


def test_a_bound_next_to_the_required_one_is_rejected():
    domain = Domain(np.zeros((1, 1)), np.ones(1), np.empty((0, 2), dtype=np.int64), False, 1.0)
    require_bound(1.0, domain)
    for value in (math.nextafter(1.0, 0.0), math.nan, -1.0):
        with pytest.raises(Rejection):
            require_bound(value, domain)


def soft(must, cannot):
    """Constraints with soft pairs between points 0 and 1."""
    pairs = np.array([[0, 1]], dtype=np.int64)
    return StatedConstraints(
        np.empty((0, 2), dtype=np.int64), None, None, None,
        np.repeat(pairs, len(must), axis=0), np.asarray(must, dtype=float),
        np.repeat(pairs, len(cannot), axis=0), np.asarray(cannot, dtype=float),
    )  # fmt: skip


def test_penalty_is_rounded_up():
    rng = np.random.default_rng(6)
    for _ in range(ROUNDS):
        must, cannot = wild(rng, 7, 3.0), wild(rng, 5, 3.0)
        stated = soft(must, cannot)
        assert Fraction(penalty_above(stated, np.array([0, 1]))) >= exact(must)
        assert Fraction(penalty_above(stated, np.array([0, 0]))) >= exact(cannot)


def test_sum_of_gains_is_rounded_down():
    rng = np.random.default_rng(7)
    none = np.empty((0, 2), dtype=np.int64)
    for _ in range(ROUNDS):
        bonus = wild(rng, 9, 3.0) * rng.choice([-1.0, 1.0], size=9)
        given = GroupConstraints([], None, np.zeros(1), np.ones(1), none, bonus, 0.0, False)
        assert Fraction(_sum_of_gains(given)) <= exact(bonus[bonus > 0.0])


def test_price_of_limits_is_rounded_down():
    """For L of any sign: least <L, Z> over the ranges of the entries of Z."""
    rng = np.random.default_rng(8)
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 6))
        weights = rng.uniform(0.5, 2.0, size=n)
        entries = wild(rng, (n, n), 3.0) * rng.choice([-1.0, 1.0], size=(n, n))
        entries = np.triu(entries) + np.triu(entries, 1).T
        limits = WeightLimits(1.3, 3.7, 2, 2, float(weights.sum()), False)
        free = np.zeros((n, n), dtype=bool)
        high = [1 / max(Fraction(1.3), Fraction(w)) for w in weights]
        least = Fraction(0)
        for s in range(n):
            for t in range(n):
                value = Fraction(entries[s, t])
                least += (
                    min(value / Fraction(3.7), value * high[s])
                    if s == t
                    else min(value, Fraction(0)) * min(high[s], high[t])
                )
        assert Fraction(price_of_limits(entries, free, weights, limits)) <= least
        low, most = SolverLimits(1.3, 3.7).diagonal(weights)
        assert all(Fraction(v) <= 1 / Fraction(3.7) for v in low)
        assert all(Fraction(v) >= one for v, one in zip(most, high, strict=True))


@pytest.mark.parametrize(("low", "high", "mass"), [(3, 3, 9), (2, 4, 9), (1, 7, 10), (5, 9, 21)])
def test_right_sides_of_size_cuts(low, high, mass):
    """Solver and verifier, against all vectors of sizes and shares."""
    limits = WeightLimits(low, high, 3, 3, mass, True)
    rule = SizeRule(3, mass, low, high)
    sizes = [
        (a, b, mass - a - b)
        for a in range(low, high + 1)
        for b in range(low, high + 1)
        if low <= mass - a - b <= high
    ]
    assert sizes
    for weight in range(mass + 1):
        best = max(
            Fraction(x * x, a) + Fraction(y * y, b) + Fraction((weight - x - y) ** 2, c)
            for a, b, c in sizes
            for x in range(min(a, weight) + 1)
            for y in range(min(b, weight - x) + 1)
            if weight - x - y <= c
        )
        for found in (limits.right_side(float(weight)), rule.right_side(weight)):
            assert Fraction(found) >= best
            assert found <= float(best) * (1.0 + 1e-12) + 1e-12


def test_price_bound_is_rounded_up():
    """One price per group of very different sizes: the bound is at least the exact one."""
    rng = np.random.default_rng(9)
    none = np.empty((0, 2), dtype=np.int64)
    for _ in range(ROUNDS):
        n = int(rng.integers(2, 9))
        demand = rng.uniform(0.1, 3.0, size=n)
        given = PricedConstraints.of(n, none, none, np.empty(0), [], demand)
        values = wild(rng, n, 8.0) * rng.choice([-1.0, 1.0], size=n)
        box, empty = np.zeros(n, dtype=np.int64), np.empty(0, dtype=np.int64)
        problem = PriceProblem(
            given, 1, box, np.arange(n), values, empty, empty, empty, empty,
            np.zeros(1), np.array([float(demand.sum()) * rng.uniform(0.1, 1.0)]),
        )  # fmt: skip
        prices = find_prices(problem, np.empty(0), np.zeros(1))
        theta = Fraction(float(prices.theta[0]))
        paid = [
            max(Fraction(v) - theta * Fraction(a), Fraction(0))
            for v, a in zip(values, demand, strict=True)
        ]
        constant = theta * Fraction(float((problem.upper if theta >= 0 else problem.lower)[0]))
        assert Fraction(PriceBound.of(problem, prices).value[0]) >= sum(paid) + constant


def test_gap_is_reached_exactly():
    rng = np.random.default_rng(10)
    for _ in range(ROUNDS):
        cost, gap = float(wild(rng, 1, 3.0)[0]), float(rng.choice([0.0, 1e-6, 1e-3, 0.1]))
        target = target_bound(cost, gap)
        assert gap_reached(cost, target, gap)
        lower = target
        while relative_gap(cost, lower) <= gap:
            lower = math.nextafter(lower, -math.inf)
        assert lower >= target - 4.0 * math.ulp(cost)
        assert not gap_reached(cost, lower, gap)
    assert not gap_reached(math.inf, 1.0, 0.1)


def test_bound_above_a_cost_is_an_error():
    check_bound(1.0, 1.0, "sample")
    for bound in (math.nextafter(1.0, 2.0), math.nan, math.inf):
        with pytest.raises(BoundError):
            check_bound(1.0, bound, "sample")


def test_every_stopping_criterion_stops():
    stop = StopSignal()
    assert stop.reason() is None
    limited = stop.with_work_limit(5.0)
    limited.add_work(4.0)
    assert limited.reason() is None
    limited.add_work(1.0)
    assert limited.reason() is StopCause.WORK_LIMIT
    assert StopSignal(0.0).reason() is StopCause.TIME_LIMIT
    child = stop.with_time_limit(1e6)
    stop.interrupt()
    assert child.reason() is stop.reason() is StopCause.INTERRUPTED
