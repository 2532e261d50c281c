"""Size cuts of the cluster bound against enumeration."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import count, product

import numpy as np
import pytest

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.pricing import Pricer
from certikmeans.bounds.cluster.size_cuts import SizeCuts, cut_numbers, supports_size_cuts
from certikmeans.constraint_model.model import ConstraintModel
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.incumbent import NullIncumbent
from certikmeans.kernels.constraint_prices.compose import update_prices
from certikmeans.kernels.constraint_prices.select import select_set
from certikmeans.kernels.constraint_prices.workspace import price_workspace
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.problem.graph_builder import build_cannot_link_graph
from certikmeans.stop import StopSignal

from .model_oracle import column_costs, model_optimum


class Fixed(NullIncumbent):
    """Incumbent that no update replaces."""

    def __init__(self, labels):
        self._labels = labels

    def labels(self):
        return self._labels


def sized_problem(points, n_clusters, low, high, weights=None):
    n = len(points)
    graph, _ = build_cannot_link_graph(n, np.empty((0, 2), dtype=np.int64))
    sizes = SizeLimits(np.ones(n), np.full(n_clusters, low), np.full(n_clusters, high))
    weights = np.ones(n) if weights is None else weights
    model = ConstraintModel.of(graph, None, sizes, None)
    return ReducedProblem(np.ascontiguousarray(points), weights, model, n_clusters, 0.0)


def on_sites(seed, largest=8):
    """A few sites, one of which is no multiple of the sizes, and limits."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, largest + 1)), int(rng.integers(2, 4))
    sites = rng.normal(size=(k, int(rng.integers(1, 3)))) * 10.0
    points = sites[rng.integers(0, k, size=n)] + rng.normal(size=(n, sites.shape[1]))
    low = float(rng.integers(0, n // k + 1))
    high = float(rng.integers(-(-n // k), n + 1)) if rng.random() < 0.3 else float(-(-n // k))
    weights = np.ones(n) if rng.random() < 0.6 else rng.uniform(0.2, 2.0, size=n)
    return sized_problem(points, k, low, high, weights)


def random_cuts(rng, n):
    """Up to two disjoint sets with any numbers; right sides are not used by the pricing."""
    cut_of = rng.integers(-1, 2, size=n).astype(np.int32)
    free = rng.integers(0, n // 2 + 1, size=2).astype(float)
    return SizeCuts(cut_of, free, np.zeros(2), np.ones(2)), rng.uniform(0.0, 1.5, size=2)


def exact_penalty(cuts, prices, members):
    return sum(
        (Fraction(float(b)) * int(e) for b, e in zip(prices, cuts.excess(members), strict=True)),
        Fraction(0),
    )


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize("k", [2, 3])
def test_right_side_holds_for_all_sizes(n, k):
    compared = 0
    for low, high, size in product(range(n // k + 1), range(-(-n // k), n + 1), range(1, n)):
        free, right_side = cut_numbers(n, k, low, high, size)
        every = product(range(size + 1), repeat=k) if right_side else ()
        for inside in (one for one in every if sum(one) == size):
            for outside in product(range(n - size + 1), repeat=k):
                sums = [a + b for a, b in zip(inside, outside, strict=True)]
                if sum(outside) == n - size and all(low <= total <= high for total in sums):
                    assert sum(max(m - free, 0) for m in inside) <= right_side
                    compared += 1
    assert compared > 0 or n < 5


@pytest.mark.parametrize("seed", range(60))
def test_prices_hold_for_every_set(seed):
    rng = np.random.default_rng([seed, 3])
    reduced = on_sites(seed)
    n, sizes = reduced.n_groups, reduced.label_constraints.sizes
    cuts, prices = random_cuts(rng, n)
    arrays = Pricer(reduced).constraints.arrays._replace(
        cut_of=cuts.cut_of, cut_free=cuts.free, cut_price=prices
    )
    ids = np.flatnonzero(rng.random(n) < 0.9).astype(np.int32)
    values = np.round(rng.normal(size=len(ids)), 1 if seed % 2 else 16)
    work, price = price_workspace(arrays, n), np.empty(len(ids))
    constant = update_prices(arrays, ids, values, work, price)
    chosen = np.empty(len(ids), dtype=np.uint8)
    selected = select_set(arrays, ids, values, -np.inf, work, chosen)
    best = None
    every = (np.array(bits, dtype=bool) for bits in product((0, 1), repeat=len(ids)))
    for inside in (one for one in every if sizes.lower[0] <= one.sum() <= sizes.upper[0]):
        value = sum((Fraction(float(v)) for v in values[inside]), Fraction(0))
        value -= exact_penalty(cuts, prices, ids[inside])
        margin = sum(
            (
                Fraction(float(v)) - Fraction(float(p))
                for v, p in zip(values[inside], price[inside], strict=True)
            ),
            Fraction(0),
        )
        assert value <= Fraction(constant) + margin
        best = value if best is None else max(best, value)
    if best is None:
        assert constant == -np.inf
        assert selected == -np.inf
    else:
        bound = constant + np.maximum(values - price, 0.0).sum()
        assert selected == pytest.approx(float(best), rel=1e-12, abs=1e-12)
        assert bound == pytest.approx(float(best), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(24))
def test_sigma_with_cuts(seed):
    drawn = (on_sites(seed + 1_000 * number, largest=7) for number in count())
    reduced, costs = next((one, found) for one in drawn if (found := column_costs(one)))
    rng = np.random.default_rng([seed, 4])
    cuts, prices = random_cuts(rng, reduced.n_groups)
    pricer = Pricer(reduced, priced=True).with_size_cuts(cuts)
    scale = float(np.var(reduced.points, axis=0).sum())
    prices *= scale
    for _ in range(2):
        lam = rng.uniform(-0.3, 2.0, size=reduced.n_groups) * scale
        sigma = max(
            sum((Fraction(float(v)) for v in lam[members]), Fraction(0))
            - cost
            - exact_penalty(cuts, prices, members)
            for members, cost in (
                (np.array([s for s in range(reduced.n_groups) if bits >> s & 1], dtype=int), cost)
                for bits, cost in costs.items()
            )
        )
        tolerance = 1e-6 * abs(float(sigma)) + 1e-12
        multipliers = np.concatenate([lam, prices])
        priced = pricer.price_exact(
            multipliers, pricer.min_value, StopSignal(), tolerance, None, 600, tolerance
        )
        assert Fraction(priced.upper) >= sigma
        found = pricer.price_heuristic(multipliers, list(reduced.points[:3]))
        assert all(column.value <= float(sigma) + 1e-9 * scale for column in found)


def root_bound(reduced, labels, gap=1e-4, keep_proof=False):
    bound = ClusterBound()
    inputs = BoundInput(reduced, make_assigner(reduced, labels), gap=gap, keep_proof=keep_proof)
    model = bound.setup(inputs)
    ctx = BoundContext(StopSignal().with_work_limit(1e9), at_root=True, incumbent=Fixed(labels))
    return bound, model, bound.compute(model, Domain.root(reduced), math.inf, ctx)


@pytest.mark.parametrize("seed", range(30))
def test_bound_with_cuts_is_below_the_optimum(seed):
    drawn = (on_sites(seed + 1_000 * number) for number in count())
    reduced, (cost, labels) = next(
        (one, best) for one in drawn if (best := model_optimum(one, column_costs(one)))
    )
    bound, model, found = root_bound(reduced, labels)
    assert Fraction(found.value) <= cost
    node = bound.compute(model, Domain.root(reduced), float(cost), BoundContext(), found.warm_start)
    assert Fraction(node.value) <= cost


def two_sites(first, second, n_clusters):
    """Sites of so many points each, one unit apart, and equal sizes."""
    rng = np.random.default_rng(first)
    n = first + second
    points = 1e-3 * rng.normal(size=(n, 2))
    points[first:, 0] += 1.0
    labels = np.arange(n) // (n // n_clusters)
    size = float(n // n_clusters)
    return sized_problem(points, n_clusters, size, size), labels


@pytest.mark.parametrize(("first", "second", "k"), [(6, 10, 4), (20, 16, 3)])
def test_sites_that_are_no_multiple_of_the_size(first, second, k):
    reduced, labels = two_sites(first, second, k)
    size, rest = (first + second) // k, first % ((first + second) // k)
    mixing = rest * (size - rest) / size
    _, _, found = root_bound(reduced, labels, gap=1e-2)
    assert mixing * 0.98 <= found.value <= mixing + 1e-3
    assert found.warm_start.cuts is not None
    _, _, weaker = root_bound(reduced, labels, gap=1e-2, keep_proof=True)
    assert weaker.warm_start.cuts is None
    assert weaker.value < 0.9 * found.value


def with_limits_per_cluster(seed):
    """Random problem whose clusters have limits of their own, with demands that are not all 1."""
    rng = np.random.default_rng([seed, 8])
    reduced = on_sites(seed, largest=7)
    n, k = reduced.n_groups, reduced.n_clusters
    demand = np.ones(n) if seed % 2 else rng.integers(0, 4, size=n).astype(float)
    if seed % 6 == 0:
        demand = rng.uniform(0.1, 2.0, size=n)
    upper = rng.uniform(0.5, 2.0, size=k) * demand.sum() / k
    upper = np.ceil(upper) if seed % 6 else upper
    lower = np.floor(rng.uniform(0.0, 0.9, size=k) * upper)
    sizes = SizeLimits(demand, lower, upper)
    graph = reduced.label_constraints.cannot_links
    model = ConstraintModel.of(graph, None, sizes, None)
    return dataclasses.replace(reduced, label_constraints=model)


def optimum_in_any_order(reduced):
    """Cheapest labels whose clusters satisfy the limits in some order; None without any."""
    rows = [[Fraction(float(v)) for v in row] for row in reduced.points]
    weights = [Fraction(float(w)) for w in reduced.weights]
    sizes, k, best = reduced.label_constraints.sizes, reduced.n_clusters, None
    for labels in product(range(k), repeat=reduced.n_groups):
        if not sizes.satisfied_by(np.array(labels)):
            continue
        cost = Fraction(0)
        for c in range(k):
            mine = [s for s, label in enumerate(labels) if label == c]
            mass = sum((weights[s] for s in mine), Fraction(0))
            for j in range(reduced.n_dims if mine else 0):
                first = sum(weights[s] * rows[s][j] for s in mine)
                cost += sum(weights[s] * rows[s][j] ** 2 for s in mine) - first * first / mass
        if best is None or cost < best[0]:
            best = cost, np.array(labels)
    return best


@pytest.mark.parametrize("seed", range(24))
def test_limits_per_cluster(seed):
    drawn = (with_limits_per_cluster(seed + 6_000 * number) for number in count())
    reduced, (cost, labels) = next(
        (one, best) for one in drawn if (best := optimum_in_any_order(one))
    )
    bound, model, found = root_bound(reduced, labels)
    assert Fraction(found.value) <= cost
    node = bound.compute(model, Domain.root(reduced), float(cost), BoundContext(), found.warm_start)
    assert Fraction(node.value) <= cost


def test_each_cluster_is_priced_with_its_own_limits():
    reduced, _ = two_sites(4, 4, 2)
    sizes = dataclasses.replace(
        reduced.label_constraints.sizes, lower=np.array([0.0, 0.0]), upper=np.array([2.0, 6.0])
    )
    model = ConstraintModel.of(reduced.label_constraints.cannot_links, None, sizes, None)
    reduced = dataclasses.replace(reduced, label_constraints=model)
    cost, labels = optimum_in_any_order(reduced)
    _, _, found = root_bound(reduced, labels)
    # Two of one site with four of the other; with the loosest limits the sites would be clusters.
    assert float(cost) > 1.0
    assert 0.4 * float(cost) <= found.value <= float(cost)
    loose = dataclasses.replace(sizes, upper=np.array([6.0, 6.0]))
    model = ConstraintModel.of(reduced.label_constraints.cannot_links, None, loose, None)
    loose_cost, _ = optimum_in_any_order(dataclasses.replace(reduced, label_constraints=model))
    assert float(loose_cost) < 1e-3


def test_other_constraints_have_no_cuts():
    reduced, _ = two_sites(6, 10, 4)
    assert supports_size_cuts(reduced)
    sizes = reduced.label_constraints.sizes
    other = dataclasses.replace(sizes, demand=np.arange(16) % 3 + 1.0)
    graph = reduced.label_constraints.cannot_links
    model = ConstraintModel.of(graph, None, other, None)
    assert not supports_size_cuts(dataclasses.replace(reduced, label_constraints=model))
    uneven = dataclasses.replace(sizes, upper=np.array([5.0, 4.0, 4.0, 4.0]))
    model = ConstraintModel.of(graph, None, uneven, None)
    assert not supports_size_cuts(dataclasses.replace(reduced, label_constraints=model))
