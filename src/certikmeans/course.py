"""How far a run has come: what it would need to know to go on from here.

Everything else follows from the problem, the options and the seed. At moments when all of it fits
together the run says so (`SafePoint`), and whoever listens may ask for the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from certikmeans.board import Board
from certikmeans.bounds.base import BoundResult
from certikmeans.checkpoint.resuming import Essence
from certikmeans.events import Emitter, SafePoint
from certikmeans.policy import Asked, Policy
from certikmeans.result import Attempt
from certikmeans.search.loop import Search
from certikmeans.search.state import SearchState


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """Where a run is, beside its labelling and its bound."""

    heuristics_done: bool
    heuristics: Any  # where they are, unless they are done
    asked: tuple[tuple[str, BoundResult], ...]  # bounds of the whole by name, and what they found
    attempts: tuple[Attempt, ...]
    bounds_left: int | None  # of the plan; None: it has not begun
    under_way: tuple[str, Any] | None  # the bound at work, and what it needs to go on
    tree: SearchState | None


@final
@dataclass(slots=True, eq=False)
class Course:
    """The live state; given the state of a run before, what is left of that."""

    board: Board
    emitter: Emitter
    before: RunState | None = None
    heuristics_done: bool = False
    heuristics: Any = None
    asked: list[Asked] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    bounds_left: int | None = None
    under_way: tuple[str, Callable[[], Any]] | None = None
    search: Search[Any] | None = None
    _frozen: RunState | None = None

    def take_up(self, policy: Policy) -> None:
        """Go on from the state before, as far as bounds of the whole are concerned."""
        if self.before is None:
            return
        self.heuristics_done = self.before.heuristics_done
        self.heuristics = self.before.heuristics
        self.asked = [Asked(policy.named(name), found) for name, found in self.before.asked]
        self.attempts = list(self.before.attempts)
        self.bounds_left = self.before.bounds_left
        if self.bounds_left is not None:
            policy.skip_to(self.bounds_left)
        if self.before.under_way is not None:  # not lost before it is asked again
            name, kept = self.before.under_way
            self.under_way = name, lambda: kept

    def tree_before(self) -> SearchState | None:
        """The tree to go on with."""
        return None if self.before is None else self.before.tree

    def kept_for(self, name: str) -> Any:
        """What a bound was at when the run before ended; None: it begins."""
        if self.before is None or self.before.under_way is None or self.attempts_since():
            return None
        bound, kept = self.before.under_way
        return kept if bound == name else None

    def attempts_since(self) -> int:
        """Bounds asked since the state before."""
        return len(self.asked) - (0 if self.before is None else len(self.before.asked))

    def begin(self, name: str, bounds_left: int) -> None:
        """A bound of the whole is asked."""
        kept = self.kept_for(name)
        self.under_way = None if kept is None else (name, lambda: kept)
        self.bounds_left = bounds_left + 1  # unless it ends

    def keep(self, name: str, state: Callable[[], Any]) -> None:
        """A bound says how it could go on from here."""
        self.under_way = name, state
        self.mark()

    def ended(self) -> None:
        """The bound at work has done what it can."""
        self.under_way = None
        if self.bounds_left is not None:
            self.bounds_left -= 1

    def cut_short(self) -> None:
        """The run is about to end: whoever goes on begins with the bound that is at work now."""
        self._frozen = self.state()

    def essence(self) -> Essence:
        """The best labelling and the best bound."""
        board = self.board
        nodes = 1 if self.search is None else self.search.nodes
        return Essence(*board.best(), board.lower, board.source, nodes)

    def state(self) -> RunState:
        """Where the run is."""
        if self._frozen is not None:
            return self._frozen
        under_way = self.under_way
        return RunState(
            self.heuristics_done,
            None if self.heuristics_done else self.heuristics,
            tuple((one.bound.name, one.found) for one in self.asked),
            tuple(self.attempts),
            self.bounds_left,
            None if under_way is None else (under_way[0], under_way[1]()),
            self.tree_before() if self.search is None else self.search.state(),
        )

    def keep_heuristics(self, state: Any) -> None:
        """The heuristics say how they could go on from here."""
        self.heuristics = state
        self.mark()

    def mark(self, *, last: bool = False) -> None:
        """Say that everything fits together now."""
        self.emitter.emit(SafePoint(self.emitter.seconds, self.essence, self.state, last))
