"""Runs tasks where they are done soonest: here, or elsewhere if they are worth the journey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypeVar, final

from certikmeans.execution.far import Far, failures_told
from certikmeans.execution.line import Line
from certikmeans.execution.paces import Paces
from certikmeans.execution.there import Done, Shared, timed_here
from certikmeans.stop import StopSignal

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def untold(number: int, answer: Any) -> None:
    """Tell nobody."""


@final
class Crew:
    """Runs a function over items and returns the answers in the order of the items.

    Functions are defined at the top of a module and take and return plain data, so that threads,
    processes and machines elsewhere can run them alike. Whatever goes wrong in a worker comes
    out as a `WorkerError`; only our own errors (wrong input, a `BoundError`) come out as they are.

    Parameters
    ----------
    executor : Executor, optional
        Threads beside this one; without, tasks are done one after the other.
    far : Far, optional
        Workers elsewhere.
    n_threads : int
        How many tasks ``executor`` runs at a time.

    Examples
    --------
    >>> Crew().map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(
        self, executor: Executor | None = None, far: Far | None = None, n_threads: int = 1
    ) -> None:
        self._executor = executor
        self._far = far
        self._paces = Paces(max(1, n_threads))

    def pays(self, far: Far, count: int) -> bool:
        """Whether tasks go out, of which ``count`` are under way."""
        return self._paces.pays(far, count)

    def line(
        self, function: Callable[..., Answer], on_answer: Callable[[int, Answer], None] = untold
    ) -> Line[Any, Answer]:
        """Tasks of a kind, to be put in and taken out one by one."""
        return Line(function, on_answer, self._executor, self._far, self._paces, self.pays)

    def map(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None] = untold,
        shared: Shared | None = None,
        stop: StopSignal | None = None,
    ) -> list[Answer]:
        """Return ``[function(item) for item in items]``; tell every answer as it comes.

        With ``shared``, ``function(shared.value, item)``: what all tasks need, sent once. When
        ``stop`` is pulled, tasks know that by themselves, but those elsewhere may not: they are
        done here, where they end at once.
        """
        if self._far is None or len(items) < 2:
            return self._map_here(function, items, on_answer, shared)
        line = self.line(function, on_answer)
        line.expected = len(items)
        try:
            for item in items:
                line.put(item, shared)
            while len(line.answers) < len(items):
                if stop is not None and stop.cause() is not None:
                    line.bring_home()
                line.advance()
        finally:
            line.drop()
        return [line.answers[number] for number in range(len(items))]

    def _map_here(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None],
        shared: Shared | None,
    ) -> list[Answer]:
        """The same without a line: boxes of a bound come by the thousand."""
        running: list[Future[Done]] = []
        answers: list[Answer] = []
        try:
            with failures_told():
                if self._executor is not None and len(items) > 1:
                    submit = self._executor.submit
                    running += [submit(timed_here, function, shared, item) for item in items]
                for place, item in enumerate(items):
                    one = running[place].result() if running else timed_here(function, shared, item)
                    answers.append(one.answer)
                    on_answer(place, one.answer)
            return answers
        finally:
            for task in running:
                task.cancel()  # those that wait behind one that failed
