"""Median cells: a partition, small enough, and the halves really are halves."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.kernels.kd_cells import (
    _split_at_rank,
    assign_cells,
    median_cells,
    median_splits,
)


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
def test_cells_partition_rows(seed):
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


@pytest.mark.parametrize("seed", range(10))
def test_cells_of_sample_balanced(seed):
    rng = np.random.default_rng(seed)
    n, d = 4000, int(rng.integers(1, 4))
    points = rng.normal(size=(n, d))
    rows = np.sort(rng.choice(n, size=3000, replace=False))
    cells = np.full(n, -1, dtype=np.int64)
    splits = median_splits(points, rows[::2].copy(), 60)
    count = assign_cells(points, rows, splits, 5, cells)
    assert (cells[rows] >= 5).all()
    assert (cells[rows] < 5 + count).all()
    assert (np.delete(cells, rows) == -1).all()
    sizes = np.bincount(cells[rows] - 5, minlength=count)
    assert sizes.max() <= 4 * 60
    for cell in np.unique(cells[rows]):
        inside = points[cells == cell]
        assert (np.ptp(inside, axis=0) <= np.ptp(points, axis=0)).all()


def test_coincident_points():
    points = np.zeros((100, 2))
    splits = median_splits(points, np.arange(100), 10)
    cells = np.empty(100, dtype=np.int64)
    assert assign_cells(points, np.arange(100), splits, 0, cells) == 1
    assert (cells == 0).all()


def test_equal_points_share_cell():
    points = np.repeat([[0.0], [1.0]], [900, 100], axis=0)
    splits = median_splits(points, np.arange(1000), 50)
    cells = np.empty(1000, dtype=np.int64)
    assign_cells(points, np.arange(1000), splits, 0, cells)
    assert len(np.unique(cells[:900])) == len(np.unique(cells[900:])) == 1
