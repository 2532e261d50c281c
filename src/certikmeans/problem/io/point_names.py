"""Names of points in files: row numbers, or ids of a column of the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from certikmeans.errors import InputError
from certikmeans.problem.io.text import did_you_mean, quote

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
