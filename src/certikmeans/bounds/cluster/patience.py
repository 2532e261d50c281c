"""When a bundle is as far as it gets."""

from __future__ import annotations

from typing import final

import numpy as np

# A bundle that has not come closer by a twentieth for so many rounds is as far as it gets.
ROUNDS = 80
CLOSER = 0.95


@final
class Patience:
    """Notices that a distance no longer shrinks. Counts rounds, not seconds."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self._rounds = rounds
        self._shortest = np.inf
        self._idle = 0

    def is_over(self, distance: float) -> bool:
        """Whether it has been long since the distance shrank."""
        self._idle += 1
        if distance < CLOSER * self._shortest:
            self._shortest, self._idle = distance, 0
        return self._idle > self._rounds
