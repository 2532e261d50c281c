"""Executors with defined behaviour, and the functions in which they fail."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor

from certikmeans.parallel import remote


def processes(count=2):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


class Immediate(Executor):
    """Runs tasks in ``submit``, as one worker; drops its cache at every ``forgets``-th task."""

    def __init__(self, forgets=0):
        self._forgets = forgets
        self.tasks = 0

    def submit(self, function, /, *arguments, **named):
        self.tasks += 1
        if self._forgets and self.tasks % self._forgets == 0:
            remote._cache.clear()
        future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Failing(Immediate):
    """Fails at the tasks for which ``fails`` is true, given their number from 1 on."""

    def __init__(self, fails):
        super().__init__()
        self._fails = fails

    def submit(self, function, /, *arguments, **named):
        if self._fails(self.tasks + 1):
            self.tasks += 1
            future = Future()
            future.set_exception(ConnectionError("gone"))
            return future
        return super().submit(function, *arguments, **named)


class Closed(Executor):
    """Accepts no tasks."""

    def submit(self, function, /, *arguments, **named):
        raise RuntimeError("closed")


class Silent(Executor):
    """Accepts tasks and never finishes one by itself; ``taken`` has them."""

    _max_workers = 2

    def __init__(self):
        self.taken = []

    def submit(self, function, /, *arguments, **named):
        future = Future()
        future.set_running_or_notify_cancel()
        self.taken.append((future, function, arguments))
        return future
