"""Notification of listeners when a kernel is compiled."""

# numba's own types do not tell what is adjusted here.
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
    """A kernel is about to be compiled, as the ``number``-th of this process."""

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
_here = threading.local()


@contextmanager
def watch_compilation(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher`` called when a kernel is compiled. In any thread: it must not wait."""
    with _lock:
        _watchers.append(watcher)
    try:
        yield
    finally:
        with _lock:
            _watchers.remove(watcher)


def kernels_compiled() -> int:
    """How many kernels this process has compiled, those compiled for another's sake left out."""
    return _number


def notify(kernel: str) -> None:
    """Tell every watcher that ``kernel`` is being compiled."""
    global _number
    with _lock:
        _number += 1
        progress_event, watchers = KernelCompilation(kernel, _number), tuple(_watchers)
    for watcher in watchers:
        watcher(progress_event)


@cache
def register_numba_listener() -> None:
    """Stop the clock while one of our kernels is compiled, and tell who watches."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if _is_ours(event):
                _here.depth = getattr(_here, "depth", 0) + 1
                if _here.depth == 1:
                    CLOCK.pause()
                    notify(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            if _is_ours(event):
                _here.depth -= 1
                if _here.depth == 0:
                    CLOCK.resume()

    event.register("numba:compile", Listener())


def _is_ours(event: Any) -> bool:
    return getattr(event.data["dispatcher"], "is_kernel", False)
