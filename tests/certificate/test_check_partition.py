"""Verifier of the partition bound: accepts what the solver proves, and nothing untrue."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.partition import partition_bound
from certikmeans.bounds.partition.bound import encode_parts
from certikmeans.certificate.check_sdp import (
    MAX_MATRIX_GROUPS,
    Reason,
    Rejection,
    partition_lower_bound,
)
from tests.bounds.partition_cases import random_instance, some_labels
from tests.bounds.sdp_cases import inaccurate_eigensolver

WORK = 1e9


@cache
def proven(seed, size=4):
    """A problem, its minimum cost and evidence of a bound."""
    for attempt in range(100):
        _, done, least = random_instance(seed + 1000 * attempt, least_groups=5, largest=6)
        labels = some_labels(done, np.random.default_rng(seed))
        found = partition_bound(done.reduced, labels, np.inf, BoundContext(), size=size)
        if len(found.parts) > 1:
            return done.reduced, least, found
    raise AssertionError("no problem was drawn")


def checked(reduced, row, weights=None, work=WORK):
    return partition_lower_bound(
        reduced.points, reduced.weights if weights is None else weights,
        reduced.graph.edges(), reduced.n_clusters, row, work,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_same_value_as_solver(seed):
    reduced, least, found = proven(seed)
    value = checked(reduced, encode_parts(found.parts))
    assert Fraction(value) <= least
    assert value == pytest.approx(found.value, rel=1e-8, abs=1e-12 * float(least))


@pytest.mark.parametrize("seed", range(30))
def test_any_row_is_valid(seed):
    reduced, least, found = proven(seed)
    rng = np.random.default_rng(seed)
    row = encode_parts(found.parts)
    held = 0
    for _ in range(40):
        bad = row.copy()
        for position in rng.integers(len(row), size=3):
            bad[position] = rng.choice(
                [0.0, -1.0, 1.0, 2.0, 1e3, bad[position] * 1.5, bad[position] + 1.0]
            )
        try:
            value = checked(reduced, bad)
        except Rejection:
            pass
        else:
            held += 1
            assert Fraction(value) <= least
    assert held


def test_permuted_groups():
    reduced, _, found = proven(3)
    n = reduced.n_groups
    numbers = np.random.default_rng(0).permutation(n)
    points, weights = np.empty_like(reduced.points), np.empty(n)
    points[numbers], weights[numbers] = reduced.points, reduced.weights
    edges = np.sort(numbers[reduced.graph.edges()], axis=1)
    row = encode_parts(found.parts, numbers)
    value = partition_lower_bound(points, weights, edges, reduced.n_clusters, row, WORK)
    assert value == pytest.approx(checked(reduced, encode_parts(found.parts)), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_excess_weight(seed):
    reduced, least, found = proven(seed)
    row = encode_parts(found.parts)
    twice = np.concatenate([[2.0 * len(found.parts)], row[1:], row[1:]])  # every part twice
    value = checked(reduced, twice)
    assert Fraction(value) <= least
    assert value == pytest.approx(checked(reduced, row), rel=1e-9)
    less = np.nextafter(reduced.weights, 0.0)  # the weights of the verifier may be rounded down
    assert checked(reduced, row, less) == pytest.approx(value, rel=1e-9)
    assert Fraction(checked(reduced, row, 0.5 * reduced.weights)) <= least / 2


@pytest.mark.parametrize("seed", range(10))
def test_inaccurate_eigensolver(seed, monkeypatch):
    reduced, least, found = proven(seed)
    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(np.random.default_rng(seed)))
    for _ in range(5):
        assert Fraction(checked(reduced, encode_parts(found.parts))) <= least


def test_invalid_rows():
    reduced, _, found = proven(1)
    row = encode_parts(found.parts)
    m = len(found.parts[0].rows)

    def rejection(position, value):
        bad = row.copy()
        bad[position] = value
        with pytest.raises(Rejection) as caught:
            checked(reduced, bad)
        return caught.value.reason

    n_parts = len(found.parts)
    for value in (0.0, -1.0, 0.5, n_parts + 1.0, n_parts - 1.0, 1e300, np.nan, np.inf):
        assert rejection(0, value) is Reason.BOUND
    for position in (1, 2):
        for value in (-1.0, 0.5, 1e18, np.nan, np.inf):
            assert rejection(position, value) is Reason.BOUND
    for value in (-1.0, 0.5, float(reduced.n_groups), np.nan, np.inf, row[4]):
        assert rejection(3, value) is Reason.BOUND
    for value in (0.0, -1.0, 1e-300, np.nan, np.inf):
        assert rejection(3 + m, value) is Reason.BOUND
    for short in (row[:-1], row[:3], row[:1], row[:0], np.append(row, 0.0)):
        with pytest.raises(Rejection) as caught:
            checked(reduced, short)
        assert caught.value.reason is Reason.BOUND


def test_work_limit():
    reduced, _, found = proven(1)
    row = encode_parts(found.parts)
    with pytest.raises(Rejection) as caught:
        checked(reduced, row, work=sum(len(p.rows) ** 3 for p in found.parts) - 1.0)
    assert caught.value.reason is Reason.LIMIT
    large = np.zeros(10 * MAX_MATRIX_GROUPS)
    large[:2] = 1.0, MAX_MATRIX_GROUPS + 1.0
    with pytest.raises(Rejection) as caught:
        checked(reduced, large)
    assert caught.value.reason is Reason.LIMIT


def test_many_small_parts():
    reduced, _, _ = proven(1)
    many = 10_000
    row = np.concatenate([[many], np.tile([1.0, 0.0, 0.0, 1e-9, 0.0], many)])
    with pytest.raises(Rejection) as caught:
        checked(reduced, row)
    assert caught.value.reason is Reason.BOUND


def test_deadline():
    reduced, _, found = proven(1)
    with pytest.raises(Rejection) as caught:
        partition_lower_bound(
            reduced.points, reduced.weights, reduced.graph.edges(), reduced.n_clusters,
            encode_parts(found.parts), WORK, 0.0,
        )  # fmt: skip
    assert caught.value.reason is Reason.LIMIT
