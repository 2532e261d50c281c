"""Row blocks, column ranges, exact sums, canonical labels."""

import math

import numpy as np
import pytest

from certikmeans import InputError, Problem
from certikmeans.problem import arrays
from certikmeans.problem.arrays import (
    BLOCK,
    MAX_SMALL_LABEL,
    canonical_labels,
    column_ranges,
    exact_sum,
    iter_row_blocks,
)


@pytest.mark.parametrize("shape", [(1, 1), (BLOCK + 3, 1), (70_001, 9), (5, BLOCK * 2)])
def test_blocks_cover_rows(shape):
    seen = np.zeros(shape[0], dtype=int)
    for rows in iter_row_blocks(np.broadcast_to(0.0, shape)):
        seen[rows] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("n_columns", [1, 3, 16, 17])
def test_column_ranges(n_columns):
    table = np.random.default_rng(0).normal(size=(50, n_columns))
    low, high = column_ranges(table)
    np.testing.assert_array_equal(low, table.min(axis=0))
    np.testing.assert_array_equal(high, table.max(axis=0))


@pytest.mark.parametrize("seed", range(40))
def test_canonical_labels_against_dict(seed):
    rng = np.random.default_rng(seed)
    scale = int(rng.choice([1, 5, 40, 10**9]))
    labels = rng.integers(-scale, scale, size=int(rng.integers(1, 30)))
    if seed % 4 == 0:
        labels = np.sort(np.abs(labels))
    names: dict[int, int] = {}
    expected = [names.setdefault(int(label), len(names)) for label in labels]
    assert canonical_labels(labels).tolist() == expected
    assert canonical_labels(np.array(expected)).tolist() == expected
    assert canonical_labels(labels).dtype == np.int64


def test_memmap_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(6, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Problem.from_data(mapped, 2).points, mapped)
    writable = np.load(tmp_path / "x.npy", mmap_mode="c")
    assert not np.shares_memory(Problem.from_data(writable, 2).points, writable)
    whole = np.load(tmp_path / "x.npy")
    assert not np.shares_memory(Problem.from_data(whole, 2).points, whole)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_first_invalid_entry(bad):
    points = np.zeros((5, 2))
    points[3, 1] = bad
    with pytest.raises(InputError, match="row 3, column 1"):
        Problem.from_data(points, 2)


@pytest.mark.parametrize("seed", range(6))
def test_exact_sum_of_blocks(seed, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 16)
    rng = np.random.default_rng(seed)
    values = rng.normal(size=333) * 10.0 ** rng.integers(-12, 12, size=333)
    exact = math.fsum(values.tolist())
    doubt = (42 * 2.0**-52) ** 2 * np.abs(values).sum()
    assert abs(exact_sum(values) - exact) <= 2.0**-52 * abs(exact) + doubt
    assert abs(exact_sum(np.concatenate([values, -values]))) <= 2.0 * doubt


# Names by first appearance, whatever the old ones are.


@pytest.mark.parametrize(
    "highest", [1, 3, MAX_SMALL_LABEL - 1, MAX_SMALL_LABEL, 5 * MAX_SMALL_LABEL]
)
@pytest.mark.parametrize("lowest", [0, 2, -4])
def test_canonical_labels(highest, lowest):
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 200):
        labels = rng.integers(lowest, max(highest, lowest) + 1, size=size)
        names: dict[int, int] = {}
        expected = [names.setdefault(label, len(names)) for label in labels.tolist()]
        assert canonical_labels(labels).tolist() == expected


def test_canonical_labels_late_label():
    labels = np.repeat(np.array([3, 5, 1]), [400_000, 1, 200_000])  # several blocks
    found = canonical_labels(labels)
    assert np.array_equal(found, np.repeat(np.arange(3), [400_000, 1, 200_000]))
