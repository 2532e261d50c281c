"""Units of rounding, and how to round a result to the safe side. Plain numbers, no arrays.

Every module that proves something derives its own margins, in its docstring, from these units.
The checker of certificates has its own: it shares no code with what it checks.
"""

from __future__ import annotations

EPS = 2.0**-52  # distance from 1 to the next float64: twice the unit roundoff
UNIT = 2.0**-53  # the largest relative error of one operation
# Terms below the smallest normal number may vanish; `Problem` keeps data far above this.
TINY = 1e-290
# More than all squares that underflow can add up to: `Problem` limits sizes and weights.
UNDERFLOW = 1e-280


def round_up(value: float, operations: int = 4) -> float:
    """Raise a non-negative result of ``operations`` roundings above its exact value."""
    return value * (1.0 + (operations + 2) * 2.0 * UNIT) + TINY


def round_down(value: float, operations: int = 4) -> float:
    """Lower a non-negative result of ``operations`` roundings below its exact value.

    >>> round_down(1.0) < 1.0 < round_up(1.0)
    True
    """
    return max(0.0, value * (1.0 - (operations + 2) * 2.0 * UNIT) - TINY)
