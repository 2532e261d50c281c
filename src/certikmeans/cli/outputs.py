"""Output files: refused before the run if they cannot be written, then written in one piece."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from certikmeans.errors import InputError


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Raise unless every output can be written without destroying something.

    Asked before the run starts: a typing error in a path must not cost an hour's result.
    """
    taken = {_identity(path): f"{path}: is an input of this run" for path in inputs}
    for path in outputs:
        if _identity(path) in taken:
            raise InputError(taken[_identity(path)], hint="choose another name for the output")
        taken[_identity(path)] = f"{path}: is named twice as an output"
        _check_output(path)


def _identity(path: Path) -> str:
    return os.path.realpath(path)


def _check_output(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path}: is a directory", hint="name a file inside it")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: the directory {str(folder)!r} does not exist",
            hint="create it first, or correct the path",
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: is write-protected", hint="choose another name")
    if _is_special(path):
        return
    try:
        _open_beside(path)[0].unlink()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror})",
            hint=f"choose a directory in which files can be created, not {str(folder)!r}",
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content``; a reader sees the old file or the whole new one, never a part.

    Raises
    ------
    OSError
        If the file cannot be written; nothing is left behind.
    """
    if _is_special(path):
        path.write_bytes(content)
        return
    target = Path(_identity(path))  # through a symbolic link, to keep it
    beside, descriptor = _open_beside(target, close=False)
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


def _is_special(path: Path) -> bool:
    """Whether ``path`` is a device or a pipe, which must not be replaced by a file."""
    return path.exists() and not path.is_file()


def _open_beside(path: Path, *, close: bool = True) -> tuple[Path, int]:
    """Create an empty file next to ``path``, with the permissions a new file would get."""
    beside = Path(_identity(path)).parent / f".{path.name[:100]}.{secrets.token_hex(6)}.partial"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    if close:
        os.close(descriptor)
    return beside, descriptor
