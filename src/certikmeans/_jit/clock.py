"""Clock of a run, paused while kernels are compiled.

Compilation happens once per installation. It counts neither towards time limits nor towards
measured times, so all of them read this clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final


@final
class SolverClock:
    """Monotonic clock that can be paused, by several callers at a time.

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
        # Seconds excluded so far, and the start of the current pause. Replaced as a whole, so that
        # readers need no lock.
        self._state: tuple[float, float | None] = (0.0, None)

    def now(self) -> float:
        """Seconds since an arbitrary moment, without pauses."""
        excluded, since = self._state
        return (time.monotonic() if since is None else since) - excluded

    def excluded(self) -> float:
        """Total length of all pauses, in seconds."""
        excluded, since = self._state
        return excluded if since is None else excluded + time.monotonic() - since

    def pause(self) -> None:
        """Pause until `resume` has been called as often."""
        with self._lock:
            self._pause_count += 1
            if self._pause_count == 1:
                self._state = (self._state[0], time.monotonic())

    def resume(self) -> None:
        """Undo one `pause`."""
        with self._lock:
            self._pause_count -= 1
            if self._pause_count == 0:
                self._state = (self.excluded(), None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock inside the block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()


CLOCK = SolverClock()
