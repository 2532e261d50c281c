"""Live progress on a terminal, occasional plain lines elsewhere. Listeners, nothing more."""

from __future__ import annotations

import contextlib
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, final

from certikmeans._jit.compile_events import KernelCompilation
from certikmeans.events import (
    BoundImproved,
    BoundProgress,
    Event,
    Finished,
    HeuristicProgress,
    IncumbentFound,
    PresolveDone,
    StageFinished,
    StageStarted,
    TreeProgress,
)
from certikmeans.report.numbers import count, duration, percent, rounded_down, rounded_up
from certikmeans.tolerances import relative_gap

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FIRST_RUN_MESSAGE = "first run: compiling may take half a minute, outside of every time limit"
_DIGITS = 8
_SECONDS_BETWEEN_LINES = 1.0
_SECONDS_BETWEEN_KERNELS = 5.0
_REFRESHES_PER_SECOND = 8


@final
class ProgressState:
    """What the events so far amount to.

    Examples
    --------
    >>> state = ProgressState()
    >>> state.update(IncumbentFound(0.5, 12.0, "lloyd"))
    >>> state.update(BoundImproved(0.9, 9.0, "sample"))
    >>> state.values()
    'cost 12, lower bound 9, gap 25 %'
    """

    def __init__(self) -> None:
        self.stage = "starting"
        self.cost = math.inf
        self.lower_bound = -math.inf
        self.presolve: PresolveDone | None = None
        self.heuristic: HeuristicProgress | None = None
        self.tree: TreeProgress | None = None
        self.bound: BoundProgress | None = None
        self.finished: Finished | None = None

    def update(self, event: Event) -> None:
        """Take ``event`` into account."""
        match event:
            case StageStarted():
                self.stage = event.stage
                self.bound = None
            case PresolveDone():
                self.presolve = event
            case IncumbentFound():
                self.cost = event.cost
            case BoundImproved():
                self.lower_bound = event.lower_bound
            case HeuristicProgress():
                self.heuristic = event
            case TreeProgress():
                self.tree = event
            case BoundProgress():
                self.bound = event
            case Finished():
                self.finished = event
                self.cost = event.result.cost
                self.lower_bound = event.result.lower_bound
            case _:
                pass

    def activity(self) -> str:
        """Return the stage and how far it is."""
        if self.finished is not None:
            return f"finished, {self.finished.result.status}"
        if self.stage == "heuristics" and self.heuristic is not None:
            tried, budget = self.heuristic.trials, self.heuristic.budget
            if budget < tried:  # a single descent has no budget
                return f"heuristics: {count(tried, 'start')}"
            return f"heuristics: {tried:,} of {count(budget, 'start')}"
        if self.stage == "search" and self.tree is not None:
            return f"tree: {count(self.tree.nodes, 'node')}, {self.tree.open_nodes:,} open"
        if self.stage == "bounds" and self.bound is not None:
            done = (f"{number:,} {what}" for what, number in self.bound.done.items())
            return f"bounds: {self.bound.source}, {', '.join(done)}"
        return self.stage

    def sizes(self) -> str:
        """Return the size of the reduced problem; empty until presolve is done."""
        if self.presolve is None:
            return ""
        text = f"{count(self.presolve.n_points, 'point')}, {count(self.presolve.n_groups, 'group')}"
        if self.presolve.n_components:
            text += (
                f", {count(self.presolve.n_components, 'component')} "
                f"(largest {self.presolve.largest_component:,})"
            )
        return text

    def values(self) -> str:
        """Return incumbent, bound and gap as far as they are known."""
        parts = []
        if math.isfinite(self.cost):
            parts.append(f"cost {rounded_up(self.cost, _DIGITS)}")
        if math.isfinite(self.lower_bound):
            parts.append(f"lower bound {rounded_down(self.lower_bound, _DIGITS)}")
        if len(parts) == 2:
            parts.append(f"gap {percent(relative_gap(self.cost, self.lower_bound))}")
        return ", ".join(parts)


