"""Run the solver under the eyes of a person: progress, Ctrl-C, and outputs that are not lost."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, final

from certikmeans._atomic import write_atomically
from certikmeans.cli.process import (
    ExitCode,
    exit_code_for,
    reserve_buffers_if_memory_limited,
    show_error,
    to_stderr,
    to_stdout,
)
from certikmeans.errors import CertikmeansError, InputError
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.certainty import Certainty
    from certikmeans.checkpoint.resume import ResumeState
    from certikmeans.options import Options
    from certikmeans.problem import Problem
    from certikmeans.report.progress import ProgressDisplay
    from certikmeans.report.trace import Trace
    from certikmeans.result import Result

_STOPPING = "stopping with the best labelling so far; press Ctrl-C again to abort without it"


@final
class InterruptHandler:
    """While entered, Ctrl-C asks the run to wind up; a second one ends the process.

    SIGTERM counts as Ctrl-C: schedulers send it shortly before they kill a job. A signal that
    the parent process has set to be ignored stays ignored.
    """

    def __init__(self, stop: StopSignal, progress: ProgressDisplay) -> None:
        self._stop = stop
        self._progress = progress
        self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            # Not an exception: worker threads could keep the process waiting for them.
            self._progress.restore_terminal()
            with contextlib.suppress(OSError):
                os.write(2, b"error: aborted, the result is lost\n")
            os._exit(ExitCode.ABORTED)
        self._asked = True
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
class OutputOptions:
    """Where the result goes."""

    json_file: Path | None
    picture_file: Path | None
    json_to_stdout: bool
    quiet: bool
    base: int = 0  # the number that the user gives to the first point
    certificate_file: Path | None = None
    labels_file: Path | None = None
    report_file: Path | None = None
    title: str = "certikmeans"  # of the report
    check_command: str | None = None
    certainty: float | None = None  # the slack; None: not asked for

    def files(self) -> list[Path]:
        """Return the files to be written."""
        every = (self.json_file, self.labels_file, self.picture_file, self.certificate_file)
        return [path for path in (*every, self.report_file) if path is not None]


@final
@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Where the state of the run goes, and where it comes from."""

    file: Path | None = None
    interval_seconds: float = 60.0
    resume: Path | None = None

    def files(self) -> list[Path]:
        """Return the file to be written, if any."""
        return [] if self.file is None else [self.file]

    def check(self) -> None:
        """Refuse what cannot be, before any time is spent."""
        if not 0.0 <= self.interval_seconds < math.inf:
            raise InputError(
                f"--checkpoint-every: {self.interval_seconds} is not a number of seconds",
                hint="60 saves the state once a minute",
            )
        if self.resume is not None:
            from certikmeans.checkpoint.file import check_magic

            check_magic(self.resume)


def solve_and_write(
    problem: Problem,
    options: Options,
    outputs: OutputOptions,
    *,
    start_labels: Any = None,
    classes: Any = None,
    feature_names: tuple[str, ...] | None = None,
    checkpointing: CheckpointOptions | None = None,
) -> ExitCode:
    """Solve, then write the files in the order of their worth, and standard output last.

    Returns
    -------
    ExitCode
        What was proven, unless an output could not be written.
    """
    reserve_buffers_if_memory_limited()

    from certikmeans._jit.compile_events import watch_compilation
    from certikmeans.report.progress import make_progress
    from certikmeans.report.trace import Trace
    from certikmeans.solver.run import solve

    trace, stop, checkpointing = Trace(), StopSignal(), checkpointing or CheckpointOptions()
    before = None
    if checkpointing.resume is not None:
        before = _load_resume_state(checkpointing.resume, problem, options, outputs.quiet)
        options = before.options
    progress = make_progress(sys.stderr, quiet=outputs.quiet)
    with InterruptHandler(stop, progress):
        with progress, watch_compilation(progress.compiling):
            result = solve(
                problem,
                options,
                callbacks=(trace, progress),
                start_labels=start_labels,
                stop=stop,
                checkpoint=checkpointing.file,
                checkpoint_interval=checkpointing.interval_seconds,
                resume=before,
            )
        certainty = None
        if outputs.certainty is not None and result.labels is not None:
            with show_compilation(outputs.quiet):
                certainty = result.certainty(outputs.certainty, stop=stop)
        run = _CompletedRun(problem, options, result, trace, feature_names, certainty)
        written = _write_outputs(run, outputs, _agreement(result, classes))
    return exit_code_for(result.status) if written else ExitCode.BAD_INPUT


def solve_with_progress(
    problem: Problem, options: Options, start_labels: Any, quiet: bool
) -> Result:
    """Solve, for commands that write no files."""
    reserve_buffers_if_memory_limited()

    from certikmeans._jit.compile_events import watch_compilation
    from certikmeans.report.progress import make_progress
    from certikmeans.solver.run import solve

    stop = StopSignal()
    progress = make_progress(sys.stderr, quiet=quiet)
    with InterruptHandler(stop, progress), progress, watch_compilation(progress.compiling):
        return solve(problem, options, callbacks=(progress,), start_labels=start_labels, stop=stop)


@contextlib.contextmanager
def show_compilation(quiet: bool) -> Iterator[None]:
    """Say that kernels are being compiled, where no progress is shown any more."""
    from certikmeans._jit.compile_events import watch_compilation
    from certikmeans.report.progress import PlainProgress

    if quiet or sys.stderr is None:
        yield
        return
    with watch_compilation(PlainProgress(sys.stderr).compiling):
        yield


