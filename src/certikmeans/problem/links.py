"""Pairs of points with their origin, their canonical form, and pairs given by ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from certikmeans._numbers import count
from certikmeans._types import Ints
from certikmeans.errors import Argument, InputError, Message


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Links:
    """Pairs with their origin.

    Readers return this instead of an array so that an index out of range can be reported with its
    file and line.

    Attributes
    ----------
    pairs : ndarray of shape (m, 2)
        Row numbers, counted from 0.
    origin : str
        A file name, or the name of an argument.
    lines : ndarray of shape (m,), optional
        Line numbers, counted from 1; None for an argument.
    base : int
        1 where the source counts points from 1.
    from_file : bool
        Whether ``origin`` is a file.
    """

    pairs: Ints  # (m, 2)
    origin: str  # a file name, or the name of an argument
    lines: Ints | None = None  # (m,) 1-based line numbers; None for an argument
    base: int = 0  # 1 when the source counts points from 1; ``pairs`` always count from 0
    from_file: bool = False

    def __repr__(self) -> str:
        return f"Links({count(len(self.pairs), 'pair')} of {self.origin!r})"

    def where(self, row: int) -> str:
        """Return the file and line, or the argument and index, of pair ``row``.

        >>> Links(np.array([[0, 1]]), "pairs.txt", np.array([7])).where(0)
        'pairs.txt, line 7'
        >>> Links(np.array([[0, 1]]), "must_link").where(0)
        'must_link[0]'
        """
        if self.lines is None:
            return f"{self.origin}[{row}]"
        return f"{self.origin}, line {self.lines[row]}"

    def shown(self, row: int) -> str:
        """Return the pair as the source wrote it."""
        i, j = self.pairs[row] + self.base
        return f"({i}, {j})"


def as_links(pairs: Any, name: str) -> Links:
    """Convert pairs passed by a caller into `Links`, or raise an error.

    >>> as_links([(0, 1)], "must_link").pairs
    array([[0, 1]])
    """
    if isinstance(pairs, Links):
        return pairs
    if pairs is None:
        return Links(np.empty((0, 2), dtype=np.int64), name)
    if not isinstance(pairs, np.ndarray | Iterable) or isinstance(pairs, str | bytes):
        raise InputError(
            f"{name}: expected pairs (i, j), got {type(pairs).__name__}",
            hint="give an array of shape (m, 2); of a Constraints object, pass its "
            "must_link and cannot_link",
        )
    if not hasattr(pairs, "__array__"):
        pairs = list(pairs)
    try:
        array = np.asarray(pairs)
    except ValueError as error:
        raise InputError(
            f"{name}: rows have different lengths", hint="give pairs (i, j), two indices each"
        ) from error
    if array.size == 0:
        return Links(np.empty((0, 2), dtype=np.int64), name)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"{name}: expected pairs (i, j), got an array of shape {array.shape}",
            hint="give an array of shape (m, 2), one pair of point indices per row",
        )
    if array.dtype == object or array.dtype.kind not in "iuf":
        raise InputError(
            f"{name}: indices must be whole numbers, got {array.dtype}",
            hint="points are named by their row number, counted from 0; names are looked up by "
            "Constraints.from_pairs(..., index=df.index)",
        )
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            row = int(np.flatnonzero(~whole.all(axis=1))[0])
            raise InputError(
                f"{name}[{row}]: {tuple(array[row].tolist())} is not a pair of whole numbers",
                hint="points are named by their row number, counted from 0",
            )
    return Links(array.astype(np.int64), name)


def canonical_pairs(links: Links, n_points: int) -> Ints:
    """Check indices and return the distinct pairs with ``i < j``, sorted. Read-only.

    >>> canonical_pairs(as_links([(2, 0), (0, 2), (0, 1)], "cannot_link"), 3)
    array([[0, 1],
           [0, 2]])
    """
    check_rows(links, n_points)
    pairs = links.pairs
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        row = int(np.flatnonzero(loops)[0])
        raise InputError(
            f"{links.where(row)}: pair {links.shown(row)} links a point to itself",
            hint="remove the pair, or correct one of its two indices",
        )
    keys = np.minimum(pairs[:, 0], pairs[:, 1]) * np.int64(n_points)
    keys += np.maximum(pairs[:, 0], pairs[:, 1])
    keys.sort()
    if (keys[1:] == keys[:-1]).any():
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    distinct = np.stack(np.divmod(keys, np.int64(n_points)), axis=1)
    distinct.flags.writeable = False
    return distinct


def check_rows(links: Links, n_points: int) -> None:
    """Raise an error that names the first pair of a point that does not exist."""
    pairs = links.pairs
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n_points):
        outside = ((pairs < 0) | (pairs >= n_points)).any(axis=1)
        row = int(np.flatnonzero(outside)[0])
        first, last = links.base, n_points - 1 + links.base
        count_from: tuple[str | Argument, ...] = ()
        if not links.base and links.from_file:
            count_from = ("; if the file counts from 1, pass ", Argument("one_based", "True"))
        elif not links.base:
            count_from = ("; if the pairs count from 1, subtract 1",)
        raise InputError(
            f"{links.where(row)}: pair {links.shown(row)} names a point that does not exist",
            hint=Message(f"the {n_points} points are numbered {first} to {last}", *count_from),
        )


# Pairs that name samples by ids of any hashable kind, turned into row numbers.

_MAX_IDS_SHOWN = 5  # ids in a message at most
_MAX_ID_LENGTH = 40  # characters of an id in a message
_ID_PAIRS_HINT = "give pairs (id, id), or a table with two columns"
_ID_TRIPLES_HINT = "give rows (id, id, penalty), or a table with three columns"


def rows_by_id(index: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return the row of every id.

    >>> rows_by_id(["b", "a"])
    {'b': 0, 'a': 1}
    """
    if hasattr(index, "columns"):
        raise InputError("index: it is a whole table", hint="pass df.index, or one column of ids")
    ids = list(index)
    try:
        rows = {one: row for row, one in enumerate(ids)}
    except TypeError as error:
        raise InputError(
            f"index: {error}", hint="ids can be numbers, text, dates, tuples; not lists"
        ) from error
    if len(rows) < len(ids):
        repeated = dict.fromkeys(one for row, one in enumerate(ids) if rows[one] != row)
        raise InputError(
            f"index: not every id is the id of one row: {_format_ids(repeated)}",
            hint="pairs need ids that occur once; df.reset_index(drop=True) makes new ones",
        )
    return rows


