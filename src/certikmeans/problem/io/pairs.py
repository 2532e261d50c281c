"""Files of pairs. The first row of a text file determines its format.

========================  =====================================================================
file                      content
========================  =====================================================================
``{`` or suffix .json     ``{"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}``
``ML i j`` / ``CL i j``   one pair per line with its kind, also ``must-link``, ``cannot-link``
``SML i j p`` / ``SCL``   among them: soft pairs and the penalty for violating them
``i j ML`` / ``i j CL``   the kind in the third column, as in a spreadsheet ``i,j,type``
``i j 1`` / ``i j -1``    one pair per line, 1 for must-link and -1 for cannot-link
``i j``                   one pair per line of the kind that the caller passes
``i j k ...``             must-link files only: every line is a group of two or more points
suffix .npy or .npz       integers of shape (m, 2); arrays ``ml`` and ``cl`` state their kind
========================  =====================================================================

Cells are separated by commas, tabs, semicolons or white space. A first row of words only is a
header and skipped. All lines have the format of the first, with one exception: a must-link file is
a file of groups as soon as one line does not have two columns. Three columns that end in 1
throughout are rejected there, because they could be groups or pairs ``i j 1``.

``must_link`` and ``cannot_link`` are accepted for ``ml`` and ``cl``. Soft pairs are stored as in
files of PCCC and S-MDEClust, ``sml`` and ``scl`` with confidences ``sml_proba`` and ``scl_proba``
(1 if absent), or as triples ``[i, j, p]`` with penalties. A JSON file may also hold
``cannot_link_groups``, a list with a number per point or several such lists, and ``size_min``,
``size_max``, ``balanced`` and ``demand``.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.constraints import chain_pairs, label_array
from certikmeans.problem.io.binary import read_archive, read_array
from certikmeans.problem.io.pair_rows import (
    KINDS,
    SOFT_KINDS,
    TAGGED,
    PairRows,
    SoftLinks,
    format_of_row,
    read_rows,
)
from certikmeans.problem.io.text import (
    MAX_QUOTE,
    MAX_ROW_NUMBER,
    PathLike,
    PointIds,
    TextFile,
    did_you_mean,
    existing_file,
    format_list,
    is_number,
    quote,
    read_chunks,
)
from certikmeans.problem.links import Links

_STATE_KIND = (
    "state the kind of the whole file, ",
    Argument("kind", "'must'"),
    " or ",
    Argument("kind", "'cannot'"),
)
_SAVEZ_EXAMPLE = "np.savez(path, ml=must_links, cl=cannot_links)"
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
    if not (base <= low and high < MAX_ROW_NUMBER and whole):  # also if a value is NaN
        good = (array >= base) & (array < MAX_ROW_NUMBER) & (array == np.floor(array))
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
_SIZE_KEYS = ("size_min", "size_max", "balanced", "demand")
_KNOWN_KEYS = (
    *(*_MUST_KEYS, *_CANNOT_KEYS, *_GROUP_KEYS, *_SOFT_KEYS),
    *("cannot_link_groups", *_SIZE_KEYS),
)
_JSON_EXAMPLE = 'expected {"ml": [[0, 1]], "cl": [[1, 2]]}'


def read_json_links(text: str, path: str, base: int, ids: PointIds | None = None) -> LinkFile:
    """Return the constraints of a JSON file; groups become chains of must-links."""
    content = _parse_json(text, path)
    if ids is not None:
        content, base = _with_row_numbers(content, path, ids), 0
    must_key, must = _json_pairs(content, _MUST_KEYS, path, base)
    cannot_key, cannot = _json_pairs(content, _CANNOT_KEYS, path, base)
    _, groups = _one_of(content, _GROUP_KEYS, path)
    if groups:
        members, lengths = _json_members(groups, f"{path}: groups", base, exactly_two=False)
        chains, _ = chain_pairs(members, lengths)
        must = np.concatenate([must, chains])
        # Positions count the pairs into which groups are expanded, so the origin states it.
        must_key = f"{must_key}, then groups as pairs" if must_key in content else "groups as pairs"
    return LinkFile(
        Links(must - base, f"{path}: {must_key}", None, base, from_file=True),
        Links(cannot - base, f"{path}: {cannot_key}", None, base, from_file=True),
        _json_soft(content, "sml", path, base),
        _json_soft(content, "scl", path, base),
        cannot_link_groups=_json_columns(content.get("cannot_link_groups"), path),
        sizes={key: content[key] for key in _SIZE_KEYS if content.get(key) is not None},
    )


def _with_row_numbers(content: dict[str, Any], path: str, ids: PointIds) -> dict[str, Any]:
    """Replace ids by row numbers in all lists of pairs and groups."""
    changed = dict(content)
    for key in (*_MUST_KEYS, *_CANNOT_KEYS, *_GROUP_KEYS, "sml", "scl"):
        items = content.get(key)
        if not isinstance(items, list):
            continue
        n_ends = None if key in _GROUP_KEYS else 2
        changed[key] = [
            item
            if not isinstance(item, list)
            else [_row_of_id(one, f"{path}: {key}[{at}]", ids) for one in item[:n_ends]]
            + item[len(item[:n_ends]) :]
            for at, item in enumerate(items)
        ]
    return changed


def _row_of_id(one: Any, where: str, ids: PointIds) -> int:
    row = ids.rows.get(str(one).strip()) if isinstance(one, str | int | float) else None
    if row is None:
        raise ids.unknown(_as_json(one), where)
    return row


def _json_soft(content: dict[str, Any], key: str, path: str, base: int) -> SoftLinks:
    """Soft pairs: pairs with confidences in a list of their own, or rows with a penalty."""
    where = f"{path}: {key}"
    _, items = _one_of(content, (key,), path)
    _, confidences = _one_of(content, (f"{key}_proba",), path)
    if confidences and len(confidences) != len(items):
        raise InputError(
            f"{where}_proba: {len(confidences)} confidences for {len(items)} pairs",
            hint=f"give one number for every pair of {key}",
        )
    triples = [isinstance(item, list) and len(item) == 3 for item in items]
    if any(triples) and confidences:
        raise InputError(
            f"{where}[{triples.index(True)}]: has a penalty, and {key}_proba a confidence",
            hint="give either",
        )
    pairs = [item[:2] if three else item for item, three in zip(items, triples, strict=True)]
    members, _ = _json_members(pairs, where, base, exactly_two=True)
    amounts = confidences or [
        item[2] if three else 1.0 for item, three in zip(items, triples, strict=True)
    ]
    for at, amount in enumerate(amounts):
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not amount >= 0:
            name = f"{where}_proba" if confidences else where
            raise InputError(
                f"{name}[{at}]: {_as_json(amount)} is not a "
                f"{'confidence' if confidences else 'penalty'}",
                hint="give a number, 0 or more",
            )
    links = Links(members.reshape(-1, 2) - base, where, None, base, from_file=True)
    return SoftLinks(links, np.array(amounts, dtype=np.float64), ~np.array(triples, dtype=bool))


def _json_columns(value: Any, path: str) -> tuple[NDArray[Any], ...]:
    if value is None or value == []:
        return ()
    hint = "give a list with a number per point, -1 for points in no group, or several such lists"
    if not isinstance(value, list):
        raise InputError(
            f"{path}: cannot_link_groups: expected a list, got {quote(value)}", hint=hint
        )
    columns = value if all(isinstance(column, list) for column in value) else [value]
    for column in columns:
        for at, one in enumerate(column):
            if not (one is None or (isinstance(one, int | str) and not isinstance(one, bool))):
                raise InputError(
                    f"{path}: cannot_link_groups[{at}]: {_as_json(one)} is not a number",
                    hint=hint,
                )
    return tuple(label_array(column) for column in columns)


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
    unknown = [key for key in content if key not in _KNOWN_KEYS]
    if unknown:
        raise InputError(
            f"{path}: unknown key {format_list(map(quote, unknown), limit=5)}",
            hint=did_you_mean(unknown[0], _KNOWN_KEYS) + f"known keys: {', '.join(_KNOWN_KEYS)}",
        )
    return content


def _one_of(content: dict[str, Any], keys: tuple[str, ...], path: str) -> tuple[str, list[Any]]:
    present = [key for key in keys if key in content]
    if len(present) > 1:
        raise InputError(
            f"{path}: {present[0]!r} and {present[1]!r} mean the same",
            hint="join the two lists into one",
        )
    key = present[0] if present else keys[0]
    value = content.get(key)
    value = [] if value is None or value == {} else value
    if not isinstance(value, list):
        raise InputError(
            f"{path}: {key}: expected a list, got {quote(value)}",
            hint='expected "ml": [[0, 1], ...]',
        )
    return key, value


def _json_pairs(
    content: dict[str, Any], keys: tuple[str, ...], path: str, base: int
) -> tuple[str, Ints]:
    key, value = _one_of(content, keys, path)
    members, _ = _json_members(value, f"{path}: {key}", base, exactly_two=True)
    return key, members.reshape(-1, 2)


def _json_members(
    items: list[Any], where: str, base: int, *, exactly_two: bool
) -> tuple[Ints, Ints]:
    """Return all indices in one array, and the number of indices of each item."""
    expected = "a pair [i, j]" if exactly_two else "a group [i, j, ...] of two or more points"
    for at, item in enumerate(items):
        if (
            not isinstance(item, list)
            or (len(item) != 2 if exactly_two else len(item) < 2)
            or any(type(index) is not int or not base <= index < MAX_ROW_NUMBER for index in item)
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
    word: 1.0 if kind == "ml" else -1.0 for word, kind in KINDS.items() if word not in SOFT_KINDS
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
    """Pairs of one file, with their locations, and what else a JSON file may hold."""

    must: Links
    cannot: Links
    soft_must: SoftLinks
    soft_cannot: SoftLinks
    cannot_link_groups: tuple[NDArray[Any], ...] = ()  # columns
    sizes: dict[str, Any] = field(default_factory=dict)  # size_min, size_max, balanced, demand

    @classmethod
    def of(cls, must: Links, cannot: Links) -> LinkFile:
        """Hard pairs alone."""
        return cls(must, cannot, SoftLinks.empty(must.origin), SoftLinks.empty(cannot.origin))


def read_links(
    path: PathLike,
    *,
    kind: Kind | None = None,
    one_based: bool = False,
    ids: PointIds | None = None,
) -> LinkFile:
    """Read pairs from a file.

    Parameters
    ----------
    path : str or path-like
        See the module for the formats.
    kind : {'must', 'cannot'}, optional
        Kind of the pairs, for files that do not state it. A file that does must agree.
    one_based : bool
        The file counts points from 1. The result counts from 0.
    ids : PointIds, optional
        Ids of the points, by which the file names them, as `read_points` returns them.

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
    if ids is not None and one_based:
        raise InputError(
            Message(Argument("one_based"), ": points have ids, so the file does not count them"),
            hint=Message("leave out ", Argument("one_based", "True")),
        )
    if name.lower().endswith((".npy", ".npz")):
        if ids is not None:
            raise InputError(
                f"{path}: arrays hold row numbers, but points have ids",
                hint="write the pairs of ids to a text file or JSON",
            )
        found = LinkFile.of(*read_array_links(existing_file(path), kind, base))
        _check_kind(found, kind)
        return found
    formats = ("JSON", ".npy", ".npz")
    chunks = read_chunks(path, formats)
    text, first_line = next(chunks)
    if name.lower().endswith(".json") or text.lstrip().startswith(("{", "[")):
        rest = "".join(more for more, _ in chunks)
        found = read_json_links(text + rest, name, base, ids)
    else:
        every = itertools.chain([(text, first_line)], chunks)
        found = _from_chunks(every, name, kind, base, ids)
    _check_kind(found, kind)
    return found


