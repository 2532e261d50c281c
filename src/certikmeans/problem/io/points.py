"""Readers of points, and of files with a value for every point."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.io.binary import read_array, read_npy, read_npz, read_parquet
from certikmeans.problem.io.table import (
    ColumnChoice,
    PointTable,
    labels_from_text,
    normalize_labels,
)
from certikmeans.problem.io.text import (
    PathLike,
    PointIds,
    TextFile,
    existing_file,
    is_finite,
    quote,
    read_text,
)
from certikmeans.problem.io.text_table import HEADERS, Header, read_text_table

__all__ = ["PointTable", "read_points"]

_READERS = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}


def read_points(
    path: PathLike,
    *,
    label_column: str | int | None = None,
    header: Header = "auto",
    columns: Any = None,
    drop: Any = None,
    id_column: str | int | None = None,
) -> PointTable:
    """Read a table of points.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz`` (array ``X``, labels ``y``), ``.parquet``; every other file is read
        as text, compressed by gzip or not: CSV, tabs, semicolons or white space, with or without
        header, or PC-SOS-SDP's ``n d k`` format. ``#`` starts a comment.
    label_column : str or int, optional
        The column that holds labels and is not a feature: its name, or its number, counted
        from 0 (from the end if negative). In a ``.npz`` it may also name an array.
    header : {'auto', 'none', 'names', 'sizes'}
        What the first line of a text file is: a point, names of the columns (which may be
        numbers), or PC-SOS-SDP's sizes. By default it is detected from the rows that follow;
        ``notes`` of the result report it where the file is ambiguous.
    columns, drop : str, int or iterable of them, optional
        The columns that are features, or those that are not: names, or numbers counted from 0.
        Other columns may hold anything.
    id_column : str or int, optional
        The column that names the points, each differently. It is not a feature. In a ``.npz`` it
        may also name an array.

    Returns
    -------
    PointTable
        Finite points, names of the features and labels where the file has them.

    Raises
    ------
    InputError
        With file, line, column, value and remedy. Nothing is repaired or skipped silently.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("x,y,class\\n0,1,a\\n2,3,b\\n")
    >>> table = read_points(path, label_column="class")
    >>> table.points.tolist(), table.feature_names, table.labels.tolist()
    ([[0.0, 1.0], [2.0, 3.0]], ('x', 'y'), ['a', 'b'])
    >>> folder.cleanup()
    """
    found = existing_file(path)
    choice = ColumnChoice.of(columns, drop, id_column)
    reader = _READERS.get(found.suffix.lower())
    if header not in HEADERS:
        raise InputError(
            f"header: {header!r} is not known", hint=f"choose one of {', '.join(HEADERS)}"
        )
    if reader is None:
        return read_text_table(path, label_column, header, choice)
    if header != "auto":
        raise InputError(
            f"{path}: header={header!r} is for text files, not {found.suffix}",
            hint=f"leave out header={header!r}",
        )
    return reader(found, label_column, choice)


def read_partial_labels(path: PathLike, *, n_points: int | None = None) -> NDArray[Any]:
    """Read one label per point; an empty line or -1 means unknown.

    Line ``i`` is about point ``i - 1``: blank lines count, lines that start with ``#`` are
    skipped. `Constraints.from_partial_labels` converts the result to pairs.

    Parameters
    ----------
    path : str or path-like
        A text file, or a ``.npy`` file with a one-dimensional array.
    n_points : int, optional
        If given, a file with another number of labels is rejected.

    Returns
    -------
    ndarray of shape (n_points,)
        int64 if every label is a whole number, else text as written.
    """
    found = existing_file(path)
    name = os.fspath(path)
    is_array = found.suffix.lower() == ".npy"
    labels = (
        normalize_labels(read_array(found), name) if is_array else _read_label_lines(path, name)
    )
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


def _read_label_lines(path: PathLike, name: str) -> NDArray[Any]:
    text = read_text(path, (".npy",))
    lines = text.removesuffix("\n").split("\n") if text else []
    kept = [(at, line.strip()) for at, line in enumerate(lines, 1) if not line.startswith("#")]
    if not set(",;\t").isdisjoint(text):
        for at, label in kept:
            if not set(",;\t").isdisjoint(label):
                raise InputError(
                    f"{name}, line {at}: expected one label, got {quote(label)}",
                    hint=Message(
                        "write one label per line; a column of the points: ",
                        Argument("label_column", "..."),
                    ),
                )
    return labels_from_text([label.strip('"') for _, label in kept], name)


def read_weights(path: PathLike, *, n_points: int) -> Floats:
    """Read one weight per point, from lines of text or a one-dimensional ``.npy`` array.

    Blank lines and comments are skipped. `Problem` checks the range of the weights.

    Parameters
    ----------
    path : path-like
        The file.
    n_points : int
        Number of points.

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
    weights = (
        _read_weight_array(path) if found.suffix.lower() == ".npy" else _read_weight_lines(path)
    )
    if len(weights) != n_points:
        raise InputError(
            f"{path}: holds {len(weights)} weights, but there are {n_points} points",
            hint="write one number per line in the order of the points, without a header",
        )
    return weights


def _read_weight_array(path: PathLike) -> Floats:
    array = read_array(existing_file(path))
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InputError(
            f"{path}: expected one finite number per point, got {array.dtype} of shape "
            f"{array.shape}",
            hint="save a one-dimensional array of positive numbers",
        )
    return array.astype(np.float64)


def _read_weight_lines(path: PathLike) -> Floats:
    file = TextFile.read(os.fspath(path), (".npy",))
    for row in range(len(file)):
        if not is_finite(file.lines[row].strip()):
            raise InputError(
                f"{file.where(row)}: expected one finite number, got {file.shown(row)}",
                hint="write one positive number per line, without a header",
            )
    return np.array([float(line) for line in file.lines], dtype=np.float64)


