"""Compilation of kernels in a second process, ahead of their first use.

numba compiles one function at a time per process, but processes share the cache directory: a
kernel compiled elsewhere is loaded. If the second process cannot be started or fails, kernels are
compiled at their first call, as without it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

from certikmeans._jit.clock import CLOCK
from certikmeans._jit.compile_events import notify

_MAX_WAIT = 300.0  # seconds; the process is then assumed to hang
_POLL_INTERVAL = 0.1  # seconds between checks of the stopping criterion
_IN_BACKGROUND = "CERTIKMEANS_COMPILES_AHEAD"  # set in the process, which starts no other


def is_cached(kernel: Any) -> bool:
    """Whether the kernel, or an older version of it, is compiled or in the cache directory."""
    try:
        if kernel.signatures:
            return True
        folder = kernel.stats.cache_path
    except AttributeError:  # numba is disabled: nothing to compile
        return True
    return folder is None or any(Path(folder).glob(f"*.{kernel.__name__}-*.nbi"))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    count = getattr(os, "process_cpu_count", None)  # from Python 3.13 on
    if count is not None:
        return count() or 1
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _can_start() -> bool:
    """Whether this process is a Python interpreter that is not a worker itself."""
    name = Path(sys.executable or "").name.lower()
    is_python = name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    is_worker = os.environ.get(_IN_BACKGROUND) or multiprocessing.parent_process() is not None
    return is_python and not is_worker


@final
class BackgroundCompiler:
    """A process that compiles kernels; none is started where it would not help.

    Parameters
    ----------
    statement : str
        Python code that the process runs.
    kernels : sequence of dispatchers
        Kernels that it compiles. If any of them is cached, no process is started.
    """

    def __init__(self, statement: str, kernels: Sequence[Any]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kernels = tuple(kernels)
        wanted = kernels and not any(is_cached(kernel) for kernel in kernels)
        if not wanted or available_cores() < 2 or not _can_start():
            return
        paths = os.pathsep.join(path for path in sys.path if path)
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", statement],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, _IN_BACKGROUND: "1", "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C goes to this process, which ends the other
            )

    @property
    def is_running(self) -> bool:
        """Whether the process is still compiling."""
        return self._process is not None and self._process.poll() is None

    def wait(self, reason: Callable[[], object]) -> None:
        """Wait for the process with the clock paused, until ``reason`` returns a reason to stop."""
        if self._process is None:
            return
        if self.is_running:
            with CLOCK.paused():
                notify(self._kernels[-1].__name__)
                deadline = time.monotonic() + _MAX_WAIT
                while self.is_running and reason() is None and time.monotonic() < deadline:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(_POLL_INTERVAL)
        self.end()

    def end(self) -> None:
        """End the process, finished or not."""
        if self._process is not None:
            if self.is_running:
                self._process.kill()
            self._process.wait()
            self._process = None
