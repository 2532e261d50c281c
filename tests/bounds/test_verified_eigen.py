"""Rigorous eigenvalue sums and Cholesky factors, also with inaccurate linear algebra."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certikmeans.bounds.verified_eigen import (
    cholesky_above,
    largest_eigenvalue_sum,
    verified_eigenvalues,
)
from tests.bounds.sdp_cases import inaccurate_eigensolver


def random_symmetric(rng, order):
    """Matrix of integers: eigenvalue sums have exact bounds from below."""
    half = rng.integers(-50, 51, size=(order, order))
    return (half + half.T).astype(float)


def exact_diagonal_sum(matrix, rank):
    """``<A, T>`` for the best diagonal 0-1 matrix T of the given rank, exactly."""
    diagonal = sorted((Fraction(value) for value in np.diagonal(matrix).tolist()), reverse=True)
    return sum((value for value in diagonal[:rank] if value > 0), Fraction(0))


@pytest.mark.parametrize("seed", range(30))
def test_eigenvalue_sum_is_upper_bound(seed):
    rng = np.random.default_rng(seed)
    order = int(rng.integers(1, 12))
    matrix = random_symmetric(rng, order)
    values = np.linalg.eigvalsh(matrix)[::-1]
    for rank in range(order + 1):
        bound = largest_eigenvalue_sum(matrix, 0.0, rank)
        expected = float(np.maximum(values[:rank], 0.0).sum())
        assert Fraction(bound) >= exact_diagonal_sum(matrix, rank)
        assert bound == pytest.approx(expected, rel=1e-10, abs=1e-9)
        assert largest_eigenvalue_sum(matrix, 1.0, rank) >= bound + 0.99 * math.sqrt(rank)


@pytest.mark.parametrize("seed", range(20))
def test_valid_with_inaccurate_eigensolver(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    order = int(rng.integers(2, 10))
    matrix = random_symmetric(rng, order)
    values = np.linalg.eigvalsh(matrix)
    monkeypatch.setattr(np.linalg, "eigh", inaccurate_eigensolver(rng))
    for rank in range(1, order + 1):
        largest = float(np.maximum(values[::-1][:rank], 0.0).sum())
        smallest = float(np.maximum(-values[:rank], 0.0).sum())
        assert largest_eigenvalue_sum(matrix, 0.0, rank) >= largest * (1.0 - 1e-12)
        eigen = verified_eigenvalues(matrix)
        margin = math.sqrt(rank) * eigen.residual
        assert eigen.positive_sum(rank, sign=-1.0) + margin >= smallest * (1.0 - 1e-12)


def test_diagonal_matrix_needs_no_eigensolver(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigh", None)
    bound = largest_eigenvalue_sum(np.diag([3.0, -1.0, 2.0]), 0.0, 2)
    assert 5.0 <= bound <= 5.0 * (1.0 + 1e-12)


def test_not_finite():
    assert largest_eigenvalue_sum(np.full((2, 2), np.nan), 0.0, 1) == math.inf
    assert largest_eigenvalue_sum(np.eye(2), math.inf, 1) == math.inf
    assert cholesky_above(np.full((2, 2), np.inf), 0.0) is None
    assert cholesky_above(np.array([[1.0, 9.0], [9.0, 1.0]]), 0.0) is None


@pytest.mark.parametrize("seed", range(20))
def test_cholesky_factor_is_above(seed):
    rng = np.random.default_rng(seed)
    order, rank = int(rng.integers(1, 12)), int(rng.integers(1, 6))
    columns = rng.normal(size=(rank, order))
    columns /= np.sqrt((columns**2).sum(axis=0))
    matrix = columns.T @ columns  # singular if rank < order
    for error in (0.0, 1e-9):
        root = cholesky_above(matrix, error)
        assert root is not None
        assert np.array_equal(root, np.triu(root))
        difference = root.T @ root - matrix
        assert np.linalg.eigvalsh(difference)[0] >= error - 1e-14
        assert np.abs(difference).max() <= 1e-6
