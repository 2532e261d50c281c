"""Text files as decoded lines without comments and blank lines, and names of points."""

from __future__ import annotations

import contextlib
import csv
import difflib
import gzip
import math
import os
import reprlib
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.errors import InputError

PathLike = str | os.PathLike[str]

_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas"}
# First bytes of a file, its format, and the remedy; a suffix is the one under which it is read.
_MAGIC = {
    b"\x93NUMPY": ("a NumPy array", ".npy"),
    b"PAR1": ("a parquet file", ".parquet"),
    b"PK\x03\x04": ("a zip archive", "export spreadsheets as CSV"),
    b"\xff\xfe": ("UTF-16 text", "save the file as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save the file as UTF-8"),
}
MAX_QUOTE = 60  # characters of a value in a message
CHUNK = 1 << 25  # bytes


def quote(value: object, limit: int = MAX_QUOTE) -> str:
    """Quote a value for a message, truncated to ``limit`` characters.

    >>> quote("5.1O"), quote("a long cell", limit=6)
    ("'5.1O'", "'a long...'")
    """
    text = value.strip() if isinstance(value, str) and len(value) < 10_000 else value
    if isinstance(text, str):
        return repr(text if len(text) <= limit else text[:limit] + "...")
    # A list from JSON is truncated first: it may be long, or nested a thousand deep.
    text_repr = reprlib.repr(text)
    return text_repr if len(text_repr) <= limit else text_repr[:limit] + "..."


def format_list(words: Iterable[str], limit: int = 20) -> str:
    """Join words with commas; truncate long ones, and count those beyond ``limit``.

    >>> format_list(["x", "y", "z"], limit=2)
    'x, y and 1 more'
    """
    every = list(words)
    shown = ", ".join(
        word if len(word) <= MAX_QUOTE else word[:MAX_QUOTE] + "..." for word in every[:limit]
    )
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit:,} more"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the closest known word, or an empty string.

    >>> did_you_mean("speces", ["species", "width"])
    "did you mean 'species'? "
    """
    if len(word) > 255:
        return ""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {quote(close[0])}? " if close else ""


def existing_file(path: PathLike) -> Path:
    """Return the path if a regular file is there; raise otherwise."""
    found = Path(path)
    try:
        kind = found.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        kind = 0
    except (OSError, ValueError) as error:  # too long, a loop, not permitted; a null character
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{quote(str(path))}: cannot be read ({reason})",
            hint="correct the name of the file, or the permissions of its directory",
        ) from error
    if stat.S_ISDIR(kind):
        raise InputError(f"{path}: is a directory", hint="name a file inside it")
    if not kind:
        try:
            siblings = os.listdir(found.parent)
        except OSError:
            siblings = []
        raise InputError(
            f"{path}: no such file",
            hint=did_you_mean(found.name, siblings) + f"looked in {found.parent.resolve()}",
        )
    return found


def read_text(path: PathLike, other_formats: tuple[str, ...] = ()) -> str:
    """Return the content of a UTF-8 file, with or without byte order mark, newlines as ``\\n``.

    ``other_formats`` lists the formats that the calling reader supports besides text, for hints.
    """
    return "".join(text for text, _ in read_chunks(path, other_formats))


def read_chunks(path: PathLike, other_formats: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Yield the content as `read_text` does, in chunks of whole lines with their first line number.

    At least one chunk is yielded. Large files are never in memory as a whole.
    """
    first_line = 1
    try:
        with _opened(existing_file(path)) as file:
            data = file.read(CHUNK) + file.readline()
            yield _decode(data, path, other_formats, first_line), first_line
            while data:
                first_line += data.count(b"\n")
                data = file.read(CHUNK) + file.readline()
                if data:
                    yield _decode(data, path, other_formats, first_line), first_line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path}: is a damaged gzip file ({error})", hint="compress the file again"
        ) from error
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", hint="check the file's permissions"
        ) from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, decompressed if it is a gzip file. It is opened once: it may be a pipe."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="rb") as content:
            yield content


def _decode(data: bytes, path: PathLike, other_formats: tuple[str, ...], first_line: int) -> str:
    known = f"known formats here: {', '.join(('text', *other_formats))}"
    for magic, (what, remedy) in _MAGIC.items():
        if data.startswith(magic):
            if remedy.startswith("."):
                supported = remedy in other_formats
                remedy = f"give the file the suffix {remedy}" if supported else known
            elif what == "a zip archive":
                remedy = f"{remedy}; {known}"
            raise InputError(f"{path}: is {what}, not plain text", hint=remedy)
    if b"\0" in data:
        raise InputError(f"{path}: is a binary file, not plain text", hint=known)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        raise InputError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8",
            hint="save the file as UTF-8",
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_number(cell: str) -> bool:
    """Return whether a cell is a number; so are ``nan`` and ``inf``, which are rejected later.

    >>> [is_number(cell) for cell in ("1e-3", " 2 ", "1_000", "1,5", "")]
    [True, True, False, False, False]
    """
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell  # float() accepts more than loadtxt


def is_finite(cell: str) -> bool:
    """Return whether a cell is a finite number."""
    return is_number(cell) and math.isfinite(float(cell))


def _without_comment(line: str) -> str:
    """Cut a line at its first ``#`` outside double quotes.

    >>> _without_comment('1,"a#b" # remark')
    '1,"a#b" '
    """
    end = line.find("#")
    while end >= 0 and line.count('"', 0, end) % 2:
        end = line.find("#", end + 1)
    return line if end < 0 else line[:end]


