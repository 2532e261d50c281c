"""The two least values of a row. Compiled."""

import numpy as np

from certikmeans.compiling.dispatch import njit


@njit(cache=True, nogil=True)
def two_least(
    values,  # IN  (n,) float64
):
    """Least value, second least value, and where the least is first; -1 if all are inf."""
    best, second, where = np.inf, np.inf, -1
    for k in range(values.size):
        if values[k] < best:
            best, second, where = values[k], best, k
        elif values[k] < second:
            second = values[k]
    return best, second, where
