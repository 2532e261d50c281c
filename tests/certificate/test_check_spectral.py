"""Verifier of the spectral bound: true bounds for any row, and the value of the solver."""

from __future__ import annotations

import dataclasses
import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.sdp.model import SdpModel
from certikmeans.bounds.spectral import closed_form, eigenvalue_bound, safe_value
from certikmeans.certificate import check_spectral
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.check_spectral import spectral_lower_bound
from certikmeans.certificate.format import Reason, Rejection, encode
from certikmeans.certificate.write import make_certificate
from certikmeans.testing.oracle import brute_force
from tests.bounds.sdp_cases import inaccurate_eigensolver, reduced_of
from tests.bounds.spectral_cases import (
    least_cost,
    random_evidence,
    random_instance,
    separated_blobs,
    with_pairs,
)
from tests.bounds.test_spectral import blobs, sane_evidence, without_presolve

EMPTY = np.empty(0)


def value_of(reduced, row):
    return spectral_lower_bound(
        reduced.points, reduced.weights, reduced.graph.edges(), reduced.n_clusters, row
    )


def rejection(reduced, row):
    with pytest.raises(Rejection) as caught:
        value_of(reduced, row)
    return caught.value.reason


def test_deadline():
    done, truth = blobs(200, 4, 3, 2.0)
    row = closed_form(done.reduced, done.presolve_labels(truth)).evidence.row()
    for given in (row, EMPTY):
        assert value_of(done.reduced, given) > 0.0
        with pytest.raises(Rejection) as caught:
            spectral_lower_bound(
                done.reduced.points, done.reduced.weights, done.reduced.graph.edges(), 3, given,
                deadline=-math.inf,
            )  # fmt: skip
        assert caught.value.reason is Reason.LIMIT


def valid_row(rng, reduced, size):
    """Random numbers that the verifier evaluates."""
    evidence = random_evidence(rng, reduced, size)
    edges = {tuple(edge) for edge in reduced.graph.edges().tolist()}
    kept = [
        i for i, pair in enumerate(evidence.link_pairs.tolist()) if tuple(sorted(pair)) in edges
    ]
    link_pairs, first = np.unique(
        np.sort(evidence.link_pairs[kept], axis=1), axis=0, return_index=True
    )
    nodes = np.sort(evidence.nodes, axis=2)
    coefficients = np.abs(evidence.coefficients)
    made = type(evidence)(
        evidence.labels,
        evidence.pairs,
        nodes,
        coefficients,
        link_pairs,
        evidence.link_multipliers[kept][first],
    )
    return made.row()


@pytest.mark.parametrize("seed", range(50))
def test_any_row_is_valid(seed):
    problem, done = random_instance(seed)
    least = least_cost(problem, done)
    assert Fraction(value_of(done.reduced, EMPTY)) <= least
    size = SdpModel.of(done.reduced).total
    rng = np.random.default_rng(seed)
    for _ in range(15):
        assert Fraction(value_of(done.reduced, valid_row(rng, done.reduced, size))) <= least


@pytest.mark.parametrize("seed", range(30))
def test_scales_of_coordinates(seed):
    rng = np.random.default_rng(seed)
    n, k, d = 6, int(rng.integers(1, 4)), int(rng.integers(1, 10))
    points = (rng.normal(size=(n, d)) + 10.0 ** rng.integers(0, 9)) * 10.0 ** rng.integers(-40, 40)
    points *= 10.0 ** rng.integers(-20, 1, size=d)
    weights = 10.0 ** rng.uniform(-12, 12, size=n)
    reduced = without_presolve(points, weights, k)
    cost, labels = brute_force(Problem.from_data(points, k, weights=weights))
    assert Fraction(value_of(reduced, EMPTY)) <= cost
    assert (
        Fraction(value_of(reduced, closed_form(reduced, np.array(labels)).evidence.row())) <= cost
    )
    for _ in range(5):
        assert Fraction(value_of(reduced, valid_row(rng, reduced, float(cost)))) <= cost