def _delimiter(lines: list[str]) -> str | None:
    """Return the delimiter of the first rows; None for white space.

    Two rows are examined because names in a header may contain a comma.

    >>> _delimiter(["area, in m\\ty", "1\\t2"]), _delimiter(["1,2", "3"]), _delimiter(["1 2"])
    ('\\t', ',', None)
    """
    shared = [mark for mark in _DELIMITERS if lines and all(mark in line for line in lines)]
    first = [mark for mark in ";," if lines and mark in lines[0]]
    return next(iter(shared + first), None)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """The rows of a text file that hold data."""

    path: str
    lines: list[str]
    line_numbers: Ints  # of each row in the file, counted from 1
    delimiter: str | None  # None: any white space
    quoted: bool  # whether some cell is in double quotes

    @classmethod
    def read(cls, path: PathLike, other_formats: tuple[str, ...] = ()) -> TextFile:
        """Read a file; its first two rows determine the delimiter. See `read_text`."""
        return cls.from_text(read_text(path, other_formats), os.fspath(path))

    @classmethod
    def from_text(cls, text: str, path: str, first_line: int = 1) -> TextFile:
        """Split the content of ``path`` into rows.

        >>> file = TextFile.from_text("# made by hand\\nx;y\\n\\n1;2", "points.txt")
        >>> file.lines, file.line_numbers, file.delimiter
        (['x;y', '1;2'], array([2, 4]), ';')
        """
        lines = text.split("\n")
        if "#" in text:
            lines = [_without_comment(line) for line in lines]
        kept = [row for row, line in enumerate(lines) if line and not line.isspace()]
        if len(kept) < len(lines):
            lines = [lines[row] for row in kept]
        file = cls(
            path=path,
            lines=lines,
            line_numbers=np.array(kept, dtype=np.int64) + first_line,
            delimiter=_delimiter(lines[:2]),
            quoted='"' in text,
        )
        if file.quoted:
            file._check_quotes()
        return file

    def _check_quotes(self) -> None:
        for row, line in enumerate(self.lines):
            if line.count('"') % 2:
                raise InputError(
                    f"{self.where(row)}: a double quote is not closed: {quote(line)}",
                    hint="close it; a cell cannot extend over several lines",
                )

    def __len__(self) -> int:
        return len(self.lines)

    def shown(self, row: int) -> str:
        """Quote a row for a message."""
        return quote(self.lines[row])

    def where(self, row: int) -> str:
        """Return file and line of a row."""
        return f"{self.path}, line {self.line_numbers[row]}"

    @property
    def delimiter_name(self) -> str:
        """Name of the delimiter."""
        return _DELIMITERS[self.delimiter] if self.delimiter else "white space"

    def cells(self, row: int) -> list[str]:
        """Return the cells of one row, stripped of quotes and white space."""
        line = self.lines[row]
        if self.quoted and '"' in line:
            if self.delimiter is None:
                line = line.strip().replace("\t", " ")
            reader = csv.reader([line], delimiter=self.delimiter or " ", skipinitialspace=True)
            try:
                return [cell.strip() for cell in next(reader)]
            except csv.Error as error:
                raise InputError(
                    f"{self.where(row)}: cannot be split into cells ({error}): {quote(line)}",
                    hint="shorten the cell, or close its double quotes",
                ) from error
        return [cell.strip() for cell in line.split(self.delimiter)]

    def parse(
        self, start: int, converters: dict[int, Callable[[str], float]] | None = None
    ) -> Floats | None:
        """Parse all rows from ``start`` on with `numpy.loadtxt`.

        Returns None if some row does not fit; the caller then searches for it cell by cell,
        because the parser's own message has neither line nor remedy.
        """
        try:
            table: Floats = np.loadtxt(  # type: ignore[call-overload]
                self.lines[start:],
                dtype=np.float64,
                delimiter=self.delimiter,
                comments=None,
                quotechar='"' if self.quoted else None,
                converters=converters,
                ndmin=2,
                encoding="utf-8",
            )
        except ValueError:
            return None
        return table


MAX_ROW_NUMBER = 2**53  # beyond any row number, and below it every integer is exact as a float


@final
@dataclass(frozen=True, slots=True, eq=False)
class PointIds:
    """Ids of all points, as text, and the row of each."""

    name: str  # of the column
    ids: tuple[str, ...]
    rows: dict[str, int]

    @classmethod
    def of(cls, ids: Iterable[str], name: str, where: str) -> PointIds:
        """Check that every point has an id of its own.

        >>> PointIds.of(["a", "b"], "name", "data.csv").rows
        {'a': 0, 'b': 1}
        """
        every = tuple(one.strip() for one in ids)
        rows: dict[str, int] = {}
        for row, one in enumerate(every):
            if not one:
                raise InputError(
                    f"{where}: row {row} (counted from 0) has no id", hint="give every point an id"
                )
            if rows.setdefault(one, row) != row:
                raise InputError(
                    f"{where}: the id {quote(one)} occurs in rows {rows[one]} and {row} "
                    "(counted from 0)",
                    hint="ids have to be distinct; remove repeated rows, or choose another column",
                )
        return cls(name, every, rows)

    def __len__(self) -> int:
        return len(self.ids)

    def unknown(self, word: str, where: str) -> InputError:
        """Return the error for a name that is no id."""
        known = self.ids if len(self.ids) <= 10_000 else ()
        return InputError(
            f"{where}: there is no point {quote(word)} in the column {quote(self.name)}",
            hint=did_you_mean(word, known) + f"points are named by their {quote(self.name)}",
        )
