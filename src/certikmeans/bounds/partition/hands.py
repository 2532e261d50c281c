"""Who works on the parts: this thread, threads, or workers elsewhere."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.partition.improve import (
    Cut,
    PartAnswer,
    PartTask,
    improve_cut,
    improve_part,
)
from certikmeans.bounds.partition.parts import Part
from certikmeans.errors import WorkerError
from certikmeans.execution import Far, Shared
from certikmeans.execution.far import FAILURES, TRIES
from certikmeans.execution.there import Parcel

# A task goes out if it takes so many times as long as its journey.
WORTH = 10.0


@final
class Hands:
    """Takes tasks, and tells what became of them.

    Parameters
    ----------
    executor : Executor, optional
        Threads; without, a task is done when it is started.
    n_threads : int
        Tasks that they do at a time.
    far : Far, optional
        Workers elsewhere.
    points : ndarray of shape (n_groups, n_axes)
        Of the whole: sent to workers once.
    """

    def __init__(
        self,
        executor: Executor | None,
        n_threads: int,
        far: Far | None,
        points: NDArray[np.float64],
    ) -> None:
        self._executor = executor
        self._n_threads = n_threads if executor is not None else 1
        self._far = far
        self._shared = Shared(points)
        self._lacking = 0  # workers that have said so, and were not sent the points since
        self._usual = 0.0  # seconds of a task
        self.given_up = False  # too much has failed
        self.tries = 1 if far is None else TRIES  # that a part may fail

    def count(self) -> int:
        """How many tasks are done at a time."""
        far = self._worthwhile()
        return self._n_threads if far is None else max(far.n_workers, self._n_threads)

    def start(self, part: Part, task: PartTask) -> Future[Any]:
        """Hand a task over."""
        far = self._worthwhile()
        try:
            if far is not None:
                return self._send(far, replace(task, problem=Cut.of(part.problem, part.rows)))
            if self._executor is not None:
                return self._executor.submit(improve_part, task)
        except FAILURES as error:
            return _failed(error)
        done: Future[PartAnswer] = Future()
        try:
            done.set_result(improve_part(task))
        except Exception as error:
            return _failed(error)
        return done

    def _send(self, far: Far, task: PartTask) -> Future[Any]:
        with_data = self._lacking > 0
        self._lacking -= with_data
        return far.submit(improve_cut, [task], self._shared, with_data=with_data)

    def answer(self, future: Future[Any]) -> PartAnswer | None:
        """What came back; None: nothing, and it may be tried again."""
        try:
            came = future.result()
        except FAILURES as error:
            self._note_failure(error)
            return None
        answer: PartAnswer = came.done[0].answer if isinstance(came, Parcel) else came
        self._usual = max(0.5 * self._usual, answer.seconds)
        return answer

    def lacks_data(self, future: Future[Any]) -> bool:
        """Whether a task has come back undone, since the worker does not have the points."""
        if future.cancelled() or future.exception() is not None:
            return False
        came = future.result()
        lacking = isinstance(came, Parcel) and came.missing
        self._lacking += lacking
        return lacking

    def _note_failure(self, error: BaseException) -> None:
        if self._far is not None:
            try:
                self._far.note_failure(error)
            except WorkerError:
                self.given_up = True

    def _worthwhile(self) -> Far | None:
        far = self._far
        if far is None or self.given_up or self._usual <= WORTH * far.journey():
            return None
        return far if far.awake() else None


def _failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
