"""Spectral bound: valid for any evidence, tight on separated clusters."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.bounds.sdp.dual_bound import safe_bound
from certikmeans.bounds.sdp.model import MatrixMultipliers, SdpModel
from certikmeans.bounds.spectral import (
    SpectralMultipliers,
    ascend,
    closed_form,
    eigenvalue_bound,
    safe_value,
)
from certikmeans.bounds.spectral.ascent import SpectralAscentParams
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.problem import CannotLinks, ReducedProblem
from certikmeans.testing.oracle import brute_force, exact_cost
from tests.bounds.sdp_cases import inaccurate_eigensolver, reduced_of
from tests.bounds.spectral_cases import (
    dense_multipliers,
    least_cost,
    random_evidence,
    random_instance,
    separated_blobs,
    with_pairs,
)


def total_of(reduced):
    return SdpModel.of(reduced).total


def without_presolve(points, weights, n_clusters):
    """Reduced problem with the coordinates as given."""
    n = len(points)
    nothing = np.empty(0, dtype=np.int64)
    graph = CannotLinkGraph(
        n, np.zeros(n + 1, np.int64), nothing, np.zeros(1, np.int64), nothing, nothing
    )
    return ReducedProblem(np.asarray(points, float), np.asarray(weights, float),
                          CannotLinks(graph), n_clusters, 0.0)  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_any_evidence_gives_valid_bound(seed):
    problem, done = random_instance(seed)
    least = least_cost(problem, done)
    assert Fraction(eigenvalue_bound(done.reduced)) <= least
    size = total_of(done.reduced)
    rng = np.random.default_rng(seed)
    for _ in range(15):
        value = safe_value(done.reduced, random_evidence(rng, done.reduced, size))
        assert np.isfinite(value)
        assert Fraction(value) <= least


@pytest.mark.parametrize("seed", range(40))
def test_closed_form_below_all_labellings(seed):
    problem, done = random_instance(seed, least_groups=3)
    least = least_cost(problem, done)
    rng = np.random.default_rng(seed)
    n, k = done.reduced.n_groups, done.reduced.n_clusters
    best = done.presolve_labels(np.array(brute_force(problem)[1]))
    for labels in (best, rng.integers(k, size=n), np.zeros(n, np.int64)):
        found = closed_form(done.reduced, labels)
        assert Fraction(found.value) <= least
        assert found.value == safe_value(done.reduced, found.evidence)


@pytest.mark.parametrize("seed", range(30))
def test_ascent_below_all_labellings(seed):
    problem, done = random_instance(seed, least_groups=4)
    least = least_cost(problem, done)
    best = done.presolve_labels(np.array(brute_force(problem)[1]))
    start = closed_form(done.reduced, best)
    found = ascend(done.reduced, start, params=SpectralAscentParams(n_columns=60, steps=10))
    assert Fraction(found.value) <= least
    assert found.value >= start.value
    assert found.value == safe_value(done.reduced, found.evidence)


def test_ascent_improves_on_overlapping_clusters():
    done, truth = blobs(400, 6, 3, 5.0)
    cost = cost_of(done.reduced, truth)
    start = closed_form(done.reduced, truth)
    found = ascend(done.reduced, start, params=SpectralAscentParams(n_columns=60, steps=30))
    assert start.value < 0.999 * found.value
    assert found.value <= cost
    # The start may be any proof, not only one in closed form.
    again = ascend(done.reduced, found, params=SpectralAscentParams(n_columns=60, steps=5))
    assert found.value <= again.value <= cost
    calls = []
    early = ascend(done.reduced, start, stop=lambda: calls.append(0) or len(calls) > 5)
    assert start.value <= early.value <= found.value
    assert len(calls) == 6
    assert closed_form(done.reduced, truth, lambda: True).value == eigenvalue_bound(done.reduced)
    assert len(dense_multipliers(done.reduced, SpectralMultipliers.zeros(400)).entries) == 400


def test_link_multipliers_raise_bound():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(80, 3))
    points[40:, 0] += 4.0
    truth = np.repeat([0, 1], 40)
    # Groups of the right cluster that lie in the left one, beside their cannot-link partner.
    points[40:44, 0] -= 4.0
    links = [(i, 40 + i) for i in range(4)]
    with_links = reduced_of(Problem.from_data(points, 2, cannot_link=links))
    labels = with_links.presolve_labels(truth)
    start = closed_form(with_links.reduced, labels)
    found = ascend(with_links.reduced, start, params=SpectralAscentParams(n_columns=60))
    assert len(found.evidence.link_pairs) > 0
    assert (found.evidence.link_multipliers < 0.0).any()
    without = SpectralMultipliers(
        labels, found.evidence.pairs, found.evidence.nodes, found.evidence.coefficients,
        found.evidence.link_pairs[:0], found.evidence.link_multipliers[:0],
    )  # fmt: skip
    assert (
        safe_value(with_links.reduced, without) < found.value <= cost_of(with_links.reduced, labels)
    )


@pytest.mark.parametrize("scale", [1e-50, 1e-30, 1.0, 1e30, 1e50])
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("ratio", [0.0, 6.0])
def test_rounding_near_optimum(scale, shift, ratio):
    met = 0
    for seed in range(4):
        problem, truth = separated_blobs(np.random.default_rng(seed), shift, scale, ratio)
        done = reduced_of(problem)
        least = least_cost(problem, done)
        value = closed_form(done.reduced, done.presolve_labels(truth)).value
        assert Fraction(value) <= least
        assert Fraction(eigenvalue_bound(done.reduced)) <= least
        met += value >= (1.0 - 1e-3) * float(least)
    assert met >= 2 or ratio > 0.0


@pytest.mark.parametrize("seed", range(30))
def test_coordinates_of_any_scale(seed):
    rng = np.random.default_rng(seed)
    n, k = 6, int(rng.integers(1, 4))
    d = int(rng.integers(1, 10))
    points = (rng.normal(size=(n, d)) + 10.0 ** rng.integers(0, 9)) * 10.0 ** rng.integers(-40, 40)
    points *= 10.0 ** rng.integers(-20, 1, size=d)  # columns of different scale
    weights = 10.0 ** rng.uniform(-12, 12, size=n)
    reduced = without_presolve(points, weights, k)
    cost, labels = brute_force(Problem.from_data(points, k, weights=weights))
    assert Fraction(eigenvalue_bound(reduced)) <= cost
    assert Fraction(closed_form(reduced, np.array(labels)).value) <= cost
    for _ in range(5):
        evidence = random_evidence(rng, reduced, float(cost))
        assert Fraction(safe_value(reduced, evidence)) <= cost


@pytest.mark.parametrize("seed", range(20))
def test_valid_with_inaccurate_linear_algebra(seed, monkeypatch):
    problem, done = random_instance(seed)
    least = least_cost(problem, done)
    size = total_of(done.reduced)
    rng = np.random.default_rng(seed)
    right = np.linalg.cholesky

    def inaccurate_cholesky(matrix):
        return right(matrix) * (1.0 - 10.0 ** rng.integers(-13, 0))

    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    monkeypatch.setattr(np.linalg, "cholesky", inaccurate_cholesky)
    assert Fraction(eigenvalue_bound(done.reduced)) <= least
    for _ in range(10):
        assert Fraction(safe_value(done.reduced, random_evidence(rng, done.reduced, size))) <= least


def as_matrix(reduced, evidence):
    """Matrix of the multipliers, from their definition."""
    n = reduced.n_groups
    labels = evidence.labels
    x, w = reduced.points, reduced.weights
    means = np.array([np.average(x[labels == k], axis=0, weights=w[labels == k])
                      if (labels == k).any() else np.zeros(x.shape[1])
                      for k in range(labels.max() + 1)])  # fmt: skip
    squares = ((x[:, None, :] - means[None]) ** 2).sum(axis=2)
    entries = np.zeros((n, n))
    for (a, b), nodes, coefficients in zip(
        evidence.pairs, evidence.nodes, evidence.coefficients, strict=True
    ):
        for s in np.flatnonzero(labels == a):
            for t in np.flatnonzero(labels == b):
                q = len(coefficients)
                first = [np.interp(squares[s, b] - squares[s, a], nodes[0], e) for e in np.eye(q)]
                second = [np.interp(squares[t, a] - squares[t, b], nodes[1], e) for e in np.eye(q)]
                entries[s, t] += w[s] * w[t] * (first @ coefficients @ second)
                entries[t, s] = entries[s, t]
    for (s, t), amount in zip(evidence.link_pairs, evidence.link_multipliers, strict=True):
        entries[s, t] += amount * np.sqrt(w[s] * w[t])
        entries[t, s] += amount * np.sqrt(w[s] * w[t])
    return MatrixMultipliers(entries, np.empty((0, 3), np.int64), np.empty(0))


def sane_evidence(rng, reduced, labels):
    """The closed form on more nodes, with link multipliers."""
    base = closed_form(reduced, labels).evidence
    p = len(base.pairs)
    assert p > 0
    low, high = base.nodes[:, :, :1], base.nodes[:, :, 1:]
    nodes = low + (high - low) * np.array([0.0, 0.3, 1.0])
    height = np.array([0.0, 0.3, 1.0])
    coefficients = (
        base.coefficients[:, 1:, 1:] * np.outer(height, height) * rng.uniform(0.95, 1.05, (p, 3, 3))
    )
    link_pairs = reduced.graph.edges()
    link_multipliers = 1e-3 * total_of(reduced) * rng.normal(size=len(link_pairs))
    return SpectralMultipliers(
        labels, base.pairs, nodes, coefficients, link_pairs, link_multipliers
    )


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_sdp_bound(seed):
    rng = np.random.default_rng(seed)
    done, labels = with_pairs(rng, 40, 5, 3, 0.5)
    reduced = done.reduced
    model = SdpModel.of(reduced)
    for evidence in (closed_form(reduced, labels).evidence, sane_evidence(rng, reduced, labels)):
        matrix = as_matrix(reduced, evidence)
        expected = safe_bound(model, matrix)
        ours = dense_multipliers(reduced, evidence).entries
        assert np.allclose(ours, matrix.entries, rtol=1e-9, atol=1e-9 * np.abs(ours).max())
        found = safe_value(reduced, evidence, chunk=7)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)
        assert expected > 0.0
    zeros = safe_bound(model, MatrixMultipliers.zeros(reduced.n_groups))
    assert eigenvalue_bound(reduced, chunk=7) == pytest.approx(zeros, rel=1e-9)


def test_one_cluster_exact():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(3000, 4)) + 1e6, rng.uniform(0.5, 3.0, size=3000)
    done = reduced_of(Problem.from_data(points, 1, weights=weights))
    exact = exact_cost(done.reduced.points, done.reduced.weights, np.zeros(3000, int))
    value = eigenvalue_bound(done.reduced)
    assert Fraction(value) <= exact
    assert value == pytest.approx(float(exact), rel=1e-11)
    assert closed_form(done.reduced, np.zeros(3000, np.int64)).value == value


@pytest.mark.parametrize("n_clusters", [5, 6])
def test_as_many_clusters_as_groups(n_clusters):
    done = reduced_of(Problem.from_data(np.eye(6), n_clusters, must_link=[(0, 1)]))
    assert eigenvalue_bound(done.reduced) == 0.0
    assert closed_form(done.reduced, np.arange(5)).value == 0.0


def test_coincident_points():
    done = reduced_of(Problem.from_data(np.ones((6, 2)), 3, cannot_link=[(0, 1)]))
    assert eigenvalue_bound(done.reduced) == 0.0
    assert closed_form(done.reduced, np.array([0, 1, 0, 0, 2, 2])).value == 0.0


@pytest.mark.parametrize("k", [2, 5])
def test_more_dims_than_points(k):
    rng = np.random.default_rng(k)
    points = 4.0 * rng.normal(size=(k, 300))[np.arange(60) % k] + rng.normal(size=(60, 300))
    by_axes = reduced_of(Problem.from_data(points, k)).reduced
    plain = without_presolve(points, np.ones(60), k)
    assert eigenvalue_bound(plain) == pytest.approx(eigenvalue_bound(by_axes), rel=1e-9)
    labels = np.arange(60) % k
    cost = sum(((points[labels == a] - points[labels == a].mean(axis=0)) ** 2).sum()
               for a in range(k))  # fmt: skip
    for reduced in (plain, by_axes):
        assert (1.0 - 1e-6) * cost <= closed_form(reduced, labels).value <= cost * (1.0 + 1e-12)


def blobs(n, d, k, spread, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    points = rng.uniform(-10.0, 10.0, size=(k, d))[truth] + spread * rng.normal(size=(n, d))
    return reduced_of(Problem.from_data(points, k)), truth


def cost_of(reduced, labels):
    sums, masses = reduced.cluster_sums(labels)
    away = reduced.points - (sums / masses[:, None])[labels]
    return float(np.sum(reduced.weights[:, None] * away**2))


@pytest.mark.parametrize(("n", "d", "k", "spread", "gap"),
                         [(2000, 20, 5, 2.0, 1e-4), (3000, 10, 8, 0.5, 1e-4)])  # fmt: skip
def test_tight_on_separated_clusters(n, d, k, spread, gap):
    done, truth = blobs(n, d, k, spread)
    cost = cost_of(done.reduced, truth)
    found = closed_form(done.reduced, truth)
    assert (1.0 - gap) * cost <= found.value <= cost
    assert eigenvalue_bound(done.reduced) < 0.95 * cost


def test_tight_with_pairs_and_weights():
    done, labels = with_pairs(np.random.default_rng(5), 600, 12, 4, 0.5)
    cost = cost_of(done.reduced, labels)
    assert (1.0 - 1e-3) * cost <= closed_form(done.reduced, labels).value <= cost


def test_many_clusters_give_eigenvalue_bound():
    rng = np.random.default_rng(0)
    reduced = reduced_of(Problem.from_data(rng.normal(size=(200, 60)), 50)).reduced
    found = closed_form(reduced, np.arange(200) % 50)
    assert found.value == eigenvalue_bound(reduced)
    assert len(found.evidence.row()) == 0


def test_invalid_evidence_gives_eigenvalue_bound():
    done, truth = blobs(60, 4, 3, 0.5)
    reduced = done.reduced
    good = closed_form(reduced, truth).evidence
    trivial = eigenvalue_bound(reduced)

    def changed(**fields):
        names = ("labels", "pairs", "nodes", "coefficients", "link_pairs", "link_multipliers")
        return SpectralMultipliers(
            **{name: fields.get(name, getattr(good, name)) for name in names}
        )

    for bad in (
        changed(labels=truth[:-1]),
        changed(labels=truth - 1),
        changed(labels=truth + 10**6),
        changed(pairs=good.pairs + 5),
        changed(pairs=good.pairs - 1),
        changed(coefficients=good.coefficients * np.nan),
        changed(nodes=good.nodes * np.inf),
        changed(coefficients=-good.coefficients),
        changed(coefficients=good.coefficients * 1e300),
        changed(link_pairs=np.array([[0, 1]]), link_multipliers=np.array([np.inf])),
    ):
        assert 0.0 <= safe_value(reduced, bad) <= trivial
    # Groups 0 and 1 have no cannot-link: the multiplier is ignored.
    not_linked = changed(link_pairs=np.array([[0, 1]]), link_multipliers=np.array([-1e3]))
    assert safe_value(reduced, not_linked) == safe_value(reduced, good)


def test_renumbered_evidence():
    done, labels = with_pairs(np.random.default_rng(1), 50, 4, 3, 0.5)
    evidence = sane_evidence(np.random.default_rng(2), done.reduced, labels)
    order = np.random.default_rng(3).permutation(done.reduced.n_groups)
    moved = evidence.renumbered(order)
    assert np.array_equal(moved.labels[order], evidence.labels)
    assert np.array_equal(moved.link_pairs, order[evidence.link_pairs])
