"""Centres of two labellings paired with each other."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import Centers

# Up to here all orders are tried: sooner done than the library for more is loaded.
FEW = 6


def nearest_partners(first: Centers, second: Centers) -> NDArray[np.int64]:
    """For every centre of the first, one of the second: squared distances add up to the least.

    >>> nearest_partners(np.array([[0.0], [5.0], [9.0]]), np.array([[8.0], [1.0], [4.0]]))
    array([1, 2, 0])
    """
    away = first[:, None, :] - second[None, :, :]
    costs = np.einsum("ijk,ijk->ij", away, away)
    if len(costs) <= FEW:
        orders = _orders(len(costs))
        totals = costs[np.arange(len(costs)), orders].sum(axis=1)
        return np.asarray(orders[int(np.argmin(totals))])
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(costs)[1], dtype=np.int64)


@cache
def _orders(n: int) -> NDArray[np.int64]:
    found = np.array(list(permutations(range(n))), dtype=np.int64)
    found.flags.writeable = False
    return found
