"""Cache directory of compiled kernels.

numba writes into ``__pycache__`` beside a function's file, or else into the user's cache directory.
Where neither is writable (an image with read-only packages and no home), it raises an error when
the function is defined. Then a private directory below the temporary directory is used.
"""

# numba has no type stubs.
# mypy: disable-error-code="no-untyped-call, attr-defined, misc"

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

from certikmeans.errors import CacheWarning, warn_caller

_VARIABLE = "NUMBA_CACHE_DIR"


@cache
def ensure_cache() -> None:
    """Choose a writable cache directory; warn if it is a temporary one."""
    from numba.core import config

    requested = config.CACHE_DIR
    if requested and _can_write(Path(requested)):
        return
    package = Path(__file__).resolve().parents[1]
    if not requested and (_can_write(package / "__pycache__") or _can_write(_user_directory())):
        return
    directory = _temporary_directory()
    # The environment variable is for child processes.
    config.CACHE_DIR = os.environ[_VARIABLE] = str(directory)
    if requested:
        reason = f"{_VARIABLE}={requested} cannot be written"
    else:
        reason = "neither the package nor the user's cache directory can be written"
    warn_caller(
        f"compiled kernels are stored in {directory}, because {reason}; set {_VARIABLE} to a "
        "permanent directory to avoid compiling again",
        CacheWarning,
    )


def _can_write(directory: Path) -> bool:
    """Whether files can be created in a directory, which is created if missing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _user_directory() -> Path:
    """Directory that numba uses if it cannot write beside the package."""
    from numba.misc.appdirs import AppDirs

    return Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)


def _temporary_directory() -> Path:
    """A directory that only this user can write, because code is loaded from it."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    directory = Path(tempfile.gettempdir()) / f"certikmeans-kernels-{user}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
        owned = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if stat.S_ISDIR(found.st_mode) and owned and not found.st_mode & 0o022:
            return directory
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="certikmeans-kernels-"))
