"""Events of a run, as plain data: the solver emits them, listeners display them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

from certikmeans._jit.clock import CLOCK
from certikmeans._jit.compile_events import kernels_compiled
from certikmeans.errors import warn_renamed
from certikmeans.result import Result

if TYPE_CHECKING:
    from certikmeans.problem import ReducedProblem


@dataclass(frozen=True, slots=True)
class Event:
    """Event ``seconds`` after the start of the run.

    Time spent in listeners is left out, and so is time in which kernels were compiled.
    An event prints as one short line, so that ``print`` can be used as a listener.
    """

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class StageStarted(Event):
    """A stage (``presolve``, ``heuristics``, ``bounds``, ``search``) began."""

    stage: str


@final
@dataclass(frozen=True, slots=True)
class StageFinished(Event):
    """A stage ended."""

    stage: str


@final
@dataclass(frozen=True, slots=True)
class PresolveDone(Event):
    """The reduced problem is known."""

    n_points: int
    n_groups: int
    n_dims: int
    n_components: int
    largest_component: int

    @property
    def n_axes(self) -> int:
        """Deprecated name of ``n_dims``."""
        warn_renamed("PresolveDone.n_axes", "n_dims")
        return self.n_dims

    @classmethod
    def of(cls, seconds: float, n_points: int, reduced: ReducedProblem) -> PresolveDone:
        """Return the event with the sizes of the reduced problem."""
        sizes = np.diff(reduced.graph.starts)
        return cls(
            seconds,
            n_points=n_points,
            n_groups=reduced.n_groups,
            n_dims=reduced.n_dims,
            n_components=reduced.graph.n_components,
            largest_component=int(sizes.max(initial=1)),
        )


@final
@dataclass(frozen=True, slots=True)
class KernelsCompiled(Event):
    """The stage compiled kernels (once per installation); this time is not counted."""

    kernels: int
    compile_seconds: float


@final
@dataclass(frozen=True, slots=True)
class IncumbentFound(Event):
    """A better labelling was found."""

    cost: float
    source: str


@final
@dataclass(frozen=True, slots=True)
class BoundImproved(Event):
    """A better lower bound was proven."""

    lower_bound: float
    source: str


@final
@dataclass(frozen=True, slots=True)
class BoundStatistics(Event):
    """A bound has ended; ``numbers`` are its statistics."""

    source: str
    numbers: dict[str, float]


@final
@dataclass(frozen=True, slots=True)
class BoundProgress(Event):
    """Progress of a bound: counts by name so far."""

    source: str
    done: dict[str, int]


@final
@dataclass(frozen=True, slots=True)
class HeuristicProgress(Event):
    """The heuristics have tried another batch of starts."""

    trials: int
    budget: int


@final
@dataclass(frozen=True, slots=True)
class TreeProgress(Event):
    """The tree has grown by a node, or a node was closed."""

    nodes: int
    open_nodes: int
    depth: int
    lower_bound: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeClosed(Event):
    """A node was closed.

    ``door`` is the reason: ``split``, ``bound``, ``infeasible`` or ``unsplittable``. ``part`` is
    the domain of the node: a `PairDomain` (pairs of original points), or a `Domain`: a
    box for every centre, in the coordinates ``(x - center) @ axes`` of `Proof`.
    """

    number: int
    parent: int
    depth: int
    door: str
    lower_bound: float
    part: object = field(repr=False)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CheckpointOpportunity(Event):
    """The state of the run is consistent: it could be saved, and another run continue from it.

    ``essence`` returns incumbent and bound, ``state`` the rest (`certikmeans.solver.state`); both
    are valid while the event is handled. ``last`` is True at the end of the run.
    """

    essence: Callable[[], object] = field(repr=False)
    state: Callable[[], object] = field(repr=False)
    last: bool = False


@final
@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The run ended with ``result``. Always the last event."""

    result: Result


Listener = Callable[[Event], None]
_PROGRESS_INTERVAL = 0.25


@final
class EventBus:
    """Passes events to listeners and keeps their time out of the clock, and that of compiling.

    An error raised by a listener ends the run: a certificate or checkpoint that
    cannot be written must not be ignored.
    """

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._listeners = tuple(listeners)
        self._started = CLOCK.now()
        self._in_listeners = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those spent in listeners or in compiling."""
        return CLOCK.now() - self._started - self._in_listeners

    def emit(self, event: Event) -> None:
        """Pass ``event`` to every listener, in order."""
        began = CLOCK.now()
        try:
            for listener in self._listeners:
                listener(event)
        finally:
            self._in_listeners += CLOCK.now() - began


@final
class ProgressCounter:
    """Adds up progress of a bound and emits it a few times a second."""

    def __init__(self, emitter: EventBus, source: str) -> None:
        self._emitter, self._source = emitter, source
        self._done: dict[str, int] = {}
        self._last_emitted = emitter.seconds

    def __call__(self, **done: int) -> None:
        """Count what was done, by its name."""
        for name, count in done.items():
            self._done[name] = self._done.get(name, 0) + count
        now = self._emitter.seconds
        if now - self._last_emitted >= _PROGRESS_INTERVAL:
            self._last_emitted = now
            self._emitter.emit(BoundProgress(now, self._source, dict(self._done)))


@final
class Timer:
    """Emits begin and end of stages, and adds up their times."""

    def __init__(self, emitter: EventBus) -> None:
        self._emitter = emitter
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, however it ends."""
        self._emitter.emit(StageStarted(self._emitter.seconds, name))
        kernels, excluded = kernels_compiled(), CLOCK.excluded()
        try:
            with self.counted(name):
                yield
        finally:
            kernels, excluded = kernels_compiled() - kernels, CLOCK.excluded() - excluded
            if kernels:
                self._emitter.emit(KernelsCompiled(self._emitter.seconds, kernels, excluded))
            self._emitter.emit(StageFinished(self._emitter.seconds, name))

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Add time to a stage without events, for work done before its turn."""
        began = self._emitter.seconds
        try:
            yield
        finally:
            spent = self._emitter.seconds - began
            self._seconds[name] = self._seconds.get(name, 0.0) + spent

    def seconds(self) -> dict[str, float]:
        """Seconds so far: "total", and those of every stage."""
        return {"total": self._emitter.seconds, **self._seconds}
