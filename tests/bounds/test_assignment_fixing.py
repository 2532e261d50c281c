"""Assignment fixing against enumeration of small problems, in exact arithmetic."""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certikmeans.assignment import CannotLinkAssigner
from certikmeans.bounds.assignment_fixing import (
    AssignmentFixing,
    FixingParams,
    plan_components,
)
from certikmeans.bounds.sample import min_box_costs
from certikmeans.kernels.assignment_fixing import (
    Components,
    component_marginals,
    propagate,
    remove_dominated,
    remove_pairs,
    update_marginals,
)
from certikmeans.kernels.box_costs import box_costs
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import Problem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.instances import feasible_problem
from tests.bounds.box_bound import box_bound_value
from tests.bounds.cluster_oracle import feasible_reduced, make_reduced, random_pairs, random_reduced


class Labellings:
    """Every proper labelling of a reduced problem, with its exact cost and means."""

    def __init__(self, reduced):
        self.reduced = reduced
        self._rows = [[Fraction(float(v)) for v in row] for row in reduced.points]
        self._masses = [Fraction(float(w)) for w in reduced.weights]
        self._clusters = {}
        edges = reduced.graph.edges().tolist()
        self.all = [
            labels
            for labels in product(range(reduced.n_clusters), repeat=reduced.n_groups)
            if all(labels[u] != labels[v] for u, v in edges)
        ]

    def cluster(self, members):
        """Exact cost and mean of a set of groups."""
        if members not in self._clusters:
            mass = sum(self._masses[i] for i in members)
            mean, cost = [], Fraction(0)
            for j in range(self.reduced.n_dims):
                mean.append(sum(self._masses[i] * self._rows[i][j] for i in members) / mass)
                cost += sum(self._masses[i] * (self._rows[i][j] - mean[j]) ** 2 for i in members)
            self._clusters[members] = cost, mean
        return self._clusters[members]

    def inside(self, domain):
        """``(labels, cost)`` of the labellings of a part."""
        low = [[Fraction(float(v)) for v in row] for row in domain.lower]
        high = [[Fraction(float(v)) for v in row] for row in domain.upper]
        found = []
        for labels in self.all:
            if domain.allowed is not None and not domain.allowed[range(len(labels)), labels].all():
                continue
            total, fits = Fraction(0), True
            for k in set(labels):
                members = tuple(i for i, label in enumerate(labels) if label == k)
                cost, mean = self.cluster(members)
                fits = fits and all(
                    a <= m <= b for a, m, b in zip(low[k], mean, high[k], strict=True)
                )
                total += cost
            if fits:
                found.append((labels, total))
        return found

    def table(self, centers):
        """Exact cost of every group at every centre."""
        where = [[Fraction(float(v)) for v in row] for row in centers]
        return [
            [w * sum((a - b) ** 2 for a, b in zip(row, c, strict=True)) for c in where]
            for row, w in zip(self._rows, self._masses, strict=True)
        ]

    def cheapest_for(self, centers, allowed=None):
        """Labellings of least cost for fixed centres, and that cost; ``([], None)`` if none."""
        table = self.table(centers)
        best, found = None, []
        for labels in self.all:
            if allowed is not None and not allowed[range(len(labels)), labels].all():
                continue
            cost = sum((table[i][k] for i, k in enumerate(labels)), Fraction(0))
            if best is None or cost < best:
                best, found = cost, []
            if cost == best:
                found.append(labels)
        return found, best


def components_of(reduced):
    """Return the components as `AssignmentFixing` passes them on."""
    graph = reduced.graph
    sizes = np.diff(graph.starts)
    return Components(
        graph.indptr,
        graph.neighbors,
        graph.starts,
        graph.parents,
        np.repeat(np.arange(graph.n_components), sizes),
        *plan_components(graph, reduced.n_clusters),
    )


def small_reduced(seed):
    """Draw a reduced problem with several proper labellings."""
    if seed % 2:
        return feasible_reduced(seed, largest=6, most_axes=3)[0]
    return presolve(feasible_problem(seed, largest=6), StopSignal()).reduced


