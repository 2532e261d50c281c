"""The only place where a lower bound is compared with an incumbent."""

from __future__ import annotations

import math

from certikmeans.errors import BoundError

# Rounding keeps a bound from meeting a cost; parts closer than this are as good as proven.
LEAST_GAP = 1e-9


def relative_gap(cost: float, lower_bound: float) -> float:
    """Return ``(cost - lower_bound) / cost``: 0 when they meet, infinite without a labelling.

    >>> relative_gap(10.0, 9.0)
    0.1
    >>> relative_gap(0.0, 0.0)
    0.0
    """
    if math.isinf(cost):
        return math.inf
    if lower_bound >= cost:
        return 0.0
    return (cost - lower_bound) / cost


def gap_reached(cost: float, lower_bound: float, gap: float) -> bool:
    """Whether the labelling is proven to be within ``gap`` of the optimum."""
    return relative_gap(cost, lower_bound) <= gap


def target_bound(cost: float, gap: float) -> float:
    """Least bound that proves ``cost`` to be within ``gap``, or one a rounding error above it.

    >>> gap_reached(10.0, target_bound(10.0, 0.1), 0.1)
    True
    """
    target = cost * (1.0 - gap)
    while not gap_reached(cost, target, gap):
        target = math.nextafter(target, math.inf)
    return target


def check_bound(cost: float, lower_bound: float, source: str) -> None:
    """Raise if a bound lies above the cost of a known labelling.

    ``cost`` is rounded up and ``lower_bound`` rounded down, so not even rounding excuses it.

    >>> check_bound(1.0, 2.0, "sample")
    Traceback (most recent call last):
    ...
    certikmeans.errors.BoundError: the sample bound claims 2.0 but a labelling costs 1.0
    hint: this is a bug in certikmeans: please report it with the data, the pairs and the seed
    """
    if not lower_bound <= cost:  # written so that NaN is no bound
        raise BoundError(
            f"the {source} bound claims {lower_bound!r} but a labelling costs {cost!r}",
            hint="this is a bug in certikmeans: please report it with the data, "
            "the pairs and the seed",
        )