_GROUPS_HINT = (
    "write one line per point in the order of the points: the same number or name for points of "
    "which at most one may be in a cluster, -1 or nothing for points in no group"
)


def values_by_id(
    path: PathLike, ids: PointIds, *, complete: bool, several: bool = False
) -> list[list[str]]:
    """Return columns of cells in the order of the points, from rows ``id, value, ...``.

    Parameters
    ----------
    path : path-like
        A text file; a first row whose first cell is no id is a header.
    ids : PointIds
        The ids of the points.
    complete : bool
        Whether every point has to be named. A point that is not gets empty cells.
    several : bool
        Whether a row may hold several values.
    """
    file = TextFile.read(path)
    start = 1 if len(file) and file.cells(0)[0] not in ids.rows else 0
    if start == len(file):
        raise InputError(f"{path}: holds no values", hint=f"write rows of {ids.name} and value")
    width = len(file.cells(start))
    if width < 2 or (width > 2 and not several):
        raise InputError(
            f"{file.where(start)}: expected {ids.name} and value, got {file.shown(start)}",
            hint="points have ids, so every row names its point",
        )
    columns = [[""] * len(ids) for _ in range(width - 1)]
    seen: dict[int, int] = {}
    for row in range(start, len(file)):
        cells = file.cells(row)
        point = ids.rows.get(cells[0])
        if point is None:
            raise ids.unknown(cells[0], file.where(row))
        if len(cells) != width:
            raise InputError(
                f"{file.where(row)}: has {len(cells)} columns where line "
                f"{file.line_numbers[start]} has {width}: {file.shown(row)}",
                hint=f"cells are separated by {file.delimiter_name}",
            )
        if point in seen:
            raise InputError(
                f"{file.where(row)}: the point {quote(cells[0])} was named in line {seen[point]}",
                hint="name every point once",
            )
        seen[point] = int(file.line_numbers[row])
        for column, cell in zip(columns, cells[1:], strict=True):
            column[point] = cell
    if complete and len(seen) < len(ids):
        missing = next(row for row in range(len(ids)) if row not in seen)
        raise InputError(
            f"{path}: there is no value for the point {quote(ids.ids[missing])}",
            hint="give one value for every point",
        )
    return columns


def labels_by_id(path: PathLike, ids: PointIds, *, complete: bool) -> NDArray[Any]:
    """Return labels in the order of the points; points that are not named have none."""
    (cells,) = values_by_id(path, ids, complete=complete)
    return labels_from_text(["-1" if cell == "" else cell for cell in cells], os.fspath(path))


def numbers_by_id(path: PathLike, ids: PointIds) -> Floats:
    """Return a finite number per point."""
    (cells,) = values_by_id(path, ids, complete=True)
    for name, cell in zip(ids.ids, cells, strict=True):
        if not is_finite(cell):
            raise InputError(
                f"{path}: the value of the point {quote(name)} is {quote(cell)}",
                hint="write one finite number per point",
            )
    return np.array([float(cell) for cell in cells])


def read_cannot_link_groups(
    path: PathLike, *, n_points: int | None = None, ids: PointIds | None = None
) -> list[NDArray[Any]]:
    """Read cannot-link groups: one number or name per point, or several columns of them.

    Parameters
    ----------
    path : path-like
        A text file with a line per point, or a ``.npy`` array. -1 and empty cells mean no group.
        A first line of names only is a header where the file has one line more than points.
    n_points : int, optional
        Number of points; a file about another number is rejected.
    ids : PointIds, optional
        Ids of the points: then rows start with an id, and points may be left out.

    Returns
    -------
    list of ndarray of shape (n_points,)
        The columns.
    """
    found = existing_file(path)
    if found.suffix.lower() == ".npy":
        array = read_array(found)
        columns = [array] if array.ndim == 1 else list(array.T)
    elif ids is not None:
        cells = values_by_id(path, ids, complete=False, several=True)
        columns = [labels_from_text([c or "-1" for c in column], str(path)) for column in cells]
    else:
        columns = _columns_of_lines(path, n_points)
    if not columns or not len(columns[0]):
        raise InputError(f"{path}: holds no groups", hint=_GROUPS_HINT)
    if n_points is not None and len(columns[0]) != n_points:
        raise InputError(
            f"{path}: holds groups of {len(columns[0])} points, but there are {n_points}",
            hint=_GROUPS_HINT,
        )
    return columns


def _columns_of_lines(path: PathLike, n_points: int | None) -> list[NDArray[Any]]:
    text = read_text(path, (".npy",)).removesuffix("\n")
    lines = [line for line in text.split("\n") if not line.startswith("#")] if text else []
    file = TextFile.from_text("\n".join(line or "," for line in lines[:2]), os.fspath(path))
    rows = [[cell.strip().strip('"') for cell in line.split(file.delimiter)] for line in lines]
    if rows and n_points == len(rows) - 1 and all(c[:1].isalpha() for c in rows[0]):
        rows = rows[1:]  # names of the columns
    width = max((len(row) for row in rows), default=0)
    for at, row in enumerate(rows):
        if len(row) not in (width, 0) and row != [""]:
            raise InputError(
                f"{path}, line {at + 1}: has {len(row)} columns where others have {width}",
                hint=_GROUPS_HINT,
            )
    complete = [row if len(row) == width else [""] * width for row in rows]
    return [
        labels_from_text([cell or "-1" for cell in column], os.fspath(path))
        for column in zip(*complete, strict=True)
    ]