def random_part(rng, labellings, held=None):
    """Boxes around the means of a proper labelling, or anywhere; sometimes viable sets.

    The part holds the labelling ``held``, if one is given.
    """
    reduced = labellings.reduced
    root = Domain.root(reduced)
    spread = root.upper - root.lower
    centers = rng.uniform(root.lower, root.upper + 1e-300)
    if held is not None or rng.random() < 0.8:
        pick = held or labellings.all[rng.integers(len(labellings.all))]
        for k in set(pick):
            _, mean = labellings.cluster(tuple(i for i, c in enumerate(pick) if c == k))
            centers[k] = [float(m) for m in mean]
    half = spread * rng.choice([0.0, 0.01, 0.1, 0.5]) * rng.random(spread.shape)
    allowed = None
    if rng.random() < 0.3:
        allowed = rng.random((reduced.n_groups, reduced.n_clusters)) < 0.8
        if held is not None:
            allowed[range(reduced.n_groups), held] = True
    return Domain(centers - half - 1e-9 * spread, centers + half + 1e-9 * spread, allowed)


def some_cutoffs(rng, costs):
    """Exact costs of labellings, rounded both ways, a little more, and more."""
    if not costs:
        return [np.inf, 1.0]
    best = float(min(costs))
    any_cost = float(costs[rng.integers(len(costs))])
    return [
        np.inf,
        best,
        np.nextafter(best, np.inf),
        best * (1.0 + 1e-9),
        best * 1.1,
        any_cost,
        0.0,
    ]


def prepared(labellings, *, plan="enumerated", use_dominance=False):
    reduced = labellings.reduced
    assigner = CannotLinkAssigner(reduced, np.array(labellings.all[0]))
    rule = AssignmentFixing(reduced, assigner, use_dominance=use_dominance, params=PARAMS[plan])
    return rule, assigner


# Components with cycles solved exactly, or with all but a spanning tree dropped.
PARAMS = {"enumerated": FixingParams(), "relaxed": FixingParams(max_trees=1)}


@pytest.fixture(params=list(PARAMS))
def plan(request):
    return request.param


@pytest.mark.parametrize("seed", range(50))
def test_elimination_is_valid(seed, plan):
    reduced = small_reduced(seed)
    labellings = Labellings(reduced)
    rng = np.random.default_rng(seed)
    rule, assigner = prepared(labellings, plan=plan)
    compared = 0
    for turn in range(3):
        domain = random_part(rng, labellings, labellings.all[-1] if turn == 0 else None)
        inside = labellings.inside(domain)
        for cutoff in some_cutoffs(rng, [cost for _, cost in inside]):
            found = rule.apply(domain, cutoff, StopSignal())
            if domain.allowed is not None:
                assert not (found.allowed & ~domain.allowed).any()
            for labels, cost in inside:
                if cutoff == np.inf or cost < Fraction(cutoff):
                    compared += 1
                    assert found.allowed[range(len(labels)), labels].all()
                    assert Fraction(found.lower_bound) <= cost
            if plan == "enumerated" and found.lower_bound < np.inf:
                left = Domain(domain.lower, domain.upper, found.allowed)
                sample = box_bound_value(reduced, assigner, left)
                assert found.lower_bound == pytest.approx(sample, rel=1e-9, abs=1e-290)
    assert compared > 0


@pytest.mark.parametrize("seed", range(30))
def test_dominance_keeps_cheapest_labellings(seed, plan):
    reduced = small_reduced(seed)
    labellings = Labellings(reduced)
    rng = np.random.default_rng(seed)
    rule, assigner = prepared(labellings, plan=plan, use_dominance=True)
    compared = 0
    for turn in range(3):
        domain = random_part(rng, labellings, labellings.all[-1] if turn == 0 else None)
        inside = labellings.inside(domain)
        for cutoff in some_cutoffs(rng, [cost for _, cost in inside]):
            found = rule.apply(domain, cutoff, StopSignal())
            left = Domain(domain.lower, domain.upper, found.allowed)
            sample = box_bound_value(reduced, assigner, left)
            for _, cost in inside:  # the bound holds for all of them, cheapest or not
                if cutoff == np.inf or cost < Fraction(cutoff):
                    compared += 1
                    assert Fraction(found.lower_bound) <= cost
                    assert sample < np.inf
                    assert Fraction(sample) <= cost
            centers = rng.uniform(domain.lower, domain.upper)
            cheapest, cost = labellings.cheapest_for(centers, domain.allowed)
            if cost is not None and (cutoff == np.inf or cost < Fraction(cutoff)):
                for labels in cheapest:
                    assert found.allowed[range(len(labels)), labels].all()
    assert compared > 0


