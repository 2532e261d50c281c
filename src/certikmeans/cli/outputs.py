"""Output files: refused before the run if they cannot be written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from certikmeans._atomic import is_special, open_beside
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
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below, or to be created
    except OSError as error:
        name = str(path) if len(str(path)) <= 60 else str(path)[:60] + "..."
        raise InputError(
            f"{name}: cannot be written ({error.strerror})", hint="choose another name"
        ) from error
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
    if is_special(path):
        return
    try:
        beside, descriptor = open_beside(path)
        os.close(descriptor)
        beside.unlink()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror})",
            hint=f"choose a directory in which files can be created, not {str(folder)!r}",
        ) from error
