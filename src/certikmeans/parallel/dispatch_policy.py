"""Where tasks are done sooner: here or elsewhere. First a guess, then what was measured.

The guess follows from how long a task takes, how many are under way, and the journey. Where it
says that tasks should travel, they do, for a moment; how much work is done in a second is counted
meanwhile, as it was here before. If that is less, tasks stay here, and are sent out again when
twenty times as long has passed, then forty: however wrong the guess is, hardly more than a
twentieth of the time is spent on finding out.

Work is counted in seconds of the processor, so that tasks which become shorter, or share their
processor with others, do not mislead. Only speed depends on all this, never an answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import final

from certikmeans.parallel.remote import RemoteExecutor
from certikmeans.parallel.worker import TaskResult

# Tasks go out where that takes at most this much longer than to do them here: then this machine
# is free, and more workers make it shorter.
MAX_SLOWDOWN = 1.1
# Workers are woken up when a run has taken so long, or its tasks have: before that, it may be over
# soon.
OFFLOAD_AFTER_SECONDS = 1.0
# Of the average time of a task, how much the last one counts.
SMOOTHING = 0.1
# Bundles are as small as they can be at this cost.
BATCH_COST_SLACK = 1.05
# What is measured at a time: at least so many seconds, so many journeys, and so many tasks for
# everybody who works.
SPAN_SECONDS, SPAN_LATENCIES, SPAN_TASKS = 0.25, 3, 2
# After going out in vain, tasks stay here for so many times as long; twice that the next time.
REST_FACTOR = 20.0
LOOK_SECONDS = 0.1  # between two guesses
MAX_TASKS_PER_THREAD = 64  # tasks that wait for a thread


@final
class ThroughputMeter:
    """Work done in a second at one place, over the last while in which all of it was done there."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.speed: float | None = None  # None: not known yet
        self._since: float | None = None
        self._busy, self._tasks = 0.0, 0

    def interrupt(self) -> None:
        """What comes next is not to be counted together with what came before."""
        self._since = None

    def note(self, done: TaskResult, least_seconds: float, least_tasks: int) -> None:
        """Count a task; the first one starts the clock."""
        now = self._clock()
        if self._since is None:
            self._since, self._busy, self._tasks = now, 0.0, 0
            return
        self._busy += done.busy
        self._tasks += 1
        if self._tasks >= least_tasks and now - self._since >= least_seconds:
            self.speed = self._busy / (now - self._since)
            self._since = None


@final
class DispatchPolicy:
    """Decides where tasks go.

    Parameters
    ----------
    n_threads : int
        How many tasks are done here at a time.
    clock : callable
        Seconds, from anywhere.
    """

    def __init__(self, n_threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.n_threads = n_threads
        self._clock = clock
        self._here, self._there = ThroughputMeter(clock), ThroughputMeter(clock)
        self._usual = 0.0  # seconds of a task
        self._spent = 0.0  # seconds of all tasks
        self._out = False  # whether tasks go out now
        self._left = 0.0  # since when they do, and are not known to be done soon enough
        self._stay_until = -float("inf")
        self._rest = REST_FACTOR

    def note(self, done: TaskResult, remote: RemoteExecutor | None) -> None:
        """Take what a task took into account; ``remote`` if it was done there."""
        seconds = done.seconds
        self._usual = (
            seconds if not self._spent else self._usual + SMOOTHING * (seconds - self._usual)
        )
        self._spent += seconds
        if remote is None:
            self._here.note(done, SPAN_SECONDS, SPAN_TASKS * self.n_threads)
        else:
            least = max(SPAN_SECONDS, SPAN_LATENCIES * remote.latency())
            self._there.note(done, least, SPAN_TASKS * remote.n_workers)

    def threads_fill(self, seconds: float) -> int:
        """Tasks that keep the threads busy for about so long; at least one behind every other."""
        per_task_overhead = 1 + max(
            1, min(MAX_TASKS_PER_THREAD, math.ceil(seconds / max(self._usual, 1e-6)))
        )
        return per_task_overhead * self.n_threads

    def interrupt(self) -> None:
        """No task is under way for a while: that is not slowness."""
        self._here.interrupt()
        self._there.interrupt()

    def pays(self, remote: RemoteExecutor, count: int) -> bool:
        """Whether tasks should go out now, of which ``count`` are under way."""
        if not self._spent or max(self._spent, remote.age) < OFFLOAD_AFTER_SECONDS:
            return False
        if self._out:
            self._compare()
            return self._out
        now = self._clock()
        if now < self._stay_until:
            return False
        self._stay_until = now + LOOK_SECONDS
        if remote.reached() and self._promising(remote, count) and remote.workers_ready():
            self._out, self._left = True, now
            self._there.speed = None
            self.interrupt()
        return self._out

    def bundle(self, remote: RemoteExecutor, count: int) -> int:
        """How many tasks travel together, of which ``count`` are under way.

        Larger ones take fewer journeys; but whoever needs an answer waits for a whole bundle.
        """
        sizes = [1]
        while 2 * sizes[-1] <= count:
            sizes.append(2 * sizes[-1])
        seconds = [self._seconds_there(remote, count, size) + size * self._usual for size in sizes]
        enough = BATCH_COST_SLACK * min(seconds)
        return next(size for size, one in zip(sizes, seconds, strict=True) if one <= enough)

    def _promising(self, remote: RemoteExecutor, count: int) -> bool:
        here = -(-count // self.n_threads) * self._usual
        there = self._seconds_there(remote, count, self.bundle(remote, count))
        return there <= MAX_SLOWDOWN * here

    def _seconds_there(self, remote: RemoteExecutor, count: int, size: int) -> float:
        """About how long so many tasks take elsewhere, in bundles of ``size``."""
        bundles = -(-count // size)
        in_turn = -(-bundles // remote.n_workers)
        return (
            in_turn * size * self._usual + remote.latency() + bundles * remote.per_task_overhead()
        )

    def _compare(self) -> None:
        """Come home if what was measured elsewhere is worse than what was measured here."""
        there, here = self._there.speed, self._here.speed
        if there is None:
            return
        now, self._there.speed = self._clock(), None
        if here is None or MAX_SLOWDOWN * there >= here:
            self._left, self._rest = now, REST_FACTOR
            return
        self._out = False
        self._stay_until = now + self._rest * (now - self._left)
        self._rest *= 2.0
        self.interrupt()
