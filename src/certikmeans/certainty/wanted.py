"""What somebody asks certainty for, checked once, at the door."""

from __future__ import annotations

import math
from typing import Any

from certikmeans._numbers import plain_number
from certikmeans.errors import InputError


def checked_slack(slack: Any) -> float:
    """Return the slack as a number, or say what is wrong with it.

    >>> checked_slack(0.001)
    0.001
    """
    share = plain_number(slack)
    if not 0.0 <= share <= 1.0:
        raise InputError(
            f"slack: {slack!r} is not a share from 0 to 1",
            hint="0.001 speaks of all labellings within 0.1 % of the cost",
        )
    return share


def checked_seconds(time_limit: Any) -> float | None:
    """Return the time limit as a number; None: there is none."""
    if time_limit is None:
        return None
    seconds = plain_number(time_limit)
    if not 0.0 < seconds < math.inf:
        raise InputError(
            f"time limit: {time_limit!r} is not a positive number of seconds",
            hint="leave it out: then it may take as long as the proof",
        )
    return seconds
