"""Point tables, selection of columns, and checks shared by the readers."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count
from certikmeans._types import Floats
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.arrays import MAX_COORDINATE, column_ranges
from certikmeans.problem.io.text import PointIds, did_you_mean, format_list, quote

Names = tuple[str, ...] | None

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointTable:
    """Points of a file.

    >>> PointTable(np.zeros((3, 2)), ("x", "y"), None, "points.csv")
    PointTable('points.csv': 3 points, 2 features (x, y))
    """

    points: Floats  # (n_points, n_features), finite
    feature_names: Names
    labels: NDArray[Any] | None  # (n_points,) int64, else as written: text, or floats with NaN
    path: str
    n_clusters_hint: int | None = None  # K, where the format states it
    notes: tuple[str, ...] = ()  # how the file was read where it was ambiguous
    ids: PointIds | None = None  # names of the points, if a column holds them

    def __repr__(self) -> str:
        n_points, n_features = self.points.shape
        named = f" ({format_list(self.feature_names, limit=8)})" if self.feature_names else ""
        labelled = "" if self.labels is None else ", with labels"
        sizes = f"{count(n_points, 'point')}, {count(n_features, 'feature')}"
        return f"PointTable({self.path!r}: {sizes}{named}{labelled})"


def describe_column(column: int, names: Names) -> str:
    """Name a column for a message.

    >>> describe_column(1, ("x", "y")), describe_column(1, None)
    ("column 'y'", 'column 1 (counted from 0)')
    """
    return f"column {quote(names[column])}" if names else f"column {column} (counted from 0)"


def parse_column_number(label_column: str | int | None) -> int | None:
    """Return the number of a column that is given by number, else None.

    >>> parse_column_number("4"), parse_column_number(-1), parse_column_number("species")
    (4, -1, None)
    """
    if label_column is None:
        return None
    if isinstance(label_column, str):
        return int(label_column) if _WHOLE.fullmatch(label_column) else None
    return operator.index(label_column)


def find_column(
    word: str | int, names: Names, n_columns: int, path: str, what: str = "column"
) -> int:
    """Return the number of a column; names take precedence over numbers."""
    if names and word in names:
        if names.count(str(word)) > 1:
            raise InputError(
                f"{path}: several columns are called {quote(word)}",
                hint=f"give the column's number instead, from 0 to {n_columns - 1}",
            )
        return names.index(str(word))
    number = parse_column_number(word)
    if number is None or not -n_columns <= number < n_columns:
        known = format_list(names) if names else "the file names no columns"
        raise InputError(
            f"{path}: there is no {what} {quote(word)}",
            hint=did_you_mean(str(word), names or ())
            + f"columns: {known}; or give a number from 0 to {n_columns - 1}",
        )
    return number % n_columns


def labels_from_text(cells: list[str], where: str) -> NDArray[Any]:
    """Return one label per cell; only the distinct ones are examined.

    >>> labels_from_text(["b", "a", "b"], "y").tolist()
    ['b', 'a', 'b']
    """
    check_label_lengths(cells, where)
    codes = {cell: code for code, cell in enumerate(dict.fromkeys(cells))}
    distinct = normalize_labels(np.array(list(codes), dtype=str), where)
    return distinct[np.array([codes[cell] for cell in cells], dtype=np.int64)]


MAX_LABEL_LENGTH = 1000  # an array allocates the length of the longest label for each


def check_label_lengths(labels: Iterable[str], where: str) -> None:
    """Reject labels that are whole texts."""
    for label in labels:
        if len(label) > MAX_LABEL_LENGTH:
            raise InputError(
                f"{where}: a label has {len(label):,} characters: {quote(label)}",
                hint=f"labels may have {MAX_LABEL_LENGTH:,} characters",
            )


def normalize_labels(labels: NDArray[Any], where: str) -> NDArray[Any]:
    """Return labels as int64 if all are whole numbers, else as text, or as floats with NaN.

    >>> normalize_labels(np.array(["1", "2", "-1"]), "y")
    array([ 1,  2, -1])
    >>> normalize_labels(np.array(["a", "", "b"]), "y").tolist()
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


def validate_points(array: NDArray[Any], where: str, names: Names = None) -> Floats:
    """Return a table of finite float64 numbers; raise if the array is not one."""
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
    points: Floats = np.asanyarray(array, dtype=np.float64, order="C")
    if not np.isfinite(column_ranges(points)).all():
        row, column = (int(v) for v in np.argwhere(~np.isfinite(points))[0])
        raise InputError(
            f"{where}: row {row} (counted from 0), {describe_column(column, names)} is "
            f"{points[row, column]}",
            hint="remove the row or fill in the value",
        )
    low, high = column_ranges(points)
    if max(-low.min(), high.max()) > MAX_COORDINATE:
        row, column = (int(v) for v in np.argwhere(np.abs(points) > MAX_COORDINATE)[0])
        raise InputError(
            f"{where}: row {row} (counted from 0), {describe_column(column, names)} is "
            f"{points[row, column]}, which is too large for this arithmetic",
            hint=RANGE_HINT,
        )
    return points


RANGE_HINT = f"values may have a size of up to {MAX_COORDINATE:g}: rescale the feature"


_ROW_NAMES = {"#", "id", "idx", "index", "key", "no", "nr", "row", "rowid", "rownames", "sample"}
_MIN_ROWS = 4  # fewer consecutive numbers may well be a coincidence


