"""Which columns of a table are features: all, those that are named, or all but some."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.files.table import (
    Names,
    column_number,
    column_title,
    find_column,
)
from certikmeans.problem.files.text import excerpt

_ROW_NAMES = {"#", "id", "idx", "index", "key", "no", "nr", "row", "rowid", "rownames", "sample"}
_FEWEST_ROWS = 4  # fewer consecutive numbers may well be a coincidence


@final
@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What the caller said about columns: names, or numbers counted from 0."""

    columns: tuple[str | int, ...] = ()  # if any, these alone are features
    drop: tuple[str | int, ...] = ()

    @classmethod
    def of(cls, columns: Any, drop: Any) -> ColumnChoice:
        """From arguments: a name, a number, an iterable of them, or None.

        >>> ColumnChoice.of("x", [0, "y"])
        ColumnChoice(columns=('x',), drop=(0, 'y'))
        """
        return cls(_words(columns, "columns"), _words(drop, "drop"))

    def ignored(self, names: Names, n_columns: int, label: int | None, path: str) -> frozenset[int]:
        """Return the columns that are neither features nor labels.

        >>> ColumnChoice(drop=("id,name",)).ignored(("id", "name", "x"), 3, None, "data.csv")
        frozenset({0, 1})
        """
        wanted = self._numbers(self.columns, names, n_columns, path)
        unwanted = self._numbers(self.drop, names, n_columns, path)
        for column in sorted(wanted & (unwanted | {label})):
            other = "as labels" if column == label else "to be dropped"
            raise InputError(
                f"{path}: {column_title(column, names)} is named as a feature and {other}",
                hint="name it once",
            )
        every = frozenset(range(n_columns))
        left_out = (every - wanted if wanted else unwanted) - {label}
        if left_out and len(left_out) + (label is not None) == n_columns:
            raise InputError(f"{path}: no column is left as a feature", hint="drop fewer columns")
        return left_out

    def numbers_given(self, n_columns: int) -> frozenset[int]:
        """Columns ignored by number, as far as that can be said without names."""
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


def _words(given: Any, what: str) -> tuple[str | int, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = (given,)
    try:
        return tuple(word if isinstance(word, str) else operator.index(word) for word in given)
    except TypeError as error:
        raise InputError(
            f"{what}: expected names or numbers of columns, got {excerpt(given)}",
            hint=f"for example {what}=['x', 'y'] or {what}=[0, 2]",
        ) from error


def _plain_numbers(given: tuple[str | int, ...], n_columns: int) -> frozenset[int]:
    words = [word for entry in given for word in (str(entry).split(","))]
    numbers = [column_number(word.strip()) for word in words]
    return frozenset(
        n % n_columns for n in numbers if n is not None and -n_columns <= n < n_columns
    )


def note_row_numbers(
    points: NDArray[np.float64], features: Names, number: int, path: str
) -> tuple[str, ...]:
    """Say that the first feature looks like row numbers; ``number`` is its column in the file.

    It is a note and no more: a time that is counted in steps looks the same.

    >>> note_row_numbers(np.array([[1., 5], [2, 5], [3, 7], [4, 1]]), ("id", "x"), 0, "a.csv")
    ("a.csv: column 'id' looks like row numbers and is read as a feature; if so, pass drop='id'",)
    """
    if points.shape[1] < 2 or len(points) < _FEWEST_ROWS:
        return ()
    first = points[:, 0]
    called = features is not None and _is_row_name(features[0])
    consecutive = first[0] in (0.0, 1.0) and np.array_equal(first, first[0] + np.arange(len(first)))
    if not consecutive and not (called and len(np.unique(first)) == len(first)):
        return ()
    title = column_title(0, features) if features else column_title(number, None)
    name = number if features is None else features[0]
    return (
        f"{path}: {title} looks like row numbers and is read as a feature; "
        f"if so, pass drop={excerpt(name)}",
    )


def _is_row_name(name: str) -> bool:
    word = name.strip().lower()
    return word in _ROW_NAMES or word.startswith("unnamed") or word.endswith(("_id", " id"))
