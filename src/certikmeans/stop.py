"""Stopping criteria: a time limit, a work limit, and an interrupt from another thread."""

from __future__ import annotations

import math
import threading
from enum import StrEnum

from certikmeans._jit.clock import CLOCK


class StopCause(StrEnum):
    """Reason why a running computation has to end."""

    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    INTERRUPTED = "interrupted"


class StopSignal:
    """Deadline, work limit and interrupt flag in one object, safe to share between threads.

    Long loops call ``reason()`` often and return the best they have when it is not None.
    Compiled kernels do a bounded amount of work per call, so that the loop around them can check.
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
    >>> limited = stop.with_work_limit(10.0)
    >>> limited.add_work(10.0)
    >>> limited.reason(), stop.reason(), stop.work
    (<StopCause.WORK_LIMIT: 'work_limit'>, None, 10.0)
    >>> stop.interrupt()
    >>> stop.reason()
    <StopCause.INTERRUPTED: 'interrupted'>
    """

    def __init__(self, time_limit_seconds: float | None = None) -> None:
        self._started = CLOCK.now()
        self._deadline = None if time_limit_seconds is None else self._started + time_limit_seconds
        self._interrupted = threading.Event()
        self._parent: StopSignal | None = None
        self._work = 0.0
        self._work_limit = math.inf

    def interrupt(self) -> None:
        """Request an early end; takes effect at the next check."""
        self._interrupted.set()

    def add_work(self, units: float) -> None:
        """Count work here and in every signal this one was derived from. One thread only."""
        signal: StopSignal | None = self
        while signal is not None:
            signal._work += units
            signal = signal._parent

    @property
    def work(self) -> float:
        """Units of work counted so far."""
        return self._work

    def reason(self) -> StopCause | None:
        """Why to stop now, or None to go on."""
        if self._interrupted.is_set():
            return StopCause.INTERRUPTED
        if self._deadline is not None and CLOCK.now() >= self._deadline:
            return StopCause.TIME_LIMIT
        signal: StopSignal | None = self
        while signal is not None:
            if signal._work >= signal._work_limit:
                return StopCause.WORK_LIMIT
            signal = signal._parent
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
        """Keep the deadline in another process; interrupts and work limits stay behind."""
        return StopSignal, (None if self._deadline is None else self.remaining,)

    def with_time_limit(self, seconds: float) -> StopSignal:
        """Return a signal that ends after ``seconds``, or when this one does."""
        return self._child(min(seconds, self.remaining))

    def with_work_limit(self, units: float) -> StopSignal:
        """Return a signal that ends after ``units`` of work, or when this one does."""
        child = self._child(self.remaining)
        child._work_limit = units
        return child

    def _child(self, seconds: float) -> StopSignal:
        child = StopSignal(None if seconds == math.inf else seconds)
        child._interrupted = self._interrupted
        child._parent = self
        return child
