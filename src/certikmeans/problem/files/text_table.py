"""Points in text: CSV, TSV, semicolons, white space, and the format of PC-SOS-SDP.

A first row is a header if one of its cells is text; what starts like a number, such as ``5.1O``
or ``1,5``, or stands for a missing value is not text but a faulty cell.

In the format of PC-SOS-SDP the first row is ``n d k`` or ``n d``, separated by white space: it
is taken for that only if exactly ``n`` rows of ``d`` numbers follow. Where the file could also be
an ordinary table, first row included, it is read as one unless this holds and ``n > 1``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.errors import InputError
from certikmeans.problem.files.table import (
    Names,
    PointTable,
    column_number,
    column_title,
    find_label_column,
    tidy_labels,
    without,
)
from certikmeans.problem.files.text import PathLike, TextFile, is_finite, is_number

_MISSING = {"", "?", "-", "na", "n/a", "null", "none"}


@final
@dataclass(frozen=True, slots=True)
class _FirstRow:
    """What the first row turned out to be."""

    is_data: bool
    names: Names = None
    n_clusters: int | None = None


def read_text_table(path: PathLike, label_column: str | int | None) -> PointTable:
    """Read points, and labels if their column is given, from a text file."""
    file = TextFile.read(path)
    if not len(file):
        raise InputError(
            f"{file.path}: holds no data",
            hint="expected one point per line; blank lines and comments (#) do not count",
        )
    first = _size_row(file) or _header(file, label_column)
    start = 0 if first.is_data else 1
    if start == len(file):
        raise InputError(
            f"{file.path}: holds a header and no points", hint="expected one point per line"
        )
    names = first.names
    width = len(names) if names else len(file.cells(start))
    label = find_label_column(label_column, names, width, file.path)
    if label is not None and width == 1:
        raise InputError(
            f"{file.path}: holds a label column and no features", hint="add the coordinates"
        )

    # A label is replaced by the order of its first appearance, so that one pass over the file
    # yields both the numbers and the text.
    codes: dict[str, int] = {}
    encoders: dict[int, Callable[[str], float]] = {}
    if label is not None:
        encoders[label] = lambda cell: codes.setdefault(cell.strip(), len(codes))
    table = file.parse(start, encoders)
    if table is None or table.shape[1] != width or not np.isfinite(table).all():
        raise _fault(file, start, names, label)
    labels = None
    if label is not None:
        distinct = tidy_labels(np.array(list(codes)), file.path)
        labels = distinct[table[:, label].astype(np.int64)]
        table = np.delete(table, label, axis=1)
    return PointTable(table, without(names, label), labels, file.path, first.n_clusters)


def _size_row(file: TextFile) -> _FirstRow | None:
    """Recognise ``n d k`` or ``n d``; raise if the rows below can only be a damaged such file."""
    first = file.cells(0)
    whole = all(re.fullmatch("[0-9]{1,15}", cell) for cell in first)
    if file.delimiter not in (None, "\t") or len(first) not in (2, 3) or not whole:
        return None
    n_points, n_features = int(first[0]), int(first[1])
    n_rows = len(file) - 1
    width = len(file.cells(1)) if n_rows else 0
    is_also_a_table = not n_rows or width == len(first)
    if (n_rows, width) == (n_points, n_features) and (n_points > 1 or not is_also_a_table):
        return _FirstRow(False, n_clusters=int(first[2]) if len(first) == 3 else None)
    if is_also_a_table:
        return None
    said = f"{file.where(0)}: {' '.join(first)!r} announces {n_points} points of {n_features}"
    if width == n_features:
        problem = "the file is truncated" if n_rows < n_points else "there are more"
        raise InputError(
            f"{said} features, but {n_rows} rows follow: {problem}",
            hint="restore the missing rows or correct the first line",
        )
    if n_rows == n_points:
        raise InputError(
            f"{said} features, but line {file.numbers[1]} has {width} columns",
            hint="correct the first line: number of points, number of features, K",
        )
    return None


def _header(file: TextFile, label_column: str | int | None) -> _FirstRow:
    """Decide whether the first row names the columns."""
    first = file.cells(0)
    text = [c for c, cell in enumerate(first) if not _is_meant_as_number(cell)]
    if not text:
        return _FirstRow(True)
    number = column_number(label_column)
    if number is not None and text == [number % len(first)] and _labels_a_point(file, text[0]):
        return _FirstRow(True)
    if file.delimiter is None and len(file) > 1 and len(file.cells(1)) == 1:
        first = [" ".join(first)]  # a single column, its name written with spaces
    if "" in first:
        raise InputError(
            f"{file.where(0)}: {column_title(first.index(''), None)} has no name in the header",
            hint="if it is an index, save the table without it (pandas: index=False); "
            "if it is a feature, name it",
        )
    return _FirstRow(False, names=tuple(first))


def _is_meant_as_number(cell: str) -> bool:
    faulty = re.match(r"[+-]?\.?[0-9]", cell) or cell.lower() in _MISSING
    return bool(faulty) or is_number(cell)


def _labels_a_point(file: TextFile, column: int) -> bool:
    """Decide whether a first row of numbers and one text, the label, is a point or a header.

    It is a point if another point has the same label, and a header if all others are numbers.
    """
    mine = file.cells(0)[column]
    others = {cell for row in range(1, len(file)) for cell in file.cells(row)[column : column + 1]}
    if mine in others:
        return True
    if all(map(is_number, others)):
        return False
    raise InputError(
        f"{file.where(0)}: cannot tell whether this is a header or a point labelled {mine!r}: "
        f"{file.lines[0].strip()!r}",
        hint="add a header in which every column has a name that is not a number",
    )


def _fault(file: TextFile, start: int, names: Names, label: int | None) -> InputError:
    """Find the first cell or row that is not part of a table of finite numbers."""
    width = len(names) if names else len(file.cells(start))
    for row in range(start, len(file)):
        cells = file.cells(row)
        if len(cells) != width:
            told = (
                f"the header (line {file.numbers[0]})" if names else f"line {file.numbers[start]}"
            )
            return InputError(
                f"{file.where(row)}: has {len(cells)} columns where {told} has {width}: "
                f"{_excerpt(file.lines[row])}",
                hint=f"cells are separated by {file.separated_by}; "
                "complete the row or remove what is too much",
            )
        for column, cell in enumerate(cells):
            if column != label and not is_finite(cell):
                return _bad_cell(file, row, column, start, names)
    return InputError(
        f"{file.path}: is not a table of numbers",
        hint=f"cells are separated by {file.separated_by}; expected one point per line",
    )


def _bad_cell(file: TextFile, row: int, column: int, start: int, names: Names) -> InputError:
    cell = file.cells(row)[column]
    title = column_title(column, names)
    if not cell:
        problem, hint = "is empty", "remove the row or fill in the value"
    elif is_number(cell):
        problem, hint = f"is {cell}", "values must be finite: remove the row or fill in the value"
    elif re.fullmatch(r"[+-]?[0-9]+,[0-9]+", cell):
        problem, hint = f"{cell!r} is not a number", "write a decimal point, not a decimal comma"
    elif _is_text_column(file, column, start):
        if names and any(map(is_number, names)):  # then the supposed header was a point
            names, title = None, column_title(column, None)
        name = names[column] if names else str(column)
        problem = f"holds text in every row, here {cell!r}"
        hint = (
            f"if it holds class labels, pass --labels-column {name!r} (they are not a feature); "
            "otherwise remove the column"
        )
    else:
        problem, hint = f"{cell!r} is not a number", "correct the cell or remove the row"
    return InputError(f"{file.where(row)}: {title} {problem}", hint=hint)


def _is_text_column(file: TextFile, column: int, start: int) -> bool:
    rows = map(file.cells, range(start, len(file)))
    return all(not is_number(cell) for cells in rows for cell in cells[column : column + 1])


def _excerpt(line: str, limit: int = 60) -> str:
    line = line.strip()
    return repr(line if len(line) <= limit else line[:limit] + "...")
