"""Programs in processes forked from a server that has loaded the libraries.

Loading them takes most of the time of a short run. Tests of a fresh interpreter start their own.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

TIMEOUT_SECONDS = 600  # the first run compiles
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()


def run_in_forkserver(
    program: str, *arguments: str, cwd: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a module (``python -m program``), or a file with warnings as errors, to its end."""
    if not CAN_FORK:
        flags = ["-W", "error::RuntimeWarning"] if program.endswith(".py") else ["-m"]
        return subprocess.run(
            [sys.executable, *flags, program, *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.forkserver_preload"])
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = (program, arguments, cwd, environment, out, err)
        process = context.Process(target=_run, args=given)
        process.start()
        process.join(TIMEOUT_SECONDS)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired([program, *arguments], TIMEOUT_SECONDS)
        texts = [path.read_text(encoding="utf-8") for path in (out, err)]
    assert process.exitcode is not None
    return subprocess.CompletedProcess([program, *arguments], process.exitcode, *texts)


def _run(
    program: str,
    arguments: tuple[str, ...],
    cwd: Path,
    environment: dict[str, str],
    out: Path,
    err: Path,
) -> None:
    """Run the program with its own streams, directory and environment."""
    for number, path in ((1, out), (2, err)):
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target, number)
        os.close(target)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = [program, *arguments]
    code = 0
    try:
        if program.endswith(".py"):
            warnings.simplefilter("error", RuntimeWarning)
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
