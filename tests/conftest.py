"""Seeds of the suites: the fast one takes the first seeds of each test, the slow one the others."""

from __future__ import annotations

import os

import pytest

SMOKE_SEEDS = 2  # make quick
# make test; tools.mutants runs more of them
FAST_SEEDS = int(os.environ.get("CERTIKMEANS_FAST_SEEDS", "5"))


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")
        if isinstance(seed, int) and seed >= FAST_SEEDS:
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") is None and not (
            isinstance(seed, int) and seed >= SMOKE_SEEDS
        ):
            item.add_marker(pytest.mark.smoke)
