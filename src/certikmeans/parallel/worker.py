"""What runs in a worker elsewhere: data come once, tasks carry numbers.

A worker keeps the last few things that were sent to it. A bundle of tasks names what they need;
where that is not there (a new worker, or one that has forgotten it), the answer says so, and the
bundle comes again with the data.
"""

from __future__ import annotations

import pickle
import sys
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, final

from certikmeans.parallel.blas import one_blas_thread

FAILED_AT = "failed_at"  # of what a task raised: the worker
MOST_KEPT = 16  # things that a worker remembers
MOST_AT_ONCE = 1 << 30  # bytes: MPI counts with 32 bits
# What takes seconds to load: by name, since nothing here may depend on it.
NEEDED = ("certikmeans.bounds.cluster.bound", "certikmeans.bounds.sdp.bound",
          "certikmeans.tree.branching")  # fmt: skip

_kept: OrderedDict[str, Any] = OrderedDict()


@final
class SharedData:
    """Something that many tasks need and none changes: sent to a worker once."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = uuid.uuid4().hex
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """As bytes, made once."""
        if self._packed is None:
            self._packed = pickle.dumps(self.value, protocol=5)
        return self._packed


class TaskResult(NamedTuple):
    """What a task has found, and what that took."""

    answer: Any
    seconds: float  # by the clock
    busy: float  # of the processor: the same however many share it


@final
@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """What comes back from a worker."""

    done: tuple[TaskResult, ...]  # in the order of the tasks
    missing: bool = False  # the worker does not have what they need


def run_batch(
    function: Callable[..., Any],
    items: Sequence[Any],
    key: str | None = None,
    packed: bytes | None = None,
) -> BatchResult:
    """Run tasks; ``key`` names what was sent to the worker before, ``packed`` is that thing.

    Workers share their processors: products of matrices take one thread, as they do here.
    """
    try:
        with one_blas_thread():
            return _run(function, items, key, packed)
    except Exception as error:
        error.__dict__[FAILED_AT] = _address()  # goes along with it
        raise


def _run(
    function: Callable[..., Any], items: Sequence[Any], key: str | None, packed: bytes | None
) -> BatchResult:
    if key is None:
        return BatchResult(tuple(_timed(partial(function, item)) for item in items))
    try:
        value = _kept[key]  # another thread may be about to forget it
    except KeyError:
        if packed is None:
            return BatchResult((), missing=True)
        value = _keep(key, pickle.loads(packed))
    return BatchResult(tuple(_timed(partial(function, value, item)) for item in items))


def _keep(key: str, value: Any) -> Any:
    _kept[key] = value
    while len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
    return value


def run_timed(function: Callable[..., Any], shared: SharedData | None, item: Any) -> TaskResult:
    """Run a task in this process."""
    if shared is None:
        return _timed(partial(function, item))
    return _timed(partial(function, shared.value, item))


def _timed(task: Callable[[], Any]) -> TaskResult:
    began, busy = time.perf_counter(), time.thread_time()
    answer = task()
    return TaskResult(answer, time.perf_counter() - began, time.thread_time() - busy)


def _address() -> str | None:
    """Where this worker of Dask is; None: it is none, and nobody could choose another one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        address: str = distributed.get_worker().address
    except ValueError:
        return None
    return address


def receive_by_mpi(key: str, packed: bytes | None) -> bool:
    """Get a thing from the one worker that was sent it, along with all others; whether it was this.

    Every worker of mpi4py's pool runs one of these: none can end before all have begun.
    """
    import numpy as np
    from mpi4py.futures import get_comm_workers

    workers: Any = get_comm_workers()
    mine = packed is not None
    root = workers.allgather(mine).index(True)
    size = workers.bcast(len(packed) if packed is not None else 0, root)
    load = None
    with suppress(MemoryError):
        load = np.frombuffer(packed, np.uint8) if packed is not None else np.empty(size, np.uint8)
    if not all(workers.allgather(load is not None)):  # who left now would be waited for in vain
        raise MemoryError(f"a worker has no room for {size} bytes")
    assert load is not None
    for first in range(0, size, MOST_AT_ONCE):
        workers.Bcast(load[first : first + MOST_AT_ONCE], root)
    _keep(key, pickle.loads(load.data))
    return mine


def echo(load: bytes) -> int:
    """Do nothing: what is measured is the journey."""
    return len(load)


def preload_modules(number: int) -> int:
    """Load what tasks will need, and take long enough for other workers to get one of these."""
    for name in NEEDED:
        import_module(name)
    time.sleep(0.05)
    return number
