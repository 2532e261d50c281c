"""Progress displays: live on a terminal, occasional plain lines in other streams."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, final

from certikmeans._jit.compile_events import KernelCompilation, watch_compilation
from certikmeans._numbers import cost_text, count, duration, percent, rounded_down
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
from certikmeans.tolerances import relative_gap

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FIRST_RUN_MESSAGE = (
    "first run of this kind of problem: compiling may take half a minute, once, outside of every "
    "time limit"
)
_DIGITS = 8
_SECONDS_BETWEEN_LINES = 1.0
_SECONDS_BETWEEN_KERNELS = 5.0
_REFRESHES_PER_SECOND = 8


@final
class ProgressState:
    """State of a run according to its events so far.

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
        """Update the state by ``event``."""
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
        """Return the stage and its progress."""
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
        """Return the size of the reduced problem; empty before presolve is done."""
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
        """Return the known ones of incumbent, bound and gap."""
        parts = []
        if math.isfinite(self.cost):
            parts.append(f"cost {cost_text(self.cost, _DIGITS)}")
        if math.isfinite(self.lower_bound):
            parts.append(f"lower bound {rounded_down(self.lower_bound, _DIGITS)}")
        if len(parts) == 2:
            parts.append(f"gap {percent(relative_gap(self.cost, self.lower_bound))}")
        return ", ".join(parts)


class ProgressDisplay:
    """A listener for the events of a run that is also a context; this base class shows nothing.

    While entered, it is notified of kernels being compiled. An output error silences a display and
    never ends the run.
    """

    def __init__(self) -> None:
        self._watch = contextlib.ExitStack()

    def __call__(self, event: Event) -> None:
        """Show ``event``."""

    def announce(self, message: str) -> None:
        """Show ``message`` soon. Called from a signal handler: must not wait for a lock."""

    def compiling(self, event: KernelCompilation) -> None:
        """Show that a kernel is compiled. Called from any thread: must not wait for a lock."""

    def restore_terminal(self) -> None:
        """Undo what would outlive an abrupt end of the process."""

    def __enter__(self) -> Self:
        self._watch.enter_context(watch_compilation(self.compiling))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watch.close()


def make_progress(
    stream: TextIO | None,
    *,
    quiet: bool = False,
    on_compile: Callable[[KernelCompilation], None] | None = None,
) -> ProgressDisplay:
    """Return a display for ``stream``: silent, live on a terminal, or plain lines.

    A silent display calls ``on_compile`` when a kernel is compiled.
    """
    if quiet or stream is None:
        return SilentProgress(on_compile)
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream, highlight=False)
        if not console.is_dumb_terminal:
            return LiveProgress(console)
    return PlainProgress(stream)


@final
class SilentProgress(ProgressDisplay):
    """Shows nothing; may report compilation to a callback."""

    def __init__(self, on_compile: Callable[[KernelCompilation], None] | None = None) -> None:
        super().__init__()
        self._on_compile = on_compile

    def compiling(self, event: KernelCompilation) -> None:
        if self._on_compile is not None:
            self._on_compile(event)


@final
class PlainProgress(ProgressDisplay):
    """One line per stage, at most one per second within a stage: for log files and pipes.

    Parameters
    ----------
    stream : text file
        Output stream.
    clock : callable
        Returns seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._stream: TextIO | None = stream
        self._clock = clock
        self._last_line = -math.inf
        self._last_kernel: float | None = None
        self._state = ProgressState()

    def __call__(self, event: Event) -> None:
        self._state.update(event)
        if isinstance(event, StageFinished):  # the next line shows its result
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

    def compiling(self, event: KernelCompilation) -> None:
        now = self._clock()
        if self._last_kernel is None:
            self.announce(FIRST_RUN_MESSAGE)
        elif now - self._last_kernel < _SECONDS_BETWEEN_KERNELS:
            return
        else:
            self.announce(f"compiling kernel {event.number} ({event.kernel})")
        self._last_kernel = now

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

        super().__init__()
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
        """Return the display of the present state; called by rich at every refresh."""
        from rich.text import Text

        # Not synchronised: a race can at worst mix two states for 0.1 s.
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
        return super().__enter__()

    def __call__(self, event: Event) -> None:
        self._compiling = ""
        self._state.update(event)

    def announce(self, message: str) -> None:
        self._message = message

    def compiling(self, event: KernelCompilation) -> None:
        self._compiling = str(event)

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
        super().__exit__(kind, error, traceback)
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
