"""Stall detection for iterative bounds, in units of work instead of seconds."""

from __future__ import annotations

import math
from typing import final


@final
class StallDetector:
    """Detects that the distance to a target no longer shrinks.

    Progress means that the distance falls below ``ratio`` times a reference value. There are two
    rules for when progress is due:

    * within ``window`` units of work of the last progress, for steps of similar cost, such as
      the rounds of a bundle (default);
    * at ``window`` units of work and at every doubling since, for searches whose total cost is
      unknown, such as a search over boxes (``doubling=True``).

    Runs that count work instead of time are repeatable.

    Examples
    --------
    >>> detector = StallDetector(0.5, window=2)
    >>> [detector.stalled(distance) for distance in [8, 3, 2, 2, 2]]
    [False, False, False, False, True]
    """

    def __init__(self, ratio: float, window: float, *, doubling: bool = False) -> None:
        if not 0.0 < ratio <= 1.0:
            raise ValueError(f"ratio is {ratio}, has to be in (0, 1]")
        self._ratio = ratio
        self._window = window
        self._doubling = doubling
        self._work = 0.0
        self._due = window
        self._reference = math.inf

    def stalled(self, distance: float, work: float | None = None) -> bool:
        """Whether progress is overdue at this distance.

        ``work`` is the total so far; by default the number of calls.
        """
        self._work = self._work + 1.0 if work is None else work
        if self._doubling:
            if self._work < self._due:
                return False
            failed = distance > self._ratio * self._reference
            self._reference, self._due = distance, 2.0 * self._work
            return failed
        if distance < self._ratio * self._reference:
            self._reference, self._due = distance, self._work + self._window
        return self._work > self._due
