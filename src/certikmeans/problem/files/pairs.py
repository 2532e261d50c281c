"""Read must-links and cannot-links. The first row of the file decides its format.

========================  =====================================================================
first row                 meaning
========================  =====================================================================
``{`` or suffix .json     JSON, see `pairs_json`
``ML i j`` / ``CL i j``   one pair per line with its kind, also ``must-link``, ``cannot-link``
``i j 1`` / ``i j -1``    one pair per line, 1 for must-link and -1 for cannot-link
``i j``                   one pair per line; the caller says of which kind
``i j k ...``             must-link files only: every line is a group of two or more points
suffix .npy or .npz       arrays of pairs, see `pairs_array`
========================  =====================================================================

Cells are separated by commas, tabs, semicolons or white space. A first row of words only
is a header and skipped. All lines have the format of the first, with one exception: a must-link
file is a file of groups as soon as one line does not have two columns. Three columns that end in
1 throughout are refused there, since they could be groups or pairs ``i j 1``.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.constraints import chain_pairs
from certikmeans.problem.files.pairs_array import read_array_links
from certikmeans.problem.files.pairs_json import read_json_links
from certikmeans.problem.files.text import (
    PathLike,
    TextFile,
    excerpt,
    existing_file,
    is_number,
    read_chunks,
    read_text,
)
from certikmeans.problem.links import Links

Kind = Literal["must", "cannot"]

_SIGNS = {
    **dict.fromkeys(["ml", "must", "must-link", "must_link", "mustlink"], 1.0),
    **dict.fromkeys(["cl", "cannot", "cannot-link", "cannot_link", "cannotlink"], -1.0),
}
_TAGGED = "'ML i j' or 'CL i j'"
_SIGNED = "'i j 1' or 'i j -1'"
_ANY_TOLD = "'i j 1', 'i j -1', 'ML i j' or 'CL i j'"
_PAIRS = "a pair 'i j'"
_GROUPS = "a group 'i j ...' of two or more points"
_LONGEST_NAME = 200  # in characters: what is longer is no name of a column
_LARGEST = 1e15  # far beyond any row number, and still exact as a float


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinkFile:
    """The pairs of one file, with the places they came from."""

    must: Links
    cannot: Links


def read_links(path: PathLike, *, kind: Kind | None = None, one_based: bool = False) -> LinkFile:
    """Read pairs from a file.

    Parameters
    ----------
    path : str or path-like
        See the module for the formats.
    kind : {'must', 'cannot'}, optional
        Kind of the pairs, for files that do not say it themselves. A file that does must agree.
    one_based : bool
        The file counts points from 1. The result counts from 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "pairs.txt"
    >>> _ = path.write_text("ML 0 1\\nCL 1 2\\nML 3 4\\n")
    >>> links = read_links(path)
    >>> links.must.pairs.tolist(), links.must.lines.tolist()
    ([[0, 1], [3, 4]], [1, 3])
    >>> folder.cleanup()
    """
    if kind not in ("must", "cannot", None):
        raise InputError(f"kind: {kind!r} is not known", hint="pass 'must', 'cannot' or None")
    name, base = os.fspath(path), int(one_based)
    if name.lower().endswith((".npy", ".npz")):
        found = LinkFile(*read_array_links(existing_file(path), kind, base))
        _check_kind(found, kind)
        return found
    formats = ("JSON", ".npy", ".npz")
    chunks = read_chunks(path, formats)
    text, first_line = next(chunks)
    if name.lower().endswith(".json") or text.lstrip().startswith(("{", "[")):
        found = LinkFile(*read_json_links(read_text(path, formats), name, base))
    else:
        found = _from_chunks(itertools.chain([(text, first_line)], chunks), name, kind, base)
    _check_kind(found, kind)
    return found


def _check_kind(found: LinkFile, kind: Kind | None) -> None:
    if kind is None:
        return
    other, word = (found.cannot, "cannot") if kind == "must" else (found.must, "must")
    if len(other.pairs):
        raise InputError(
            f"{other.where(0)}: {other.shown(0)} is a {word}-link, "
            f"but the file was given as {kind}-links",
            hint="read a file that holds both kinds with kind=None",
        )


def _from_chunks(
    chunks: Iterable[tuple[str, int]], name: str, kind: Kind | None, base: int
) -> LinkFile:
    """Read rows, some lines at a time; the first row of all says what they look like."""
    parts: list[LinkFile] = []
    expected = None
    for text, first_line in chunks:
        file = TextFile.from_text(text, name, first_line)
        start = 1 if not parts and len(file) and _is_header(file) else 0
        if start < len(file):
            first = expected is None
            expected = expected or _format_of(file, start, kind)
            parts.append(_from_rows(file, start, expected, kind, base, first=first))
    if len(parts) == 1:
        return parts[0]
    return LinkFile(
        *(
            Links(
                np.concatenate([np.empty((0, 2), dtype=np.int64), *(one.pairs for one in side)]),
                name,
                np.concatenate([np.empty(0, dtype=np.int64), *(one.lines for one in side)]),
                base,
                from_file=True,
            )
            for side in ([part.must for part in parts], [part.cannot for part in parts])
        )
    )


def _format_of(file: TextFile, start: int, kind: Kind | None) -> str:
    """What rows look like, by the first of them."""
    if file.cells(start)[0].lower() in _SIGNS:
        return _TAGGED
    if kind == "must":
        return _GROUPS
    width = len(file.cells(start))
    return _SIGNED if width == 3 or (width != 2 and kind is None) else _PAIRS


def _from_rows(
    file: TextFile, start: int, expected: str, kind: Kind | None, base: int, *, first: bool
) -> LinkFile:
    rows = np.arange(start, len(file))
    if expected == _GROUPS:
        return _must_links(file, start, base)
    if expected == _TAGGED:
        table = _parsed(file, start, _TAGGED, tagged=True)
        return _links(file, table[:, 1:], table[:, 0], rows, base)
    table = _parsed(file, start, expected, untold=kind is None and first)
    if expected == _SIGNED:
        return _links(file, table[:, :2], table[:, 2], rows, base)
    if kind is None:
        raise InputError(
            f"{file.where(start)}: pair {file.shown(start)} does not say its kind",
            hint=f"say it for the whole file, kind='must' or kind='cannot', or write {_TAGGED}",
        )
    return _links(file, table, np.full(len(table), -1.0), rows, base)


def _must_links(file: TextFile, start: int, base: int) -> LinkFile:
    """Read a file of must-links whose lines carry no word: pairs, groups, or signed pairs."""
    table = file.parse(start)
    rows = np.arange(start, len(file))
    if table is not None and table.shape[1] == 3 and np.isin(table[:, 2], (1.0, -1.0)).all():
        table = _parsed(file, start, _SIGNED)
        if (table[:, 2] > 0).all():
            raise InputError(
                f"{file.where(start)}: cannot tell a group of three points from a must-link "
                f"'i j 1': {file.shown(start)}",
                hint="read signed pairs with kind=None; write groups as JSON: "
                '{"groups": [[0, 1, 2]]}',
            )
        return _links(file, table[:, :2], table[:, 2], rows, base)
    if table is not None and table.shape[1] == 2:
        pairs = _parsed(file, start, _PAIRS)
        return _links(file, pairs, np.ones(len(pairs)), rows, base)
    groups = [file.cells(row) for row in rows.tolist()]
    for row, cells in zip(rows.tolist(), groups, strict=True):
        if not _fits(cells, _GROUPS):
            raise _fault(file, row, start, _GROUPS)
    members = np.array([int(float(cell)) for cells in groups for cell in cells])
    chains, owner = chain_pairs(members, np.array([len(cells) for cells in groups]))
    return _links(file, chains, np.ones(len(chains)), rows[owner], base)


def _is_header(file: TextFile) -> bool:
    """Tell whether the first row consists of names, with no number that could be an index."""
    cells = file.cells(0)
    if max(map(len, cells)) > _LONGEST_NAME:
        return False
    if cells[0].lower() in _SIGNS or re.search(r"(?<!\w)[0-9]", file.lines[0]):
        return False
    return all(cell[:1].isalpha() for cell in cells)


def _sign(cell: str) -> float:
    sign = _SIGNS.get(cell.strip().lower())
    if sign is None:
        raise ValueError(cell)  # makes the fast parser give up; the culprit is then searched for
    return sign


def _parsed(
    file: TextFile, start: int, expected: str, *, tagged: bool = False, untold: bool = False
) -> NDArray[np.float64]:
    """Parse all rows at once; if that fails, or a number is not whole, find the first culprit.

    ``untold``: every format that says the kind of a pair was possible in the first row.
    """
    table = file.parse(start, {0: _sign} if tagged else None)
    width = 2 if expected == _PAIRS else 3
    good = (
        table is not None
        and table.shape[1] == width
        and bool((np.abs(table) < _LARGEST).all() and (table == np.floor(table)).all())
        and (expected != _SIGNED or bool(np.isin(table[:, 2], (1.0, -1.0)).all()))
    )
    if table is None or not good:
        rows = range(start, len(file))
        wrong = (row for row in rows if not _fits(file.cells(row), expected))
        row = next(wrong, start)
        raise _fault(file, row, start, _ANY_TOLD if untold and row == start else expected)
    return table


def _fits(cells: list[str], expected: str) -> bool:
    if expected == _TAGGED:
        return len(cells) == 3 and cells[0].lower() in _SIGNS and all(map(_is_whole, cells[1:]))
    if expected == _SIGNED:
        return len(cells) == 3 and all(map(_is_whole, cells)) and float(cells[2]) in (1.0, -1.0)
    enough = len(cells) == 2 if expected == _PAIRS else len(cells) >= 2
    return enough and all(map(_is_whole, cells))


def _is_whole(cell: str) -> bool:
    return is_number(cell) and abs(float(cell)) < _LARGEST and float(cell).is_integer()


def _fault(file: TextFile, row: int, start: int, expected: str) -> InputError:
    cells = file.cells(row)
    numbers = cells[1:] if expected == _TAGGED else cells
    odd = next((cell for cell in numbers if is_number(cell) and not _is_whole(cell)), None)
    detail = "" if odd is None else f" ({excerpt(odd)} is not a row number)"
    example = "" if row == start else f" as in line {file.numbers[start]}"
    hint = (
        "points are named by their row number; one format per file, "
        f"here with cells separated by {file.separated_by}"
    )
    if expected != _GROUPS and len(cells) >= 3 and all(map(_is_whole, cells)):
        hint = "groups of points 'i j k ...' are read as must-links only: kind='must'"
    return InputError(
        f"{file.where(row)}: expected {expected}{example}, got {file.shown(row)}{detail}",
        hint=hint,
    )


def _links(
    file: TextFile,
    indices: NDArray[Any],
    signs: NDArray[np.float64],
    rows: NDArray[np.int64],
    base: int,
) -> LinkFile:
    pairs = indices.astype(np.int64)
    low = (pairs < base).any(axis=1)
    if low.any():
        at = int(np.flatnonzero(low)[0])
        counts = "1, as one_based=True says" if base else "0"
        raise InputError(
            f"{file.where(rows[at])}: point {pairs[at].min()} does not exist, "
            f"points are numbered from {counts}: {file.shown(rows[at])}",
            hint="if the file counts from 0, leave out one_based=True"
            if base
            else "correct the index",
        )
    lines = file.numbers[rows]
    sides = (signs > 0, signs < 0)
    return LinkFile(
        *(Links(pairs[s] - base, file.path, lines[s], base, from_file=True) for s in sides)
    )
