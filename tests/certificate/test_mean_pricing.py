"""Prices and the subdivision by them, compared with all admissible sets in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_constraints import PricedConstraints
from certikmeans.certificate.check_mean_boxes import MeanData, PricedGroups
from certikmeans.certificate.check_mean_pricing import MeanPricing
from certikmeans.certificate.check_prices import PriceProblem, price_bound
from certikmeans.certificate.check_subdivision import BatchParams, Limits
from certikmeans.certificate.format import Reason, Rejection

LIMITS = Limits(boxes=20_000, threads=1)
NO_PROBE = BatchParams(probe_interval=10**9)


def make_pricing(groups, limits=LIMITS, batches=NO_PROBE):
    return MeanPricing(groups, limits, batches=batches)


def constraints(rng, n):
    """Cannot-links, soft pairs, sets and demands between n groups, each with probability 1/2."""
    pairs = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < rng.choice([0.0, 0.2, 0.5, 1.0])]
    hard = {tuple(edge) for edge in edges.tolist()}
    density = rng.choice([0.0, 0.5])
    soft = [p for p in pairs.tolist() if tuple(p) not in hard and rng.random() < density]
    bonus = rng.normal(size=len(soft)) * rng.choice([0.3, 3.0])
    sets = []
    if rng.random() < 0.5:
        for _ in range(int(rng.integers(1, 4))):
            size = min(n, int(rng.integers(2, 5)))
            sets.append(np.sort(rng.choice(n, size, replace=False)).astype(np.int64))
    sets = [one for one in sets if len(one) > 1]
    demand, lower, upper = None, 0.0, math.inf
    if rng.random() < 0.5:
        demand = np.ones(n) if rng.random() < 0.5 else rng.integers(0, 4, n) * 1.0
        total = int(demand.sum())
        lower = float(rng.integers(0, total // 2 + 1))
        upper = float(rng.integers(int(lower), total + 1))
    soft_pairs = np.array(soft, dtype=np.int64).reshape(-1, 2)
    return edges, soft_pairs, bonus, sets, demand, lower, upper


def admissible_sets(n, edges, soft, bonus, sets, demand, lower, upper):
    """Every admissible set, with the sum of its bonuses."""
    for mask in range(1 << n):
        chosen = [s for s in range(n) if mask >> s & 1]
        inside = set(chosen)
        if any(a in inside and b in inside for a, b in edges.tolist()):
            continue
        if any(len(inside.intersection(one.tolist())) > 1 for one in sets):
            continue
        if demand is not None and not lower <= sum(demand[s] for s in chosen) <= upper:
            continue
        pairs = zip(soft.tolist(), bonus.tolist(), strict=True)
        yield chosen, sum((Fraction(r) for (a, b), r in pairs if {a, b} <= inside), Fraction(0))


def instance(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    points = rng.normal(size=(n, d)) * 10.0 ** rng.choice([0.0, 0.0, 4.0])
    if rng.random() < 0.3:
        points = np.round(points)
    if rng.random() < 0.2:
        points += 1e6 * rng.normal(size=d)
    weights = rng.integers(1, 4, n) * 1.0 if rng.random() < 0.5 else rng.uniform(0.1, 2.0, n)
    scale = max(1e-3, float(np.ptp(points, axis=0).max()) ** 2)
    multipliers = scale * weights * rng.uniform(-0.3, 2.0, n) * rng.choice([0.3, 1.0, 3.0])
    edges, soft, bonus, sets, demand, lower, upper = constraints(rng, n)
    bonus = bonus * scale
    low, high = points.min(axis=0), points.max(axis=0)
    if rng.random() < 0.5:
        inner = np.sort(rng.uniform(low, high, size=(2, d)), axis=0)
        low = np.where(rng.random(d) < 0.5, inner[0], low)
        high = np.where(rng.random(d) < 0.5, inner[1], high)
    cut_low, cut_high = low > points.min(axis=0), high < points.max(axis=0)
    allowed = None if rng.random() < 0.7 else rng.random(n) < 0.6
    arranged = PricedConstraints.of(n, edges, soft, bonus, sets, demand)
    groups = PricedGroups(points, weights, multipliers, arranged, lower, upper)
    stated = (edges, soft, bonus, sets, demand, lower, upper)
    return groups, CenterRegion(low, high, cut_low, cut_high), allowed, stated


def best_value(groups, region, allowed, stated):
    """Largest value of an admissible set with its mean in the region; None if there is none."""
    n, d = groups.points.shape
    rows = [[Fraction(float(v)) for v in row] for row in groups.points]
    mass = [Fraction(float(w)) for w in groups.weights]
    low, high = ([Fraction(float(v)) for v in side] for side in (region.low, region.high))
    best = None
    for chosen, bonuses in admissible_sets(n, *stated):
        if allowed is not None and not allowed[chosen].all():
            continue
        value = bonuses + sum((Fraction(float(groups.multipliers[s])) for s in chosen), Fraction(0))
        if chosen:
            whole = sum(mass[s] for s in chosen)
            mean = [sum(mass[s] * rows[s][j] for s in chosen) / whole for j in range(d)]
            if any(not low[j] <= mean[j] <= high[j] for j in range(d)):
                continue
            value -= sum(mass[s] * (rows[s][j] - mean[j]) ** 2 for s in chosen for j in range(d))
        best = value if best is None else max(best, value)
    return best


@pytest.mark.parametrize("seed", range(200))
def test_tight_cutoff(seed):
    assert_tight_cutoff(seed, NO_PROBE)


def assert_tight_cutoff(seed, batches):
    groups, region, allowed, stated = instance(seed)
    exact = best_value(groups, region, allowed, stated)
    error = float(MeanData(groups, region).error(np.zeros(1, dtype=np.int64))[0])
    size = float(np.abs(groups.multipliers).sum() + np.abs(stated[2]).sum())
    margin = 1e-7 * size + 40.0 * error
    value = -10.0 * size if exact is None else float(exact)
    make_pricing(groups, batches=batches).prove(region, value + margin, allowed)
    if exact is not None:
        below = math.nextafter(value, -math.inf) - 1e-300
        with pytest.raises((Rejection, CutoffExceeded)):
            make_pricing(groups, batches=batches).prove(region, below, allowed)
    for start in groups.points:
        found = make_pricing(groups, batches=batches).local_search(region, start, allowed)
        assert found <= value + margin


@pytest.mark.parametrize("seed", range(200))
def test_price_bound(seed):
    """Valid for any prices to begin with, and for values of very different sizes."""
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(1, 9))
    stated = constraints(rng, n)
    demand, lower, upper = stated[4:]
    arranged = PricedConstraints.of(n, *stated[:5])
    values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)
    pair = np.arange(arranged.n_pairs)
    zero = np.zeros(1)
    problem = PriceProblem(
        arranged, 1, np.zeros(n, dtype=np.int64), np.arange(n), values, pair,
        np.zeros(len(pair), dtype=np.int64), arranged.first, arranged.second,
        zero + lower, zero + (upper if demand is not None else 1e9),
    )  # fmt: skip
    exact = [
        sum((Fraction(values[s]) for s in chosen), bonuses)
        for chosen, bonuses in admissible_sets(n, *stated)
    ]
    starts = [arranged.start_prices(), rng.normal(size=len(pair)) * 3.0, np.full(len(pair), np.nan)]
    for start in starts:
        with np.errstate(all="ignore"):
            _, bound = price_bound(problem, start, zero + rng.normal())
        assert all(Fraction(float(bound.value[0])) >= one for one in exact)


@pytest.mark.parametrize("seed", range(30))
def test_exact_for_one_kind(seed):
    """At a point: forests of pairs, disjoint sets, and sizes without demands are exact."""
    rng = np.random.default_rng([seed, 11])
    n = 8
    none, nothing = np.empty((0, 2), dtype=np.int64), np.empty(0)
    tree = np.array([(int(rng.integers(v)), v) for v in range(1, n)])
    soft = rng.normal(size=n - 1)
    halves = [np.array([0, 3, 5]), np.array([1, 2, 6, 7])]
    lower, upper = 2.0, float(rng.integers(2, 7))
    values = rng.normal(size=n)
    for stated in (
        (tree, none, nothing, [], None, 0.0, math.inf),
        (none, tree, soft, [], None, 0.0, math.inf),
        (none, none, nothing, halves, None, 0.0, math.inf),
        (none, none, nothing, [], np.ones(n), lower, upper),
        (none, none, nothing, halves[:1], np.ones(n), lower, 4.0),
    ):
        arranged = PricedConstraints.of(n, *stated[:5])
        pair, zero = np.arange(arranged.n_pairs), np.zeros(1)
        problem = PriceProblem(
            arranged, 1, np.zeros(n, dtype=np.int64), np.arange(n), values, pair,
            np.zeros(len(pair), dtype=np.int64), arranged.first, arranged.second,
            zero + stated[5], zero + min(stated[6], 1e9),
        )  # fmt: skip
        start = arranged.start_prices()
        for _ in range(60):
            prices, bound = price_bound(problem, start, zero)
            start = prices.pair
        exact = max(
            sum(values[s] for s in chosen) + float(bonuses)
            for chosen, bonuses in admissible_sets(n, *stated)
        )
        assert bound.value[0] == pytest.approx(exact, abs=0.02)


def test_limits():
    rng = np.random.default_rng(0)
    n = 200
    points, ends = rng.normal(size=(n, 3)), rng.integers(n, size=(4 * n, 2))
    edges = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    none = np.empty((0, 2), dtype=np.int64)
    arranged = PricedConstraints.of(n, edges, none, np.empty(0), [], None)
    groups = PricedGroups(points, np.ones(n), np.full(n, 1.0), arranged)
    faces = np.zeros(3, dtype=bool)
    whole = CenterRegion(points.min(axis=0), points.max(axis=0), faces, faces)
    for limits in (Limits(boxes=50), Limits(pending_entries=500), Limits(deadline=0.0)):
        with pytest.raises(Rejection) as caught:
            make_pricing(groups, limits).prove(whole, 5.0)
        assert caught.value.reason is Reason.LIMIT


def test_probe():
    points = np.array([[0.0], [1.0], [5.0]])
    none = np.empty((0, 2), dtype=np.int64)
    arranged = PricedConstraints.of(3, none, none, np.empty(0), [np.array([0, 2])], None)
    groups = PricedGroups(points, np.ones(3), np.ones(3), arranged)
    faces = np.zeros(1, dtype=bool)
    pricing = make_pricing(groups, batches=BatchParams(probe_interval=1))
    with pytest.raises(CutoffExceeded) as caught:
        pricing.prove(CenterRegion(np.zeros(1), np.full(1, 5.0), faces, faces), 1.2)
    assert caught.value.value == pytest.approx(1.5)
    assert pricing.evaluations < 20


@pytest.mark.parametrize("entries", [3, 40])
def test_batch_sizes(entries):
    for seed in range(0, 60, 9):
        assert_tight_cutoff(seed, BatchParams(entries, entries, probe_interval=10**9))


def two_groups(points, multipliers, bonus=(), demand=None, lower=0.0):
    """Two groups, perhaps with a bonus for both."""
    none, pair = np.empty((0, 2), dtype=np.int64), np.array([[0, 1]])
    amounts = None if demand is None else np.array(demand)
    arranged = PricedConstraints.of(2, none, pair[: len(bonus)], np.array(bonus), [], amounts)
    return PricedGroups(
        np.array(points), np.ones(2), np.array(multipliers), arranged, lower, 10.0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "exact", "low"),
    [
        (two_groups([[0.0], [0.0]], [5.0, -1.0], demand=[1.0, 1.0], lower=2.0), 4.0, 0.0),
        (two_groups([[0.0], [0.0]], [5.0, -1.0], bonus=[3.0]), 7.0, 0.0),
        # {0, 1} has the mean 5 and the value 60 - 5 - 25 - 25; the mean of {0} is not in the region
        (two_groups([[0.0], [10.0]], [60.0, -5.0]), 5.0, 4.0),
    ],
    ids=["demand", "bonus", "face"],
)
def test_groups_of_negative_value_that_are_needed(groups, exact, low):
    """They must not be forgotten."""
    high = groups.points.max(axis=0)
    region = CenterRegion(np.array([low]), high, np.array([low > 0.0]), np.array([False]))
    make_pricing(groups).prove(region, exact + 1e-6)
    with pytest.raises((Rejection, CutoffExceeded)):
        make_pricing(groups).prove(region, exact - 1e-6)
