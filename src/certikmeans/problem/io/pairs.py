"""Files of must-links and cannot-links. The first row of a text file determines its format.

========================  =====================================================================
file                      content
========================  =====================================================================
``{`` or suffix .json     ``{"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}``
``ML i j`` / ``CL i j``   one pair per line with its kind, also ``must-link``, ``cannot-link``
``i j 1`` / ``i j -1``    one pair per line, 1 for must-link and -1 for cannot-link
``i j``                   one pair per line of the kind that the caller passes
``i j k ...``             must-link files only: every line is a group of two or more points
suffix .npy or .npz       integers of shape (m, 2); arrays ``ml`` and ``cl`` state their kind
========================  =====================================================================

Cells are separated by commas, tabs, semicolons or white space. A first row of words only is a
header and skipped. All lines have the format of the first, with one exception: a must-link file is
a file of groups as soon as one line does not have two columns. Three columns that end in 1
throughout are rejected there, because they could be groups or pairs ``i j 1``.

``must_link`` and ``cannot_link`` are accepted for ``ml`` and ``cl``. Files of PCCC and S-MDEClust
have keys for soft pairs, which have to be empty.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.constraints import chain_pairs
from certikmeans.problem.io.binary import read_archive, read_array
from certikmeans.problem.io.text import (
    MAX_QUOTE,
    PathLike,
    TextFile,
    did_you_mean,
    existing_file,
    format_list,
    is_number,
    quote,
    read_chunks,
    read_text,
)
from certikmeans.problem.links import Links

_STATE_KIND = (
    "state the kind of the whole file, ",
    Argument("kind", "'must'"),
    " or ",
    Argument("kind", "'cannot'"),
)
_SAVEZ_EXAMPLE = "np.savez(path, ml=must_links, cl=cannot_links)"
_MAX_INDEX = 2**53  # beyond any row number, and below it every integer is exact as a float
_KIND_OF_KEY = {"ml": "must", "must_link": "must", "cl": "cannot", "cannot_link": "cannot"}


def read_array_links(path: Path, kind: str | None, base: int) -> tuple[Links, Links]:
    """Return must-links and cannot-links; ``kind`` is that of arrays without a known name."""
    if path.suffix.lower() == ".npy":
        found = {
            _require_kind(kind, str(path)): _links_from_array(read_array(path), str(path), base)
        }
    else:
        found = _from_archive(path, kind, base)
    nothing = Links(np.empty((0, 2), dtype=np.int64), str(path), None, base, from_file=True)
    return found.get("must", nothing), found.get("cannot", nothing)


def _from_archive(path: Path, kind: str | None, base: int) -> dict[str, Links]:
    arrays = read_archive(path)
    if not arrays or (len(arrays) > 1 and not all(name in _KIND_OF_KEY for name in arrays)):
        names = format_list(arrays) or "there is none"
        raise InputError(
            f"{path}: cannot determine which arrays hold pairs: {names}",
            hint=f"save them as {_SAVEZ_EXAMPLE}",
        )
    found: dict[str, Links] = {}
    for name, array in arrays.items():
        where = f"{path}: {name}"
        own = _KIND_OF_KEY[name] if name in _KIND_OF_KEY else _require_kind(kind, where)
        if own in found:
            raise InputError(
                f"{where}: there is another array of {own}-links", hint="join the two into one"
            )
        found[own] = _links_from_array(array, where, base)
    return found


def _require_kind(kind: str | None, where: str) -> str:
    if kind is None:
        raise InputError(
            f"{where}: the pairs do not state their kind",
            hint=Message(*_STATE_KIND, f", or save {_SAVEZ_EXAMPLE}"),
        )
    return kind


def _links_from_array(array: NDArray[Any], where: str, base: int) -> Links:
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        raise InputError(
            f"{where}: expected pairs, got {array.dtype} of shape {array.shape}",
            hint="save whole numbers of shape (m, 2), one pair of point indices per row",
        )
    low, high = (array.min(), array.max()) if array.size else (base, base)
    whole = array.dtype.kind != "f" or bool((array == np.floor(array)).all())
    if not (base <= low and high < _MAX_INDEX and whole):  # also if a value is NaN
        good = (array >= base) & (array < _MAX_INDEX) & (array == np.floor(array))
        row = int(np.flatnonzero(~good.all(axis=1))[0])
        raise InputError(
            f"{where}[{row}]: {tuple(array[row].tolist())} is not a pair of points",
            hint=_index_hint(base),
        )
    pairs = array.astype(np.int64)
    pairs -= base
    return Links(pairs, where, None, base, from_file=True)


def _index_hint(base: int) -> str:
    return f"points are named by their row number, a whole number from {base} on"


_MUST_KEYS, _CANNOT_KEYS, _GROUP_KEYS = ("ml", "must_link"), ("cl", "cannot_link"), ("groups",)
_SOFT_KEYS = ("sml", "scl", "sml_proba", "scl_proba")
_KNOWN_KEYS = (*_MUST_KEYS, *_CANNOT_KEYS, *_GROUP_KEYS)
_JSON_EXAMPLE = 'expected {"ml": [[0, 1]], "cl": [[1, 2]]}'


def read_json_links(text: str, path: str, base: int) -> tuple[Links, Links]:
    """Return the must-links and the cannot-links; groups become chains of must-links."""
    content = _parse_json(text, path)
    must_key, must = _json_pairs(content, _MUST_KEYS, path, base)
    cannot_key, cannot = _json_pairs(content, _CANNOT_KEYS, path, base)
    _, groups = _one_of(content, _GROUP_KEYS, path)
    if groups:
        members, lengths = _json_members(groups, f"{path}: groups", base, exactly_two=False)
        chains, _ = chain_pairs(members, lengths)
        must = np.concatenate([must, chains])
        # Positions count the pairs into which groups are expanded, so the origin states it.
        must_key = f"{must_key}, then groups as pairs" if must_key in content else "groups as pairs"
    return (
        Links(must - base, f"{path}: {must_key}", None, base, from_file=True),
        Links(cannot - base, f"{path}: {cannot_key}", None, base, from_file=True),
    )


def _parse_json(text: str, path: str) -> dict[str, Any]:
    def unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(items)
        if len(content) < len(items):
            times = Counter(key for key, _ in items)
            raise InputError(
                f"{path}: the key {quote(times.most_common(1)[0][0])} occurs twice",
                hint="join the two lists into one",
            )
        return content

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}",
            hint=_JSON_EXAMPLE,
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: lists are nested too deeply", hint=_JSON_EXAMPLE) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(  # Python refuses numbers of thousands of digits
            f"{path}: a number has too many digits",
            hint="points are named by their row number",
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: expected an object with lists of pairs, got {type(content).__name__}",
            hint=_JSON_EXAMPLE,
        )
    unknown = [key for key in content if key not in _KNOWN_KEYS and key not in _SOFT_KEYS]
    if unknown:
        raise InputError(
            f"{path}: unknown key {format_list(map(quote, unknown), limit=5)}",
            hint=did_you_mean(unknown[0], _KNOWN_KEYS) + f"known keys: {', '.join(_KNOWN_KEYS)}",
        )
    _reject_soft_pairs(content, path)
    return content


def _reject_soft_pairs(content: dict[str, Any], path: str) -> None:
    for key in _SOFT_KEYS:
        value = content.get(key)
        if value is None or (isinstance(value, list | dict) and not value):
            continue
        size = count(len(value), "soft pair") if isinstance(value, list | dict) else quote(value)
        raise InputError(
            f"{path}: {key}: holds {size}, but every pair has to hold here",
            hint="empty the lists sml, scl, sml_proba and scl_proba; move the pairs that have to "
            "hold to ml and cl. certikmeans.baselines.PCKMeans takes preferences",
        )


def _one_of(content: dict[str, Any], keys: tuple[str, ...], path: str) -> tuple[str, list[Any]]:
    present = [key for key in keys if key in content]
    if len(present) > 1:
        raise InputError(
            f"{path}: {present[0]!r} and {present[1]!r} mean the same",
            hint="join the two lists into one",
        )
    key = present[0] if present else keys[0]
    value = content.get(key, [])
    if not isinstance(value, list):
        raise InputError(
            f"{path}: {key}: expected a list, got {quote(value)}",
            hint='expected "ml": [[0, 1], ...]',
        )
    return key, value


def _json_pairs(
    content: dict[str, Any], keys: tuple[str, ...], path: str, base: int
) -> tuple[str, NDArray[np.int64]]:
    key, value = _one_of(content, keys, path)
    members, _ = _json_members(value, f"{path}: {key}", base, exactly_two=True)
    return key, members.reshape(-1, 2)


def _json_members(
    items: list[Any], where: str, base: int, *, exactly_two: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all indices in one array, and the number of indices of each item."""
    expected = "a pair [i, j]" if exactly_two else "a group [i, j, ...] of two or more points"
    for at, item in enumerate(items):
        if (
            not isinstance(item, list)
            or (len(item) != 2 if exactly_two else len(item) < 2)
            or any(type(index) is not int or not base <= index < _MAX_INDEX for index in item)
        ):
            raise InputError(
                f"{where}[{at}]: expected {expected}, got {_as_json(item)}",
                hint=_index_hint(base),
            )
    members = [index for item in items for index in item]
    return np.array(members, dtype=np.int64), np.array([len(i) for i in items], dtype=np.int64)


