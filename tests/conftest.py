"""Seeds of the suites: the fast one takes the first seeds of each test, the slow one the others."""

from __future__ import annotations

import os

import pytest

SMOKE_SEEDS = 2  # make quick
# make test; tools.mutants runs more of them
FAST_SEEDS = int(os.environ.get("CERTIKMEANS_FAST_SEEDS", "3"))
RANGES = ("block", "first", "start")  # parameters of tests that loop over a range of seeds


def _seed(item):
    """Number of the seed, or of the range of seeds times `SMOKE_SEEDS`; None without seeds."""
    params = getattr(item, "callspec", None)
    if params is None:
        return None
    if isinstance(params.params.get("seed"), int):
        return params.params["seed"]
    return next(
        (SMOKE_SEEDS * params.indices[name] for name in RANGES if name in params.params), None
    )


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    for item in items:
        seed = _seed(item)
        if seed is not None and seed >= FAST_SEEDS:
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") is None and (seed is None or seed < SMOKE_SEEDS):
            item.add_marker(pytest.mark.smoke)