@pytest.mark.parametrize("seed", range(45))
def test_dominance_keeps_optimal_labellings(seed, plan):
    reduced = small_reduced(seed)
    labellings = Labellings(reduced)
    rng = np.random.default_rng(seed)
    root = Domain.root(reduced)
    everything = labellings.inside(
        Domain(root.lower - 1e-3, root.upper + 1e-3)  # every mean, rounded or not
    )
    optimum = min(cost for _, cost in everything)
    rule, _ = prepared(labellings, plan=plan, use_dominance=True)
    above = float(optimum) * (1.0 + 1e-9) + 1e-290
    best = next(labels for labels, cost in everything if cost == optimum)
    kept = 0
    for turn in range(5):
        domain = random_part(rng, labellings, best if turn == 0 else None)
        for labels, cost in labellings.inside(domain):
            if cost == optimum:
                kept += 1
                found = rule.apply(domain, above, StopSignal())
                assert found.allowed[range(len(labels)), labels].all()
    assert kept > 0


@pytest.mark.parametrize("use_dominance", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_idempotent_and_monotone(seed, use_dominance, plan):
    reduced = small_reduced(seed)
    labellings = Labellings(reduced)
    rng = np.random.default_rng(seed)
    rule, _ = prepared(labellings, plan=plan, use_dominance=use_dominance)
    domain = random_part(rng, labellings)
    costs = [cost for _, cost in labellings.inside(domain)]
    cutoff = float(max(costs, default=1.0)) * 0.5
    first = rule.apply(domain, cutoff, StopSignal())
    again = rule.apply(Domain(domain.lower, domain.upper, first.allowed), cutoff, StopSignal())
    assert np.array_equal(first.allowed, again.allowed)
    assert again.n_removed == 0
    assert again.lower_bound >= first.lower_bound or first.lower_bound == np.inf
    shrunk = 0.3 * (domain.upper - domain.lower)
    inner = Domain(domain.lower + shrunk, domain.upper - shrunk, first.allowed)
    later = rule.apply(inner, cutoff, StopSignal())
    assert not (later.allowed & ~first.allowed).any()
    assert later.n_removed == np.count_nonzero(first.allowed) - np.count_nonzero(later.allowed)
    fresh = rule.apply(Domain(inner.lower, inner.upper, domain.allowed), cutoff, StopSignal())
    assert not (fresh.allowed & ~first.allowed).any() or plan == "relaxed"


def test_cutoff_equal_to_optimum():
    # Boxes that are points: the labelling {0}, {1, 10} costs exactly 40.5. With that as cutoff
    # it may go or stay; one unit in the last place above, it has to stay.
    reduced = make_reduced(np.array([[0.0], [1.0], [10.0]]), np.ones(3), [(0, 1)], 2)
    rule = AssignmentFixing(reduced, CannotLinkAssigner(reduced, [0, 1, 1]))
    boxes = np.array([[0.0], [5.5]])
    domain = Domain(boxes, boxes)
    best = np.array([[True, False], [False, True], [False, True]])
    for cutoff in (np.nextafter(40.5, 41.0), 40.5 + 1e-9):
        found = rule.apply(domain, cutoff, StopSignal())
        assert (found.allowed & best).sum() == 3
        assert found.lower_bound <= 40.5
    assert rule.apply(domain, 40.5 - 1e-9, StopSignal()).lower_bound == np.inf


@pytest.mark.parametrize("seed", range(45))
def test_rounding_at_the_cutoff(seed, plan):
    # Boxes that are points: the bound is the cost itself. With the next number above the exact
    # cost of a labelling for these centres as cutoff, the labelling has to stay.
    reduced = small_reduced(seed)
    labellings = Labellings(reduced)
    rng = np.random.default_rng(seed)
    root = Domain.root(reduced)
    rule, _ = prepared(labellings, plan=plan)
    for _ in range(4):
        centers = rng.uniform(root.lower, root.upper + 1e-300)
        table = labellings.table(centers)
        cheapest, _ = labellings.cheapest_for(centers)
        for labels in (cheapest[0], labellings.all[rng.integers(len(labellings.all))]):
            cost = sum((table[i][k] for i, k in enumerate(labels)), Fraction(0))
            cutoff = float(cost)
            while Fraction(cutoff) <= cost:
                cutoff = float(np.nextafter(cutoff, np.inf))
            found = rule.apply(Domain(centers, centers), cutoff, StopSignal())
            assert found.allowed[range(len(labels)), labels].all()
            assert Fraction(found.lower_bound) <= cost


@pytest.mark.parametrize("seed", range(100))
def test_joint_moves(seed):
    # The kernel alone, on tables of whole numbers: whatever the costs between ``nearest`` and
    # ``farthest`` are, a cheapest labelling that was viable is viable still.
    rng = np.random.default_rng(seed)
    proper, graph, kept = [], None, 0
    while not proper or graph.n_linked == 0:
        n, n_clusters = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        reduced = make_reduced(np.zeros((n, 1)), np.ones(n), random_pairs(rng, n), n_clusters)
        graph = reduced.graph
        edges = graph.edges().tolist()
        proper = [
            labels
            for labels in product(range(n_clusters), repeat=n)
            if all(labels[u] != labels[v] for u, v in edges)
        ]
    components = components_of(reduced)
    for _ in range(20):
        nearest = rng.integers(0, 12, size=(n, n_clusters)).astype(float)
        farthest = nearest + rng.integers(0, 4, size=nearest.shape)
        costs = nearest.copy()
        costs[rng.random(costs.shape) < 0.25] = np.inf  # removed before, for any reason
        before = costs < np.inf
        stale = np.zeros(graph.n_components, dtype=np.bool_)
        remove_dominated(components, farthest, 0.0, costs, stale)
        for _ in range(5):
            table = rng.integers(nearest, farthest + 1)
            paid = {labels: sum(table[range(n), labels]) for labels in proper}
            for labels, cost in paid.items():
                if cost == min(paid.values()) and before[range(n), labels].all():
                    kept += 1
                    assert (costs[range(n), labels] < np.inf).all()
    assert kept > 0


@pytest.mark.parametrize("seed", range(40))
def test_marginals_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    pairs = []
    while not pairs:
        n, n_clusters = int(rng.integers(3, 7)), int(rng.integers(1, 5))
        pairs = random_pairs(rng, n)
    reduced = make_reduced(np.zeros((n, 1)), np.ones(n), pairs, n_clusters)
    graph = reduced.graph
    costs = rng.integers(0, 30, size=(n, n_clusters)).astype(float)  # sums are exact
    costs[rng.random(costs.shape) < 0.15] = np.inf
    components = components_of(reduced)
    starts, groups = components.fixed_start, components.fixed
    assert components.exact.all()
    scratch = np.empty((5, n, n_clusters))
    edges = graph.edges().tolist()
    for c in range(graph.n_components):
        first, last = int(graph.starts[c]), int(graph.starts[c + 1])
        expected = np.full((last - first, n_clusters), np.inf)
        own_edges = [(u - first, v - first) for u, v in edges if first <= u < last]
        for labels in product(range(n_clusters), repeat=last - first):
            if all(labels[u] != labels[v] for u, v in own_edges):
                cost = sum(costs[first + i, k] for i, k in enumerate(labels))
                for i, k in enumerate(labels):
                    expected[i, k] = min(expected[i, k], cost)
        for fixed in (groups[starts[c] : starts[c + 1]], groups[:0]):
            found = np.empty_like(expected)
            component_marginals(components, first, fixed, costs[first:last], scratch, found)
            if len(fixed) == len(groups[starts[c] : starts[c + 1]]):
                assert np.array_equal(found, expected)
            assert (found <= expected).all()


def test_propagation_to_neighbors():
    # A path 0 - 1 - 2: 0 is in cluster 0, so 1 is in 1, so 2 is not in 1.
    reduced = make_reduced(np.zeros((3, 1)), np.ones(3), [(0, 1), (1, 2)], 2)
    costs = np.zeros((3, 2))
    costs[0, 1] = np.inf
    assert propagate(components_of(reduced), 0, 3, costs)
    assert np.array_equal(costs < np.inf, [[True, False], [False, True], [True, False]])


def test_box_costs():
    reduced = random_reduced(5, largest=8, most_axes=4)
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(2, reduced.n_clusters, reduced.n_dims))
    domain = Domain(ends.min(axis=0), ends.max(axis=0))
    costs = np.empty((reduced.n_groups, reduced.n_clusters))
    outside = np.maximum(domain.lower - reduced.points[:, None], 0.0)
    outside = np.maximum(outside, reduced.points[:, None] - domain.upper)
    expected = reduced.weights[:, None] * (outside**2).sum(axis=2)
    nearest = min_box_costs(reduced, domain)
    assert (nearest <= expected).all()
    np.testing.assert_allclose(nearest, expected, rtol=1e-12)
    box_costs(reduced.points, reduced.weights, domain.lower, domain.upper, True, costs)
    corner = np.maximum(
        abs(reduced.points[:, None] - domain.lower), abs(reduced.points[:, None] - domain.upper)
    )
    expected = reduced.weights[:, None] * (corner**2).sum(axis=2)
    assert (costs >= expected).all()
    np.testing.assert_allclose(costs, expected, rtol=1e-12)


