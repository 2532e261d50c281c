"""Read partial labels: one per line, or a one-dimensional array."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.files.arrays import read_array
from certikmeans.problem.files.table import labels_from_text, tidy_labels
from certikmeans.problem.files.text import PathLike, excerpt, existing_file, read_text


def read_partial_labels(path: PathLike, *, n_points: int | None = None) -> NDArray[Any]:
    """Read one label per point; an empty line or -1 means unknown.

    Line ``i`` is about point ``i - 1``, so blank lines count; lines that start with ``#`` do
    not. `Constraints.from_partial_labels` turns the result into pairs.

    Parameters
    ----------
    path : str or path-like
        A text file, or a ``.npy`` file with a one-dimensional array.
    n_points : int, optional
        If given, a file with another number of labels is refused.

    Returns
    -------
    ndarray of shape (n_points,)
        int64 if every label is a whole number, else text as written.
    """
    found = existing_file(path)
    name = os.fspath(path)
    is_array = found.suffix.lower() == ".npy"
    labels = tidy_labels(read_array(found), name) if is_array else _lines(path, name)
    if labels.ndim != 1:
        raise InputError(
            f"{name}: expected one label per point, got an array of shape {labels.shape}",
            hint="save a one-dimensional array",
        )
    if not len(labels):
        raise InputError(f"{name}: holds no labels", hint="expected one label per line")
    if n_points is not None and len(labels) != n_points:
        raise InputError(
            f"{name}: holds {len(labels)} labels, but there are {n_points} points",
            hint="write one label per line in the order of the points, without a header; "
            "an empty line means unknown",
        )
    return labels


def _lines(path: PathLike, name: str) -> NDArray[Any]:
    text = read_text(path, (".npy",))
    lines = text.removesuffix("\n").split("\n") if text else []
    kept = [(at, line.strip()) for at, line in enumerate(lines, 1) if not line.startswith("#")]
    if not set(",;\t").isdisjoint(text):
        for at, label in kept:
            if not set(",;\t").isdisjoint(label):
                raise InputError(
                    f"{name}, line {at}: expected one label, got {excerpt(label)}",
                    hint="write one label per line; a column of the points: label_column=...",
                )
    return labels_from_text([label.strip('"') for _, label in kept], name)
