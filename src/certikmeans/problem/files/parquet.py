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

BATCH = 1 << 18  # rows


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
        file = pyarrow.parquet.ParquetFile(path)
        schema = file.schema_arrow
        names = tuple(str(name) for name in schema.names)
        label = find_label_column(label_column, names, len(names), os.fspath(path))
        ignored = choice.ignored(names, len(names), label, os.fspath(path))
        kept = [number for number in range(len(names)) if number != label and number not in ignored]
        for number in kept:
            _check_numeric(schema.field(number), f"{path}: {column_title(number, names)}")
        points = np.empty((file.metadata.num_rows, len(kept)))
        found = []
        first = 0
        # A block at a time: only the numbers themselves are in memory as a whole.
        for batch in file.iter_batches(BATCH):
            for place, number in enumerate(kept):
                column = batch.column(number).cast(pyarrow.float64(), safe=False)
                # Missing values arrive as NaN and are reported with their row.
                points[first : first + len(batch), place] = column.to_numpy(zero_copy_only=False)
            if label is not None:
                found += batch.column(label).to_pylist()
            first += len(batch)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: is not a parquet file ({str(error)[:200]})",
            hint="text files: use the suffix .csv",
        ) from error
    features = tuple(names[number] for number in kept)
    points = checked_points(points, os.fspath(path), features)
    labels = None if label is None else _labels(found, f"{path}: {names[label]}")
    notes = note_row_numbers(points, features, kept[0], os.fspath(path))
    return PointTable(points, features, labels, os.fspath(path), notes=notes)


def _check_numeric(field: Any, where: str) -> None:
    import pyarrow

    if field.name.startswith("__index_level_"):
        raise InputError(
            f"{where} is a saved index, not a feature", hint="save the table with index=False"
        )
    types = pyarrow.types
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if not any(is_kind(field.type) for is_kind in numeric):
        raise InputError(
            f"{where} holds {field.type}, not numbers",
            hint=f"if it holds class labels, pass label_column={excerpt(field.name)} "
            f"(they are not a feature); otherwise leave it out with drop={excerpt(field.name)}",
        )


def _labels(values: list[Any], where: str) -> NDArray[Any]:
    if any(isinstance(value, str) for value in values):
        return labels_from_text(["" if v is None else str(v) for v in values], where)
    return tidy_labels(np.array([np.nan if v is None else v for v in values]), where)
