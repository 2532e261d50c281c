"""Who runs the tasks: this thread, or anything with the `concurrent.futures` interface."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TypeVar, final

from certikmeans.errors import CertikmeansError, WorkerError

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@final
class Crew:
    """Runs a function over items and returns the answers in the order of the items.

    Functions are defined at the top of a module and take and return plain data, so that threads,
    processes and machines elsewhere can run them alike. Whatever goes wrong in a worker comes
    out as a `WorkerError`; only our own errors (wrong input, a `BoundError`) come out as they are.

    Examples
    --------
    >>> Crew().map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor

    def map(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        on_answer: Callable[[int, Answer], None] = lambda place, answer: None,
    ) -> list[Answer]:
        """Return ``[function(item) for item in items]``; tell every answer as it comes."""
        running: list[Future[Answer]] = []
        answers: list[Answer] = []
        try:
            if self._executor is not None and len(items) > 1:
                running += [self._executor.submit(function, item) for item in items]
            for place, item in enumerate(items):
                answers.append(running[place].result() if running else function(item))
                on_answer(place, answers[-1])
            return answers
        except CertikmeansError:
            raise
        except Exception as error:
            raise WorkerError(
                f"a worker failed: {type(error).__name__}: {error} ({_place(error)})",
                hint="the labelling and the bound from before are returned",
            ) from error
        finally:
            for task in running:
                task.cancel()  # those that wait behind one that failed


def _place(error: Exception) -> str:
    """Where it happened, as far as this process can tell."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"
