"""The largest claim that the verifier accepts is at most the exact optimum.

For a genuine certificate the claim is raised by bisection over floats until it is rejected; the
last claim accepted is compared with the optimum in rational arithmetic. Evidence is tight and the
centre of the evidence is moved far away, so that every error term of the verifier is needed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate.check_coloring import ColoringBounds, is_uncolorable
from certikmeans.certificate.format import Reason, hash_points
from certikmeans.certificate.write import make_certificate
from certikmeans.proof import LeafProof, Proof
from certikmeans.testing.oracle import brute_force, numbered_by_first_appearance, respects
from tests.certificate.helpers import certificate, change, verdict

FAR = (0.0, 1e-5, 1.0, 1e5, 1e10, 1e20)
STEPS = 60


def largest_accepted(problem, made, optimum):
    """Largest claim accepted, by bisection over floats from the claim made."""
    low, high = made.lower_bound, 4.0 * float(optimum) + 1e-300

    def accepted(claim):
        return verdict(
            problem, change(made, lower_bound=claim, cost=max(made.cost, claim))
        ).accepted

    assert accepted(low)
    if accepted(high):
        return high
    for _ in range(STEPS):
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            break
        if accepted(middle):
            low = middle
        else:
            high = middle
    return low


def assert_tight(problem, made, optimum, loss):
    """No claim above the optimum is accepted, and one close to it is."""
    found = largest_accepted(problem, made, optimum)
    assert Fraction(found) <= optimum
    assert not verdict(
        problem, change(made, lower_bound=_above(optimum), cost=4.0 * float(optimum))
    ).accepted
    assert found >= float(optimum) * (1.0 - loss)


def _above(optimum):
    """Smallest float above an exact number."""
    value = float(optimum)
    while Fraction(value) <= optimum:
        value = math.nextafter(value, math.inf)
    return value


def one_group(seed, n_clusters=1, scale=1.0):
    """Points that are all linked, with weights of any size: the cost is within the group."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    points = rng.normal(size=(n, 1 + seed % 3)) * scale
    weights = 10.0 ** rng.uniform(-6, 6, size=n) if seed % 2 else np.ones(n)
    links = [(i, i + 1) for i in range(n - 1)]
    return Problem.from_data(points, n_clusters, must_link=links, weights=weights)


def plain_proof(problem, center, axes=None):
    """Proof without evidence: what the groups cost inside has to suffice."""
    axes = np.eye(problem.n_features) if axes is None else axes
    return Proof(0.0, np.full(problem.n_features, center), axes, (LeafProof("sample"),))


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("seed", range(8))
def test_cost_within_groups(seed, far):
    problem = one_group(seed)
    optimum, labels = brute_force(problem)
    made = certificate(problem, labels, 2.0 * float(optimum), plain_proof(problem, far))
    assert_tight(problem, made, optimum, 1e-12 if far <= 1.0 else 1.0)


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("seed", range(6))
def test_one_cluster(seed, far):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(5, 2)) * (1e-3 if seed % 2 else 1.0)
    weights = rng.integers(1, 4, size=5).astype(float)
    problem = Problem.from_data(points, 1, weights=weights)
    optimum, labels = brute_force(problem)
    rotated = np.linalg.qr(rng.normal(size=(2, 2)))[0] * (1.0 + 1e-9 * (seed % 3))
    for axes in (np.eye(2), rotated):
        proof = Proof(0.0, np.full(2, far), axes, (LeafProof("one cluster"),))
        made = certificate(problem, labels, 2.0 * float(optimum), proof)
        assert_tight(problem, made, optimum, 1e-8 if far <= 1.0 else 1.0)


def bounded_problem(seed, n=6):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    points = rng.normal(size=(n, 2)) + 3.0 * rng.integers(0, k, size=(n, 1))
    cannot = [(0, 1)] if seed % 2 else None
    must = [(2, 3)] if seed % 3 == 0 else None
    weights = 10.0 ** rng.uniform(-3, 3, size=n) if seed % 4 == 1 else np.ones(n)
    return Problem.from_data(points, k, must_link=must, cannot_link=cannot, weights=weights)