@pytest.mark.parametrize("seed", range(20))
def test_inaccurate_linear_algebra(seed, monkeypatch):
    problem, done = random_instance(seed)
    least = least_cost(problem, done)
    size = SdpModel.of(done.reduced).total
    rng = np.random.default_rng(seed)
    right = np.linalg.cholesky

    def inaccurate_cholesky(matrix):
        return right(matrix) * (1.0 - 10.0 ** rng.integers(-13, -3))

    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    monkeypatch.setattr(np.linalg, "cholesky", inaccurate_cholesky)
    assert Fraction(value_of(done.reduced, EMPTY)) <= least
    for _ in range(10):
        value = Fraction(0)
        with suppress(Rejection):
            value = Fraction(value_of(done.reduced, valid_row(rng, done.reduced, size)))
        assert value <= least


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("ratio", [0.0, 6.0])
def test_rounding_near_optimum(scale, ratio):
    for seed in range(5):
        problem, truth = separated_blobs(
            np.random.default_rng(seed), 1e5 * (seed % 2), scale, ratio
        )
        done = reduced_of(problem)
        found = closed_form(done.reduced, done.presolve_labels(truth))
        value = value_of(done.reduced, found.evidence.row())
        assert Fraction(value) <= least_cost(problem, done)
        # With one group as heavy as all others the columns are nearly dependent.
        far = 1e-10 if ratio == 0.0 else 1e-7
        assert value >= found.value - far * SdpModel.of(done.reduced).total


@pytest.mark.parametrize("seed", range(8))
def test_same_value_as_solver(seed, monkeypatch):
    monkeypatch.setattr(check_spectral, "BLOCK_ROWS", 7)
    rng = np.random.default_rng(seed)
    done, labels = with_pairs(rng, 60, 6, 3, 0.5)
    reduced = done.reduced
    for evidence in (closed_form(reduced, labels).evidence, sane_evidence(rng, reduced, labels)):
        value = value_of(reduced, evidence.row())
        assert value > 0.0
        assert value == pytest.approx(safe_value(reduced, evidence), rel=1e-8)
    assert value_of(reduced, EMPTY) == pytest.approx(eigenvalue_bound(reduced), rel=1e-9)


def test_more_axes_than_points():
    points = np.random.default_rng(0).normal(size=(40, 300))
    plain = without_presolve(points, np.ones(40), 3)
    assert value_of(plain, EMPTY) == pytest.approx(eigenvalue_bound(plain), rel=1e-9)


def test_invalid_rows():
    done, truth = blobs(80, 4, 3, 0.5)
    reduced = done.reduced
    found = closed_form(reduced, truth)
    row = found.evidence.row()
    n, width = 80, 2 + 4 + 4
    assert len(row) == 3 + n + 3 * width
    first = 3 + n
    assert value_of(reduced, row) >= found.value * (1.0 - 1e-9)
    assert value_of(reduced, row[:2]) == value_of(reduced, EMPTY)

    def changed(position, number):
        bad = row.copy()
        bad[position] = number
        return bad

    for position in (0, 1, 2, 3, first, first + 2, first + width - 1):
        for number in (np.nan, np.inf, -np.inf):
            assert rejection(reduced, changed(position, number)) is Reason.BOUND
    for position, number in (
        (0, 2.0), (0, -1.0), (0, 1e300), (0, 2.5), (1, 1.0), (1, 3.0), (1, 1e9), (2, 1.0),
        (2, -1.0), (3, 3.0), (3, -1.0), (3, 0.5), (first, 3.0), (first, -1.0), (first, 0.5),
        (first + 3, -1e9), (first + width - 1, -1.0),
    ):  # fmt: skip
        assert rejection(reduced, changed(position, number)) is Reason.BOUND
    for short in (row[:3], row[:-1], row[:first], np.append(row, 0.0)):
        assert rejection(reduced, short) is Reason.BOUND
    cannot_link_term = np.append(changed(2, 1.0), [0.0, 1.0, -5.0])  # there is no such cannot-link
    assert rejection(reduced, cannot_link_term) is Reason.BOUND
    assert value_of(reduced, changed(first + width - 1, 1e300)) == 0.0
    for factor in (0.0, 0.5, 2.0):
        weaker = row.copy()
        weaker[first + width - 1 :: width] *= factor
        assert value_of(reduced, weaker) < found.value


def test_duplicate_cannot_link_term():
    done, labels = with_pairs(np.random.default_rng(3), 40, 4, 3, 0.5)
    reduced = done.reduced
    row = sane_evidence(np.random.default_rng(4), reduced, labels).row()
    assert value_of(reduced, row) > 0.0
    twice = np.append(row, row[-3:])
    twice[2] += 1.0
    assert rejection(reduced, twice) is Reason.BOUND


def test_work_limits(monkeypatch):
    done, truth = blobs(80, 4, 3, 0.5)
    row = closed_form(done.reduced, truth).evidence.row()
    monkeypatch.setattr(check_spectral, "MAX_COLUMNS", 10)
    assert rejection(done.reduced, row) is Reason.LIMIT
    monkeypatch.setattr(check_spectral, "MAX_COLUMNS", 11)
    assert value_of(done.reduced, row) > 0.0
    monkeypatch.setattr(check_spectral, "MAX_INNER_PRODUCT_WORK", 80 * 7.0**2 - 1.0)
    assert rejection(done.reduced, row) is Reason.LIMIT
    monkeypatch.setattr(check_spectral, "MAX_DIMS", 3)
    assert rejection(done.reduced, EMPTY) is Reason.LIMIT


