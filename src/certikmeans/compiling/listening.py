"""Who wants to know that a kernel is being compiled; numba tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, final

from certikmeans.compiling.clock import CLOCK


@final
@dataclass(frozen=True, slots=True)
class Compiling:
    """A kernel is about to be compiled, as the ``number``-th of this process."""

    kernel: str
    number: int

    def __str__(self) -> str:
        return (
            f"compiling kernel {self.number} ({self.kernel}): once per installation, "
            "outside of every time limit"
        )


Watcher = Callable[[Compiling], None]

_lock = threading.Lock()
_watchers: list[Watcher] = []
_number = 0
_here = threading.local()


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
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


def tell(kernel: str) -> None:
    """Tell every watcher that ``kernel`` is being compiled."""
    global _number
    with _lock:
        _number += 1
        news, watchers = Compiling(kernel, _number), tuple(_watchers)
    for watcher in watchers:
        watcher(news)


@cache
def listen_to_numba() -> None:
    """Stop the clock while one of our kernels is compiled, and tell who watches."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            if _is_ours(event):
                _here.depth = getattr(_here, "depth", 0) + 1
                if _here.depth == 1:
                    CLOCK.stop()
                    tell(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            if _is_ours(event):
                _here.depth -= 1
                if _here.depth == 0:
                    CLOCK.go()

    event.register("numba:compile", Listener())


def _is_ours(event: Any) -> bool:
    return getattr(event.data["dispatcher"], "is_kernel", False)
