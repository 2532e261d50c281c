"""Contract of heuristics, and the context they run in."""

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
    """Null callback: ignores its arguments."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class StageState:
    """State of a search that has several stages."""

    name: str
    results: tuple[NDArray[Any], ...]  # of the stages before
    state: Any  # of this stage; None at its beginning


@final
@dataclass(frozen=True, slots=True, eq=False)
class HeuristicContext:
    """Problem, incumbent and resources of a heuristic. Cheap to copy with other settings.

    Attributes
    ----------
    assigner : AbstractAssigner
        Exact assignment for fixed centres, prepared for ``problem``.
    feasible_labels : ndarray of shape (n_groups,)
        Some feasible labelling: the answer when there is no time to find a better one.
    seed : int
        Every random choice follows from it, and from nothing else.
    starts : tuple of ndarray of shape (n_clusters, n_axes)
        Centres to try first: a warm start, columns of a bound.
    incumbent : IncumbentView
        Receives every improvement as it is found; knows whether the gap is closed.
    on_progress : callable
        Called with ``(trials, budget)`` after every batch.
    saved : object, optional
        State of this search in an earlier run, as passed to ``checkpoint``.
    checkpoint : callable
        Called between two trials with the state from which the search can continue: plain data
        and objects of this package that do not change afterwards. Short searches need not.
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
        """Whether to stop now."""
        return self.stop.reason() is not None or self.incumbent.gap_reached()

    def replace(self, **changes: Any) -> HeuristicContext:
        """Copy with some fields replaced."""
        return replace(self, **changes)

    def for_stage(self, stage: str, *results: NDArray[Any]) -> HeuristicContext:
        """Return the context of one stage; ``results`` are those of the stages before."""
        saved = self.saved.state if self.saved_in(stage) else None

        def checkpoint(state: Any) -> None:
            self.checkpoint(StageState(stage, results, state))

        return self.replace(saved=saved, checkpoint=checkpoint)

    def saved_in(self, stage: str) -> bool:
        """Whether the earlier run ended in this stage."""
        return isinstance(self.saved, StageState) and self.saved.name == stage

    def until_deadline(self, starts: Iterable[Centers]) -> Iterator[Centers]:
        """Yield the first of ``starts``, and the others until the time is up.

        Other stopping criteria are checked between batches.
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

    ``search`` returns labels of the groups: feasible, in range, the same for the same seed and
    any number of threads (unless the stop signal ends it early), and never worse than the
    best it reported before. It returns soon after ``ctx.finished()`` holds; without any
    time it returns ``ctx.feasible_labels``. Costs are computed by the caller.
    """

    name: ClassVar[str]

    @abstractmethod
    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
