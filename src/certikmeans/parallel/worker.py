"""Worker side of remote execution: tasks name their shared data, which a worker caches.

A task that names data which its worker does not have (a new worker, or one that has dropped them)
raises `SharedDataMissing` and is sent again together with the data.
"""

from __future__ import annotations

import pickle
import sys
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, final

from certikmeans.parallel.blas import one_blas_thread

MAX_CACHED = 16  # shared values that a worker keeps
FAILED_AT = "failed_at"  # attribute of an exception: address of the Dask worker that raised it

_cache: OrderedDict[str, Any] = OrderedDict()


@final
class SharedData:
    """A read-only value that many tasks need; sent to each worker once."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = uuid.uuid4().hex
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """Return the pickled value; computed once."""
        if self._packed is None:
            self._packed = pickle.dumps(self.value, protocol=5)
        return self._packed


class SharedDataMissing(Exception):
    """The worker has no copy of the shared data that a task names."""


def call(function: Callable[..., Any], arguments: Sequence[Any], shared: SharedData | None) -> Any:
    """Run a task in this process."""
    return function(*arguments) if shared is None else function(shared.value, *arguments)


def run_task(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    key: str | None = None,
    packed: bytes | None = None,
) -> Any:
    """Run a task in a worker; ``key`` names its shared data, ``packed`` holds them if sent.

    Workers share processors, so BLAS is limited to one thread, as in the calling process.
    """
    try:
        with one_blas_thread():
            if key is None:
                return function(*arguments)
            return function(_shared_value(key, packed), *arguments)
    except Exception as error:
        error.__dict__[FAILED_AT] = _dask_address()  # pickled along with the exception
        raise


def _shared_value(key: str, packed: bytes | None) -> Any:
    try:
        return _cache[key]  # no check before: another thread may drop it in between
    except KeyError:
        if packed is None:
            raise SharedDataMissing(key) from None
    value = _cache[key] = pickle.loads(packed)
    while len(_cache) > MAX_CACHED:
        _cache.popitem(last=False)
    return value


def _dask_address() -> str | None:
    """Address of this Dask worker; None in other workers."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        address: str = distributed.get_worker().address
    except ValueError:
        return None
    return address
