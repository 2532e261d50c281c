"""The leaf for soft pairs: below every labelling, for any row, and as written by the bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate import check_certificate
from certikmeans.certificate.check_light_clusters import (
    _block_sums,
    _of_multipliers,
    _of_two_clusters,
    soft_lower_bound,
)
from certikmeans.certificate.format import Rejection
from certikmeans.certificate.write import certificate_bytes
from certikmeans.proof import LeafProof
from certikmeans.testing.instances import soft_problem
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from tests.certificate.test_check_sdp_constraints import domain_of, least_cost


def unweighted(seed):
    """Every point is a group of weight 1; at least two clusters, and fewer than points."""
    for number in range(100):
        problem = soft_problem(seed + 1000 * number, largest=6, others=seed % 3 == 0)
        problem = replace(problem, weights=None, must_link=None)
        if 2 <= problem.n_clusters < problem.n_points:
            return problem
    raise AssertionError


def random_multipliers(rng, n, size):
    cuts = np.zeros((int(rng.integers(0, 4)), 4))
    cuts[:, :2] = rng.integers(n, size=(len(cuts), 2))
    cuts[:, 2] = rng.integers(-1, n, size=len(cuts))
    cuts[:, 3] = size * rng.uniform(-0.2, 1.0, len(cuts))
    return np.concatenate([size * rng.normal(size=n * (n + 1) // 2), cuts.ravel()])


@pytest.mark.parametrize("seed", range(100))
def test_any_row_is_valid(seed):
    problem = unweighted(seed)
    domain = domain_of(problem)
    exact = least_cost(problem, domain)
    rng = np.random.default_rng(seed)
    n, positive = domain.n_groups, 0
    for _ in range(12):
        size = (float(exact) / n + 1e-3) * 10.0 ** rng.uniform(-4.0, 0.0)
        light = random_multipliers(rng, n, size)
        inner = random_multipliers(rng, n, size)
        least = rng.integers(1, int(rng.integers(2, n + 1)) + 1, size=n).astype(float)
        head = [1.0, float(rng.integers(2)), float(len(light))]
        value = soft_lower_bound(
            domain.points, domain.weights, domain.edges, problem.n_clusters,
            np.concatenate([head, least, light, inner]), domain.constraints,
        )  # fmt: skip
        positive += value > 0.0
        assert Fraction(value) <= exact


@pytest.mark.parametrize("seed", range(60))
def test_labellings_with_light_clusters_cost_at_least_the_bounds(seed):
    problem = unweighted(seed)
    domain = domain_of(problem)
    n, k = domain.n_groups, problem.n_clusters
    rng = np.random.default_rng(seed)
    if k == 2:
        empty, values = _of_two_clusters(domain.points, n - 1)
    else:
        size = float(np.var(domain.points)) * 10.0 ** rng.uniform(-4.0, 0.0)
        row = random_multipliers(rng, n, size)
        empty, values = _of_multipliers(
            domain.points, domain.edges, k - 1, row, domain.constraints, n - 1
        )
    for labels in feasible_labellings(problem):
        sizes = np.bincount(labels, minlength=k)
        exact = exact_cost(domain.points, domain.weights, labels)
        if sizes.min() == 0:
            assert Fraction(empty) <= exact
        for s, count in enumerate(sizes[list(labels)].tolist()):
            if count < n:
                assert Fraction(float(values[s, count - 1])) <= exact


@pytest.mark.parametrize("seed", range(10))
def test_block_sums(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 6))
    matrix += matrix.T
    bounds = _block_sums(matrix, 5)
    for _ in range(50):
        rows = rng.permutation(6)[: rng.integers(1, 6)]
        assert matrix[np.ix_(rows, rows)].sum() <= bounds[rows, len(rows) - 1].min() + 1e-12


def blobs(n_clusters):
    """Compact clusters, and soft pairs of which some are wrong."""
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(n_clusters), 12)
    points = 5.0 * np.eye(n_clusters + 1)[truth] + rng.normal(size=(len(truth), n_clusters + 1))
    wrong = [(i, i + 12, 2.0) for i in range(4)]
    return Problem.from_data(points, n_clusters, soft_must_link=wrong)


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_written_certificates(n_clusters):
    problem = blobs(n_clusters)
    result = solve(problem, bound="soft", keep_proof=True, jobs=1, seed=0, gap=1e-6)
    (leaf,) = [node for node in result.proof.nodes if isinstance(node, LeafProof)]
    assert leaf.evidence.assumed.least.min() > 1.0
    assert (leaf.evidence.light is None) == (n_clusters == 2)
    content = certificate_bytes(problem, result)
    verdict = check_certificate(problem.points, content, constraints=problem.other_arrays())
    assert verdict.accepted, verdict.message
    assert verdict.lower_bound >= result.lower_bound * (1.0 - 1e-6)
    without = solve(problem, bound="sdp", jobs=1, node_limit=1, seed=0, gap=1e-6)
    assert result.lower_bound > without.lower_bound


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_sizes_that_are_too_large_lower_the_bound(n_clusters):
    problem = blobs(n_clusters)
    result = solve(problem, bound="soft", keep_proof=True, jobs=1, seed=0, gap=1e-6)
    (leaf,) = [node for node in result.proof.nodes if isinstance(node, LeafProof)]
    row, domain = leaf.evidence.row(), domain_of(problem)
    points = (problem.points - result.proof.center) @ result.proof.axes

    def value(numbers):
        return soft_lower_bound(
            points, domain.weights, domain.edges, n_clusters, numbers, domain.constraints
        )

    before = value(row)
    assert before == pytest.approx(result.lower_bound, rel=1e-6)
    larger = row.copy()
    larger[3 : 3 + domain.n_groups] = domain.n_groups // n_clusters
    assert value(larger) < before
    for damaged in (
        np.concatenate([[2.0], row[1:]]),
        np.concatenate([row[:2], [-1.0], row[3:]]),
        np.concatenate([row[:2], [1e9], row[3:]]),
        np.concatenate([row[:3], [0.5], row[4:]]),
        np.concatenate([row[:3], [np.nan], row[4:]]),
        row[:10],
    ):
        with pytest.raises(Rejection):
            value(damaged)
    with pytest.raises(Rejection):
        soft_lower_bound(
            points, 2.0 * domain.weights, domain.edges, n_clusters, row, domain.constraints
        )
