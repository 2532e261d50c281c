"""Points in text: CSV, TSV, semicolons, white space, and the format of PC-SOS-SDP.

`first_row` tells what the first row is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from certikmeans.errors import InputError
from certikmeans.problem.files.columns import ALL_COLUMNS, ColumnChoice, note_row_numbers
from certikmeans.problem.files.first_row import Header, read_first_row
from certikmeans.problem.files.table import (
    Names,
    PointTable,
    column_title,
    find_label_column,
    refuse_long_labels,
    tidy_labels,
)
from certikmeans.problem.files.text import (
    EXCERPT,
    PathLike,
    TextFile,
    excerpt,
    is_finite,
    is_number,
)


def read_text_table(
    path: PathLike,
    label_column: str | int | None,
    header: Header = "auto",
    choice: ColumnChoice = ALL_COLUMNS,
) -> PointTable:
    """Read points, and labels if their column is given, from a text file."""
    file = TextFile.read(path, (".npy", ".npz", ".parquet"))
    if not len(file):
        raise InputError(
            f"{file.path}: holds no data",
            hint="expected one point per line; blank lines and comments (#) do not count",
        )
    first = read_first_row(file, label_column, header, choice)
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
    ignored = choice.ignored(names, width, label, file.path)

    # A label is replaced by the order of its first appearance, so that one pass over the file
    # yields both the numbers and the text.
    codes: dict[str, int] = {}
    encoders: dict[int, Callable[[str], float]] = dict.fromkeys(ignored, lambda cell: 0.0)
    if label is not None:
        encoders[label] = lambda cell: codes.setdefault(cell.strip(), len(codes))
    table = file.parse(start, encoders)
    if table is None or table.shape[1] != width or not np.isfinite(table).all():
        raise _fault(file, start, names, {label, *ignored})
    labels = None
    if label is not None:
        refuse_long_labels(codes, file.path)
        distinct = tidy_labels(np.array(list(codes)), file.path)
        labels = distinct[table[:, label].astype(np.int64)]
    kept = [column for column in range(width) if column != label and column not in ignored]
    if len(kept) < width:
        table = np.ascontiguousarray(table[:, kept])
    features = None if names is None else tuple(names[column] for column in kept)
    notes = first.notes + note_row_numbers(table, features, kept[0], file.path)
    return PointTable(table, features, labels, file.path, first.n_clusters, notes)


def _fault(file: TextFile, start: int, names: Names, skipped: set[int | None]) -> InputError:
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
                f"{file.shown(row)}",
                hint=f"cells are separated by {file.separated_by}; "
                "complete the row or remove what is too much",
            )
        for column, cell in enumerate(cells):
            if column not in skipped and not is_finite(cell):
                return _bad_cell(file, row, column, start, names)
    return InputError(
        f"{file.path}: is not a table of numbers",
        hint=f"cells are separated by {file.separated_by}; expected one point per line",
    )


def _bad_cell(file: TextFile, row: int, column: int, start: int, names: Names) -> InputError:
    cell = file.cells(row)[column]
    short = cell[:1000]  # enough to recognise how a number was written
    title = column_title(column, names)
    if not cell:
        problem, hint = "is empty", "remove the row or fill in the value"
    elif is_number(cell):
        problem, hint = (
            f"is {cell[:EXCERPT]}",
            "values must be finite: remove the row or fill in the value",
        )
    elif re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+", short):
        problem = f"{excerpt(cell)} is not a number"
        hint = "write a decimal point, not a decimal comma, and no thousands separators"
    elif re.fullmatch(r"[+-]?[0-9]+,[0-9]+", short):
        problem, hint = (
            f"{excerpt(cell)} is not a number",
            "write a decimal point, not a decimal comma",
        )
    elif _is_text_column(file, column, start):
        if names and any(map(is_number, names)):  # then the supposed header was a point
            names, title = None, column_title(column, None)
        name = names[column] if names else str(column)
        problem = f"holds text in every row, here {excerpt(cell)}"
        hint = (
            f"if it holds class labels, pass label_column={excerpt(name)} "
            f"(they are not a feature); otherwise leave it out with drop={excerpt(name)}"
        )
    else:
        problem, hint = f"{excerpt(cell)} is not a number", "correct the cell or remove the row"
    return InputError(f"{file.where(row)}: {title} {problem}", hint=hint)


def _is_text_column(file: TextFile, column: int, start: int) -> bool:
    rows = map(file.cells, range(start, len(file)))
    return all(not is_number(cell) for cells in rows for cell in cells[column : column + 1])
