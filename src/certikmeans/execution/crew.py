"""Runs tasks where they are done soonest: here, or elsewhere if they are worth the journey."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any, TypeVar, final

from certikmeans.errors import CertikmeansError, WorkerError
from certikmeans.execution.far import FAILURES, TRIES, Far, failure_of
from certikmeans.execution.there import Parcel, Shared, timed_here

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# Tasks go out where that takes at most this much longer than to do them here: then this machine
# is free, and more workers make it shorter.
SLOWER = 1.1
# Workers are woken up when tasks have taken so long here: before that, a run may be over soon.
WAKE_AFTER = 1.0
# Of the average time of a task, how much the last one counts.
FRESH = 0.1


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
        self._n_threads = max(1, n_threads)
        self._usual = 0.0  # seconds of a task
        self._spent = 0.0  # seconds of all tasks
        self.times: list[float] | None = None  # of every task, where somebody wants them

    def map(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None] = lambda place, answer: None,
        shared: Shared | None = None,
    ) -> list[Answer]:
        """Return ``[function(item) for item in items]``; tell every answer as it comes.

        With ``shared``, ``function(shared.value, item)``: what all tasks need, sent once.
        """
        if self._far is not None and len(items) > 1 and self._pays(self._far, len(items)):
            return self._map_there(self._far, function, items, on_answer, shared)
        return self._map_here(function, items, on_answer, shared)

    def _pays(self, far: Far, count: int) -> bool:
        """Whether so many tasks are done elsewhere nearly as soon as here."""
        if self._spent < WAKE_AFTER:
            return False
        here = -(-count // self._n_threads) * self._usual
        there = -(-count // far.n_workers) * self._usual + far.journey()
        return there <= SLOWER * here and far.awake()

    def _map_here(
        self,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None],
        shared: Shared | None,
    ) -> list[Answer]:
        running: list[Future[Parcel]] = []
        answers: list[Answer] = []
        try:
            if self._executor is not None and len(items) > 1:
                submit = self._executor.submit
                running += [submit(timed_here, function, shared, item) for item in items]
            for place, item in enumerate(items):
                done = running[place].result() if running else timed_here(function, shared, item)
                answers.append(self._opened(done))
                on_answer(place, answers[-1])
            return answers
        except CertikmeansError:
            raise
        except Exception as error:
            raise failure_of(error) from error
        finally:
            for task in running:
                task.cancel()  # those that wait behind one that failed

    def _map_there(
        self,
        far: Far,
        function: Callable[..., Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None],
        shared: Shared | None,
    ) -> list[Answer]:
        """Send the tasks out; those that fail go out again."""
        answers: dict[int, Answer] = {}
        waiting: list[tuple[int, bool]] = [(place, False) for place in range(len(items))]
        running: dict[Future[Any], int] = {}
        tries: Counter[int] = Counter()
        try:
            while waiting or running:
                while waiting:
                    place, with_data = waiting.pop(0)
                    try:
                        sent = far.submit(function, items[place], shared, with_data=with_data)
                    except FAILURES as error:
                        self._again(far, error, place, tries, waiting)
                        continue
                    running[sent] = place
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    place = running.pop(future)
                    try:
                        parcel: Parcel = future.result()
                    except FAILURES as error:
                        self._again(far, error, place, tries, waiting)
                        continue
                    if parcel.missing:
                        waiting.append((place, True))
                        continue
                    answers[place] = self._opened(parcel)
                    on_answer(place, answers[place])
            return [answers[place] for place in range(len(items))]
        finally:
            for future in running:
                future.cancel()

    def _again(
        self,
        far: Far,
        error: BaseException,
        place: int,
        tries: Counter[int],
        waiting: list[tuple[int, bool]],
    ) -> None:
        """Have a task that failed done by somebody else, unless it has failed too often."""
        tries[place] += 1
        if tries[place] >= TRIES and not isinstance(error, CertikmeansError | WorkerError):
            raise failure_of(error) from error
        far.note_failure(error)
        waiting.append((place, True))

    def _opened(self, parcel: Parcel) -> Any:
        seconds = parcel.seconds
        self._usual = seconds if not self._spent else self._usual + FRESH * (seconds - self._usual)
        self._spent += seconds
        if self.times is not None:
            self.times.append(seconds)
        return parcel.answer
