"""Tasks for tests of executors; quick to import, since workers import them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from certikmeans.errors import BoundError


def cube(value):
    return value**3


def add(shared, item):
    return shared[0] + item


def fail_once(folder, item):
    """Fail the first time that item 3 is evaluated."""
    if item == 3 and _first(folder, "failed"):
        raise ZeroDivisionError("three")
    return item


def fail_first(folder, item):
    """Fail the first time that each item is evaluated."""
    if _first(folder, f"failed-{item}"):
        raise ZeroDivisionError(f"number {item}")
    return item


def die(shared, item):
    assert multiprocessing.parent_process() is not None, "not in the main process"
    os.kill(os.getpid(), signal.SIGKILL)


def fail(shared, item):
    raise ZeroDivisionError(f"number {item}")


def fail_at(broken, item):
    """Fail on one Dask worker; return the address of any other."""
    from distributed import get_worker

    if get_worker().address == broken:
        raise ZeroDivisionError(f"number {item}")
    return get_worker().address


def fail_at_three(item):
    if item == 3:
        raise ZeroDivisionError("three")
    return item


def bound_error_at_three(item):
    if item == 3:
        raise BoundError("three", hint="none")
    return item


def observe_stop(stop, item):
    """Evaluate the stop signal, as long tasks do."""
    assert stop.reason() is not None
    return item


def _first(folder, name):
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
