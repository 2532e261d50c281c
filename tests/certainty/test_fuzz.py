"""Random instances through every way to an answer: nothing that is said is false."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.certainty.fuzz import METHODS, fuzz_instance


def compared(seeds: range) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in seeds:
        total += fuzz_instance(seed)
    return total


def test_nothing_false_is_said():
    total = compared(range(70))
    assert all(total[f"way {way}"] >= 10 for way in METHODS)
    assert total["labellings"] >= 500
    assert total["something said"] >= 25
    assert total["something in doubt"] >= 10
    assert total["points called certain"] >= 100
    assert total["certificates accepted"] >= 8
    assert total["changed claims refused"] >= 10
    for method in ("regions of centres", "spectral overlap", "semidefinite overlap"):
        assert total[f"by {method}"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 5_000, 500))
def test_nothing_false_is_said_of_many(first):
    total = compared(range(first, first + 500))
    assert total["something said"] >= 150
    assert total["certificates accepted"] >= 40
