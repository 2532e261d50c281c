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
class SolverClock:
    """Goes with the clock on the wall, but not while somebody has stopped it.

    Examples
    --------
    >>> clock = SolverClock()
    >>> with clock.paused():
    ...     before = clock.now()
    ...     after = clock.now()
    >>> before == after
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pause_count = 0
        # Replaced as a whole: readers take no lock. Seconds lost so far; since when it stands.
        self._state: tuple[float, float | None] = (0.0, None)

    def now(self) -> float:
        """Seconds from some moment on, without those in which the clock stood."""
        excluded, since = self._state
        return (time.monotonic() if since is None else since) - excluded

    def excluded(self) -> float:
        """Seconds in which the clock stood, in all."""
        excluded, since = self._state
        return excluded if since is None else excluded + time.monotonic() - since

    def pause(self) -> None:
        """Stand still until `resume` was called as often."""
        with self._lock:
            self._pause_count += 1
            if self._pause_count == 1:
                self._state = (self._state[0], time.monotonic())

    def resume(self) -> None:
        """Take back one `pause`."""
        with self._lock:
            self._pause_count -= 1
            if self._pause_count == 0:
                self._state = (self.excluded(), None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let what is done inside take no time."""
        self.pause()
        try:
            yield
        finally:
            self.resume()


CLOCK = SolverClock()
