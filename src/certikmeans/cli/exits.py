"""Exit codes, and how every error ends: a message, a hint, a code."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from enum import IntEnum
from types import FrameType
from typing import Any, ParamSpec

import typer

from certikmeans.cli.memory import is_limited
from certikmeans.cli.wording import on_command_line
from certikmeans.errors import CertikmeansError, InputError
from certikmeans.status import Status

P = ParamSpec("P")


class ExitCode(IntEnum):
    """What the exit code of the process means."""

    GAP_REACHED = 0
    STOPPED_EARLY = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    REFUSED = 4
    # Python's own code for an uncaught exception is 1, which here means "an answer was found".
    BUG = 70
    ABORTED = 130


def exit_code_of(status: Status) -> ExitCode:
    """Return the code for what was proven.

    >>> exit_code_of(Status.FEASIBLE)
    <ExitCode.STOPPED_EARLY: 1>
    """
    match status:
        case Status.OPTIMAL:
            return ExitCode.GAP_REACHED
        case Status.FEASIBLE | Status.UNKNOWN:
            return ExitCode.STOPPED_EARLY
        case Status.INFEASIBLE:
            return ExitCode.INFEASIBLE
        case _:
            raise AssertionError(f"no exit code for status {status!r}")


def show_warnings_plainly() -> None:
    """Have our own warnings look like everything else on standard error."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *more: Any, **others: Any) -> None:
        if category.__module__.startswith("certikmeans"):
            to_stderr(f"warning: {message}\n")
        else:
            usual(message, category, *more, **others)

    warnings.showwarning = show


def guarded(command: Callable[P, ExitCode]) -> Callable[P, None]:
    """Wrap a command: its return value and its errors become exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except CertikmeansError as error:
            hint = error.hint and on_command_line(_cut(error.hint))
            show_error(on_command_line(_cut(error.message)), hint)
            code = ExitCode.BAD_INPUT
        except MemoryError as error:
            code = _no_memory(error)
        except KeyboardInterrupt:
            show_error("interrupted before there was a result")
            code = ExitCode.ABORTED
        except Exception as error:
            if isinstance(error, ImportError | OSError) and is_limited():
                # A library that does not fit under a limit (ulimit -v) cannot be loaded.
                raise typer.Exit(int(_no_memory(error))) from error
            to_stderr(traceback.format_exc())
            show_error("this is a bug in certikmeans", "please report it with the lines above")
            code = ExitCode.BUG
        raise typer.Exit(int(code))

    return run


def _no_memory(error: Exception) -> ExitCode:
    said = f" ({error})" if str(error) else ""
    show_error(f"not enough memory{said}", "try a smaller input, a larger machine or limit")
    return ExitCode.BAD_INPUT


def show_error(message: str, hint: str | None = None) -> None:
    """Write an error, and the hint on a line of its own, to stderr."""
    to_stderr(f"error: {_cut(message)}\n" + (f"hint: {_cut(hint)}\n" if hint else ""))


def _cut(text: str, limit: int = 4000) -> str:
    """Whatever a file holds, a message stays readable."""
    return text if len(text) <= limit else text[:limit] + " ..."


def to_stderr(text: str) -> None:
    """Write to stderr; if nobody listens any more, that is no reason to fail."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _point_at_nothing(sys.stderr.fileno())


def to_stdout(text: str) -> None:
    """Write to stdout. A reader that went away (``| head``) has had enough: no error."""
    if sys.stdout is None:
        raise _no_stdout("it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _point_at_nothing(sys.stdout.fileno())
    except OSError as error:
        _point_at_nothing(sys.stdout.fileno())
        raise _no_stdout(error.strerror or str(error)) from error


def _no_stdout(why: str) -> InputError:
    return InputError(
        f"standard output could not be written ({why})",
        hint="files that were asked for are written all the same",
    )


def end_on_sigterm() -> None:
    """Say so if the process is told to end before a command takes care of that itself.

    Not by an exception: libraries that are being imported may swallow it.
    """
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"error: terminated before there was a result\n")
    os._exit(ExitCode.ABORTED)


def occupy_closed_streams() -> None:
    """Point closed standard streams at nothing.

    Otherwise the next file to be opened gets their number, and what a C library prints goes
    into it. Python's own ``sys.stdout`` stays None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _point_at_nothing(descriptor: int) -> None:
    # Otherwise the interpreter complains when it flushes the stream at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