def _load_resume_state(path: Path, problem: Problem, options: Options, quiet: bool) -> ResumeState:
    """Read the state of a run before, and say what it is good for."""
    from certikmeans.checkpoint.resume import resume

    before = resume(path, problem, options)
    if not quiet:
        to_stderr(f"{path}: {before.describe()}\n")
    return before


@final
@dataclass(frozen=True, slots=True, eq=False)
class _CompletedRun:
    """What there is to tell about a run."""

    problem: Problem
    options: Options
    result: Result
    trace: Trace
    feature_names: tuple[str, ...] | None
    certainty: Certainty | None = None


def _write_outputs(run: _CompletedRun, outputs: OutputOptions, agreement: float | None) -> bool:
    """Hand everything over; False if a file could not be written.

    Files come first: standard output may be full or closed. Whatever goes wrong with one
    output, the others are still delivered.
    """
    from certikmeans.report.summary import summarize

    problem, options, result, trace = run.problem, run.options, run.result, run.trace
    document = _document(run, agreement)
    saved, unexpected_error = _save_files(run, outputs, document, agreement)
    if result.failure is not None:
        show_error(result.failure)
    show_infeasible(result, outputs.base)
    json_is_lost = outputs.json_file is not None and outputs.json_file not in saved
    if outputs.json_to_stdout or json_is_lost:
        to_stdout(document)
    elif not outputs.quiet:
        text = summarize(
            result,
            problem,
            presolve=trace.presolve,
            requested_gap=options.gap,
            agreement=agreement,
        )
        if run.certainty is not None:
            from certikmeans.report.certainty import certainty_lines

            text = "\n".join([text, "", *certainty_lines(run.certainty, outputs.base)])
        to_stdout(f"{text}\n")
    if unexpected_error is not None:
        raise unexpected_error
    return len(saved) == len(outputs.files())


def show_infeasible(result: Result, base: int) -> None:
    """If there is no labelling, say why and what to do about it; points count from ``base``."""
    if result.infeasibility is not None:
        show_error("no labelling respects every pair")
        to_stderr(f"{result.infeasibility.describe(base=base)}\n")
        to_stderr("hint: certikmeans diagnose finds every conflict, and which pairs to remove\n")


def _save_files(
    run: _CompletedRun, outputs: OutputOptions, document: str, agreement: float | None
) -> tuple[list[Path], Exception | None]:
    """Write every file; return those that are settled, and the first error nobody foresaw."""
    problem, result, trace = run.problem, run.result, run.trace

    def draw() -> bytes:
        from certikmeans.report.plots import figure_format, render_figure

        assert outputs.picture_file is not None
        kind = figure_format(outputs.picture_file)
        return render_figure(problem, result, trace, kind, run.feature_names, run.certainty)

    def certify() -> bytes:
        from certikmeans.certificate.write import certificate_bytes

        if run.certainty is not None:
            try:
                return certificate_bytes(problem, result, run.certainty)
            except InputError as error:
                to_stderr(f"the certificate is about the bound alone: {error.message}\n")
        return certificate_bytes(problem, result)

    def report(certified: bool) -> bytes:
        from certikmeans.report.html import report_html

        return report_html(
            problem,
            result,
            trace,
            title=outputs.title,
            feature_names=run.feature_names,
            settings=asdict(run.options),
            agreement=agreement,
            command=shlex.join(["certikmeans", *sys.argv[1:]]),
            check=outputs.check_command,
            certified=certified,
            certainty=run.certainty,
        ).encode()

    saved: list[Path] = []
    unexpected_error: Exception | None = None
    for path, content in (
        (outputs.json_file, document.encode),
        (outputs.labels_file, lambda: _label_lines(result)),
        (outputs.certificate_file, certify),
        (outputs.report_file, lambda: report(outputs.certificate_file in saved)),
        (outputs.picture_file, draw),
    ):
        try:
            if path is not None and _save(path, content, outputs.quiet):
                saved.append(path)
        except Exception as error:
            show_error(f"{path}: could not be written ({type(error).__name__}: {error})")
            unexpected_error = unexpected_error or error
    return saved, unexpected_error


def _label_lines(result: Result) -> bytes | None:
    """One label per line; None where there is no labelling."""
    if result.labels is None:
        return None
    return "".join(f"{label}\n" for label in result.labels.tolist()).encode()


def _save(path: Path, content: Callable[[], bytes | None], quiet: bool) -> bool:
    try:
        made = content()
        if made is None:
            to_stderr(f"{path}: not written, there is no labelling\n")
            return True
        write_atomically(path, made)
    except OSError as error:
        show_error(f"{path}: could not be written ({error.strerror or error})")
        return False
    except CertikmeansError as error:
        show_error(f"{path}: could not be written: {error.message}", hint=error.hint)
        return False
    if not quiet:
        to_stderr(f"wrote {path}\n")
    return True


def _document(run: _CompletedRun, agreement: float | None) -> str:
    import json

    document = {
        **run.result.to_dict(),
        "options": run.options.to_dict(),
        "points_counted_from": 0,  # here, whatever the files of pairs do
    }
    if agreement is not None:
        document["adjusted_rand_index"] = agreement
    if run.certainty is not None:
        document["certainty"] = run.certainty.to_dict()
    return json.dumps(document, allow_nan=False) + "\n"


def _agreement(result: Result, classes: Any) -> float | None:
    if classes is None or result.labels is None:
        return None
    from sklearn.metrics import adjusted_rand_score

    known = _known(classes)
    if not known.any():
        return None
    return float(adjusted_rand_score(classes[known], result.labels[known]))


def _known(classes: Any) -> Any:
    """Leave out points without a class: -1, not a number, or empty text."""
    if classes.dtype.kind == "U":
        return classes != ""
    return (classes == classes) & (classes != -1)  # NaN differs from itself
