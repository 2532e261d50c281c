"""Certainty claims: derived again by the verifier, rejected where they are not true."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from certikmeans import InputError, Problem, check_certificate, solve
from certikmeans.certificate import Reason
from certikmeans.certificate import format as form
from certikmeans.certificate.check_pricing import Limits
from certikmeans.certificate.format import CertaintyClaim
from certikmeans.certificate.write import certificate_bytes, make_certificate
from tests.certainty.enumeration import near_optimal_labellings
from tests.certainty.test_compute import clumps

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
