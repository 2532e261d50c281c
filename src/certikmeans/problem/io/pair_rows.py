"""Rows of pair files that are read cell by cell: ids, soft pairs, kinds in the third column.

The first row of a file determines its format. In each, ``i`` and ``j`` are row numbers, or ids.

=======================  ===================================================================
format                   row
=======================  ===================================================================
kind first               ``ML i j``, ``CL i j``, ``SML i j p``, ``SCL i j p``
kind third               ``i j ML``, ``i j CL``, ``i j SML p``, ``i j SCL p``
signed                   ``i j 1``, ``i j -1``
pairs                    ``i j``, of the kind that the caller states
groups                   ``i j k ...``, where the caller states must-links
=======================  ===================================================================

``p`` is the penalty of a soft pair. Without it the pair costs one unit, which the caller states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import final

import numpy as np

from certikmeans._types import Floats, Mask
from certikmeans.errors import Argument, InputError, Message
from certikmeans.problem.io.text import MAX_ROW_NUMBER, PointIds, TextFile, is_number
from certikmeans.problem.links import Links

Rows = list[tuple[int, int, int, float]]  # line, i, j, penalty; NaN: one unit

KINDS = {
    **dict.fromkeys(["ml", "must", "must-link", "must_link", "mustlink"], "ml"),
    **dict.fromkeys(["cl", "cannot", "cannot-link", "cannot_link", "cannotlink"], "cl"),
    **dict.fromkeys(["sml", "soft-must-link", "soft_must_link"], "sml"),
    **dict.fromkeys(["scl", "soft-cannot-link", "soft_cannot_link"], "scl"),
}
SOFT_KINDS = frozenset(word for word, kind in KINDS.items() if kind in ("sml", "scl"))
TAGGED = "'ML i j', 'CL i j', 'SML i j p' or 'SCL i j p'"
KIND_THIRD = "'i j ML', 'i j CL', 'i j SML p' or 'i j SCL p'"
_SIGNED = "'i j 1' or 'i j -1'"
_PAIR = "a pair 'i j'"
_GROUP = "a group 'i j ...' of two or more points"


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoftLinks:
    """Soft pairs of one file; a penalty is a number, or a multiple of a unit to be stated."""

    links: Links
    amounts: Floats
    in_units: Mask

    @classmethod
    def empty(cls, origin: str) -> SoftLinks:
        """No pairs."""
        links = Links(np.empty((0, 2), dtype=np.int64), origin, from_file=True)
        return cls(links, np.empty(0), np.empty(0, dtype=bool))

    @classmethod
    def join(cls, parts: list[SoftLinks]) -> SoftLinks:
        """Pairs of consecutive parts of one file."""
        lines = [part.links.lines for part in parts if part.links.lines is not None]
        first = parts[0].links
        links = Links(
            np.concatenate([part.links.pairs for part in parts]),
            first.origin,
            np.concatenate(lines) if len(lines) == len(parts) else None,
            first.base,
            from_file=True,
        )
        return cls(
            links,
            np.concatenate([part.amounts for part in parts]),
            np.concatenate([part.in_units for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.amounts)

    def rows(self, unit: float | None = None) -> Floats:
        """Return rows ``(i, j, penalty)``; ``unit`` is needed where pairs do not state theirs.

        >>> links = Links(np.array([[0, 1]]), "pairs.json")
        >>> SoftLinks(links, np.array([0.5]), np.array([True])).rows(unit=3.0)
        array([[0. , 1. , 1.5]])
        """
        if unit is None and self.in_units.any():
            row = int(np.flatnonzero(self.in_units)[0])
            raise InputError(
                f"{self.links.where(row)}: the soft pair {self.links.shown(row)} does not state "
                "what its violation costs",
                hint=Message(
                    "state the penalty of a pair of confidence 1 with ",
                    Argument("penalty", "P"),
                    ", a number of the size of a squared distance, or mean",
                ),
            )
        penalties = np.where(self.in_units, self.amounts * (unit or 0.0), self.amounts)
        return np.column_stack([self.links.pairs.astype(np.float64), penalties])


@final
@dataclass(slots=True)
class PairRows:
    """Rows of every kind, in the order of the file."""

    origin: str
    base: int
    found: dict[str, Rows] = field(default_factory=lambda: {k: [] for k in set(KINDS.values())})

    def hard(self, kind: str) -> Links:
        """Hard pairs of one kind."""
        return self._links(self.found[kind])

    def soft(self, kind: str) -> SoftLinks:
        """Soft pairs of one kind."""
        rows = self.found[kind]
        amounts = np.array([row[3] for row in rows], dtype=np.float64)
        in_units = np.isnan(amounts)
        return SoftLinks(self._links(rows), np.where(in_units, 1.0, amounts), in_units)

    def _links(self, rows: Rows) -> Links:
        table = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3)
        pairs, lines = np.ascontiguousarray(table[:, 1:]), table[:, 0].copy()
        return Links(pairs, self.origin, lines, self.base, from_file=True)


def format_of_row(cells: list[str], kind: str | None, *, by_id: bool) -> str | None:
    """Return the format of a first row that is read here; None if another reader fits better."""
    if cells[0].lower() in SOFT_KINDS or (by_id and cells[0].lower() in KINDS and len(cells) > 2):
        return TAGGED
    if len(cells) in (3, 4) and cells[2].lower() in KINDS:
        return KIND_THIRD
    if not by_id:
        return None
    if kind == "must":
        return _GROUP
    if kind is None and len(cells) == 3:
        return _SIGNED
    return _PAIR


def read_rows(
    file: TextFile, rows: range | list[int], expected: str, kind: str | None, base: int,
    ids: PointIds | None = None,
) -> PairRows:  # fmt: skip
    """Read rows of one format, cell by cell; see the module."""
    found = PairRows(file.path, base)
    for row in rows:
        cells = file.cells(row)
        own, names, price = _split(cells, expected, kind)
        if own is None or len(names) < 2 or (price and own not in ("sml", "scl")):
            raise _row_error(file, row, expected, kind)
        line = int(file.line_numbers[row])
        points = [_point(file, row, word, base, ids, expected) for word in names]
        penalty = _penalty(file, row, price[0]) if price else math.nan
        if own in ("ml", "cl") and any(a == b for a, b in pairwise(points)):
            raise InputError(
                f"{file.where(row)}: a pair links a point to itself: {file.shown(row)}",
                hint="remove the pair, or correct one of its two points",
            )
        found.found[own] += [(line, a, b, penalty) for a, b in pairwise(points)]
    return found


def _split(
    cells: list[str], expected: str, kind: str | None
) -> tuple[str | None, list[str], list[str]]:
    """Return the kind, the names of the points and the penalty, if there is one."""
    if expected == TAGGED:
        return KINDS.get(cells[0].lower()), cells[1:3], cells[3:] if len(cells) <= 4 else ["", ""]
    if expected == KIND_THIRD:
        word = cells[2].lower() if len(cells) in (3, 4) else ""
        return KINDS.get(word), cells[:2], [cell for cell in cells[3:] if cell]
    if expected == _SIGNED:
        sign = float(cells[2]) if len(cells) == 3 and is_number(cells[2]) else 0.0
        return {1.0: "ml", -1.0: "cl"}.get(sign), cells[:2], []
    own = {"must": "ml", "cannot": "cl"}.get(kind or "")
    if expected == _PAIR and len(cells) != 2:
        return None, [], []
    return own, cells, []


def _point(
    file: TextFile, row: int, word: str, base: int, ids: PointIds | None, expected: str
) -> int:
    if ids is not None:
        found = ids.rows.get(word)
        if found is None:
            raise ids.unknown(word, file.where(row))
        return found
    number = float(word) if is_number(word) else math.nan
    if not (abs(number) < MAX_ROW_NUMBER and number.is_integer()):
        raise _row_error(file, row, expected, None)
    if number < base:
        raise InputError(
            f"{file.where(row)}: point {int(number)} does not exist, points are numbered from "
            f"{base}: {file.shown(row)}",
            hint=Message("if the file counts from 0, leave out ", Argument("one_based", "True"))
            if base
            else "correct the index",
        )
    return int(number) - base


def _penalty(file: TextFile, row: int, word: str) -> float:
    number = float(word) if is_number(word) else math.nan
    if not number >= 0.0:
        hint = "the last cell is the penalty of the violated pair: a number, 0 or more"
        if number < 0.0:
            hint += "; a negative one would reward a violation: give the pair the other kind"
        raise InputError(f"{file.where(row)}: {file.shown(row)} has no valid penalty", hint=hint)
    return number


def _row_error(file: TextFile, row: int, expected: str, kind: str | None) -> InputError:
    if expected == _PAIR and kind is None:
        return InputError(
            f"{file.where(row)}: pair {file.shown(row)} does not state its kind",
            hint=Message(
                "state the kind of the whole file, ", Argument("kind", "'must'"), " or ",
                Argument("kind", "'cannot'"), f", or write {TAGGED}",
            ),
        )  # fmt: skip
    return InputError(
        f"{file.where(row)}: expected {expected}, got {file.shown(row)}",
        hint=Message(
            "points are named by their row number, or by id with ",
            Argument("id_column", "NAME"),
            f"; one format per file, here with cells separated by {file.delimiter_name}",
        ),
    )
