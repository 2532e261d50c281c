"""The helpers that every kernel shares, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.kernels.distance import squared_distance, squared_distance_to
from certikmeans.kernels.smallest import two_least


@pytest.mark.parametrize("d", [1, 2, 5])
def test_squared_distances_are_exact_on_whole_numbers(d):
    rng = np.random.default_rng(d)
    points = rng.integers(-9, 10, size=(6, d)).astype(float)
    others = rng.integers(-9, 10, size=(4, d)).astype(float)
    for i in range(6):
        for k in range(4):
            expected = np.sum((points[i] - others[k]) ** 2)
            assert squared_distance(points, i, others, k) == expected
            assert squared_distance_to(points, i, others[k]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 1.0, 2.0], (1.0, 2.0, 1)),
        ([1.0, 1.0], (1.0, 1.0, 0)),  # on a tie the first
        ([np.inf, 4.0], (4.0, np.inf, 1)),
        ([np.inf, np.inf], (np.inf, np.inf, -1)),
    ],
)
def test_two_least(values, expected):
    assert two_least(np.array(values)) == expected
