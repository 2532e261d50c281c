"""What a heuristic is given and what it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.incumbent import IncumbentView, NullIncumbent
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]
Centers = NDArray[np.float64]
Task = TypeVar("Task")
Done = TypeVar("Done")


def _no_op(*_: Any) -> None:
    """Report to nobody."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class StageState:
    """Where a search was that has several stages."""

    name: str
    results: tuple[NDArray[Any], ...]  # what the stages before have found
    state: Any  # where this one was; None: at its beginning


@final
@dataclass(frozen=True, slots=True, eq=False)
class HeuristicContext:
    """Everything a heuristic may use. Cheap to copy with other settings.

    Attributes
    ----------
    assigner : AbstractAssigner
        Exact assignment for fixed centres, prepared for ``problem``.
    witness : ndarray of shape (n_groups,)
        Some proper labelling: the answer when there is no time to find a better one.
    seed : int
        Every random choice follows from it, and from nothing else.
    starts : tuple of ndarray of shape (n_clusters, n_axes)
        Centres worth trying first: a warm start, columns of a bound.
    news : News
        Told of every improvement as it is found; says when more search is pointless.
    on_progress : callable
        Told ``(trials, budget)`` after every batch.
    kept : object
        Where a run before has left this search: the last that it told to ``checkpoint``. None: nowhere.
    keep : callable
        Told, between two trials, what the search needs to go on from there: plain data and
        objects of this package, that do not change afterwards. A search of a second need not care.
    """

    problem: ReducedProblem
    assigner: AbstractAssigner
    feasible_labels: Labels
    stop: StopSignal
    seed: int = 0
    executor: Executor | None = None
    starts: tuple[Centers, ...] = ()
    incumbent: IncumbentView = field(default_factory=NullIncumbent)
    on_progress: Callable[[int, int], None] = field(default=_no_op)
    saved: Any = None
    checkpoint: Callable[[Any], None] = field(default=_no_op)

    def finished(self) -> bool:
        """Whether to wind up now."""
        return self.stop.reason() is not None or self.incumbent.gap_reached()

    def replace(self, **changes: Any) -> HeuristicContext:
        """Copy with some fields replaced."""
        return replace(self, **changes)

    def for_stage(self, stage: str, *results: NDArray[Any]) -> HeuristicContext:
        """For one stage of a search that has several; ``results`` is what those before have found."""
        saved = self.saved.state if self.saved_in(stage) else None

        def checkpoint(state: Any) -> None:
            self.checkpoint(StageState(stage, results, state))

        return self.replace(saved=saved, checkpoint=checkpoint)

    def saved_in(self, stage: str) -> bool:
        """Whether a run before was left in this stage."""
        return isinstance(self.saved, StageState) and self.saved.name == stage

    def until_deadline(self, starts: Iterable[Centers]) -> Iterator[Centers]:
        """The first of ``starts``, and those that are asked for before the time is up.

        Whatever else ends a search is looked at between batches, whoever runs them.
        """
        for number, centers in enumerate(starts):
            if number and self.stop.reason() is not None:
                return
            yield centers

    def map(self, work: Callable[[Task], Done], tasks: Iterable[Task]) -> Iterator[Done]:
        """Run ``work`` over ``tasks``, by the executor if there is one; results in order."""
        if self.executor is None:
            return map(work, tasks)
        return self.executor.map(work, tasks)


class AbstractHeuristic(ABC):
    """One way of finding a good labelling. Concrete heuristics are final.

    ``search`` returns labels of the groups: proper, in range, the same for the same seed and
    any number of threads (unless the stop signal cut it short), and never worse than the
    best it reported on the way. It returns soon after ``ctx.finished()`` holds; with no
    time at all it returns the witness. Costs are computed by the caller.
    """

    name: ClassVar[str]

    @abstractmethod
    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
