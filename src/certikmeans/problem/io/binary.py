"""Points in NumPy and parquet files. Pickled content is never loaded: it can execute code."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem.io.table import (
    ALL_COLUMNS,
    ColumnChoice,
    PointTable,
    describe_column,
    labels_from_text,
    normalize_labels,
    parse_column_number,
    text_column_hint,
    validate_points,
)
from certikmeans.problem.io.text import PointIds, did_you_mean, format_list

MMAP_MIN_BYTES = 1 << 26  # larger arrays are memory-mapped, not copied
BATCH = 1 << 18  # rows of a parquet file at a time


def _load(path: Path) -> Any:
    try:
        large = path.suffix.lower() == ".npy" and path.stat().st_size >= MMAP_MIN_BYTES
        return np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    except Exception as error:  # numpy and zipfile raise a dozen kinds for damaged files
        raise _read_error(str(path), error) from error


def _read_error(where: str, error: Exception) -> InputError:
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


def _open_archive(path: Path) -> Any:
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        raise InputError(f"{path}: is a single array", hint="give it the suffix .npy")
    return archive


def read_archive(path: Path) -> dict[str, NDArray[Any]]:
    """Read every array of a ``.npz`` file."""
    with _open_archive(path) as archive:
        return {name: _archive_member(archive, name, path) for name in archive.files}


def read_npy(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read a ``.npy`` table; labels may be one of its columns."""
    return _point_table(read_array(path), os.fspath(path), os.fspath(path), label_column, choice)


def read_npz(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read ``X`` (or the only table) and labels: ``y``, another array, or a column of ``X``."""
    with _open_archive(path) as archive:
        names: list[str] = list(archive.files)
        if choice.id_column is not None and choice.id_column in names:
            ids = _archive_member(archive, str(choice.id_column), path)
            rest = replace(
                choice,
                id_column=None,
                drop=tuple(one for one in choice.drop if one != choice.id_column),
            )
            return _with_ids(read_npz(path, label_column, rest), ids, str(choice.id_column))
        if label_column is None:
            label_name = "y" if "y" in names else None
        elif label_column in names:
            label_name = str(label_column)
        elif parse_column_number(label_column) is None:
            raise InputError(
                f"{path}: there is no array {label_column!r}",
                hint=did_you_mean(str(label_column), names) + f"arrays: {format_list(names)}",
            )
        else:
            label_name = None
        name, array = _points_array(archive, names, label_name, path)
        if label_name is None:
            return _point_table(array, f"{path}: {name}", os.fspath(path), label_column, choice)
        table = _point_table(array, f"{path}: {name}", os.fspath(path), None, choice)
        labels = _archive_member(archive, label_name, path)
    if labels.shape != (len(table.points),):
        raise InputError(
            f"{path}: labels {label_name!r} have shape {labels.shape}, "
            f"but there are {len(table.points)} points",
            hint="give one label per point",
        )
    return replace(table, labels=normalize_labels(labels, f"{path}: {label_name}"))


def _with_ids(table: PointTable, ids: NDArray[Any], name: str) -> PointTable:
    if ids.shape != (len(table.points),):
        raise InputError(
            f"{table.path}: ids {name!r} have shape {ids.shape}, but there are "
            f"{len(table.points)} points",
            hint="give one id per point",
        )
    every = map(str, normalize_labels(ids, table.path).tolist())
    return replace(table, ids=PointIds.of(every, name, table.path))


def _archive_member(archive: Any, name: str, path: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[name]
    except Exception as error:
        raise _read_error(f"{path}: {name}", error) from error
    return array


def _points_array(
    archive: Any, names: list[str], label_name: str | None, path: Path
) -> tuple[str, NDArray[Any]]:
    if "X" in names:
        return "X", _archive_member(archive, "X", path)
    arrays = {name: _archive_member(archive, name, path) for name in names if name != label_name}
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        shapes = format_list(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(
            f"{path}: cannot tell which array holds the points: {shapes or 'there is none'}",
            hint="save them as np.savez(path, X=points) or np.savez(path, X=points, y=labels)",
        )
    return tables[0], arrays[tables[0]]


def _point_table(
    array: NDArray[Any],
    where: str,
    path: str,
    label_column: str | int | None,
    choice: ColumnChoice,
) -> PointTable:
    if array.ndim != 2:
        return PointTable(validate_points(array, where), None, None, path)
    columns = choice.select(None, array.shape[1], label_column, where)
    id_number = choice.id_number(None, array.shape[1], where)
    every = len(columns.features) == array.shape[1]
    points = validate_points(array if every else array[:, columns.features], where)
    label = columns.label
    labels = None if label is None else normalize_labels(array[:, label], where)
    table = columns.table(points, labels, path, where=where)
    if id_number is None:
        return table
    ids = normalize_labels(array[:, id_number], where).tolist()
    return replace(table, ids=PointIds.of(map(str, ids), "id", where))


def read_parquet(
    path: Path, label_column: str | int | None, choice: ColumnChoice = ALL_COLUMNS
) -> PointTable:
    """Read the numeric columns of a parquet file, and one more as labels; requires pyarrow."""
    name = os.fspath(path)
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
        columns = choice.select(names, len(names), label_column, name)
        for number in columns.features:
            _check_numeric(schema.field(number), f"{path}: {describe_column(number, names)}")
        points = np.empty((file.metadata.num_rows, len(columns.features)))
        id_number = choice.id_number(names, len(names), name)
        label_values, id_values = [], []
        first = 0
        # In batches, so that only the numbers themselves are in memory as a whole.
        for batch in file.iter_batches(BATCH):
            for at, number in enumerate(columns.features):
                column = batch.column(number).cast(pyarrow.float64(), safe=False)
                # Missing values arrive as NaN and are reported with their row.
                points[first : first + len(batch), at] = column.to_numpy(zero_copy_only=False)
            if columns.label is not None:
                label_values += batch.column(columns.label).to_pylist()
            if id_number is not None:
                id_values += batch.column(id_number).to_pylist()
            first += len(batch)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: is not a parquet file ({str(error)[:200]})",
            hint="text files: use the suffix .csv",
        ) from error
    points = validate_points(points, name, columns.feature_names)
    labels = None
    if columns.label is not None:
        labels = _parquet_labels(label_values, f"{path}: {names[columns.label]}")
    table = columns.table(points, labels, name)
    if id_number is None:
        return table
    ids = ("" if one is None else str(one) for one in id_values)
    return replace(table, ids=PointIds.of(ids, names[id_number], name))


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
            hint=text_column_hint(field.name),
        )


def _parquet_labels(values: list[Any], where: str) -> NDArray[Any]:
    if any(isinstance(value, str) for value in values):
        return labels_from_text(["" if v is None else str(v) for v in values], where)
    return normalize_labels(np.array([np.nan if v is None else v for v in values]), where)
