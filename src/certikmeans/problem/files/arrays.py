"""Points in NumPy's own files. Pickled content is never loaded: it can run code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.files.columns import ALL_COLUMNS, ColumnChoice, note_row_numbers
from certikmeans.problem.files.table import (
    PointTable,
    checked_points,
    column_number,
    find_label_column,
    tidy_labels,
)
from certikmeans.problem.files.text import did_you_mean, listed

# Larger arrays are mapped, not copied: pages come from the file when they are looked at.
MAPPED_FROM = 1 << 26


def _load(path: Path) -> Any:
    try:
        large = path.suffix.lower() == ".npy" and path.stat().st_size >= MAPPED_FROM
        return np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    except Exception as error:  # numpy and zipfile raise a dozen kinds for damaged files
        raise _unreadable(str(path), error) from error


def _unreadable(where: str, error: Exception) -> InputError:
    if "allow_pickle" in str(error):
        return InputError(
            f"{where}: holds pickled objects, or is no NumPy file",
            hint="save numbers, not objects: np.save(path, np.asarray(X, dtype=float))",
        )
    if isinstance(error, MemoryError):
        return InputError(
            f"{where}: the array that it announces does not fit into memory ({str(error)[:200]})",
            hint="if its header is damaged, save it again with np.save",
        )
    if isinstance(error, OSError) and error.errno is not None:
        return InputError(
            f"{where}: cannot be read ({error.strerror})", hint="check the file's permissions"
        )
    return InputError(
        f"{where}: is not a complete NumPy file ({type(error).__name__}: {str(error)[:200]})",
        hint="save it again with np.save, or np.savez without encryption",
    )


def read_array(path: Path) -> NDArray[Any]:
    """Read the array of a ``.npy`` file."""
    array = _load(path)
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path}: is an archive of arrays", hint="give it the suffix .npz")
    return array


def read_archive(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array of a ``.npz`` file."""
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        raise InputError(f"{path}: is a single array", hint="give it the suffix .npy")
    with archive:
        return {name: _member(archive, name, path) for name in archive.files}


def read_npy(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read a ``.npy`` table; labels may be one of its columns."""
    return _table(read_array(path), os.fspath(path), os.fspath(path), label_column, choice)


def read_npz(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read ``X`` (or the only table) and labels: ``y``, another array, or a column of ``X``."""
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        raise InputError(f"{path}: is a single array", hint="give it the suffix .npy")
    with archive:
        names: list[str] = list(archive.files)
        if label_column is None:
            label_name = "y" if "y" in names else None
        elif label_column in names:
            label_name = str(label_column)
        elif column_number(label_column) is None:
            raise InputError(
                f"{path}: there is no array {label_column!r}",
                hint=did_you_mean(str(label_column), names) + f"arrays: {listed(names)}",
            )
        else:
            label_name = None
        name, array = _points_array(archive, names, label_name, path)
        if label_name is None:
            return _table(array, f"{path}: {name}", os.fspath(path), label_column, choice)
        table = _table(array, f"{path}: {name}", os.fspath(path), None, choice)
        labels = _member(archive, label_name, path)
    if labels.shape != (len(table.points),):
        raise InputError(
            f"{path}: labels {label_name!r} have shape {labels.shape}, "
            f"but there are {len(table.points)} points",
            hint="give one label per point",
        )
    labels = tidy_labels(labels, f"{path}: {label_name}")
    return PointTable(table.points, None, labels, table.path, notes=table.notes)


def _member(archive: Any, name: str, path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[name]
    except Exception as error:
        raise _unreadable(f"{path}: {name}", error) from error
    return array


def _points_array(
    archive: Any, names: list[str], label_name: str | None, path: Path
) -> tuple[str, NDArray[Any]]:
    if "X" in names:
        return "X", _member(archive, "X", path)
    arrays = {name: _member(archive, name, path) for name in names if name != label_name}
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        shapes = listed(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(
            f"{path}: cannot tell which array holds the points: {shapes or 'there is none'}",
            hint="save them as np.savez(path, X=points) or np.savez(path, X=points, y=labels)",
        )
    return tables[0], arrays[tables[0]]


def _table(
    array: NDArray[Any],
    where: str,
    path: str,
    label_column: str | int | None,
    choice: ColumnChoice,
) -> PointTable:
    if array.ndim != 2:
        return PointTable(checked_points(array, where), None, None, path)
    width = array.shape[1]
    label = find_label_column(label_column, None, width, where)
    left_out = choice.ignored(None, width, label, where) if width else frozenset()
    kept = [column for column in range(width) if column != label and column not in left_out]
    points = checked_points(array if len(kept) == width else array[:, kept], where)
    labels = None if label is None else tidy_labels(array[:, label], where)
    notes = note_row_numbers(points, None, kept[0], where)
    return PointTable(points, None, labels, path, notes=notes)