def blobs(n_points, n_pairs, *, n_clusters=3, seed=0):
    """Well separated clusters, cannot-links between them; also the centres and their cost."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_points)
    middle = np.stack([np.arange(n_clusters) * 10.0, np.arange(n_clusters) % 2 * 7.0], axis=1)
    points = rng.normal(size=(n_points, 2)) + middle[labels]
    pairs = rng.integers(n_points, size=(6 * n_pairs, 2))
    pairs = pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]][:n_pairs]
    done = presolve(Problem.from_data(points, n_clusters, cannot_link=pairs), StopSignal())
    assigner = CannotLinkAssigner(done.reduced, done.feasible_labels)
    groups = done.presolve_labels(labels)
    start = np.array([done.reduced.points[groups == k].mean(axis=0) for k in range(n_clusters)])
    return done.reduced, assigner, assigner.lloyd(start, np.empty(len(groups), dtype=np.int64))


@pytest.mark.parametrize("n_pairs", [0, 10, 40])
def test_elimination_of_outliers(n_pairs):
    reduced, assigner, run = blobs(60, n_pairs)
    half = np.full(2, 0.05)
    domain = Domain(run.centers - half, run.centers + half)
    found = AssignmentFixing(reduced, assigner).apply(domain, run.cost * 1.01, StopSignal())
    assert found.n_removed > 100  # of 120 that the best labelling does not use
    assert found.allowed[range(60), run.labels].all()
    assert found.n_fixed > 40


@pytest.mark.parametrize("n_pairs", [0, 250, 1000, 3000])
def test_dominance_fixes_separated_clusters(n_pairs):
    # With 1,000 pairs and more nearly all groups are in one component with many cycles.
    reduced, assigner, run = blobs(1000, n_pairs)
    half = np.full(2, 0.3)
    domain = Domain(run.centers - half, run.centers + half)
    rule = AssignmentFixing(reduced, assigner, use_dominance=True)
    found = rule.apply(domain, run.cost, StopSignal())
    assert found.n_fixed > 990
    assert found.allowed[range(1000), run.labels].all()
    alone = AssignmentFixing(reduced, assigner).apply(domain, run.cost, StopSignal())
    assert not (found.allowed & ~alone.allowed).any()


def test_infeasible_component_empties_domain():
    reduced = make_reduced(np.arange(3.0)[:, None], np.ones(3), [(0, 1), (1, 2), (2, 0)], 3)
    allowed = np.array([[True, True, False]] * 3)
    domain = Domain.root(reduced)
    rule = AssignmentFixing(reduced, CannotLinkAssigner(reduced, [0, 1, 2]))
    found = rule.apply(Domain(domain.lower, domain.upper, allowed), np.inf, StopSignal())
    assert found.lower_bound == np.inf
    assert not found.allowed.any()
    assert (found.n_removed, found.n_fixed) == (6, 0)


def test_interrupted_is_valid():
    reduced, assigner, run = blobs(60, 20)
    domain = Domain(run.centers - 0.1, run.centers + 0.1)
    stop = StopSignal()
    stop.interrupt()
    rule = AssignmentFixing(reduced, assigner)
    early = rule.apply(domain, run.cost * 1.1, stop)
    full = rule.apply(domain, run.cost * 1.1, StopSignal())
    assert not (full.allowed & ~early.allowed).any()
    assert early.lower_bound <= full.lower_bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_points", "n_pairs", "limit"), [(1000, 250, 0.01), (80_000, 20_000, 0.4)]
)
def test_time_limit(n_points, n_pairs, limit):
    # About 0.4 ms and 30 ms on an idle machine.
    reduced, assigner, run = blobs(n_points, n_pairs)
    domain = Domain(run.centers - 0.3, run.centers + 0.3)
    rule = AssignmentFixing(reduced, assigner, use_dominance=True)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        rule.apply(domain, run.cost, StopSignal())
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < limit


def test_kernels_are_compiled():
    blobs_rule = blobs(20, 5)
    AssignmentFixing(*blobs_rule[:2], use_dominance=True).apply(
        Domain.root(blobs_rule[0]), np.inf, StopSignal()
    )
    for kernel in (box_costs, update_marginals, remove_pairs, remove_dominated):
        assert kernel.nopython_signatures