def _as_json(item: Any) -> str:
    """Format an item as in the file, truncated."""
    try:
        text = json.dumps(item)
    except RecursionError:
        text = quote(item)
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + "..."


Kind = Literal["must", "cannot"]

_SIGNS = {
    **dict.fromkeys(["ml", "must", "must-link", "must_link", "mustlink"], 1.0),
    **dict.fromkeys(["cl", "cannot", "cannot-link", "cannot_link", "cannotlink"], -1.0),
}
_TAGGED = "'ML i j' or 'CL i j'"
_SIGNED = "'i j 1' or 'i j -1'"
_ANY_WITH_KIND = "'i j 1', 'i j -1', 'ML i j' or 'CL i j'"
_PAIRS = "a pair 'i j'"
_GROUPS = "a group 'i j ...' of two or more points"
_MAX_NAME_LENGTH = 200  # characters of the name of a column


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinkFile:
    """Pairs of one file, with their locations."""

    must: Links
    cannot: Links


def read_links(path: PathLike, *, kind: Kind | None = None, one_based: bool = False) -> LinkFile:
    """Read pairs from a file.

    Parameters
    ----------
    path : str or path-like
        See the module for the formats.
    kind : {'must', 'cannot'}, optional
        Kind of the pairs, for files that do not state it. A file that does must agree.
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
            hint=Message("read a file that holds both kinds with ", Argument("kind", "None")),
        )


def _from_chunks(
    chunks: Iterable[tuple[str, int]], name: str, kind: Kind | None, base: int
) -> LinkFile:
    """Read rows chunk by chunk; the first row determines the format."""
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
    """Return the format of the rows, by the first of them."""
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
        table = _parse_rows(file, start, _TAGGED, tagged=True)
        return _links_from_rows(file, table[:, 1:], table[:, 0], rows, base)
    table = _parse_rows(file, start, expected, kind_unknown=kind is None and first)
    if expected == _SIGNED:
        return _links_from_rows(file, table[:, :2], table[:, 2], rows, base)
    if kind is None:
        raise InputError(
            f"{file.where(start)}: pair {file.shown(start)} does not state its kind",
            hint=Message(*_STATE_KIND, f", or write {_TAGGED}"),
        )
    return _links_from_rows(file, table, np.full(len(table), -1.0), rows, base)


def _must_links(file: TextFile, start: int, base: int) -> LinkFile:
    """Read must-links without tags: pairs, groups, or signed pairs."""
    table = file.parse(start)
    rows = np.arange(start, len(file))
    if table is not None and table.shape[1] == 3 and np.isin(table[:, 2], (1.0, -1.0)).all():
        table = _parse_rows(file, start, _SIGNED)
        if (table[:, 2] > 0).all():
            raise InputError(
                f"{file.where(start)}: could be a group of three points or a must-link "
                f"'i j 1': {file.shown(start)}",
                hint=Message(
                    "read signed pairs with ",
                    Argument("kind", "None"),
                    '; write groups as JSON: {"groups": [[0, 1, 2]]}',
                ),
            )
        return _links_from_rows(file, table[:, :2], table[:, 2], rows, base)
    if table is not None and table.shape[1] == 2:
        pairs = _parse_rows(file, start, _PAIRS)
        return _links_from_rows(file, pairs, np.ones(len(pairs)), rows, base)
    groups = [file.cells(row) for row in rows.tolist()]
    for row, cells in zip(rows.tolist(), groups, strict=True):
        if not _matches_format(cells, _GROUPS):
            raise _row_error(file, row, start, _GROUPS)
    members = np.array([int(float(cell)) for cells in groups for cell in cells])
    chains, owner = chain_pairs(members, np.array([len(cells) for cells in groups]))
    return _links_from_rows(file, chains, np.ones(len(chains)), rows[owner], base)


def _is_header(file: TextFile) -> bool:
    """Return whether the first row consists of names, without a number that could be an index."""
    cells = file.cells(0)
    if max(map(len, cells)) > _MAX_NAME_LENGTH:
        return False
    if cells[0].lower() in _SIGNS or re.search(r"(?<!\w)[0-9]", file.lines[0]):
        return False
    return all(cell[:1].isalpha() for cell in cells)


def _sign(cell: str) -> float:
    sign = _SIGNS.get(cell.strip().lower())
    if sign is None:
        raise ValueError(cell)  # ends loadtxt; the faulty row is then located
    return sign


def _parse_rows(
    file: TextFile, start: int, expected: str, *, tagged: bool = False, kind_unknown: bool = False
) -> NDArray[np.float64]:
    """Parse all rows at once; if that fails, or a number is not whole, locate the first error.

    ``kind_unknown``: in the first row, every format that states the kind of a pair was possible.
    """
    table = file.parse(start, {0: _sign} if tagged else None)
    width = 2 if expected == _PAIRS else 3
    good = (
        table is not None
        and table.shape[1] == width
        and bool((np.abs(table) < _MAX_INDEX).all() and (table == np.floor(table)).all())
        and (expected != _SIGNED or bool(np.isin(table[:, 2], (1.0, -1.0)).all()))
    )
    if table is None or not good:
        rows = range(start, len(file))
        wrong = (row for row in rows if not _matches_format(file.cells(row), expected))
        row = next(wrong, start)
        raise _row_error(
            file, row, start, _ANY_WITH_KIND if kind_unknown and row == start else expected
        )
    return table


def _matches_format(cells: list[str], expected: str) -> bool:
    if expected == _TAGGED:
        return len(cells) == 3 and cells[0].lower() in _SIGNS and all(map(_is_whole, cells[1:]))
    if expected == _SIGNED:
        return len(cells) == 3 and all(map(_is_whole, cells)) and float(cells[2]) in (1.0, -1.0)
    enough = len(cells) == 2 if expected == _PAIRS else len(cells) >= 2
    return enough and all(map(_is_whole, cells))


def _is_whole(cell: str) -> bool:
    return is_number(cell) and abs(float(cell)) < _MAX_INDEX and float(cell).is_integer()


def _row_error(file: TextFile, row: int, start: int, expected: str) -> InputError:
    cells = file.cells(row)
    numbers = cells[1:] if expected == _TAGGED else cells
    odd = next((cell for cell in numbers if is_number(cell) and not _is_whole(cell)), None)
    detail = "" if odd is None else f" ({quote(odd)} is not a row number)"
    example = "" if row == start else f" as in line {file.line_numbers[start]}"
    hint = (
        "points are named by their row number; one format per file, "
        f"here with cells separated by {file.delimiter_name}"
    )
    if expected != _GROUPS and len(cells) >= 3 and all(map(_is_whole, cells)):
        hint = Message(
            "groups of points 'i j k ...' are read as must-links only: ",
            Argument("kind", "'must'"),
        )
    return InputError(
        f"{file.where(row)}: expected {expected}{example}, got {file.shown(row)}{detail}",
        hint=hint,
    )


def _links_from_rows(
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
        raise InputError(
            f"{file.where(rows[at])}: point {pairs[at].min()} does not exist, "
            f"points are numbered from {base}: {file.shown(rows[at])}",
            hint=Message("if the file counts from 0, leave out ", Argument("one_based", "True"))
            if base
            else "correct the index",
        )
    lines = file.line_numbers[rows]
    sides = (signs > 0, signs < 0)
    return LinkFile(
        *(Links(pairs[s] - base, file.path, lines[s], base, from_file=True) for s in sides)
    )
