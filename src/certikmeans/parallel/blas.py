"""Limit of BLAS to one thread: matrices are small, and tasks use the cores."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_uses = 0  # active contexts, nested or in several threads
_limits: list[Any] = []  # in force, in the order in which they were set
# Number of loaded modules at the last search for libraries, and its result.
_search: tuple[int, Any] = (-1, None)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit all BLAS libraries to one thread until the last context ends.

    Finding the libraries takes milliseconds, as long as a small run: it is repeated only if modules
    were loaded since, which may have brought another library.

    >>> with one_blas_thread(), one_blas_thread():
    ...     pass
    """
    global _uses
    with _lock:
        limited, libraries = _search[1], _libraries()
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
    global _search
    if _search[0] != len(sys.modules):
        _search = (len(sys.modules), ThreadpoolController())
    return _search[1]