def _check_kind(found: LinkFile, kind: Kind | None) -> None:
    if kind is None:
        return
    if len(found.soft_must) or len(found.soft_cannot):
        soft = found.soft_must if len(found.soft_must) else found.soft_cannot
        raise InputError(
            f"{soft.links.where(0)}: {soft.links.shown(0)} is a soft pair, "
            f"but the file was given as {kind}-links",
            hint=Message("read a file of several kinds with ", Argument("kind", "None")),
        )
    other, word = (found.cannot, "cannot") if kind == "must" else (found.must, "must")
    if len(other.pairs):
        raise InputError(
            f"{other.where(0)}: {other.shown(0)} is a {word}-link, "
            f"but the file was given as {kind}-links",
            hint=Message("read a file that holds both kinds with ", Argument("kind", "None")),
        )


def _from_chunks(
    chunks: Iterable[tuple[str, int]],
    name: str,
    kind: Kind | None,
    base: int,
    ids: PointIds | None,
) -> LinkFile:
    """Read rows chunk by chunk; the first row determines the format."""
    parts: list[LinkFile] = []
    expected = cell_format = None
    for text, first_line in chunks:
        file = TextFile.from_text(text, name, first_line)
        start = 1 if not parts and len(file) and _is_header(file, ids) else 0
        if start >= len(file):
            continue
        first = expected is None
        if first:
            cell_format = format_of_row(file.cells(start), kind, by_id=ids is not None)
            expected = cell_format or _format_of(file, start, kind)
        assert expected is not None
        if cell_format is None:
            parts.append(_from_rows(file, start, expected, kind, base, first=first))
        else:
            every = range(start, len(file))
            parts.append(_link_file(read_rows(file, every, cell_format, kind, base, ids)))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        parts = [_link_file(PairRows(name, base))]
    return LinkFile(
        _joined([part.must for part in parts]),
        _joined([part.cannot for part in parts]),
        SoftLinks.join([part.soft_must for part in parts]),
        SoftLinks.join([part.soft_cannot for part in parts]),
    )


