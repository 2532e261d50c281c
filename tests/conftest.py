"""Long sweeps: the fast suite takes the first seeds of each test, the slow one the others."""

from __future__ import annotations

import pytest

FAST_SEEDS = 50


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items):
    for item in items:
        seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")
        if isinstance(seed, int) and seed >= FAST_SEEDS:
            item.add_marker(pytest.mark.slow)
