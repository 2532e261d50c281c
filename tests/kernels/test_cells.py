"""Median cells: a partition, small enough, and the halves really are halves."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.kernels.cells import _split_at_rank, median_cells


@pytest.mark.parametrize("seed", range(50))
def test_split_at_rank_against_sorting(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    values = rng.integers(0, 8, size=n).astype(float) if seed % 2 else rng.normal(size=n)
    rows = rng.permutation(n)
    rank = int(rng.integers(0, n))
    _split_at_rank(values, rows, 0, n, rank)
    assert np.array_equal(np.sort(rows), np.arange(n))
    assert values[rows[:rank]].max(initial=-np.inf) <= values[rows[rank:]].min()
    assert values[rows[rank]] == np.sort(values)[rank]


@pytest.mark.parametrize("seed", range(20))
def test_cells_partition_the_rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    points = rng.normal(size=(n, 3))
    if seed % 4 == 0:
        points = np.round(points)
    rows = np.flatnonzero(rng.random(n) < 0.7)
    cells = np.full(n, -1)
    most = int(rng.integers(1, 20))
    count = median_cells(points, rows.copy(), most, 5, cells)
    inside = np.zeros(n, dtype=bool)
    inside[rows] = True
    assert (cells[~inside] == -1).all()
    if len(rows):
        assert np.array_equal(np.unique(cells[rows]), np.arange(5, 5 + count))
        for cell in range(5, 5 + count):
            members = points[cells == cell]
            assert len(members) <= most or (members == members[0]).all()
