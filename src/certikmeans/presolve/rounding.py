"""Rounding to the safe side.

``UNIT`` is the largest relative error of one operation; a sum or product of ``m`` of them errs by
at most ``(m + 2) UNIT`` in relative terms for any order of summation (m UNIT << 1), the 2 covering
the higher-order part.
"""

from __future__ import annotations

import numpy as np

UNIT = float(np.finfo(np.float64).eps) / 2.0
# Terms below the smallest normal number may vanish; Problem keeps data far above this.
TINY = 1e-290


def round_up(value: float, operations: int = 4) -> float:
    """Raise a non-negative result of ``operations`` roundings above its exact value."""
    return value * (1.0 + (operations + 2) * 2.0 * UNIT) + TINY


def round_down(value: float, operations: int = 4) -> float:
    """Lower a non-negative result of ``operations`` roundings below its exact value."""
    return max(0.0, value * (1.0 - (operations + 2) * 2.0 * UNIT) - TINY)
