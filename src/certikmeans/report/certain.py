"""Certainty in words."""

from __future__ import annotations

from certikmeans._numbers import count
from certikmeans.certainty import Certainty

MOST_LISTED = 8


def certainty_lines(sure: Certainty) -> list[str]:
    """What is proven of every labelling that is good enough, a fact per line.

    >>> import numpy as np
    >>> nothing = Certainty(
    ...     0.001, np.zeros(2, bool), np.ones((2, 2), bool), np.zeros((2, 1, 2)), 0.0, 2,
    ...     ((0, 1, 2),), ((0, 1),), np.zeros((2, 2)), "none", "time was up",
    ... )
    >>> print(*certainty_lines(nothing), sep="\\n")
    of every labelling within 0.1 % of the cost: nothing is proven
      why: time was up
    """
    head = f"of every labelling within {100.0 * sure.slack:g} % of the cost"
    n_points = len(sure.certain)
    if sure.agreement == 0.0 and not sure.certain.any():
        return [f"{head}: nothing is proven", f"  why: {sure.reason}"]
    lines = [
        f"{head}:",
        f"  grouped as here      at least {n_points - sure.most_elsewhere} of "
        f"{count(n_points, 'point')}",
        f"  certain, each alone  {count(int(sure.certain.sum()), 'point')}",
    ]
    for first, second, shared in sure.confusable[:MOST_LISTED]:
        lines.append(f"  clusters {first}, {second}  {count(shared, 'point')} can be in either")
    if len(sure.confusable) > MOST_LISTED:
        lines.append(f"  and {count(len(sure.confusable) - MOST_LISTED, 'more pair')} of clusters")
    lines.append(f"  why no more: {sure.reason}")
    return lines
