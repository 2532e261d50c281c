"""Points in parquet files, through the optional pyarrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem.files.columns import ALL_COLUMNS, ColumnChoice, note_row_numbers
from certikmeans.problem.files.table import (
    PointTable,
    checked_points,
    column_title,
    find_label_column,
    labels_from_text,
    tidy_labels,
)
from certikmeans.problem.files.text import excerpt


def read_parquet(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read the numeric columns of a parquet file, and one more as labels."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading parquet needs pyarrow",
            hint="pip install 'certikmeans[io]', or save the table as CSV or .npz",
        ) from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: is not a parquet file ({str(error)[:200]})",
            hint="text files: use the suffix .csv",
        ) from error
    names = tuple(str(name) for name in table.column_names)
    label = find_label_column(label_column, names, len(names), os.fspath(path))
    ignored = choice.ignored(names, len(names), label, os.fspath(path))
    kept = [number for number in range(len(names)) if number != label and number not in ignored]
    columns = []
    for number in kept:
        name = names[number]
        if name.startswith("__index_level_"):
            raise InputError(
                f"{path}: {column_title(number, names)} is a saved index, not a feature",
                hint="save the table with index=False",
            )
        columns.append(
            _numbers(table.column(number), f"{path}: {column_title(number, names)}", name)
        )
    matrix = np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
    features = tuple(names[number] for number in kept)
    points = checked_points(matrix, os.fspath(path), features)
    labels = None if label is None else _labels(table.column(label), f"{path}: {names[label]}")
    notes = note_row_numbers(points, features, kept[0], os.fspath(path))
    return PointTable(points, features, labels, os.fspath(path), notes=notes)


def _numbers(column: Any, where: str, name: str) -> NDArray[np.float64]:
    import pyarrow

    types = pyarrow.types
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(is_kind(column.type) for is_kind in numeric):
        raise InputError(
            f"{where} holds {column.type}, not numbers",
            hint=f"if it holds class labels, pass label_column={excerpt(name)} "
            f"(they are not a feature); otherwise leave it out with drop={excerpt(name)}",
        )
    # Missing values arrive as NaN and are reported with their row by the caller.
    numbers: NDArray[np.float64] = column.cast(pyarrow.float64(), safe=False).to_numpy()
    return numbers


def _labels(column: Any, where: str) -> NDArray[Any]:
    values = column.to_pylist()
    if any(isinstance(value, str) for value in values):
        return labels_from_text(["" if v is None else str(v) for v in values], where)
    return tidy_labels(np.array([np.nan if v is None else v for v in values]), where)
