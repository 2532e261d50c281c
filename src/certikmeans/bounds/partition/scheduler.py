"""Scheduler of part tasks on a task pool."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.part_task import (
    PartResult,
    PartSpec,
    PartTask,
    solve_part,
    solve_part_spec,
)
from certikmeans.bounds.partition.parts import Part
from certikmeans.errors import CertikmeansError
from certikmeans.parallel import SharedData, TaskPool

WAIT_SECONDS = 0.2  # between two checks of the stop signal


class HasPart(Protocol):
    """State of a part that tasks work on."""

    part: Part


Item = TypeVar("Item", bound=HasPart)


@final
class PartScheduler(Generic[Item]):
    """Runs the tasks of parts and yields their results as they come.

    Parameters
    ----------
    pool : TaskPool
    points : ndarray of shape (n_groups, n_axes)
        Points of the whole problem; remote workers get them once, tasks name rows.
    """

    def __init__(self, pool: TaskPool, points: NDArray[np.float64]) -> None:
        self._pool = pool
        self._shared = SharedData(points)
        self._tasks: dict[Future[PartResult], Item] = {}
        self._completed: SimpleQueue[Future[PartResult]] = SimpleQueue()

    @property
    def failed(self) -> bool:
        """Whether the remote executor has given up."""
        return self._pool.remote is not None and self._pool.remote.failure is not None

    @property
    def busy(self) -> set[int]:
        """Items with a running task, by `id`."""
        return {id(item) for item in self._tasks.values()}

    def free_slots(self) -> int:
        """Number of tasks to start now.

        Local threads take a task only when one is free: parts that gain most go first, and which
        those are changes with every result.
        """
        pool = self._pool
        capacity = pool.n_workers if pool.remote is None else pool.capacity
        return max(0, capacity - len(self._tasks))

    def start(self, item: Item, task: PartTask) -> None:
        """Submit the task of an item."""
        if self._pool.remote is None:
            future = self._pool.submit(solve_part, task)
        else:
            spec = replace(task, problem=PartSpec.of(item.part.problem, item.part.rows))
            future = self._pool.submit(solve_part_spec, spec, shared=self._shared)
        self._tasks[future] = item
        future.add_done_callback(self._completed.put)

    def results(self) -> Iterator[tuple[Item, PartResult | None]]:
        """Wait briefly and yield the results that arrived; None for a task that failed."""
        with suppress(Empty):
            yield from self._unpack(self._completed.get(timeout=WAIT_SECONDS))
            while True:
                yield from self._unpack(self._completed.get_nowait())

    def drain(self) -> Iterator[tuple[Item, PartResult | None]]:
        """Cancel tasks that have not begun and yield the results of the others."""
        self._pool.drain(self._tasks)
        for future in list(self._tasks):
            yield from self._unpack(future)

    def _unpack(self, future: Future[PartResult]) -> Iterator[tuple[Item, PartResult | None]]:
        item = self._tasks.pop(future, None)
        if item is None or future.cancelled():
            return
        failed = isinstance(future.exception(), CertikmeansError)
        yield item, None if failed else future.result()
