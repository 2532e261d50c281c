"""Pairs that name samples by ids of any hashable kind, turned into row numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from certikmeans.errors import InputError
from certikmeans.problem.links import Links

_SHOWN = 5  # ids in a message at most
_LONGEST = 40  # characters of an id in a message
_HINT = "give pairs (id, id), or a table with two columns"


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
            f"index: not every id is the id of one row: {_listed(repeated)}",
            hint="pairs need ids that occur once; df.reset_index(drop=True) makes new ones",
        )
    return rows


def links_by_id(pairs: Any, name: str, rows: dict[Hashable, int]) -> Links:
    """Return pairs of ids as pairs of row numbers; ids that no row has are named.

    ``pairs`` is anything that yields pairs, or a table with two columns.

    >>> links_by_id([("a", "b")], "must_link", {"b": 0, "a": 1}).pairs
    array([[1, 0]])
    """
    if isinstance(pairs, Links):
        raise InputError(
            f"{name}: pairs of a file count rows already", hint="leave index out, or pass ids"
        )
    couples = _couples(pairs, name)
    try:
        unknown = dict.fromkeys(one for couple in couples for one in couple if one not in rows)
    except TypeError as error:
        raise InputError(f"{name}: {error}", hint="name samples by ids of the index") from error
    if unknown:
        raise InputError(
            f"{name}: the index has no {_listed(unknown)}",
            hint="ids are compared by value and type: 7 is not '7'",
        )
    found = [[rows[one], rows[other]] for one, other in couples]
    loops = [couple for couple, (i, j) in zip(couples, found, strict=True) if i == j]
    if loops:
        raise InputError(
            f"{name}: a pair links {_listed([loops[0][0]])} to itself",
            hint="remove the pair, or correct one of its two ids",
        )
    return Links(np.array(found, dtype=np.int64).reshape(-1, 2), name)


def _couples(pairs: Any, name: str) -> list[tuple[Hashable, Hashable]]:
    if pairs is None:
        return []
    if hasattr(pairs, "columns"):  # a table, of whichever library
        pairs = zip(*(list(pairs[column]) for column in pairs.columns), strict=True)
    elif isinstance(pairs, np.ndarray):
        pairs = pairs.tolist()
    try:
        # Two letters of a word are no pair.
        couples = [(pair,) if isinstance(pair, str) else tuple(pair) for pair in pairs]
    except TypeError as error:
        raise InputError(f"{name}: expected pairs of ids", hint=_HINT) from error
    for row, couple in enumerate(couples):
        if len(couple) != 2:
            raise InputError(f"{name}[{row}]: expected a pair of ids", hint=_HINT)
    return couples  # type: ignore[return-value]


def _listed(ids: Iterable[Hashable]) -> str:
    every = list(ids)
    texts = [repr(one) for one in every[:_SHOWN]]
    shown = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for text in texts]
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return ", ".join(shown) + more
