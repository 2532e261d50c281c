"""Run the command line in a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.forkserver import TIMEOUT_SECONDS, run_in_forkserver

COMMAND = (sys.executable, "-m", "certikmeans")
_ROOT = Path(__file__).resolve().parents[2]


def with_fake_solver(behaviour: str) -> tuple[str, ...]:
    """Return the command with a solver of the given behaviour; see `tests.cli.fake_solver`."""
    return (sys.executable, "-m", "tests.cli.fake_solver", behaviour)


def run(
    *arguments: object,
    cwd: Path,
    command: tuple[str, ...] = COMMAND,
    settings: dict[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run ``certikmeans`` to its end: forked, unless there are ``settings`` or ``options``."""
    if not settings and not options and command == COMMAND:
        there = {"cwd": cwd, "environment": _environment()}
        return run_in_forkserver("certikmeans", *map(str, arguments), **there)
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env={**_environment(), **(settings or {})},
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def start(
    *arguments: object, cwd: Path, command: tuple[str, ...] = COMMAND
) -> subprocess.Popen[str]:
    """Start ``certikmeans`` with pipes for its output, to be interrupted later."""
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env=_environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell may have started the tests with Ctrl-C ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def _environment() -> dict[str, str]:
    # The same sources as the tests run with, wherever they were found.
    path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    changes = {"COLUMNS": "100", "TERM": "xterm-256color", "PYTHONPATH": path}
    return {**os.environ, **changes}
