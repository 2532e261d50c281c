"""When to stop: a time limit and a request from outside, asked for by every long loop."""

from __future__ import annotations

import threading
from enum import StrEnum

from certikmeans._jit.clock import CLOCK


class StopCause(StrEnum):
    """What asked a running computation to end early."""

    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"


class StopSignal:
    """A deadline that can also be pulled by hand. Safe to share between threads.

    Long loops ask ``reason()`` often and wind up with the best they have when it is not None.
    Compiled kernels do a bounded amount of work per call, so that the loop around them can ask.
    Time in which kernels are compiled does not count.

    Parameters
    ----------
    time_limit_seconds : float, optional
        Counted from construction. None means no limit.

    Examples
    --------
    >>> stop = StopSignal()
    >>> stop.reason() is None
    True
    >>> stop.interrupt()
    >>> stop.reason()
    <StopCause.INTERRUPTED: 'interrupted'>
    """

    def __init__(self, time_limit_seconds: float | None = None) -> None:
        self._started = CLOCK.now()
        self._deadline = None if time_limit_seconds is None else self._started + time_limit_seconds
        self._interrupted = threading.Event()

    def interrupt(self) -> None:
        """Ask for an early end; takes effect at the next check."""
        self._interrupted.set()

    def reason(self) -> StopCause | None:
        """Why to stop now, or None to go on."""
        if self._interrupted.is_set():
            return StopCause.INTERRUPTED
        if self._deadline is not None and CLOCK.now() >= self._deadline:
            return StopCause.TIME_LIMIT
        return None

    @property
    def elapsed(self) -> float:
        """Seconds since construction."""
        return CLOCK.now() - self._started

    @property
    def remaining(self) -> float:
        """Seconds left before the deadline: infinite without one, never negative."""
        if self._deadline is None:
            return float("inf")
        return max(0.0, self._deadline - CLOCK.now())

    def __reduce__(self) -> tuple[type[StopSignal], tuple[float | None]]:
        """Sent to another process, a signal keeps its deadline; it can no longer be pulled."""
        return StopSignal, (None if self._deadline is None else self.remaining,)

    def with_time_limit(self, seconds: float) -> StopSignal:
        """Return a shorter leash: ends after ``seconds``, or whenever this one does."""
        child = StopSignal(min(seconds, self.remaining))
        child._interrupted = self._interrupted
        return child
