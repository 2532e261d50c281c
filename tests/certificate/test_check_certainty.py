"""Certainty claims: derived again by the verifier, rejected where they are not true."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans import InputError, Problem, check_certificate, solve
from certikmeans.certificate import Reason
from certikmeans.certificate import format as form
from certikmeans.certificate.check_certainty import (
    _box_difference,
    _check_counts,
    _check_fixed_points,
    _dual_level,
    _DualLevel,
    _outside,
)
from certikmeans.certificate.check_domains import Domain
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.certificate.format import CertaintyClaim, Rejection
from certikmeans.certificate.write import certificate_bytes, make_certificate
from tests.certainty.enumeration import near_optimal_labellings
from tests.certainty.test_compute import clumps
from tests.clock import timed, within

LINE = [[0.0], [1.0], [2.0], [5.6], [9.0], [10.0], [11.0]]


@pytest.fixture(scope="module")
def line():
    problem = Problem.from_data(LINE, 2)
    result = solve(problem, keep_proof=True, jobs=1)
    certainty = result.certainty(0.05)
    return problem, make_certificate(problem, result, certainty)


def verdict(problem, certificate):
    return check_certificate(problem.points, form.encode(certificate))


def test_accepted(line):
    problem, certificate = line
    found = verdict(problem, certificate)
    assert found.accepted
    boxes = len(certificate.certainty.cluster)
    assert found.details["certainty"] == {"slack": 0.05, "certain": 6, "boxes": boxes}


def tampered(claim: CertaintyClaim, how: str) -> CertaintyClaim:
    match how:
        case "another point":
            return replace(claim, certain=np.ones_like(claim.certain))
        case "more slack":
            return replace(claim, slack=0.9)
        case "smaller boxes":
            middle = 0.5 * (claim.low + claim.high)
            return replace(claim, low=0.5 * (claim.low + middle), high=0.5 * (claim.high + middle))
        case "a box moved":
            return replace(claim, low=claim.low + 3.0, high=claim.high + 3.0)
        case "boxes exchanged":
            return replace(claim, cluster=claim.cluster[::-1].copy())
        case "one box":
            low, high = claim.low.min(axis=0), claim.high.max(axis=0)
            return replace(claim, low=low[None], high=high[None], cluster=np.array([0]))
        case "one large box each":
            low = np.repeat(claim.low.min(axis=0)[None], 2, axis=0)
            high = np.repeat(claim.high.max(axis=0)[None], 2, axis=0)
            return replace(claim, low=low, high=high, cluster=np.array([0, 1]))
        case "smaller sigma":
            return replace(claim, sigma=0.9 * claim.sigma)
        case "other multipliers":
            return replace(claim, multipliers=0.5 * claim.multipliers)
        case _:
            return replace(claim, multipliers=claim.multipliers[:-1])


@pytest.mark.parametrize(
    "how",
    [
        *("another point", "more slack", "smaller boxes", "a box moved", "boxes exchanged"),
        *("one box", "one large box each", "smaller sigma", "other multipliers", "too few"),
    ],
)
def test_tampered_claims_rejected(line, how):
    problem, certificate = line
    changed = replace(certificate, certainty=tampered(certificate.certainty, how))
    found = verdict(problem, changed)
    assert not found.accepted
    assert found.reason is Reason.CERTAINTY


def n_certified_points(seed: int) -> int:
    """Write, check, and compare with every labelling within the slack; 0 without claims."""
    problem = clumps(seed)
    result = solve(problem, keep_proof=True, jobs=1)
    slack = (0.002, 0.05, 0.2)[seed % 3]
    certainty = result.certainty(slack)
    if certainty.claim is None:
        with pytest.raises(InputError):
            certificate_bytes(problem, result, certainty)
        return 0
    assert np.all(certainty.certain[certainty.claim.certain])
    found = check_certificate(problem.points, certificate_bytes(problem, result, certainty))
    assert found.accepted, (seed, found)
    points = np.flatnonzero(certainty.claim.certain)
    for labels in near_optimal_labellings(problem, Fraction(result.cost) * (1 + Fraction(slack))):
        assert any(
            all(order[labels[i]] == result.labels[i] for i in points)
            for order in permutations(range(problem.n_clusters))
        )
    return len(points)


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_accepted_claims_by_enumeration(first):
    certain = [n_certified_points(seed) for seed in range(first, first + 20)]
    assert np.count_nonzero(certain) >= 6


def test_invalid_headers_rejected(line):
    problem, certificate = line
    for change in ({"slack": -1.0}, {"sigma": 1e301}):
        claim = replace(certificate.certainty, **change)
        found = verdict(problem, replace(certificate, certainty=claim))
        assert not found.accepted
        assert found.reason is Reason.FIELD


def test_work_limit_of_small_files(line):
    problem, certificate = line
    content = form.encode(replace(certificate, lower_bound=0.0))  # no work for the bound
    assert check_certificate(problem.points, content).accepted
    few = Limits(base_boxes=1, boxes_per_number=0)
    found = check_certificate(problem.points, content, limits=few)
    assert not found.accepted
    assert found.reason is Reason.LIMIT


@pytest.mark.parametrize("seed", range(20))
def test_box_differences_cover(seed):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, size=(30, 2)).astype(float)
    pieces = low, low + rng.integers(0, 4, size=(30, 2))
    box_low = rng.integers(0, 6, size=2).astype(float)
    box = box_low, box_low + rng.integers(0, 5, size=2)
    parts = _box_difference(pieces, box)
    spots = rng.integers(0, 40, size=(400, 2)) / 4.0

    def inside(boxes, spot):
        return np.any(np.all((boxes[0] <= spot) & (spot <= boxes[1]), axis=1))

    for spot in spots:
        in_box = np.all((box[0] <= spot) & (spot <= box[1]))
        strictly = np.all((box[0] < spot) & (spot < box[1]))
        if inside(pieces, spot) and not in_box:
            assert inside(parts, spot)
        assert not (inside(parts, spot) and strictly)


def crossing_slabs(certificate, count):
    """Claim with thin boxes that cut space into ``count ** 2 / 4`` pieces."""
    claim = certificate.certainty
    axis = np.repeat([0, 1], count // 2)
    position = np.tile(np.linspace(-4.0, 4.0, count // 2), 2)
    low, high = np.full((count, 2), -9.0), np.full((count, 2), 9.0)
    low[np.arange(count), axis] = high[np.arange(count), axis] = position
    return replace(
        claim,
        low=np.concatenate([claim.low, low]),
        high=np.concatenate([claim.high, high]),
        cluster=np.concatenate([claim.cluster, np.zeros(count, dtype=np.int64)]),
    )


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    clump = rng.normal(size=(20, 2)) * 0.1
    problem = Problem.from_data(np.concatenate([clump, clump + 10.0]), 2)
    result = solve(problem, keep_proof=True, jobs=1)
    return problem, make_certificate(problem, result, result.certainty(0.01))


@timed(4.0)
def test_deadline_with_many_boxes(plane, seconds):
    problem, certificate = plane
    content = form.encode(replace(certificate, certainty=crossing_slabs(certificate, 900)))
    assert len(content) < 100_000
    with within(seconds):
        limits = Limits(deadline=time.monotonic() + 1.0)
        found = check_certificate(problem.points, content, limits=limits)
    assert found.reason is Reason.LIMIT


def test_pieces_limited(plane, monkeypatch):
    _, certificate = plane
    whole = np.full(2, -9.0), np.full(2, 9.0)
    claim = crossing_slabs(certificate, 40)
    assert len(_outside(whole, claim, Limits())[0]) >= 400
    with pytest.raises(form.Rejection, match="time allowed"):
        _outside(whole, claim, Limits(deadline=0.0))
    for name in ("MAX_PIECES", "MAX_PIECE_TESTS"):
        with monkeypatch.context() as patch:
            patch.setattr(f"certikmeans.certificate.check_certainty.{name}", 100)
            with pytest.raises(form.Rejection, match="too many pieces"):
                _outside(whole, claim, Limits())


def two_groups(edges=()):
    """Two groups far apart."""
    links = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Domain(np.array([[0.0], [10.0]]), np.ones(2), links, False, 1.0)


def claim_of(multipliers, sigma=1.0):
    return CertaintyClaim(
        0.1, sigma, np.asarray(multipliers), np.array([[-1.0], [9.0]]), np.array([[1.0], [11.0]]),
        np.array([0, 1]), np.ones(2, dtype=np.int64),
    )  # fmt: skip


def test_budget_is_rounded_up():
    rng = np.random.default_rng(0)
    for _ in range(50):
        multipliers, k = 10.0 ** rng.uniform(0, 3, size=9), int(rng.integers(1, 4))
        # Above the cost of all clusters by a little: what they may lose together.
        bound = float(multipliers.sum()) * float(1.0 + rng.uniform(0.0, 1e-6)) - k * 0.7
        domain = replace(two_groups(), required_bound=bound)
        level = _dual_level(domain, claim_of(multipliers, 0.7), k)
        exact = Fraction(bound) - sum(map(Fraction, multipliers)) + k * Fraction(0.7)
        assert Fraction(level.delta) >= exact
        assert Fraction(level.threshold) <= Fraction(0.7) - Fraction(level.delta)


def test_two_centers_in_the_boxes_of_a_cluster():
    level = _DualLevel(1.0, 0.5, 0.4)
    labels, claim = np.array([0, 1]), claim_of([1.0, 1.0])
    _check_counts(two_groups(), claim, level, np.array([[1.2, -1.0], [-1.0, 1.2]]), labels)
    with pytest.raises(Rejection, match="0 to 2 centres"):
        _check_counts(two_groups(), claim, level, np.full((2, 2), 2.0), labels)


@pytest.mark.parametrize("linked", [False, True])
def test_neighbors_of_a_group_would_have_to_leave(linked):
    """Group 0 loses 3 without cluster 0, or a neighbor there takes its place and loses 0.1."""
    domain = two_groups([(0, 1)] if linked else [])
    low, high = np.array([[3.0, -1.0], [-9.0, 3.0]]), np.array([[3.5, 0.0], [2.9, 3.5]])
    level, labels = _DualLevel(4.0, 0.5, 3.4), np.array([0, 1])
    given = (domain, level, low, high, labels, np.array([0, 1]), np.array([True, False]))
    if linked:
        with pytest.raises(Rejection, match="may be in cluster 1"):
            _check_fixed_points(*given)
    else:
        _check_fixed_points(*given)
