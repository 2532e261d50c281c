"""Random instances with every method: no claim is false."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.certainty.fuzz import METHODS, fuzz_instance


def compared(seeds: range) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in seeds:
        total += fuzz_instance(seed)
    return total


@pytest.mark.slow
def test_fuzz():
    total = compared(range(70))
    assert all(total[f"method {name}"] >= 10 for name in METHODS)
    assert total["labellings"] >= 500
    assert total["with claims"] >= 25
    assert total["with uncertain points"] >= 10
    assert total["certain points"] >= 100
    assert total["certificates accepted"] >= 8
    assert total["changed claims rejected"] >= 10
    for method in ("regions of centres", "spectral overlap", "semidefinite overlap"):
        assert total[f"by {method}"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_600, 200))
def test_fuzz_many(first):
    total = compared(range(first, first + 200))
    assert total["with claims"] >= 50
    assert total["certificates accepted"] >= 12
