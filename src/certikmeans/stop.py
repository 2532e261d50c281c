"""Stopping criteria: a time limit, a work limit, and an interrupt from another thread."""

from __future__ import annotations

import math
import threading
from enum import StrEnum

from certikmeans._jit.clock import CLOCK
from certikmeans.errors import warn_renamed

# A unit of work takes about a nanosecond on one core of 2020.
UNITS_PER_SECOND = 1e9


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
        self._work = _WorkCounter()
        self._work_limit = math.inf  # of the counter

    def interrupt(self) -> None:
        """Request an early end; takes effect at the next check."""
        self._interrupted.set()

    def add_work(self, units: float) -> None:
        """Count work; signals derived from one another share a counter. One thread only."""
        self._work.units += units

    @property
    def work(self) -> float:
        """Units of work counted so far."""
        return self._work.units

    @property
    def remaining_work(self) -> float:
        """Units of work left before the work limit: infinite without one, never negative."""
        return max(0.0, self._work_limit - self._work.units)

    def reason(self) -> StopCause | None:
        """Why to stop now, or None to go on."""
        if self._interrupted.is_set():
            return StopCause.INTERRUPTED
        if self._deadline is not None and CLOCK.now() >= self._deadline:
            return StopCause.TIME_LIMIT
        if self._work.units >= self._work_limit:
            return StopCause.WORK_LIMIT
        return None

    def cause(self) -> StopCause | None:
        """Deprecated name of `reason`."""
        warn_renamed("StopSignal.cause", "reason")
        return self.reason()

    def within(self, seconds: float) -> StopSignal:
        """Deprecated name of `with_time_limit`."""
        warn_renamed("StopSignal.within", "with_time_limit")
        return self.with_time_limit(seconds)

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
        child._work_limit = min(self._work_limit, self._work.units + units)
        return child

    def with_effort_limit(self, seconds: float) -> StopSignal:
        """Return a signal that ends after ``seconds`` by the clock, or by work without a deadline.

        The scale is that of `EffortMeter`. The signal counts its own work: that of a step is added
        to the run when the step is complete.
        """
        if self._deadline is not None:
            return self.with_own_work().with_time_limit(seconds)
        return self.with_own_work(seconds * UNITS_PER_SECOND)

    def with_own_work(self, max_units: float = math.inf) -> StopSignal:
        """Return a signal that ends when this one does, with a work counter and limit of its own.

        >>> run = StopSignal()
        >>> node = run.with_own_work(5.0)
        >>> node.add_work(5.0)
        >>> node.reason(), node.work, run.work
        (<StopCause.WORK_LIMIT: 'work_limit'>, 5.0, 0.0)
        """
        child = self._child(self.remaining)
        child._work, child._work_limit = _WorkCounter(), max_units
        return child

    def _child(self, seconds: float) -> StopSignal:
        child = StopSignal(None if seconds == math.inf else seconds)
        child._interrupted = self._interrupted
        child._work, child._work_limit = self._work, self._work_limit
        return child


class _WorkCounter:
    """Units of work counted by all signals of a run."""

    __slots__ = ("units",)

    def __init__(self) -> None:
        self.units = 0.0


class EffortMeter:
    """Effort spent and left, in seconds: a common scale for time limits and work limits.

    Without a time limit both are counted in work, at `UNITS_PER_SECOND`, so that decisions made
    from them repeat. With one, seconds have passed by the clock, and what is left is the lesser
    of the two limits.

    >>> stop = StopSignal().with_work_limit(3.0 * UNITS_PER_SECOND)
    >>> meter = EffortMeter(stop)
    >>> stop.add_work(UNITS_PER_SECOND)
    >>> meter.elapsed, meter.remaining
    (1.0, 2.0)
    """

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._timed = stop.remaining < math.inf
        self._start = self._now()

    def _now(self) -> float:
        return CLOCK.now() if self._timed else self._stop.work / UNITS_PER_SECOND

    @property
    def elapsed(self) -> float:
        """Seconds since construction."""
        return self._now() - self._start

    @property
    def remaining(self) -> float:
        """Seconds left before the first limit: infinite without any."""
        return min(self._stop.remaining, self._stop.remaining_work / UNITS_PER_SECOND)
