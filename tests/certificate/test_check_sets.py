"""The leaf for cannot-link sets: below every labelling for any row, and as written."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.certificate import check_certificate
from certikmeans.certificate.check_sets import set_lower_bound
from certikmeans.certificate.format import Rejection
from certikmeans.certificate.write import certificate_bytes
from certikmeans.proof import LeafProof
from certikmeans.testing.oracle import brute_force
from tests.certificate.test_check_sdp_constraints import domain_of, least_cost


def drawn(seed):
    """Points in sets and with cannot-links; weights are whole or not."""
    for number in range(100):
        rng = np.random.default_rng([seed, number])
        n, k = int(rng.integers(4, 8)), int(rng.integers(2, 5))
        sets = np.full(n, -1)
        rows = rng.permutation(n)
        sets[rows[:k]] = 0
        sets[rows[k : 2 * k]] = 1
        problem = Problem.from_data(
            rng.normal(size=(n, 2)) + 1e4 * (seed % 2), k, cannot_link_groups=sets,
            weights=rng.uniform(0.1, 5.0, n) if seed % 3 else None,
            must_link=[rows[-2:]] if seed % 5 == 0 else None,
        )  # fmt: skip
        if brute_force(problem) is not None:
            return problem
    raise AssertionError


@pytest.mark.parametrize("seed", range(60))
def test_any_row_is_valid(seed):
    problem = drawn(seed)
    domain = domain_of(problem)
    exact, k = least_cost(problem, domain), problem.n_clusters
    rng = np.random.default_rng(seed)
    sets, tried = domain.constraints.sets, 0
    for _ in range(10):
        chosen = [rng.permutation(one)[: int(rng.integers(1, len(one) + 1))] for one in sets]
        n_matchings = sum(
            len(chosen[i]) + len(chosen[j]) > k for i in range(len(chosen)) for j in range(i)
        )
        size = float(exact) * 10.0 ** rng.uniform(-3.0, 1.0)
        multipliers = size * rng.uniform(-0.3, 1.0, n_matchings * k)
        row = np.concatenate(
            [[1.0, len(chosen)], [len(one) for one in chosen], *chosen, multipliers]
        )
        value = set_lower_bound(
            domain.points, domain.weights, domain.edges, k, row, domain.constraints
        )
        assert Fraction(value) <= exact
        # The same sets as cannot-links.
        pairs = [(s, t) for one in sets for s in one for t in one if s < t]
        edges = np.concatenate([domain.edges, np.array(pairs, dtype=np.int64).reshape(-1, 2)])
        assert value == set_lower_bound(domain.points, domain.weights, edges, k, row, None)
        tried += n_matchings > 0
    assert tried or len(sets) < 2


def compact(k=4, m=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(k), m)
    points = 10.0 * np.eye(k)[truth] + rng.normal(size=(k * m, k))
    return points, np.repeat(np.arange(m), k)


def test_written_certificates():
    points, sets = compact()
    problem = Problem.from_data(points, 4, cannot_link_groups=sets)
    result = solve(problem, bound="sets", keep_proof=True, jobs=1, seed=0)
    assert result.gap < 1e-6
    content = certificate_bytes(problem, result)
    verdict = check_certificate(problem.points, content, constraints=problem.other_arrays())
    assert verdict.accepted, verdict.message
    assert verdict.lower_bound >= result.lower_bound * (1.0 - 1e-6)


def test_damaged_rows():
    points, sets = compact(3, 3)
    problem = Problem.from_data(points, 3, cannot_link_groups=sets)
    result = solve(problem, bound="sets", keep_proof=True, jobs=1, seed=0)
    (leaf,) = [node for node in result.proof.nodes if isinstance(node, LeafProof)]
    row, domain = leaf.evidence.row(), domain_of(problem)
    points = (problem.points - result.proof.center) @ result.proof.axes

    def value(numbers):
        return set_lower_bound(
            points, domain.weights, domain.edges, 3, np.array(numbers), domain.constraints
        )

    assert value(row) == pytest.approx(result.lower_bound, rel=1e-6)
    first = 2 + int(row[1])  # of the members
    changes = [
        (0, 2.0), (0, -1.0), (1, 99.0), (2, 0.0), (2, 4.0), (first, 99.0), (first, 0.5),
        (first, row[first + 1]), (first, row[first + 3]), (len(row) - 1, np.nan),
    ]  # fmt: skip
    for at, number in changes:
        damaged = row.copy()
        damaged[at] = number
        with pytest.raises(Rejection):
            value(damaged)
    for damaged in (row[:-1], np.append(row, 0.0), row[:1]):
        with pytest.raises(Rejection):
            value(damaged)
    other = Problem.from_data(problem.points, 3, cannot_link_groups=np.roll(sets, 1))
    with pytest.raises(Rejection):
        set_lower_bound(points, domain.weights, domain.edges, 3, row, domain_of(other).constraints)