def close_nodes(rng):
    """A row whose hats jump between two floats that the rounding of a margin may confuse."""
    n, k = int(rng.integers(10, 20)), 2
    labels = np.sort(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    points = rng.normal(size=(n, 2))
    points[:, 0] += 5.0 * labels
    reduced = without_presolve(points, np.ones(n), k)
    points, weights = reduced.points, reduced.weights
    middle = weights @ points / float(weights.sum())
    reach = float(np.maximum(points.max(axis=0) - middle, middle - points.min(axis=0)).max())
    scaled = check_spectral._ScaledPoints(points, weights, middle, math.frexp(reach)[1])
    means = check_spectral._means(scaled, labels, k)
    ends, nodes = [], []
    for here, other in ((0, 1), (1, 0)):
        members = np.flatnonzero(labels == here)
        step = means[other] - means[here]
        level = float((0.5 * (means[other] + means[here])) @ step)
        # One by one; in a common product they may be rounded otherwise.
        margins = [2.0 * (level - float(scaled.rows(np.array([s]))[1][0] @ step)) for s in members]
        at = int(rng.integers(len(members)))
        ends.append(int(members[at]))
        near = math.ldexp(margins[at], 2 * scaled.exponent)
        nodes += [near, math.nextafter(near, math.inf)]
    cannot_link_term = 0.2 * float(rng.normal())
    coefficients = rng.uniform(0.0, 0.5, size=4)
    row = np.concatenate(
        [[1, 2, 1], labels, [0, 1], nodes, coefficients, [*ends, cannot_link_term]]
    )
    return scaled, row, np.array([ends])


def dense_value(scaled, row, edges):
    """The bound by a matrix of all groups, with the hats as the verifier computes them."""
    n = len(scaled.points)
    read = check_spectral._parse_row(row, n, 2, edges)
    basis = check_spectral._HatBasis(scaled, read)
    columns = np.zeros((n, 1 + scaled.points.shape[1] + basis.n_columns))
    for members in check_spectral._members(read.labels):
        numbers, block = check_spectral._columns(scaled, members, basis)
        columns[np.ix_(members, numbers)] = block
    v, rest = columns[:, 0], columns[:, 1:]
    order = rest.shape[1]
    inner = basis.middle(order + 2, np.unique(edges))
    matrix = rest @ inner[:order, :order] @ rest.T
    matrix[edges[0, 0], edges[0, 1]] += inner[-2, -1]
    matrix[edges[0, 1], edges[0, 0]] += inner[-2, -1]
    level = v @ matrix @ v / (v @ v)
    out = np.eye(n) - np.outer(v, v) / (v @ v)
    spent = max(0.0, float(np.linalg.eigvalsh(out @ matrix @ out)[-1]))
    trace = float(np.sum(rest[:, : scaled.points.shape[1]] ** 2))
    return math.ldexp(trace - level - spent, 2 * scaled.exponent)


def test_hats_of_unit_vectors():
    compared = 0
    for seed in range(300):
        scaled, row, edges = close_nodes(np.random.default_rng(seed))
        with suppress(Rejection):
            value = spectral_lower_bound(scaled.points, scaled.weights, edges, 2, row)
            assert value <= max(0.0, dense_value(scaled, row, edges)) + 1e-9
            compared += value > 0.0
    assert compared > 100


def test_overflow():
    points = 1e-5 * np.random.default_rng(0).normal(size=(12, 2))
    labels = np.arange(12) % 3
    ends = [(i, j) for i in range(12) for j in range(i + 1, 12) if labels[i] != labels[j]]
    problem = Problem.from_data(points, 3, cannot_link=ends)
    found = solve(problem, bound="spectral", branching="pairs", node_limit=1, keep_proof=True)
    link_pairs = np.column_stack([ends, np.full(len(ends), 1e145)])
    row = np.concatenate([[0, 2, len(ends)], labels, link_pairs.ravel()])
    for amount in (1e145, -1e145):
        row[-1] = amount
        made = dataclasses.replace(
            make_certificate(problem, found), cost=1.0, lower_bound=1e-3,
            kinds=np.array([8], dtype=np.uint8), first=np.array([0]), second=np.array([-1]),
            values=np.zeros(1), lengths=np.array([len(row)]), multipliers=row,
        )  # fmt: skip
        verdict = check_certificate(problem.points, encode(made))
        assert not verdict.accepted
        assert verdict.reason is Reason.BOUND