@pytest.mark.parametrize("far", [0.0, 1e5])
@pytest.mark.parametrize("bound", ["cluster", "sdp", "spectral"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds(seed, bound, far):
    problem = bounded_problem(seed)
    optimum, _ = brute_force(problem)
    result = solve(problem, bound=bound, gap=1e-9, keep_proof=True, node_limit=1, jobs=1)
    made = make_certificate(problem, result)
    made = change(made, center=made.center + far)
    made = change(made, lower_bound=0.0)
    assert Fraction(largest_accepted(problem, made, optimum)) <= optimum


@pytest.mark.parametrize("branching", ["pairs", "centers"])
@pytest.mark.parametrize("seed", range(6))
def test_trees(seed, branching):
    problem = bounded_problem(seed, n=7)
    if seed % 2:  # three clusters and more splits of the first coordinate
        problem = Problem.from_data(problem.points[:, :1], 3, weights=problem.weights)
    optimum, _ = brute_force(problem)
    result = solve(
        problem, bound="sample" if branching == "centers" else "cluster", branching=branching,
        gap=1e-4, keep_proof=True, node_limit=300, jobs=1,
    )  # fmt: skip
    made = make_certificate(problem, result)
    assert Fraction(largest_accepted(problem, made, optimum)) <= optimum


def random_graph(seed):
    """A graph with a component of more than K nodes, and whether it is colourable."""
    rng = np.random.default_rng(seed)
    k = 2 + seed % 3
    n = k + 1 + int(rng.integers(0, 3))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    n_edges = int(rng.integers(n - 1, len(pairs) + 1))
    chosen = sorted(pairs[i] for i in rng.choice(len(pairs), n_edges, replace=False))
    colourable = any(respects(labels, [], chosen) for labels in numbered_by_first_appearance(n, k))
    return n, k, np.array(chosen), colourable


@pytest.mark.parametrize("seed", range(60))
def test_colourability(seed):
    n, k, edges, colourable = random_graph(seed)
    assert is_uncolorable(n, edges, k) is (not colourable)


def test_colourability_has_both_answers():
    answers = [random_graph(seed)[3] for seed in range(60)]
    assert 10 < sum(answers) < 50


@pytest.mark.parametrize("seed", range(30))
def test_false_infeasibility_rejected(seed):
    n, k, edges, colourable = random_graph(seed)
    points = np.random.default_rng(seed).normal(size=(n, 2))
    infeasible = Problem.from_data(
        np.zeros((n, 2)) + points, 2, cannot_link=[(0, 1), (0, 2), (1, 2)]
    )
    made = make_certificate(infeasible, solve(infeasible, keep_proof=True))
    claim = change(made, n_clusters=k, cannot_link=edges)
    answer = verdict(infeasible, claim)
    assert answer.accepted is (not colourable)
    assert colourable is (answer.reason is not Reason.ACCEPTED)


@pytest.mark.parametrize("scale", [0.5, 1.3])
@pytest.mark.parametrize("seed", range(4))
def test_axes_of_other_length(seed, scale):
    """Multipliers for scaled coordinates prove no more than for the original ones."""
    problem = bounded_problem(seed)
    optimum, _ = brute_force(problem)
    result = solve(problem, bound="cluster", gap=1e-6, keep_proof=True, node_limit=1, jobs=1)
    made = make_certificate(problem, result)
    multipliers = made.multipliers * scale**2
    made = change(made, axes=made.axes * scale, multipliers=multipliers, lower_bound=0.0)
    found = largest_accepted(problem, made, optimum)
    assert Fraction(found) <= optimum
    assert found >= 0.9 * result.lower_bound


def two_sites(seed):
    """Points at two places far apart in a direction that is no axis: rotation rounds most."""
    rng = np.random.default_rng(seed)
    place = np.repeat([[-1.0, -0.6], [1.0, 0.6]], 3, axis=0) * 1e8
    return Problem.from_data(place + 1e-6 * rng.normal(size=(6, 2)), 3)


@pytest.mark.parametrize("seed", range(12))
def test_rounding_of_the_rotation(seed):
    """Boxes around the rotated points prove their distances, as rotated, without loss."""
    problem = two_sites(seed)
    optimum, labels = brute_force(problem)
    angle = 0.3 + 0.1 * seed
    axes = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    rotated = Problem.from_data(problem.points @ axes, 3)
    result = solve(rotated, bound="sdp", gap=1e-9, keep_proof=True, node_limit=1, jobs=1)
    made = make_certificate(rotated, result)
    made = change(
        made, data_sha256=hash_points(problem.points), axes=axes @ made.axes,
        center=axes @ made.center, lower_bound=0.0, cost=4.0 * float(optimum),
        labels=np.array(labels, dtype=np.int64),
    )  # fmt: skip
    assert Fraction(largest_accepted(problem, made, optimum)) <= optimum


@pytest.mark.parametrize("seed", range(20))
def test_least_cost_of_a_colouring_is_rounded_down(seed):
    """Least cost of a colouring against enumeration: sums of very different numbers."""
    rng = np.random.default_rng(seed)
    n, k = 6, 3
    costs = rng.uniform(size=(n, k)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    edges = np.array([(i, i + 1) for i in range(n - 1)][: seed % n], dtype=np.int64).reshape(-1, 2)
    exact = min(
        sum(Fraction(costs[i, label]) for i, label in enumerate(labels))
        for base in numbered_by_first_appearance(n, k)
        for order in permutations(range(k))
        if respects(labels := [order[label] for label in base], [], edges)
    )
    found = ColoringBounds(costs, edges).min_cost()
    assert Fraction(found) <= exact
    assert found >= float(exact) * (1.0 - 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_marginals_of_colourings_are_rounded_down(seed):
    """Least cost of colourings in which a node has a colour, for all of them."""
    rng = np.random.default_rng(seed)
    n, k = 5, 3
    costs = rng.uniform(size=(n, k)) * 10.0 ** rng.uniform(-12, 12, size=(n, 1))
    edges = np.array([(i, i + 1) for i in range(n - 1)][: 1 + seed % 4], dtype=np.int64)
    found = ColoringBounds(costs, edges).min_marginals()
    exact = {}
    for base in numbered_by_first_appearance(n, k):
        for order in permutations(range(k)):
            labels = [order[label] for label in base]
            if respects(labels, [], edges):
                cost = sum(Fraction(costs[i, label]) for i, label in enumerate(labels))
                for place in enumerate(labels):
                    exact[place] = min(cost, exact.get(place, cost))
    assert len(exact) == n * k
    for (i, label), cost in exact.items():
        assert Fraction(found[i, label]) <= cost


@pytest.mark.parametrize("seed", range(8))
def test_cost_below_the_exact_one(seed):
    """Labels that cost more than is claimed, by less than rounding elsewhere, are rejected."""
    problem = bounded_problem(seed)
    optimum, labels = brute_force(problem)
    below = math.nextafter(_above(optimum), 0.0)
    while Fraction(below) >= optimum:
        below = math.nextafter(below, 0.0)
    proof = Proof(0.0, np.zeros(2), np.eye(2), (LeafProof("trivial"),))
    made = certificate(problem, labels, 2.0 * float(optimum), proof)
    made = change(made, lower_bound=0.0)
    assert verdict(problem, change(made, cost=_above(optimum) * (1.0 + 1e-12))).accepted
    for cost in (below, below * (1.0 - 1e-10)):
        assert verdict(problem, change(made, cost=cost)).reason is Reason.COST
