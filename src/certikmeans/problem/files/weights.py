"""Read weights: one positive number per point."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.files.arrays import read_array
from certikmeans.problem.files.text import PathLike, TextFile, existing_file, is_finite


def read_weights(path: PathLike, *, n_points: int) -> NDArray[np.float64]:
    """Read one weight per point, from lines of text or a one-dimensional ``.npy`` array.

    Blank lines and comments do not count. `Problem` says which weights are too small or large.

    Parameters
    ----------
    path : path-like
        The file.
    n_points : int
        How many weights there have to be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "weights.txt"
    >>> _ = path.write_text("1\\n2.5\\n")
    >>> read_weights(path, n_points=2)
    array([1. , 2.5])
    >>> folder.cleanup()
    """
    found = existing_file(path)
    weights = _array(path) if found.suffix.lower() == ".npy" else _lines(path)
    if len(weights) != n_points:
        raise InputError(
            f"{path}: holds {len(weights)} weights, but there are {n_points} points",
            hint="write one number per line in the order of the points, without a header",
        )
    return weights


def _array(path: PathLike) -> NDArray[np.float64]:
    array = read_array(existing_file(path))
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InputError(
            f"{path}: expected one finite number per point, got {array.dtype} of shape "
            f"{array.shape}",
            hint="save a one-dimensional array of positive numbers",
        )
    return array.astype(np.float64)


def _lines(path: PathLike) -> NDArray[np.float64]:
    file = TextFile.read(os.fspath(path), (".npy",))
    for row in range(len(file)):
        if not is_finite(file.lines[row].strip()):
            raise InputError(
                f"{file.where(row)}: expected one finite number, got {file.shown(row)}",
                hint="write one positive number per line, without a header",
            )
    return np.array([float(line) for line in file.lines], dtype=np.float64)
