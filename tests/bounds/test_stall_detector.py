"""Stall detection by rounds and by doublings of the work."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans.bounds.base import StallDetector


def first_stall(detector, distances, works):
    """Index of the first stall, or None."""
    for i, (distance, work) in enumerate(zip(distances, works, strict=True)):
        if detector.stalled(distance, work):
            return i
    return None


def test_window_restarts_at_progress():
    detector = StallDetector(0.9, window=3)
    distances = [10.0, 9.5, 9.5, 8.0, 8.0, 8.0, 8.0, 8.0]
    assert [detector.stalled(distance) for distance in distances] == [False] * 7 + [True]


def test_slow_progress_is_a_stall():
    detector = StallDetector(0.95, window=80)
    distances = 0.9999 ** np.arange(1_000)
    stalls = [detector.stalled(float(distance)) for distance in distances]
    assert stalls.index(True) == 81


def test_no_target_is_a_stall():
    detector = StallDetector(0.95, window=2)
    assert [detector.stalled(np.inf) for _ in range(3)] == [False, False, True]


def test_doubling_checks():
    works = np.arange(10, 500, 10)
    halving = 100.0 / works  # halves at every doubling of the work
    assert first_stall(StallDetector(0.9, 40, doubling=True), halving, works) is None
    constant = np.ones(len(works))
    stalled = first_stall(StallDetector(0.9, 40, doubling=True), constant, works)
    assert works[stalled] == 80  # the first check at 40 has no reference
    never = StallDetector(0.9, np.inf, doubling=True)
    assert first_stall(never, constant, works) is None


def test_invalid_ratio():
    with pytest.raises(ValueError, match="ratio"):
        StallDetector(1.5, 10)