def _joined(parts: list[Links]) -> Links:
    lines = [one.lines for one in parts if one.lines is not None]
    pairs = np.concatenate([one.pairs for one in parts])
    return Links(pairs, parts[0].origin, np.concatenate(lines), parts[0].base, from_file=True)


def _link_file(rows: PairRows) -> LinkFile:
    return LinkFile(rows.hard("ml"), rows.hard("cl"), rows.soft("sml"), rows.soft("scl"))


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
        soft = [row for row in rows.tolist() if _is_soft(file.lines[row])]
        if soft:
            return _with_soft_rows(file, start, soft, base)
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


def _is_soft(line: str) -> bool:
    return line.lstrip(' "\t')[:1] in ("s", "S")


def _with_soft_rows(file: TextFile, start: int, soft: list[int], base: int) -> LinkFile:
    """Read tagged rows of which some are soft: those cell by cell, the others at once."""
    found = read_rows(file, soft, TAGGED, None, base)
    left_out = set(soft)
    others = [row for row in range(start, len(file)) if row not in left_out]
    if not others:
        return _link_file(found)
    rest = replace(
        file, lines=[file.lines[row] for row in others], line_numbers=file.line_numbers[others]
    )
    hard = _from_rows(rest, 0, _TAGGED, None, base, first=False)
    return replace(hard, soft_must=found.soft("sml"), soft_cannot=found.soft("scl"))


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


