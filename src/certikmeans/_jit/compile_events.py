"""Notification of listeners when a kernel is compiled."""

# numba has no type stubs.
# mypy: disable-error-code="no-untyped-call, attr-defined, misc"

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from certikmeans._jit.clock import CLOCK


@final
@dataclass(frozen=True, slots=True)
class KernelCompilation:
    """Event: kernel ``number`` of this process is about to be compiled."""

    kernel: str
    number: int

    def __str__(self) -> str:
        return (
            f"compiling kernel {self.number} ({self.kernel}): once per installation, "
            "outside of every time limit"
        )


Watcher = Callable[[KernelCompilation], None]

_lock = threading.Lock()
_watchers: list[Watcher] = []
_number = 0
_thread = threading.local()


@contextmanager
def watch_compilation(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher``, in any thread, whenever a kernel is compiled. It must not block."""
    with _lock:
        _watchers.append(watcher)
    try:
        yield
    finally:
        with _lock:
            _watchers.remove(watcher)


def kernels_compiled() -> int:
    """Number of kernels compiled by this process, without helpers of other kernels."""
    return _number


def notify(kernel: str) -> None:
    """Notify the watchers that ``kernel`` is being compiled."""
    global _number
    with _lock:
        _number += 1
        compilation, watchers = KernelCompilation(kernel, _number), tuple(_watchers)
    for watcher in watchers:
        watcher(compilation)


@cache
def register_numba_listener() -> None:
    """Pause the clock and notify watchers while numba compiles one of our kernels."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if _is_ours(event):
                _thread.depth = getattr(_thread, "depth", 0) + 1
                if _thread.depth == 1:
                    CLOCK.pause()
                    notify(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            if _is_ours(event):
                _thread.depth -= 1
                if _thread.depth == 0:
                    CLOCK.resume()

    event.register("numba:compile", Listener())


def _is_ours(event: Any) -> bool:
    return getattr(event.data["dispatcher"], "is_kernel", False)
