"""Seconds of work: a clock that stands still while kernels are compiled.

A first run on a machine compiles for a while. That is not the user's time limit, nor a property of
the method that is being measured; whoever looks at a clock, looks at this one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final


@final
class WorkClock:
    """Goes with the clock on the wall, but not while somebody has stopped it.

    Examples
    --------
    >>> clock = WorkClock()
    >>> with clock.stopped():
    ...     before = clock.now()
    ...     after = clock.now()
    >>> before == after
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped_by = 0
        # Replaced as a whole: readers take no lock. Seconds lost so far; since when it stands.
        self._state: tuple[float, float | None] = (0.0, None)

    def now(self) -> float:
        """Seconds from some moment on, without those in which the clock stood."""
        lost, since = self._state
        return (time.monotonic() if since is None else since) - lost

    def lost(self) -> float:
        """Seconds in which the clock stood, in all."""
        lost, since = self._state
        return lost if since is None else lost + time.monotonic() - since

    def stop(self) -> None:
        """Stand still until `go` was called as often."""
        with self._lock:
            self._stopped_by += 1
            if self._stopped_by == 1:
                self._state = (self._state[0], time.monotonic())

    def go(self) -> None:
        """Take back one `stop`."""
        with self._lock:
            self._stopped_by -= 1
            if self._stopped_by == 0:
                self._state = (self.lost(), None)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let what is done inside take no time."""
        self.stop()
        try:
            yield
        finally:
            self.go()


CLOCK = WorkClock()
