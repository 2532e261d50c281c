"""Where compiled kernels are kept: beside the package, or wherever there is a place for them.

numba writes into ``__pycache__`` beside a function's file, or else into the user's cache directory.
Where neither can be written (an image with read-only packages and no home), it refuses to define
the function. A directory in the temporary one is used instead, private to the user.
"""

# numba's own types do not tell what is adjusted here.
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
    """See that there is a directory for compiled kernels; warn where it will not last."""
    from numba.core import config

    asked = config.CACHE_DIR
    if asked and _can_write(Path(asked)):
        return
    package = Path(__file__).resolve().parents[1]
    if not asked and (_can_write(package / "__pycache__") or _can_write(_user_directory())):
        return
    place = _temporary_directory()
    # Also for processes that this one starts.
    config.CACHE_DIR = os.environ[_VARIABLE] = str(place)
    reason = f"{_VARIABLE}={asked} cannot be written" if asked else "there is no place to keep them"
    warn_caller(
        f"compiled kernels go to {place}, because {reason}; set {_VARIABLE} to a directory that "
        "lasts, so that later runs start at once",
        CacheWarning,
    )


def _can_write(directory: Path) -> bool:
    """Whether files can be made in a directory, which is made first if it can be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _user_directory() -> Path:
    """Where numba goes if it cannot write beside the package."""
    from numba.misc.appdirs import AppDirs

    return Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)


def _temporary_directory() -> Path:
    """A directory that nobody else can write: what is read from it will be run."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    place = Path(tempfile.gettempdir()) / f"certikmeans-kernels-{user}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if stat.S_ISDIR(found.st_mode) and mine and not found.st_mode & 0o022:
            return place
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="certikmeans-kernels-"))
