"""What every reader of points returns, and the checks they share."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count
from certikmeans.errors import InputError
from certikmeans.problem.files.text import did_you_mean, excerpt, listed
from certikmeans.problem.tables import column_ranges

Names = tuple[str, ...] | None

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointTable:
    """Points as a file holds them.

    >>> PointTable(np.zeros((3, 2)), ("x", "y"), None, "points.csv")
    PointTable('points.csv': 3 points, 2 features (x, y))
    """

    points: NDArray[np.float64]  # (n_points, n_features), finite
    feature_names: Names
    labels: NDArray[Any] | None  # (n_points,) int64, else as written: text, or floats with NaN
    path: str
    n_clusters_hint: int | None = None  # K, where the format states it
    notes: tuple[str, ...] = ()  # where the file could be read in two ways: how it was

    def __repr__(self) -> str:
        n_points, n_features = self.points.shape
        named = f" ({listed(self.feature_names, limit=8)})" if self.feature_names else ""
        labelled = "" if self.labels is None else ", with labels"
        sizes = f"{count(n_points, 'point')}, {count(n_features, 'feature')}"
        return f"PointTable({self.path!r}: {sizes}{named}{labelled})"


def column_title(column: int, names: Names) -> str:
    """Name a column as the user would look it up.

    >>> column_title(1, ("x", "y")), column_title(1, None)
    ("column 'y'", 'column 1 (counted from 0)')
    """
    return f"column {excerpt(names[column])}" if names else f"column {column} (counted from 0)"


def column_number(label_column: str | int | None) -> int | None:
    """Return the column number that was asked for; None if it is a name, or nothing was.

    >>> column_number("4"), column_number(-1), column_number("species")
    (4, -1, None)
    """
    if label_column is None:
        return None
    if isinstance(label_column, str):
        return int(label_column) if _WHOLE.fullmatch(label_column) else None
    return operator.index(label_column)


def find_label_column(
    label_column: str | int | None, names: Names, n_columns: int, path: str
) -> int | None:
    """Return the number of the label column; a name goes before a number."""
    if label_column is None:
        return None
    return find_column(label_column, names, n_columns, path, "label column")


def find_column(
    word: str | int, names: Names, n_columns: int, path: str, what: str = "column"
) -> int:
    """Return the number of a column; a name goes before a number."""
    if names and word in names:
        if names.count(str(word)) > 1:
            raise InputError(
                f"{path}: several columns are called {excerpt(word)}",
                hint=f"give the column's number instead, from 0 to {n_columns - 1}",
            )
        return names.index(str(word))
    number = column_number(word)
    if number is None or not -n_columns <= number < n_columns:
        known = listed(names) if names else "the file names no columns"
        raise InputError(
            f"{path}: there is no {what} {excerpt(word)}",
            hint=did_you_mean(str(word), names or ())
            + f"columns: {known}; or give a number from 0 to {n_columns - 1}",
        )
    return number % n_columns


def labels_from_text(cells: list[str], where: str) -> NDArray[Any]:
    """Return one label per cell; only the distinct ones are looked at.

    >>> labels_from_text(["b", "a", "b"], "y").tolist()
    ['b', 'a', 'b']
    """
    refuse_long_labels(cells, where)
    codes = {cell: code for code, cell in enumerate(dict.fromkeys(cells))}
    distinct = tidy_labels(np.array(list(codes), dtype=str), where)
    return distinct[np.array([codes[cell] for cell in cells], dtype=np.int64)]


LONGEST_LABEL = 1000


def refuse_long_labels(labels: Iterable[str], where: str) -> None:
    """Refuse labels that are whole texts: an array gives every label the room of the longest."""
    for label in labels:
        if len(label) > LONGEST_LABEL:
            raise InputError(
                f"{where}: a label has {len(label):,} characters: {excerpt(label)}",
                hint=f"labels may have {LONGEST_LABEL:,} characters",
            )


def tidy_labels(labels: NDArray[Any], where: str) -> NDArray[Any]:
    """Return labels as int64 if all are whole numbers, else as text, or as floats with NaN.

    >>> tidy_labels(np.array(["1", "2", "-1"]), "y")
    array([ 1,  2, -1])
    >>> tidy_labels(np.array(["a", "", "b"]), "y").tolist()
    ['a', '', 'b']
    """
    kind = labels.dtype.kind
    if kind not in "biufSU":
        raise InputError(
            f"{where}: labels must be whole numbers or text, got {labels.dtype}",
            hint="one label per point; -1 or an empty label means unknown",
        )
    if kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if kind in "SU":
        numeric = all(map(_WHOLE.fullmatch, labels.tolist()))
        return labels.astype(np.int64) if numeric else labels
    if kind == "f" and not (np.isfinite(labels) & (labels == np.floor(labels))).all():
        return labels
    return labels.astype(np.int64)


def checked_points(array: NDArray[Any], where: str, names: Names = None) -> NDArray[np.float64]:
    """Return a table of finite float64 numbers, or say what is wrong with the array."""
    if array.ndim != 2:
        raise InputError(
            f"{where}: expected a table, got an array of shape {array.shape}",
            hint="save an array of shape (n_points, n_features); one feature: x.reshape(-1, 1)",
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{where}: the numbers must be real, got an array of {array.dtype}",
            hint="convert the array with X.astype(float) and drop what is not a feature",
        )
    if 0 in array.shape:
        raise InputError(
            f"{where}: the table is empty, its shape is {array.shape}",
            hint="at least one point and one feature are needed",
        )
    points: NDArray[np.float64] = np.asanyarray(array, dtype=np.float64, order="C")
    if not np.isfinite(column_ranges(points)).all():
        row, column = (int(v) for v in np.argwhere(~np.isfinite(points))[0])
        raise InputError(
            f"{where}: row {row} (counted from 0), {column_title(column, names)} is "
            f"{points[row, column]}",
            hint="remove the row or fill in the value",
        )
    return points
