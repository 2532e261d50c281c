"""Exit codes, error messages, standard streams and signals of the process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
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

from certikmeans.errors import Argument, CertikmeansError, InputError, Message
from certikmeans.options import Options
from certikmeans.status import Status

P = ParamSpec("P")


class ExitCode(IntEnum):
    """Exit codes of the process."""

    GAP_REACHED = 0
    STOPPED_EARLY = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    REFUSED = 4
    # Python's own code for an uncaught exception is 1, which here means "an answer was found".
    BUG = 70
    ABORTED = 130


def exit_code_for(status: Status) -> ExitCode:
    """Return the exit code for a status.

    >>> exit_code_for(Status.FEASIBLE)
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


def install_warning_format() -> None:
    """Print warnings of this package in the format of the other messages on standard error."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *more: Any, **others: Any) -> None:
        if category.__module__.startswith("certikmeans"):
            to_stderr(f"warning: {message}\n")
        else:
            usual(message, category, *more, **others)

    warnings.showwarning = show


def with_exit_codes(command: Callable[P, ExitCode]) -> Callable[P, None]:
    """Wrap a command so that its return value and its errors become exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except CertikmeansError as error:
            show_error(error.message, error.hint)
            code = ExitCode.BAD_INPUT
        except MemoryError as error:
            detail = f" ({error})" if str(error) else ""
            show_error(f"not enough memory{detail}", "try a smaller input or a larger machine")
            code = ExitCode.BAD_INPUT
        except KeyboardInterrupt:
            show_error("interrupted before there was a result")
            code = ExitCode.ABORTED
        except Exception:
            to_stderr(traceback.format_exc())
            show_error("this is a bug in certikmeans", "please report it with the lines above")
            code = ExitCode.BUG
        raise typer.Exit(int(code))

    # For typer, which reads both; not all versions of Python copy the annotations.
    run.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    run.__annotations__ = inspect.get_annotations(command, eval_str=True)
    return run


def show_error(message: str, hint: str | None = None) -> None:
    """Write an error, and the hint on a line of its own, to stderr."""
    to_stderr(f"error: {_truncate(with_option_names(message))}\n")
    if hint:
        to_stderr(f"hint: {_truncate(with_option_names(hint))}\n")


def _truncate(text: str, limit: int = 4000) -> str:
    """Limit the length of a message, which may quote a file."""
    return text if len(text) <= limit else text[:limit] + " ..."


_CONTROLS = {
    number: f"\\x{number:02x}"
    for number in (*range(32), *range(127, 160))
    if chr(number) not in "\n\t"
}


def without_controls(text: str) -> str:
    """Return the text with control characters escaped, which a file may have put into it.

    >>> without_controls("column x\\x1b[2J")
    'column x\\\\x1b[2J'
    """
    return text.translate(_CONTROLS)


_SHOWN_PATHS: dict[str, str] = {}


def show_path_as(path: str, name: str) -> None:
    """Let messages name a temporary file by what it holds."""
    _SHOWN_PATHS[path] = name


def to_stderr(text: str) -> None:
    """Write to stderr; a closed stream is no error."""
    if sys.stderr is None:
        return
    for path, name in _SHOWN_PATHS.items():
        text = text.replace(path, name)
    try:
        sys.stderr.write(without_controls(text))
        sys.stderr.flush()
    except OSError:
        _redirect_to_devnull(sys.stderr.fileno())


def to_stdout(text: str) -> None:
    """Write to stdout; a reader that has closed the pipe (``| head``) is no error."""
    if sys.stdout is None:
        raise _stdout_error("it is closed")
    try:
        sys.stdout.write(without_controls(text))
        sys.stdout.flush()
    except BrokenPipeError:
        _redirect_to_devnull(sys.stdout.fileno())
    except OSError as error:
        _redirect_to_devnull(sys.stdout.fileno())
        raise _stdout_error(error.strerror or str(error)) from error


def _stdout_error(why: str) -> InputError:
    return InputError(
        f"standard output could not be written ({why})", hint="output files are not affected"
    )


def install_sigterm_handler() -> None:
    """Report SIGTERM until a command installs its own handler.

    Without raising an exception, which libraries that are being imported may suppress.
    """
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"error: terminated before there was a result\n")
    os._exit(ExitCode.ABORTED)


def redirect_closed_streams() -> None:
    """Redirect closed standard streams to the null device.

    Otherwise the next file that is opened gets their number, and output of C libraries goes
    into it. ``sys.stdout`` stays None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _redirect_to_devnull(descriptor: int) -> None:
    # Otherwise the interpreter complains when it flushes the stream at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


# Messages of the library mention arguments of Python; the command line prints its options instead.

_KIND_OPTIONS = {"'must'": "--must-link", "'cannot'": "--cannot-link", "None": "--constraints"}
_ARGUMENTS = {field.name for field in dataclasses.fields(Options)} | {
    *("one_based", "header", "columns", "drop", "start_labels", "slack", "id_column"),
    *("penalty", "size_min", "size_max", "balanced", "demand"),
}


def option_text(argument: Argument) -> str:
    """Return the option of the command line that sets an argument of Python.

    >>> option_text(Argument("header", "'none'")), option_text(Argument("kind", "None"))
    ('--header none', '--constraints')
    """
    value = argument.value
    if argument.name == "kind" and value in _KIND_OPTIONS:
        return _KIND_OPTIONS[value]
    name = {"label_column": "labels_column"}.get(argument.name, argument.name)
    if name not in _ARGUMENTS | {"labels_column"}:
        return str(argument)
    option = f"--{name.replace('_', '-')}"
    variable = f"CERTIKMEANS_{name.upper()}"
    if variable in os.environ and option not in [one.partition("=")[0] for one in sys.argv]:
        return f"{option} (from {variable})"
    if value is None or value == "True":
        return option
    text = value if " " in value else value.strip("'")
    return f"{option} {text}"


def with_option_names(text: str) -> str:
    """Return a message in terms of command-line options.

    >>> with_option_names(Message("pass ", Argument("drop", "'id'")))
    'pass --drop id'
    """
    return text.spelled(option_text) if isinstance(text, Message) else text
