"""Files with a value for every point: in the order of the points, or beside their ids."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.io.binary import read_array
from certikmeans.problem.io.point_names import PointIds
from certikmeans.problem.io.table import labels_from_text
from certikmeans.problem.io.text import (
    PathLike,
    TextFile,
    existing_file,
    is_finite,
    quote,
    read_text,
)

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


def numbers_by_id(path: PathLike, ids: PointIds) -> NDArray[np.float64]:
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
