"""Products of matrices on one thread: ours are small, and more threads only get in the way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_uses = 0  # of `one_blas_thread`, one inside the other or side by side
_limits: list[Any] = []  # that are in force, in the order in which they were set
_known: tuple[int, Any] = (-1, None)  # modules loaded when libraries were last looked for, and they


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit every library of linear algebra to one thread, until nobody needs that any more.

    To look for the libraries takes milliseconds, as long as a small run: it is done again only
    when modules were loaded meanwhile, which may have brought another one.

    >>> with one_blas_thread(), one_blas_thread():  # the inner one has nothing to do
    ...     pass
    """
    global _uses
    with _lock:
        limited, libraries = _known[1], _libraries()
        if libraries is not limited or not _uses:
            _limits.append(libraries.limit(limits=1))
        _uses += 1
    try:
        yield
    finally:
        with _lock:
            _uses -= 1
            while _limits and not _uses:
                _limits.pop().restore_original_limits()


def _libraries() -> Any:
    global _known
    if _known[0] != len(sys.modules):
        _known = (len(sys.modules), ThreadpoolController())
    return _known[1]
