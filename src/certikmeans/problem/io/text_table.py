"""Points in text: CSV, TSV, semicolons, white space, and the format of PC-SOS-SDP.

The first row is a point, the names of the columns, or the sizes of PC-SOS-SDP. It holds names if
one of its cells is text; a cell that starts like a number, such as ``5.1O`` or ``1,5``, or that
stands for a missing value is not text but a faulty number.

In the format of PC-SOS-SDP the first row is ``n d k`` or ``n d``, separated by white space. It is
recognised only if exactly ``n`` rows of ``d`` numbers follow. Where the file could also be an
ordinary table, first row included, it is read as one unless this holds and ``n > 1``; a note
reports it, and if nearly ``n`` rows follow the file is rejected: it could be truncated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, final, get_args

import numpy as np

from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.arrays import MAX_COORDINATE
from certikmeans.problem.io.table import (
    ALL_COLUMNS,
    RANGE_HINT,
    ColumnChoice,
    Names,
    PointTable,
    check_label_lengths,
    describe_column,
    normalize_labels,
    parse_column_number,
    text_column_hint,
)
from certikmeans.problem.io.text import (
    MAX_QUOTE,
    PathLike,
    PointIds,
    TextFile,
    is_finite,
    is_number,
    quote,
)

Header = Literal["auto", "none", "names", "sizes"]
HEADERS: tuple[str, ...] = get_args(Header)

_MISSING = {"", "?", "-", "na", "n/a", "null", "none"}


@final
@dataclass(frozen=True, slots=True)
class HeaderRow:
    """Interpretation of the first row."""

    is_data: bool
    names: Names = None
    n_clusters: int | None = None
    notes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class _SizeHeader:
    """A first row of the form ``n d k`` or ``n d``, and the shape of the rows below."""

    text: str
    n_points: int
    n_features: int
    n_clusters: int | None
    n_rows: int
    width: int  # of the second row

    @classmethod
    def of(cls, file: TextFile) -> _SizeHeader | None:
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
    def matches(self) -> bool:
        """Whether the rows below have exactly this shape."""
        return (self.n_rows, self.width) == (self.n_points, self.n_features)

    @property
    def nearly_matches(self) -> bool:
        """Whether the width matches, and the number of rows nearly."""
        off = abs(self.n_rows - self.n_points)
        return self.width == self.n_features and off <= max(1, self.n_points // 10)

    @property
    def plausible_point(self) -> bool:
        """Whether the row is as wide as those below."""
        return not self.n_rows or self.width == (2 if self.n_clusters is None else 3)


def detect_header(
    file: TextFile,
    label_column: str | int | None,
    header: Header,
    choice: ColumnChoice = ALL_COLUMNS,
) -> HeaderRow:
    """Interpret the first row as the caller requests, or detect what it is."""
    match header:
        case "none":
            return HeaderRow(True)
        case "names":
            return HeaderRow(False, names=_names(file))
        case "sizes":
            return _require_sizes(file)
        case "auto":
            return _detect_sizes(file) or _detect_names(file, label_column, choice)


def _detect_sizes(file: TextFile) -> HeaderRow | None:
    """Recognise sizes; raise if they, or the rows below, may be damaged."""
    sizes = _SizeHeader.of(file) if file.delimiter in (None, "\t") else None
    if sizes is None:
        return None
    if not sizes.plausible_point:
        if sizes.matches:
            return HeaderRow(False, n_clusters=sizes.n_clusters)
        if sizes.width == sizes.n_features or sizes.n_rows == sizes.n_points:
            raise _size_error(file, sizes)
        return None
    if sizes.width != sizes.n_features or sizes.n_points <= 1:
        return None
    as_sizes = f"the sizes: {sizes.n_points} points of {sizes.n_features} features"
    if sizes.matches:
        note: str = Message(
            f"{file.where(0)}: {sizes.text!r} is read as {as_sizes}; if it is a point, pass ",
            Argument("header", "'none'"),
        )
        return HeaderRow(False, n_clusters=sizes.n_clusters, notes=(note,))
    if sizes.nearly_matches:
        raise InputError(
            f"{file.where(0)}: {sizes.text!r} could be the first of {len(file)} points, or "
            f"{as_sizes}, but {sizes.n_rows} rows follow",
            hint=Message(
                "if it is a point, pass ",
                Argument("header", "'none'"),
                "; else restore the missing rows or correct the first line",
            ),
        )
    note = (
        f"{file.where(0)}: {sizes.text!r} is read as a point, not as {as_sizes}, "
        f"since {sizes.n_rows} rows follow"
    )
    return HeaderRow(True, notes=(note,))


def _size_error(file: TextFile, sizes: _SizeHeader) -> InputError:
    return InputError(
        f"{file.where(0)}: {sizes.text!r} announces {sizes.n_points} points of "
        f"{sizes.n_features} features, but {sizes.n_rows} rows of {sizes.width} follow",
        hint="restore the missing rows, or correct the first line: number of points, number of "
        "features, K",
    )


def _require_sizes(file: TextFile) -> HeaderRow:
    sizes = _SizeHeader.of(file)
    if sizes is None:
        raise InputError(
            f"{file.where(0)}: {file.shown(0)} is not 'n d' or 'n d k'",
            hint=Message(
                "leave out ",
                Argument("header", "'sizes'"),
                " if the first line is a point or names the columns",
            ),
        )
    if not sizes.matches:
        raise _size_error(file, sizes)
    return HeaderRow(False, n_clusters=sizes.n_clusters)


def _detect_names(
    file: TextFile, label_column: str | int | None, choice: ColumnChoice
) -> HeaderRow:
    """Decide whether the first row names the columns."""
    first = file.cells(0)
    text = [c for c, cell in enumerate(first) if not _looks_numeric(cell)]
    if not text:
        return HeaderRow(True)
    number = parse_column_number(label_column)
    if number is not None and text == [number % len(first)] and _is_labeled_point(file, text[0]):
        return HeaderRow(True)
    left_out = set(choice.ignored_by_number(len(first)))
    not_features = left_out if number is None else left_out | {number % len(first)}
    if (
        left_out.intersection(text)
        and not_features.issuperset(text)
        and len(not_features) < len(first)
    ):
        return HeaderRow(True)  # every feature is a number, so the row holds no names
    return HeaderRow(False, names=_names(file))


def _names(file: TextFile) -> tuple[str, ...]:
    first = file.cells(0)
    if file.delimiter is None and len(file) > 1 and len(file.cells(1)) == 1:
        first = [" ".join(first)]  # a single column whose name contains spaces
    if "" in first:
        raise InputError(
            f"{file.where(0)}: {describe_column(first.index(''), None)} has no name in the header",
            hint="if it is an index, save the table without it (pandas: index=False); "
            "if it is a feature, name it",
        )
    return tuple(first)


def _looks_numeric(cell: str) -> bool:
    faulty = re.match(r"[+-]?\.?[0-9]", cell) or cell.lower() in _MISSING
    return bool(faulty) or is_number(cell)


def _is_labeled_point(file: TextFile, column: int) -> bool:
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
        f"{file.where(0)}: is either a header or a point labelled {quote(mine)}: {file.shown(0)}",
        hint=Message("pass ", Argument("header", "'names'"), " or ", Argument("header", "'none'")),
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
    if file.lines[0].lstrip()[:1] in ("{", "["):
        raise InputError(
            f"{file.path}: is JSON, not a table", hint="save the points as CSV, one per line"
        )
    first = detect_header(file, label_column, header, choice)
    start = 0 if first.is_data else 1
    if start == len(file):
        raise InputError(
            f"{file.path}: holds a header and no points", hint="expected one point per line"
        )
    names = first.names
    width = len(names) if names else len(file.cells(start))
    if label_column is not None and width == 1:
        raise InputError(
            f"{file.path}: holds a label column and no features", hint="add the coordinates"
        )
    columns = choice.select(names, width, label_column, file.path)
    label, features = columns.label, columns.features

    # A label is replaced by the order of its first appearance, so that one pass over the file
    # yields both the numbers and the text.
    codes: dict[str, int] = {}
    id_codes: dict[str, int] = {}
    id_number = choice.id_number(names, width, file.path)
    ignored = set(range(width)).difference(features)
    encoders: dict[int, Callable[[str], float]] = dict.fromkeys(ignored, lambda cell: 0.0)
    if label is not None:
        encoders[label] = lambda cell: codes.setdefault(cell.strip(), len(codes))
    if id_number is not None:
        encoders[id_number] = lambda cell: id_codes.setdefault(cell.strip(), len(id_codes))
    table = file.parse(start, encoders)
    if table is None or table.shape[1] != width or not (np.abs(table) <= MAX_COORDINATE).all():
        raise _table_error(file, start, names, ignored)
    labels = None
    if label is not None:
        check_label_lengths(codes, file.path)
        distinct = normalize_labels(np.array(list(codes)), file.path)
        labels = distinct[table[:, label].astype(np.int64)]
    points = table if len(features) == width else np.ascontiguousarray(table[:, features])
    found = columns.table(points, labels, file.path, first.n_clusters, first.notes)
    if id_number is None:
        return found
    distinct_ids = list(id_codes)
    ids = (distinct_ids[code] for code in table[:, id_number].astype(np.int64).tolist())
    title = names[id_number] if names else "id"
    return replace(found, ids=PointIds.of(ids, title, file.path))


def _table_error(file: TextFile, start: int, names: Names, skipped: set[int]) -> InputError:
    """Locate the first cell or row that does not belong to a table of finite numbers."""
    width = len(names) if names else len(file.cells(start))
    for row in range(start, len(file)):
        cells = file.cells(row)
        if len(cells) != width:
            reference = (
                f"the header (line {file.line_numbers[0]})"
                if names
                else f"line {file.line_numbers[start]}"
            )
            return InputError(
                f"{file.where(row)}: has {len(cells)} columns where {reference} has {width}: "
                f"{file.shown(row)}",
                hint=f"cells are separated by {file.delimiter_name}; "
                "complete the row or remove what is too much",
            )
        for column, cell in enumerate(cells):
            if column not in skipped and not (
                is_finite(cell) and abs(float(cell)) <= MAX_COORDINATE
            ):
                return _cell_error(file, row, column, start, names)
    return InputError(
        f"{file.path}: is not a table of numbers",
        hint=f"cells are separated by {file.delimiter_name}; expected one point per line",
    )


def _cell_error(file: TextFile, row: int, column: int, start: int, names: Names) -> InputError:
    cell = file.cells(row)[column]
    title = describe_column(column, names)
    problem = f"{quote(cell)} is not a number"
    hint: str = "correct the cell or remove the row"
    if not cell:
        problem, hint = "is empty", "remove the row or fill in the value"
    elif is_number(cell):
        problem = f"is {cell[:MAX_QUOTE]}"
        hint = "values must be finite: remove the row or fill in the value"
        if is_finite(cell):
            problem += ", which is too large for this arithmetic"
            hint = RANGE_HINT
    elif re.fullmatch(r"[+-]?[0-9]+(,[0-9]+)+", cell[:1000]):
        hint = "write a decimal point, not a decimal comma, and no thousands separators"
    elif _is_text_column(file, column, start):
        if names and any(map(is_number, names)):  # then the supposed header was a point
            names, title = None, describe_column(column, None)
        name = names[column] if names else str(column)
        problem = f"holds text in every row, here {quote(cell)}"
        hint = text_column_hint(name)
    return InputError(f"{file.where(row)}: {title} {problem}", hint=hint)


def _is_text_column(file: TextFile, column: int, start: int) -> bool:
    rows = map(file.cells, range(start, len(file)))
    return all(not is_number(cell) for cells in rows for cell in cells[column : column + 1])
