"""Settings are checked where they are made."""

from __future__ import annotations

import pytest

from certikmeans.errors import InputError
from certikmeans.options import AVAILABLE_BOUNDS, BOUNDS, Options

BAD = [
    ({"gap": -0.1}, "gap"),
    ({"gap": 1.0}, "gap"),
    ({"gap": float("nan")}, "gap"),
    ({"gap": "tight"}, "gap"),
    ({"time_limit_seconds": 0}, "time limit"),
    ({"time_limit_seconds": -3}, "time limit"),
    ({"time_limit_seconds": float("inf")}, "time limit"),
    ({"time_limit_seconds": "long"}, "time limit"),
    ({"bound": "best"}, "bound"),
    ({"branching": "points"}, "branching"),
    ({"jobs": 0}, "jobs"),
    ({"jobs": 1.5}, "jobs"),
    ({"seed": -1}, "seed"),
    ({"seed": None}, "seed"),
]


@pytest.mark.parametrize(("changes", "name"), BAD)
def test_out_of_range(changes, name):
    with pytest.raises(InputError) as caught:
        Options(**changes)
    assert caught.value.message.startswith(f"{name}:")
    assert caught.value.hint


@pytest.mark.parametrize("bound", sorted(set(BOUNDS) - set(AVAILABLE_BOUNDS)))
def test_a_bound_that_is_not_built_yet_says_so(bound):
    with pytest.raises(InputError, match="not part of this version"):
        Options(bound=bound)


def test_numbers_of_other_types_are_taken():
    import numpy as np

    options = Options(gap=np.float32(0.5), time_limit_seconds=np.int64(3), jobs=np.int32(2))
    assert (options.gap, options.time_limit_seconds, options.jobs) == (0.5, 3.0, 2)
    assert Options().n_threads >= 1
