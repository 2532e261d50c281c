"""Compile in a second process what a run will need later, while it compiles what it needs now.

numba compiles one function at a time in a process; what another process has compiled is in the
same directory, ready to be loaded. That a process could not be started, or failed, costs nothing
but time: whoever needs a kernel that is not there compiles it.
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

_LONGEST_SECONDS = 300.0  # then it hangs
_PATIENCE_SECONDS = 0.1  # between two looks at the cause
_INSIDE = "CERTIKMEANS_COMPILES_AHEAD"  # set in such a process: it starts no other


def is_cached(kernel: Any) -> bool:
    """Whether machine code of a kernel is on disk, perhaps of an older version of it."""
    if kernel.signatures:
        return True
    try:
        folder = kernel.stats.cache_path
    except AttributeError:  # not a compiled function: nothing to keep
        return True
    return folder is None or any(Path(folder).glob(f"*.{kernel.__name__}-*.nbi"))


def cores() -> int:
    """How many processes can compile at a time."""
    count = getattr(os, "process_cpu_count", None)  # from Python 3.13 on
    if count is not None:
        return count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _may_start() -> bool:
    """Whether Python can be started, by a process that is nobody's worker."""
    name = Path(sys.executable or "").name.lower()
    is_python = name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    is_worker = os.environ.get(_INSIDE) or multiprocessing.parent_process() is not None
    return is_python and not is_worker


@final
class BackgroundCompiler:
    """A process that compiles, or none where that would not help.

    Parameters
    ----------
    statement : str
        What the process is to do, in Python.
    kernels : sequence of dispatchers
        What it will compile. If any of them is on disk, nothing is started.
    """

    def __init__(self, statement: str, kernels: Sequence[Any]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kernels = tuple(kernels)
        wanted = kernels and not any(is_cached(kernel) for kernel in kernels)
        if not wanted or cores() < 2 or not _may_start():
            return
        paths = os.pathsep.join(path for path in sys.path if path)
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", statement],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, _INSIDE: "1", "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is for this process, which ends that one
            )

    @property
    def is_running(self) -> bool:
        """Whether there is something to wait for."""
        return self._process is not None and self._process.poll() is None

    def wait(self, reason: Callable[[], object]) -> None:
        """Wait for the end, off the clock; give up as soon as there is a cause to stop."""
        if self._process is None:
            return
        if self.is_running:
            with CLOCK.paused():
                notify(self._kernels[-1].__name__)
                deadline = time.monotonic() + _LONGEST_SECONDS
                while self.is_running and reason() is None and time.monotonic() < deadline:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(_PATIENCE_SECONDS)
        self.end()

    def end(self) -> None:
        """Have done with it, finished or not."""
        if self._process is not None:
            if self.is_running:
                self._process.kill()
            self._process.wait()
            self._process = None
