"""Files written in one piece."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

_SUFFIX = ".partial"
_ABANDONED_SECONDS = 600.0  # writing a file takes seconds


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content``; a reader sees the old file or the whole new one, never a part.

    A file that is replaced leaves its permissions to the new one; symbolic links are followed;
    devices and pipes are written to.

    Raises
    ------
    OSError
        If the file cannot be written; nothing is left behind.
    """
    if is_special(path):
        Path(path).write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    beside, descriptor = open_beside(target)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a device or a pipe, which must not be replaced by a file."""
    return os.path.exists(path) and not os.path.isfile(path)


def open_beside(path: str | os.PathLike[str]) -> tuple[Path, int]:
    """Create an empty file next to ``path``, with the permissions a new file would get.

    Files that killed processes left behind are removed. Returns its path and a descriptor open for
    writing.
    """
    target = Path(os.path.realpath(path))
    prefix = f".{target.name[:100]}."
    _remove_abandoned(target.parent, prefix)
    beside = target.parent / f"{prefix}{secrets.token_hex(6)}{_SUFFIX}"
    return beside, os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove partial files that have not been written to for a while."""
    newest = time.time() - _ABANDONED_SECONDS
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if not (name.startswith(prefix) and name.endswith(_SUFFIX)):
                continue
            token = name[len(prefix) : -len(_SUFFIX)]
            is_token = len(token) == 12 and set(token) <= set("0123456789abcdef")
            with contextlib.suppress(OSError):
                if is_token and entry.stat(follow_symlinks=False).st_mtime < newest:
                    os.unlink(entry.path)