class ProgressDisplay(ABC):
    """A listener that is also a context: whatever it draws is cleared up on leaving.

    Losing the terminal must not lose the run: an output error makes it fall silent.
    """

    @abstractmethod
    def __call__(self, event: Event) -> None: ...

    @abstractmethod
    def announce(self, message: str) -> None:
        """Show ``message`` soon. Called from a signal handler: must not wait for a lock."""

    @abstractmethod
    def compiling(self, progress_event: KernelCompilation) -> None:
        """Say that a kernel is being compiled. Called from any thread: must not wait for a lock."""

    @abstractmethod
    def restore_terminal(self) -> None:
        """Undo what would outlive an abrupt end of the process."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def make_progress(stream: TextIO | None, *, quiet: bool = False) -> ProgressDisplay:
    """Choose how to show progress on ``stream``: silent, live, or as plain lines."""
    if quiet or stream is None:
        return SilentProgress()
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream, highlight=False)
        if not console.is_dumb_terminal:
            return LiveProgress(console)
    return PlainProgress(stream)


@final
class SilentProgress(ProgressDisplay):
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        pass

    def announce(self, message: str) -> None:
        pass

    def compiling(self, progress_event: KernelCompilation) -> None:
        pass

    def restore_terminal(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass


@final
class PlainProgress(ProgressDisplay):
    """One line per stage and per second at most: for log files and pipes.

    Parameters
    ----------
    stream : text file
        Where to write.
    clock : callable
        Seconds; replaced in tests.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream: TextIO | None = stream
        self._clock = clock
        self._last_line = -math.inf
        self._last_kernel: float | None = None
        self._state = ProgressState()

    def __call__(self, event: Event) -> None:
        self._state.update(event)
        if isinstance(event, StageFinished):  # the next line says what came of it
            return
        now = self._clock()
        always = isinstance(event, StageStarted | Finished | PresolveDone)
        if not always and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        shown = self._state.sizes() if isinstance(event, PresolveDone) else self._state.values()
        line = f"[{duration(event.seconds):>10}] {self._state.activity()}"
        self._write(f"{line}: {shown}\n" if shown else f"{line}\n")

    def announce(self, message: str) -> None:
        # Not through the stream: a signal may arrive in the middle of one of its writes.
        if self._stream is not None:
            try:
                os.write(self._stream.fileno(), f"{message}\n".encode())
            except (OSError, ValueError):
                self._stream = None

    def compiling(self, progress_event: KernelCompilation) -> None:
        now = self._clock()
        if self._last_kernel is None:
            self.announce(FIRST_RUN_MESSAGE)
        elif now - self._last_kernel < _SECONDS_BETWEEN_KERNELS:
            return
        else:
            self.announce(f"compiling kernel {progress_event.number} ({progress_event.kernel})")
        self._last_kernel = now

    def restore_terminal(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


@final
class LiveProgress(ProgressDisplay):
    """A few lines at the bottom of a terminal, redrawn several times a second."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._state = ProgressState()
        self._message = ""
        self._compiling = ""
        self._started = time.monotonic()
        self._live = Live(
            get_renderable=self.render,
            console=console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def render(self) -> Text:
        """Draw the present state. Asked for by rich at every refresh."""
        from rich.text import Text

        # A shallow read of the state: the worst a race can do is to mix two moments for 0.1 s.
        elapsed = time.monotonic() - self._started
        turn = "-\\|/"[int(elapsed * _REFRESHES_PER_SECOND) % 4]
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{turn} ", style="bold")
        text.append(f"{duration(elapsed):>8}  {self._state.activity()}")
        for line in (self._state.sizes(), self._state.values()):
            if line:
                text.append(f"\n            {line}")
        if self._compiling:
            text.append(f"\n            {self._compiling}")
        if self._message:
            text.append(f"\n{self._message}", style="bold")
        return text

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._live.start()
        return self

    def __call__(self, event: Event) -> None:
        self._compiling = ""
        self._state.update(event)

    def announce(self, message: str) -> None:
        self._message = message

    def compiling(self, progress_event: KernelCompilation) -> None:
        self._compiling = str(progress_event)

    def restore_terminal(self) -> None:
        # The live display hides the cursor.
        try:
            os.write(self._console.file.fileno(), b"\x1b[?25h\n")
        except (OSError, ValueError):
            return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._live.stop()
            self._print_final_line()

    def _print_final_line(self) -> None:
        if self._state.finished is not None:
            seconds = duration(self._state.finished.seconds)
            values = self._state.values()
            line = f"[{seconds:>10}] {self._state.activity()}"
            self._console.print(
                f"{line}: {values}" if values else line, markup=False, soft_wrap=True
            )
