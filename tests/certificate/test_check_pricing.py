"""The subdivision: it proves true bounds, and no others.

The probe that ends hopeless proofs early is switched off, so that it cannot hide a wrong step of
the proof.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from certikmeans.certificate.check_boxes import CenterRegion, CutoffExceeded
from certikmeans.certificate.check_pricing import Pricing
from certikmeans.certificate.check_subdivision import BatchParams, Limits
from certikmeans.certificate.format import Reason, Rejection
from tests.certificate.helpers import exact_sigma

LIMITS = Limits(boxes=3_000)
NO_PROBE = BatchParams(probe_interval=10**9)


def make_pricing(points, weights, edges, multipliers, limits=LIMITS, batches=NO_PROBE):
    return Pricing(points, weights, edges, multipliers, limits, batches)


def instance(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    points = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        points = np.round(points)
    weights = rng.integers(1, 4, n) * 1.0 if rng.random() < 0.5 else rng.uniform(0.1, 2.0, n)
    pairs = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < rng.choice([0.0, 0.2, 0.5, 1.0])]
    multipliers = weights * rng.uniform(-0.3, 2.0, n) * rng.choice([0.3, 1.0, 3.0])
    low, high = points.min(axis=0), points.max(axis=0)
    cut_low, cut_high = np.zeros(d, dtype=bool), np.zeros(d, dtype=bool)
    if rng.random() < 0.6:
        inner = np.sort(rng.uniform(low, high, size=(2, d)), axis=0)
        cut_low, cut_high = rng.random(d) < 0.5, rng.random(d) < 0.5
        low, high = np.where(cut_low, inner[0], low), np.where(cut_high, inner[1], high)
        cut_low, cut_high = low > points.min(axis=0), high < points.max(axis=0)
    return points, weights, edges, multipliers, CenterRegion(low, high, cut_low, cut_high)


def sigma_of(points, weights, edges, multipliers, region, allowed=None):
    kept = range(len(points)) if allowed is None else np.flatnonzero(allowed)
    index = {int(s): i for i, s in enumerate(kept)}
    if not index:
        return Fraction(0)
    means = [[Fraction(float(v)) for v in points[s]] for s in kept]
    masses = [Fraction(float(weights[s])) for s in kept]
    links = {(index[a], index[b]) for a, b in edges.tolist() if a in index and b in index}
    box = [[Fraction(float(v)) for v in side] for side in (region.low, region.high)]
    return exact_sigma(means, masses, links, [multipliers[s] for s in kept], box)


@pytest.mark.parametrize("seed", range(200))
def test_tight_cutoff(seed):
    assert_tight_cutoff(seed, NO_PROBE)


def assert_tight_cutoff(seed, batches):
    points, weights, edges, multipliers, region = instance(seed)
    sigma = float(sigma_of(points, weights, edges, multipliers, region))
    pricing = make_pricing(points, weights, edges, multipliers, batches=batches)
    size = float(np.abs(multipliers).sum()) + 1.0
    pricing.prove(region, sigma + 1e-7 * size)
    if sigma > 1e-6 * size:
        with pytest.raises((Rejection, CutoffExceeded)) as caught:
            make_pricing(points, weights, edges, multipliers, batches=batches).prove(
                region, sigma - 1e-7 * size
            )
        if isinstance(caught.value, CutoffExceeded):
            assert caught.value.value >= sigma - 1e-7 * size


@pytest.mark.parametrize("seed", range(40))
def test_allowed_groups(seed):
    points, weights, edges, multipliers, region = instance(seed)
    allowed = np.random.default_rng(seed).random(len(points)) < 0.6
    sigma = float(sigma_of(points, weights, edges, multipliers, region, allowed))
    make_pricing(points, weights, edges, multipliers).prove(region, sigma + 1e-6, allowed)
    if sigma > 1e-3:
        with pytest.raises((Rejection, CutoffExceeded)):
            make_pricing(points, weights, edges, multipliers).prove(region, sigma - 1e-6, allowed)


@pytest.mark.parametrize("seed", range(40))
def test_local_search_below_maximum(seed):
    points, weights, edges, multipliers, region = instance(seed)
    sigma = float(sigma_of(points, weights, edges, multipliers, region))
    pricing = make_pricing(points, weights, edges, multipliers)
    for start in points:
        assert pricing.local_search(region, start, None) <= sigma + 1e-9


def test_probe():
    points = np.array([[0.0], [1.0], [5.0]])
    no_links = np.zeros((0, 2), dtype=np.int64)
    every_round = BatchParams(probe_interval=1)
    pricing = make_pricing(points, np.ones(3), no_links, np.ones(3), batches=every_round)
    whole = CenterRegion(
        np.zeros(1), np.array([5.0]), np.zeros(1, dtype=bool), np.zeros(1, dtype=bool)
    )
    with pytest.raises(CutoffExceeded) as caught:
        pricing.prove(whole, 1.2)
    assert caught.value.value == pytest.approx(1.5)
    assert pricing.evaluations < 10


def test_limits():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 3))
    multipliers = np.full(300, 1.0)
    whole = CenterRegion(
        points.min(axis=0), points.max(axis=0), np.zeros(3, dtype=bool), np.zeros(3, dtype=bool)
    )
    no_links = np.zeros((0, 2), dtype=np.int64)
    for limits in (Limits(boxes=50), Limits(pending_entries=500)):
        pricing = make_pricing(points, np.ones(300), no_links, multipliers, limits)
        with pytest.raises(Rejection) as caught:
            pricing.prove(whole, 20.0)
        assert caught.value.reason is Reason.LIMIT


@pytest.mark.parametrize("entries", [3, 40])
def test_batch_sizes(entries):
    for seed in range(0, 60, 9):
        assert_tight_cutoff(seed, BatchParams(entries, entries, probe_interval=10**9))


def test_group_of_small_value():
    points, weights = np.array([[0.0], [1.0], [-1.0]]), np.array([1000.0, 1.0, 1.0])
    multipliers = np.array([5.0, 1.01, 0.0])
    no_links = np.zeros((0, 2), dtype=np.int64)
    whole = CenterRegion(-np.ones(1), np.ones(1), np.zeros(1, dtype=bool), np.zeros(1, dtype=bool))
    value = 6.01 - 1000.0 / 1001.0
    make_pricing(points, weights, no_links, multipliers).prove(whole, value + 1e-9)
    with pytest.raises(CutoffExceeded):
        make_pricing(points, weights, no_links, multipliers).prove(whole, value - 1e-9)


def test_no_number_proves_nothing():
    """Where squares overflow, the bound of a box is not a number."""
    points, no_links = np.array([[1e200], [-1e200]]), np.zeros((0, 2), dtype=np.int64)
    none = np.zeros(1, dtype=bool)
    whole = CenterRegion(points[1], points[0], none, none)
    with pytest.raises((Rejection, CutoffExceeded)), np.errstate(all="ignore"):
        make_pricing(points, np.ones(2), no_links, np.ones(2)).prove(whole, 0.5)


@pytest.mark.parametrize("seed", range(12))
def test_value_at_a_far_point(seed):
    """Sums about the origin cancel: without the error of a box, a smaller value would be shown."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 2)) + 1e4
    weights, center = rng.uniform(0.5, 2.0, size=6), points.mean(axis=0)
    squares = np.sum((points - center) ** 2, axis=1)
    multipliers = weights * squares + rng.uniform(0.5, 1.5, size=6)
    none, no_links = np.zeros(2, dtype=bool), np.zeros((0, 2), dtype=np.int64)
    region = CenterRegion(center, center, ~none, ~none)
    exact = sigma_of(points, weights, no_links, multipliers, region)
    below = float(exact)
    while Fraction(below) >= exact:
        below = np.nextafter(below, -np.inf)
    with pytest.raises((Rejection, CutoffExceeded)):
        make_pricing(points, weights, no_links, multipliers).prove(region, below)
