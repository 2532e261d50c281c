"""Tasks that do as they are told; quick to load, since workers load them."""

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
    """The first worker that sees 3 fails."""
    if item == 3 and _first(folder, "failed"):
        raise ZeroDivisionError("three")
    return item


def fail_first(folder, item):
    """Whoever sees an item first fails."""
    if _first(folder, f"failed-{item}"):
        raise ZeroDivisionError(f"number {item}")
    return item


def die_once(folder, item):
    """The first worker that sees 3 dies."""
    if item == 3 and _first(folder, "died"):
        _die()
    return item


def die(shared, item):
    _die()


def fail(shared, item):
    raise ZeroDivisionError(f"number {item}")


def fail_at(broken, item):
    """One worker of Dask fails, the others say where they are."""
    from distributed import get_worker

    if get_worker().address == broken:
        raise ZeroDivisionError(f"number {item}")
    return get_worker().address


def fail_at_two(shared, item):
    if item == 2:
        raise ZeroDivisionError("two")
    return item


def refuse(shared, item):
    raise BoundError("three", hint="none")


def _die():
    assert multiprocessing.parent_process() is not None, "not here"
    os.kill(os.getpid(), signal.SIGKILL)


def _first(folder, name):
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