@final
@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """The columns of a table that are features, and the one that holds labels."""

    features: list[int]
    label: int | None
    feature_names: Names

    def table(
        self,
        points: Floats,
        labels: NDArray[Any] | None,
        path: str,
        n_clusters: int | None = None,
        notes: tuple[str, ...] = (),
        where: str | None = None,
    ) -> PointTable:
        """Return the selected points and labels with a note on a column of row numbers."""
        notes += note_row_numbers(points, self.feature_names, self.features[0], where or path)
        return PointTable(points, self.feature_names, labels, path, n_clusters, notes)


@final
@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The caller's choice of columns: names, or numbers counted from 0."""

    columns: tuple[str | int, ...] = ()  # if any, these alone are features
    drop: tuple[str | int, ...] = ()
    id_column: str | int | None = None

    def id_number(self, names: Names, n_columns: int, path: str) -> int | None:
        """Return the number of the column of ids, which is no feature."""
        if self.id_column is None:
            return None
        return find_column(self.id_column, names, n_columns, path, "column of ids")

    @classmethod
    def of(cls, columns: Any, drop: Any, id_column: str | int | None = None) -> ColumnChoice:
        """From arguments: a name, a number, an iterable of them, or None.

        >>> ColumnChoice.of("x", [0, "y"])
        ColumnChoice(columns=('x',), drop=(0, 'y'), id_column=None)
        """
        unwanted = _column_specs(drop, "drop")
        if id_column is not None:
            unwanted += _column_specs(id_column, "id_column")
        return cls(_column_specs(columns, "columns"), unwanted, id_column)

    def select(
        self, names: Names, n_columns: int, label_column: str | int | None, path: str
    ) -> ColumnSelection:
        """Apply the choice to a table.

        >>> ColumnChoice(drop=("id,name",)).select(("id", "name", "x"), 3, None, "data.csv")
        ColumnSelection(features=[2], label=None, feature_names=('x',))
        """
        label = None
        if label_column is not None:
            label = find_column(label_column, names, n_columns, path, "label column")
        wanted = self._numbers(self.columns, names, n_columns, path)
        unwanted = self._numbers(self.drop, names, n_columns, path)
        for column in sorted(wanted & (unwanted | {label})):
            other = "as labels" if column == label else "to be dropped"
            raise InputError(
                f"{path}: {describe_column(column, names)} is named as a feature and {other}",
                hint="name it once",
            )
        candidates = wanted or frozenset(range(n_columns)) - unwanted
        features = sorted(candidates - {label})
        if not features and (wanted or unwanted):
            raise InputError(f"{path}: no column is left as a feature", hint="drop fewer columns")
        feature_names = None if names is None else tuple(names[column] for column in features)
        return ColumnSelection(features, label, feature_names)

    def ignored_by_number(self, n_columns: int) -> frozenset[int]:
        """Columns that are ignored by number, known before the names are."""
        wanted = _plain_numbers(self.columns, n_columns)
        if self.columns:
            return frozenset(range(n_columns)) - wanted if wanted else frozenset()
        return _plain_numbers(self.drop, n_columns)

    @staticmethod
    def _numbers(
        given: tuple[str | int, ...], names: Names, n_columns: int, path: str
    ) -> frozenset[int]:
        found = set()
        for entry in given:
            whole = not isinstance(entry, str) or bool(names and entry in names)
            for word in [entry] if whole else str(entry).split(","):
                column = word.strip() if isinstance(word, str) else word
                found.add(find_column(column, names, n_columns, path))
        return frozenset(found)


ALL_COLUMNS = ColumnChoice()


def _column_specs(given: Any, what: str) -> tuple[str | int, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = (given,)
    try:
        return tuple(word if isinstance(word, str) else operator.index(word) for word in given)
    except TypeError as error:
        raise InputError(
            f"{what}: expected names or numbers of columns, got {quote(given)}",
            hint=f"for example {what}=['x', 'y'] or {what}=[0, 2]",
        ) from error


def _plain_numbers(given: tuple[str | int, ...], n_columns: int) -> frozenset[int]:
    words = [word for entry in given for word in (str(entry).split(","))]
    numbers = [parse_column_number(word.strip()) for word in words]
    return frozenset(
        n % n_columns for n in numbers if n is not None and -n_columns <= n < n_columns
    )


def text_column_hint(name: str) -> Message:
    """Return the remedy for a feature column that holds text."""
    return Message(
        "if it holds class labels, pass ",
        Argument("label_column", quote(name)),
        " (they are not a feature); otherwise leave it out with ",
        Argument("drop", quote(name)),
    )


def note_row_numbers(points: Floats, features: Names, number: int, path: str) -> tuple[str, ...]:
    """Note that the first feature looks like row numbers; ``number`` is its column in the file.

    Only a note, because a time that is counted in steps looks the same.

    >>> note_row_numbers(np.array([[1., 5], [2, 5], [3, 7], [4, 1]]), ("id", "x"), 0, "a.csv")
    ("a.csv: column 'id' looks like row numbers and is read as a feature; if so, pass drop='id'",)
    """
    if points.shape[1] < 2 or len(points) < _MIN_ROWS:
        return ()
    first = points[:, 0]
    named_like_index = features is not None and _is_row_name(features[0])
    consecutive = first[0] in (0.0, 1.0) and np.array_equal(first, first[0] + np.arange(len(first)))
    if not consecutive and not (named_like_index and len(np.unique(first)) == len(first)):
        return ()
    title = describe_column(0, features) if features else describe_column(number, None)
    name = number if features is None else features[0]
    return (
        Message(
            f"{path}: {title} looks like row numbers and is read as a feature; if so, pass ",
            Argument("drop", quote(name)),
        ),
    )


def _is_row_name(name: str) -> bool:
    word = name.strip().lower()
    return word in _ROW_NAMES or word.startswith("unnamed") or word.endswith(("_id", " id"))
