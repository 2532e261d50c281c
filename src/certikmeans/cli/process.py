"""Exit codes, error messages, standard streams, signals and memory limits of the process."""

from __future__ import annotations

import contextlib
import functools
import mmap
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


def exit_code_for(status: Status) -> ExitCode:
    """Return the code for what was proven.

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
    """Have our own warnings look like everything else on standard error."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *more: Any, **others: Any) -> None:
        if category.__module__.startswith("certikmeans"):
            to_stderr(f"warning: {message}\n")
        else:
            usual(message, category, *more, **others)

    warnings.showwarning = show


def with_exit_codes(command: Callable[P, ExitCode]) -> Callable[P, None]:
    """Wrap a command: its return value and its errors become exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except CertikmeansError as error:
            show_error(error.message, error.hint)
            code = ExitCode.BAD_INPUT
        except MemoryError as error:
            code = _report_out_of_memory(error)
        except KeyboardInterrupt:
            show_error("interrupted before there was a result")
            code = ExitCode.ABORTED
        except Exception as error:
            if isinstance(error, ImportError | OSError) and memory_is_limited():
                # A library that does not fit under a limit (ulimit -v) cannot be loaded.
                raise typer.Exit(int(_report_out_of_memory(error))) from error
            to_stderr(traceback.format_exc())
            show_error("this is a bug in certikmeans", "please report it with the lines above")
            code = ExitCode.BUG
        raise typer.Exit(int(code))

    return run


def _report_out_of_memory(error: Exception) -> ExitCode:
    said = f" ({error})" if str(error) else ""
    show_error(f"not enough memory{said}", "try a smaller input, a larger machine or limit")
    return ExitCode.BAD_INPUT


def show_error(message: str, hint: str | None = None) -> None:
    """Write an error, and the hint on a line of its own, to stderr."""
    to_stderr(f"error: {_truncate(with_option_names(message))}\n")
    if hint:
        to_stderr(f"hint: {_truncate(with_option_names(hint))}\n")


def _truncate(text: str, limit: int = 4000) -> str:
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
        _redirect_to_devnull(sys.stderr.fileno())


def to_stdout(text: str) -> None:
    """Write to stdout. A reader that went away (``| head``) has had enough: no error."""
    if sys.stdout is None:
        raise _stdout_error("it is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _redirect_to_devnull(sys.stdout.fileno())
    except OSError as error:
        _redirect_to_devnull(sys.stdout.fileno())
        raise _stdout_error(error.strerror or str(error)) from error


def _stdout_error(why: str) -> InputError:
    return InputError(
        f"standard output could not be written ({why})",
        hint="files that were asked for are written all the same",
    )


def install_sigterm_handler() -> None:
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


def redirect_closed_streams() -> None:
    """Point closed standard streams at nothing.

    Otherwise the next file to be opened gets their number, and what a C library prints goes
    into it. Python's own ``sys.stdout`` stays None.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _redirect_to_devnull(descriptor: int) -> None:
    # Otherwise the interpreter complains when it flushes the stream at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


# Memory limits (``ulimit -v``), under which linear algebra may wait for ever.
#
# OpenBLAS takes buffers of its own when it is first used, and more with every thread. Where they are
# not to be had it tries again without end, inside a call that no signal interrupts. So under a limit
# it gets one thread, and its buffers before anything else is taken. LLVM, without which no kernel
# runs, ends the process where it finds no room. If there is too little for both and for a small
# problem, the run ends before it begins.

# Two copies of OpenBLAS, that of numpy and that of scipy; LLVM; kernels; a small problem. Address
# space, not memory: with a limit of 550 MB a run of 400 points is aborted, with 620 MB it ends.
_ROOM = 512 << 20
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def memory_is_limited() -> bool:
    """Whether the address space of this process has a limit."""
    try:
        import resource
    except ImportError:  # not on this system
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def use_one_thread_if_memory_limited() -> None:
    """Ask for one thread of linear algebra, before it is loaded."""
    if memory_is_limited():
        for name in _THREADS:
            os.environ.setdefault(name, "1")


def reserve_buffers_if_memory_limited() -> None:
    """Have linear algebra take its buffers now; an `InputError` if there is no room."""
    if not memory_is_limited():
        return
    try:
        mmap.mmap(-1, _ROOM).close()
    except (OSError, ValueError) as error:
        raise InputError(
            "there is not enough memory to begin with",
            hint=f"raise the limit (ulimit -v) by {_ROOM >> 10} kilobytes, or lift it",
        ) from error
    import numpy as np
    from scipy.linalg import eigh

    matrix = np.eye(64)
    np.linalg.eigh(matrix @ matrix)
    eigh(matrix, subset_by_index=(0, 3))


# Messages of the library mention arguments of Python; the command line prints its options instead.

_KIND_OPTIONS = {"'must'": "--must-link", "'cannot'": "--cannot-link", "None": "--constraints"}
_OPTION_NAMES = {
    "n_clusters": "-k",
    "label_column": "--labels-column",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("gap", "time_limit", "bound", "branching", "jobs", "seed", "node_limit"),
            *("selection", "one_based", "header", "columns", "drop", "start_labels", "slack"),
        )
    },
}


def option_text(argument: Argument) -> str:
    """Return the option of the command line that sets an argument of Python.

    >>> option_text(Argument("header", "'none'")), option_text(Argument("kind", "None"))
    ('--header none', '--constraints')
    """
    value = argument.value
    if argument.name == "kind" and value in _KIND_OPTIONS:
        return _KIND_OPTIONS[value]
    option = _OPTION_NAMES.get(argument.name)
    if option is None:
        return str(argument)
    if value is None or value == "True":
        return option
    return f"{option} {value if ' ' in value else value.strip(chr(39))}"


def with_option_names(text: str) -> str:
    """Return a message in terms of command-line options.

    >>> with_option_names(Message("pass ", Argument("drop", "'id'")))
    'pass --drop id'
    """
    return text.spelled(option_text) if isinstance(text, Message) else text
