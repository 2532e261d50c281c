"""What the first row of a text file of points is: a point, names, or the sizes of PC-SOS-SDP.

A first row names the columns if one of its cells is text; what starts like a number, such as
``5.1O`` or ``1,5``, or stands for a missing value is not text but a faulty cell.

In the format of PC-SOS-SDP the first row is ``n d k`` or ``n d``, separated by white space: it
is taken for that only if exactly ``n`` rows of ``d`` numbers follow. Where the file could also be
an ordinary table, first row included, it is read as one unless this holds and ``n > 1``; a note
says so, and where nearly ``n`` rows follow the file is refused: it could be a truncated one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, final, get_args

from certikmeans.errors import InputError
from certikmeans.problem.files.columns import ALL_COLUMNS, ColumnChoice
from certikmeans.problem.files.table import Names, column_number, column_title
from certikmeans.problem.files.text import TextFile, excerpt, is_number

Header = Literal["auto", "none", "names", "sizes"]
HEADERS: tuple[str, ...] = get_args(Header)

_MISSING = {"", "?", "-", "na", "n/a", "null", "none"}


@final
@dataclass(frozen=True, slots=True)
class FirstRow:
    """What the first row turned out to be."""

    is_data: bool
    names: Names = None
    n_clusters: int | None = None
    notes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class _Sizes:
    """A first row that can be read as ``n d k`` or ``n d``, and what follows it."""

    text: str
    n_points: int
    n_features: int
    n_clusters: int | None
    n_rows: int
    width: int  # of the second row

    @classmethod
    def of(cls, file: TextFile) -> _Sizes | None:
        first = file.cells(0)
        whole = all(re.fullmatch("[0-9]{1,15}", cell) for cell in first)
        if len(first) not in (2, 3) or not whole:
            return None
        numbers = [int(cell) for cell in first]
        n_rows = len(file) - 1
        return cls(
            text=" ".join(first),
            n_points=numbers[0],
            n_features=numbers[1],
            n_clusters=numbers[2] if len(first) == 3 else None,
            n_rows=n_rows,
            width=len(file.cells(1)) if n_rows else 0,
        )

    @property
    def fit(self) -> bool:
        """Whether exactly this follows."""
        return (self.n_rows, self.width) == (self.n_points, self.n_features)

    @property
    def nearly_fit(self) -> bool:
        """Whether the columns are right, and a few rows are missing or too many."""
        off = abs(self.n_rows - self.n_points)
        return self.width == self.n_features and off <= max(1, self.n_points // 10)

    @property
    def could_be_a_point(self) -> bool:
        """Whether the row is as wide as the rows that follow."""
        return not self.n_rows or self.width == (2 if self.n_clusters is None else 3)


def read_first_row(
    file: TextFile,
    label_column: str | int | None,
    header: Header,
    choice: ColumnChoice = ALL_COLUMNS,
) -> FirstRow:
    """Tell what the first row is, or take it for what the caller says."""
    match header:
        case "none":
            return FirstRow(True)
        case "names":
            return FirstRow(False, names=_names(file))
        case "sizes":
            return _forced_sizes(file)
        case "auto":
            return _told_sizes(file) or _header(file, label_column, choice)


def _told_sizes(file: TextFile) -> FirstRow | None:
    """Recognise sizes; raise where they, or the rows below, may be damaged."""
    sizes = _Sizes.of(file) if file.delimiter in (None, "\t") else None
    if sizes is None:
        return None
    if not sizes.could_be_a_point:
        if sizes.fit:
            return FirstRow(False, n_clusters=sizes.n_clusters)
        _refuse_damaged(file, sizes)
        return None
    if sizes.width != sizes.n_features or sizes.n_points <= 1:
        return None
    as_sizes = f"the sizes: {sizes.n_points} points of {sizes.n_features} features"
    if sizes.fit:
        note = (
            f"{file.where(0)}: {sizes.text!r} is read as {as_sizes}; "
            "if it is a point, say header='none'"
        )
        return FirstRow(False, n_clusters=sizes.n_clusters, notes=(note,))
    if sizes.nearly_fit:
        raise InputError(
            f"{file.where(0)}: {sizes.text!r} could be the first of {len(file)} points, or "
            f"{as_sizes}, but {sizes.n_rows} rows follow",
            hint="if it is a point, say header='none'; else restore the missing rows or correct "
            "the first line",
        )
    note = (
        f"{file.where(0)}: {sizes.text!r} is read as a point, not as {as_sizes}, "
        f"since {sizes.n_rows} rows follow"
    )
    return FirstRow(True, notes=(note,))


def _refuse_damaged(file: TextFile, sizes: _Sizes) -> None:
    said = (
        f"{file.where(0)}: {sizes.text!r} announces {sizes.n_points} points of "
        f"{sizes.n_features} features"
    )
    if sizes.width == sizes.n_features:
        problem = "the file is truncated" if sizes.n_rows < sizes.n_points else "there are more"
        raise InputError(
            f"{said}, but {sizes.n_rows} rows follow: {problem}",
            hint="restore the missing rows or correct the first line",
        )
    if sizes.n_rows == sizes.n_points:
        raise InputError(
            f"{said}, but line {file.numbers[1]} has {sizes.width} columns",
            hint="correct the first line: number of points, number of features, K",
        )


def _forced_sizes(file: TextFile) -> FirstRow:
    sizes = _Sizes.of(file)
    if sizes is None:
        raise InputError(
            f"{file.where(0)}: {file.shown(0)} is not 'n d' or 'n d k'",
            hint="leave out header='sizes' if the first line is a point or names the columns",
        )
    if not sizes.fit:
        raise InputError(
            f"{file.where(0)}: {sizes.text!r} announces {sizes.n_points} points of "
            f"{sizes.n_features} features, but {sizes.n_rows} rows of {sizes.width} follow",
            hint="restore the missing rows or correct the first line",
        )
    return FirstRow(False, n_clusters=sizes.n_clusters)


def _header(file: TextFile, label_column: str | int | None, choice: ColumnChoice) -> FirstRow:
    """Decide whether the first row names the columns."""
    first = file.cells(0)
    text = [c for c, cell in enumerate(first) if not _is_meant_as_number(cell)]
    if not text:
        return FirstRow(True)
    number = column_number(label_column)
    if number is not None and text == [number % len(first)] and _labels_a_point(file, text[0]):
        return FirstRow(True)
    left_out = set(choice.numbers_given(len(first)))
    told = left_out if number is None else left_out | {number % len(first)}
    if left_out.intersection(text) and told.issuperset(text) and len(told) < len(first):
        return FirstRow(True)  # every feature is a number here: names would not be
    return FirstRow(False, names=_names(file))


def _names(file: TextFile) -> tuple[str, ...]:
    first = file.cells(0)
    if file.delimiter is None and len(file) > 1 and len(file.cells(1)) == 1:
        first = [" ".join(first)]  # a single column, its name written with spaces
    if "" in first:
        raise InputError(
            f"{file.where(0)}: {column_title(first.index(''), None)} has no name in the header",
            hint="if it is an index, save the table without it (pandas: index=False); "
            "if it is a feature, name it",
        )
    return tuple(first)


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
        f"{file.where(0)}: cannot tell whether this is a header or a point labelled "
        f"{excerpt(mine)}: {file.shown(0)}",
        hint="say which: header='names' or header='none'",
    )
