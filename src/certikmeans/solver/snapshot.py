"""How far a run has come: what it would need to know to go on from here.

Everything else follows from the problem, the options and the seed. At moments when all of it fits
together the run says so (`CheckpointOpportunity`), and whoever listens may ask for the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from certikmeans.bounds.base import BoundResult
from certikmeans.checkpoint.resume import BestKnown
from certikmeans.events import CheckpointOpportunity, EventBus
from certikmeans.result import Attempt
from certikmeans.solver.bound_schedule import BoundRun, BoundSchedule
from certikmeans.solver.state import SolveState
from certikmeans.tree.branch_and_bound import BranchAndBound
from certikmeans.tree.state import TreeState


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolverSnapshot:
    """Where a run is, beside its labelling and its bound."""

    heuristics_done: bool
    heuristics: Any  # where they are, unless they are done
    asked: tuple[tuple[str, BoundResult], ...]  # bounds of the whole by name, and what they found
    attempts: tuple[Attempt, ...]
    bounds_left: int | None  # of the plan; None: it has not begun
    active_bound: tuple[str, Any] | None  # the bound at work, and what it needs to go on
    tree: TreeState | None


@final
@dataclass(slots=True, eq=False)
class CheckpointManager:
    """The live state; given the state of a run before, what is left of that."""

    board: SolveState
    emitter: EventBus
    before: SolverSnapshot | None = None
    heuristics_done: bool = False
    heuristics: Any = None
    asked: list[BoundRun] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    bounds_left: int | None = None
    active_bound: tuple[str, Any] | None = None
    search: BranchAndBound[Any] | None = None
    _frozen: SolverSnapshot | None = None

    def restore(self, schedule: BoundSchedule) -> None:
        """Go on from the state before, as far as bounds of the whole are concerned."""
        if self.before is None:
            return
        self.heuristics_done = self.before.heuristics_done
        self.heuristics = self.before.heuristics
        self.asked = [BoundRun(schedule.named(name), found) for name, found in self.before.asked]
        self.attempts = list(self.before.attempts)
        self.bounds_left = self.before.bounds_left
        if self.bounds_left is not None:
            schedule.skip_to(self.bounds_left)
        if self.before.active_bound is not None:  # not lost before it is asked again
            self.active_bound = self.before.active_bound

    def saved_tree(self) -> TreeState | None:
        """The tree to go on with."""
        return None if self.before is None else self.before.tree

    def saved_state(self, name: str) -> Any:
        """What a bound was at when the run before ended; None: it begins."""
        if self.before is None or self.before.active_bound is None or self.attempts_since():
            return None
        bound, kept = self.before.active_bound
        return kept if bound == name else None

    def attempts_since(self) -> int:
        """Bounds asked since the state before."""
        return len(self.asked) - (0 if self.before is None else len(self.before.asked))

    def begin(self, name: str, bounds_left: int) -> None:
        """A bound of the whole is asked."""
        kept = self.saved_state(name)
        self.active_bound = None if kept is None else (name, kept)
        self.bounds_left = bounds_left + 1  # unless it ends

    def keep(self, name: str, warm_start: Any) -> None:
        """Store the state of the active bound."""
        self.active_bound = name, warm_start
        self.save_point()

    def ended(self) -> None:
        """The bound at work has done what it can."""
        self.active_bound = None
        if self.bounds_left is not None:
            self.bounds_left -= 1

    def freeze(self) -> None:
        """The run is about to end: whoever goes on begins with the bound that is at work now."""
        self._frozen = self.state()

    def essence(self) -> BestKnown:
        """The best labelling and the best bound."""
        board = self.board
        nodes = 1 if self.search is None else self.search.nodes
        return BestKnown(*board.best(), board.lower_bound, board.bound_source, nodes)

    def state(self) -> SolverSnapshot:
        """Where the run is."""
        if self._frozen is not None:
            return self._frozen
        return SolverSnapshot(
            self.heuristics_done,
            None if self.heuristics_done else self.heuristics,
            tuple((one.bound.name, one.found) for one in self.asked),
            tuple(self.attempts),
            self.bounds_left,
            self.active_bound,
            self.saved_tree() if self.search is None else self.search.state(),
        )

    def keep_heuristics(self, state: Any) -> None:
        """The heuristics say how they could go on from here."""
        self.heuristics = state
        self.save_point()

    def save_point(self, *, last: bool = False) -> None:
        """Say that everything fits together now."""
        self.emitter.emit(
            CheckpointOpportunity(self.emitter.seconds, self.essence, self.state, last)
        )