def _is_header(file: TextFile, ids: PointIds | None = None) -> bool:
    """Return whether the first row consists of names, without a number that could be an index."""
    if ids is not None:
        words = file.cells(0)
        return words[0].lower() not in KINDS and not any(word in ids.rows for word in words)
    cells = file.cells(0)
    if max(map(len, cells)) > _MAX_NAME_LENGTH:
        return False
    if cells[0].lower() in KINDS or re.search(r"(?<!\w)[0-9]", file.lines[0]):
        return False
    return all(cell[:1].isalpha() for cell in cells)


def _sign(cell: str) -> float:
    sign = _SIGNS.get(cell.strip().lower())
    if sign is None:
        raise ValueError(cell)  # ends loadtxt; the faulty row is then located
    return sign


def _parse_rows(
    file: TextFile, start: int, expected: str, *, tagged: bool = False, kind_unknown: bool = False
) -> Floats:
    """Parse all rows at once; if that fails, or a number is not whole, locate the first error.

    ``kind_unknown``: in the first row, every format that states the kind of a pair was possible.
    """
    table = file.parse(start, {0: _sign} if tagged else None)
    width = 2 if expected == _PAIRS else 3
    good = (
        table is not None
        and table.shape[1] == width
        and bool((np.abs(table) < MAX_ROW_NUMBER).all() and (table == np.floor(table)).all())
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
    return is_number(cell) and abs(float(cell)) < MAX_ROW_NUMBER and float(cell).is_integer()


def _row_error(file: TextFile, row: int, start: int, expected: str) -> InputError:
    cells = file.cells(row)
    numbers = cells[1:] if expected == _TAGGED else cells
    odd = next((cell for cell in numbers if is_number(cell) and not _is_whole(cell)), None)
    detail = "" if odd is None else f" ({quote(odd)} is not a row number)"
    example = "" if row == start else f" as in line {file.line_numbers[start]}"
    hint: str = Message(
        "points are named by their row number, or by id with ",
        Argument("id_column", "NAME"),
        f"; one format per file, here with cells separated by {file.delimiter_name}",
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
    signs: Floats,
    rows: Ints,
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
    return LinkFile.of(
        *(Links(pairs[s] - base, file.path, lines[s], base, from_file=True) for s in sides)
    )