def links_by_id(pairs: Any, name: str, rows: dict[Hashable, int], *, loops: bool = False) -> Links:
    """Return pairs of ids as pairs of row numbers; an error lists unknown ids.

    ``pairs`` is anything that yields pairs, or a table with two columns. ``loops``: a pair may
    name one id twice.

    >>> links_by_id([("a", "b")], "must_link", {"b": 0, "a": 1}).pairs
    array([[1, 0]])
    """
    if isinstance(pairs, Links):
        raise InputError(
            f"{name}: pairs of a file count rows already", hint="leave index out, or pass ids"
        )
    id_pairs = id_rows(pairs, name, 2)
    try:
        unknown = dict.fromkeys(one for id_pair in id_pairs for one in id_pair if one not in rows)
    except TypeError as error:
        raise InputError(f"{name}: {error}", hint="name samples by ids of the index") from error
    if unknown:
        raise InputError(
            f"{name}: the index has no {_format_ids(unknown)}",
            hint="ids are compared by value and type: 7 is not '7'",
        )
    found = [[rows[one], rows[other]] for one, other in id_pairs]
    same = [id_pair for id_pair, (i, j) in zip(id_pairs, found, strict=True) if i == j]
    if same and not loops:
        raise InputError(
            f"{name}: a pair links {_format_ids([same[0][0]])} to itself",
            hint="remove the pair, or correct one of its two ids",
        )
    return Links(np.array(found, dtype=np.int64).reshape(-1, 2), name)


def priced_rows_by_id(rows: Any, name: str, index: dict[Hashable, int]) -> list[list[float]]:
    """Return rows ``(id, id, penalty)`` with row numbers in place of ids.

    >>> priced_rows_by_id([("a", "b", 2.5)], "soft_must_link", {"b": 0, "a": 1})
    [[1, 0, 2.5]]
    """
    triples = id_rows(rows, name, 3)
    ends = links_by_id([row[:2] for row in triples], name, index, loops=True).pairs
    return [[*pair, row[2]] for pair, row in zip(ends.tolist(), triples, strict=True)]  # type: ignore[list-item]


def id_rows(rows: Any, name: str, width: int) -> list[tuple[Hashable, ...]]:
    """Return rows of ``width`` cells, of a table of any library or any nested iterable."""
    hint = _ID_PAIRS_HINT if width == 2 else _ID_TRIPLES_HINT
    if rows is None:
        return []
    if hasattr(rows, "columns"):  # a table of any library
        rows = zip(*(list(rows[column]) for column in rows.columns), strict=True)
    elif isinstance(rows, np.ndarray):
        rows = rows.tolist()
    what = "pairs of ids" if width == 2 else "rows (id, id, penalty)"
    try:
        # A string of two letters is not a pair.
        found = [(row,) if isinstance(row, str) else tuple(row) for row in rows]
    except TypeError as error:
        raise InputError(f"{name}: expected {what}", hint=hint) from error
    for at, row in enumerate(found):
        if len(row) != width:
            one = "a pair of ids" if width == 2 else "(id, id, penalty)"
            raise InputError(f"{name}[{at}]: expected {one}", hint=hint)
    return found


def _format_ids(ids: Iterable[Hashable]) -> str:
    every = list(ids)
    texts = [repr(one) for one in every[:_MAX_IDS_SHOWN]]
    shown = [
        text if len(text) <= _MAX_ID_LENGTH else f"{text[:_MAX_ID_LENGTH]}..." for text in texts
    ]
    more = f" and {len(every) - _MAX_IDS_SHOWN:,} more" if len(every) > _MAX_IDS_SHOWN else ""
    return ", ".join(shown) + more
