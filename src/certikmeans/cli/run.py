"""Run the solver from the command line: progress, Ctrl-C, checkpoints, outputs."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self, final

from certikmeans.cli.inputs import LoadedInputs
from certikmeans.cli.outputs import CompletedRun, OutputOptions, write_outputs
from certikmeans.cli.parameters import LIMITS, OUTPUT, FieldOptions
from certikmeans.cli.process import ExitCode, exit_code_for, to_stderr
from certikmeans.errors import InputError
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.options import Options
    from certikmeans.problem import Problem
    from certikmeans.report.progress import ProgressDisplay
    from certikmeans.result import Result

_STOPPING = "stopping with the best labelling so far; press Ctrl-C again to abort without it"


@final
class InterruptHandler:
    """Context in which Ctrl-C stops the solver; a second one ends the process.

    SIGTERM counts as Ctrl-C: schedulers send it shortly before they kill a job. A signal that
    the parent process ignores stays ignored.
    """

    def __init__(self, stop: StopSignal, progress: ProgressDisplay) -> None:
        self._stop = stop
        self._progress = progress
        self._interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            # Not an exception: worker threads could keep the process waiting for them.
            self._progress.restore_terminal()
            with contextlib.suppress(OSError):
                os.write(2, b"error: aborted, the result is lost\n")
            os._exit(ExitCode.ABORTED)
        self._interrupted = True
        self._stop.interrupt()
        self._progress.announce(_STOPPING)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@final
@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Checkpoints to write and to resume from.

    Parameters
    ----------
    checkpoint : Path or None
        Save the state of the run to this file at intervals and at the end, for --resume.
    checkpoint_every : float
        Seconds between two saved states.
    resume : Path or None
        Continue from a state saved by --checkpoint, or from a certificate.
    """

    checkpoint: Path | None = field(default=None, metadata={"metavar": "F", "panel": OUTPUT})
    checkpoint_every: float = field(default=60.0, metadata={"metavar": "S", "panel": OUTPUT})
    resume: Path | None = field(default=None, metadata={"metavar": "F", "panel": LIMITS})

    def paths(self) -> list[Path]:
        """Return the file to be written, if any."""
        return [] if self.checkpoint is None else [self.checkpoint]

    def check(self) -> None:
        """Reject invalid options before the run."""
        if not 0.0 <= self.checkpoint_every < math.inf:
            raise InputError(
                f"--checkpoint-every: {self.checkpoint_every} is not a number of seconds",
                hint="60 saves the state once a minute",
            )
        if self.resume is not None:
            from certikmeans.checkpoint.file import check_magic

            check_magic(self.resume)


Checkpointing = Annotated[CheckpointOptions, FieldOptions(CheckpointOptions)]


def solve_and_write(
    loaded: LoadedInputs,
    options: Options,
    outputs: OutputOptions,
    checkpointing: CheckpointOptions | None = None,
) -> ExitCode:
    """Solve, write the files, then standard output.

    Returns
    -------
    ExitCode
        That of the status, unless an output could not be written.
    """
    from certikmeans.report.progress import make_progress
    from certikmeans.report.trace import Trace
    from certikmeans.solver.run import solve

    problem, checkpointing = loaded.problem, checkpointing or CheckpointOptions()
    resumed = None
    if checkpointing.resume is not None:
        from certikmeans.checkpoint.resume import resume

        resumed = resume(checkpointing.resume, problem, options)
        options = resumed.options
        if not outputs.quiet:
            to_stderr(f"{checkpointing.resume}: {resumed.describe()}\n")
    trace, stop = Trace(), StopSignal()
    progress = make_progress(sys.stderr, quiet=outputs.quiet)
    with InterruptHandler(stop, progress):
        with progress:
            result = solve(
                problem,
                options,
                callbacks=(trace, progress),
                start_labels=loaded.start_labels,
                stop=stop,
                checkpoint=checkpointing.checkpoint,
                checkpoint_interval=checkpointing.checkpoint_every,
                resume=resumed,
            )
        certainty = None
        if outputs.slack is not None and result.labels is not None:
            with show_compilation(outputs.quiet):
                certainty = result.certainty(outputs.slack, stop=stop)
        run = CompletedRun(
            problem,
            options,
            result,
            trace,
            outputs,
            loaded.feature_names,
            certainty,
            _agreement(result, loaded.classes),
            ids=loaded.ids,
            penalty_unit=loaded.penalty_unit,
        )
        written = write_outputs(run)
    return exit_code_for(result.status) if written else ExitCode.BAD_INPUT


def solve_with_progress(
    problem: Problem, options: Options, start_labels: Any, quiet: bool
) -> Result:
    """Solve, for commands that write no files."""
    from certikmeans.report.progress import make_progress
    from certikmeans.solver.run import solve

    stop = StopSignal()
    progress = make_progress(sys.stderr, quiet=quiet)
    with InterruptHandler(stop, progress), progress:
        return solve(problem, options, callbacks=(progress,), start_labels=start_labels, stop=stop)


@contextlib.contextmanager
def show_compilation(quiet: bool) -> Iterator[None]:
    """Report that kernels are being compiled, where no progress is shown any more."""
    from certikmeans.report.progress import PlainProgress, SilentProgress

    silent = quiet or sys.stderr is None
    with SilentProgress() if silent else PlainProgress(sys.stderr):
        yield


def _agreement(result: Result, classes: Any) -> float | None:
    """Adjusted Rand index with known classes; classes -1, NaN and empty text are unknown."""
    if classes is None or result.labels is None:
        return None
    from sklearn.metrics import adjusted_rand_score

    is_text = classes.dtype.kind == "U"
    # NaN differs from itself.
    known = classes != "" if is_text else (classes == classes) & (classes != -1)
    if not known.any():
        return None
    return float(adjusted_rand_score(classes[known], result.labels[known]))
