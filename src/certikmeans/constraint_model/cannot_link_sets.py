"""Cannot-link sets: at most one member of a set in every cluster.

A set of ``m`` points stands for ``m (m - 1) / 2`` cannot-links and is never expanded to them. At
fixed values the best choice from a set is its largest positive value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Ints
from certikmeans.constraint_model.base import ConstraintKind, Contradiction
from certikmeans.errors import InputError

HINT = (
    "give one whole number per point: the same number for points of which at most one may be in "
    "a cluster, -1 for points in no set"
)


def validate_set_columns(columns: Any, n_points: int) -> Ints:
    """Return columns of set numbers as an array of shape (n_columns, n_points), read-only.

    One column, a sequence of columns, or a table of shape (n_points, n_columns). Numbers below 0,
    NaN and None mean no set.

    >>> validate_set_columns([7, 7, -1], 3)
    array([[ 0,  0, -1]])
    """
    if columns is None:
        return np.empty((0, n_points), dtype=np.int64)
    table = _as_table(columns, n_points)
    numbers = np.full(table.shape, -1, dtype=np.int64)
    for row, column in enumerate(table):
        known = column >= 0  # False for NaN
        numbers[row, known] = np.unique(column[known], return_inverse=True)[1]
    numbers.flags.writeable = False
    return numbers


def _as_table(columns: Any, n_points: int) -> NDArray[Any]:
    if hasattr(columns, "to_numpy"):
        columns = columns.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        array = np.asarray(columns)
        if array.dtype == object:
            array = np.array(
                [[np.nan if v is None else v for v in np.atleast_1d(c)] for c in columns],
                dtype=np.float64,
            )
            array = array[:, 0] if array.shape == (n_points, 1) else array
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot_link_groups: not whole numbers ({error})", hint=HINT) from error
    if array.dtype.kind not in "iuf":
        raise InputError(
            f"cannot_link_groups: expected whole numbers, got {array.dtype}", hint=HINT
        )
    if array.ndim == 1:
        array = array[None, :]
    elif array.ndim == 2 and array.shape[0] == n_points and array.shape[1] != n_points:
        array = array.T
    if array.ndim != 2 or array.shape[1] != n_points:
        raise InputError(
            f"cannot_link_groups: {array.shape[-1]} numbers for {n_points} points", hint=HINT
        )
    if array.dtype.kind == "f":
        fraction = np.isfinite(array) & (array != np.floor(array)) | np.isinf(array)
        if fraction.any():
            column, row = (int(v) for v in np.argwhere(fraction)[0])
            raise InputError(
                f"cannot_link_groups: row {row} is {array[column, row]}, not a whole number",
                hint=HINT,
            )
    return array


def sets_of_columns(columns: Ints) -> list[Ints]:
    """Rows of every set with two or more members."""
    found: list[Ints] = []
    for column in columns:
        rows = np.flatnonzero(column >= 0)
        order = rows[np.argsort(column[rows], kind="stable")]
        ends = np.cumsum(np.bincount(column[rows]))[:-1]
        found += [one for one in np.split(order, ends) if len(one) > 1]
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinkSets(ConstraintKind):
    """Sets of groups in compressed rows, and the sets of every group."""

    name: ClassVar[str] = "cannot-link sets"

    n_groups: int
    indptr: Ints  # (n_sets + 1,)
    members: Ints  # groups, ascending within a set
    group_indptr: Ints  # (n_groups + 1,)
    group_sets: Ints  # sets of a group

    @classmethod
    def of(cls, n_groups: int, sets: list[Ints]) -> CannotLinkSets | None:
        """Sets of distinct groups; those with one member and repetitions are dropped."""
        distinct = {one.tobytes(): one for one in map(np.sort, sets) if len(one) > 1}
        if not distinct:
            return None
        kept = [one.astype(np.int64) for one in distinct.values()]
        sizes = np.array([len(one) for one in kept])
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        members = np.concatenate(kept)
        owner = np.repeat(np.arange(len(kept)), sizes)
        order = np.argsort(members, kind="stable")
        counts = np.bincount(members, minlength=n_groups)
        group_indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(n_groups, indptr, members, group_indptr, owner[order].astype(np.int64))

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return len(self.indptr) - 1

    @property
    def sizes(self) -> Ints:
        """Number of members of every set."""
        return np.diff(self.indptr)

    @property
    def disjoint(self) -> bool:
        """Whether no group is in two sets."""
        return bool((np.diff(self.group_indptr) <= 1).all())

    def members_of(self, number: int) -> Ints:
        """Groups of one set."""
        return self.members[self.indptr[number] : self.indptr[number + 1]]

    def as_list(self) -> list[Ints]:
        """Groups of every set."""
        return [self.members_of(number) for number in range(self.n_sets)]

    def satisfied_by(self, labels: Ints) -> bool:
        """Whether no set has two members in one cluster."""
        return self.violated_pair(labels) is None

    def violated_pair(self, labels: Ints) -> tuple[int, int] | None:
        """Two members of one set in one cluster, or None."""
        owner = np.repeat(np.arange(self.n_sets), self.sizes)
        key = owner * (int(labels.max(initial=0)) + 1) + labels[self.members]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(np.diff(key[order]) == 0)
        if len(same) == 0:
            return None
        first, second = order[same[0]], order[same[0] + 1]
        return int(self.members[first]), int(self.members[second])

    def subset(self, rows: Ints) -> CannotLinkSets | None:
        """Sets restricted to the groups ``rows``."""
        position = np.full(self.n_groups, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        inside = [position[one] for one in self.as_list()]
        return CannotLinkSets.of(len(rows), [one[one >= 0] for one in inside])

    def merged(self, group_of: Ints, n_groups: int) -> CannotLinkSets | None:
        """Sets of the merged groups."""
        sets = [group_of[one] for one in self.as_list()]
        for one in sets:
            if len(np.unique(one)) < len(one):
                raise Contradiction
        return CannotLinkSets.of(n_groups, sets)

    def excluded_partners(self, group: int) -> Ints:
        """Groups in a common set."""
        mine = self.group_sets[self.group_indptr[group] : self.group_indptr[group + 1]]
        if len(mine) == 0:
            return np.empty(0, dtype=np.int64)
        others = np.unique(np.concatenate([self.members_of(int(number)) for number in mine]))
        partners: Ints = others[others != group]
        return partners

    def pairs(self) -> Ints:
        """All pairs, for bounds with dense matrices of the groups."""
        blocks = []
        for one in self.as_list():
            first, second = np.triu_indices(len(one), k=1)
            blocks.append(np.stack([one[first], one[second]], axis=1))
        return np.unique(np.concatenate(blocks), axis=0)
