"""Soft pairs: pairs that may be violated at a price.

Every pair is stored as a **bonus** for being in one cluster: ``+p`` for a soft must-link, ``-p``
for a soft cannot-link. With ``constant`` the sum of the soft must-link penalties,

    penalty(labels) = constant - sum of the bonuses of the pairs that share a cluster.

Parallel pairs add up, and merging groups adds the bonuses between them: both are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.constraint_model.base import ConstraintKind
from certikmeans.errors import InputError

MAX_PENALTY = 1e60


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedPairs:
    """Pairs of points with their penalties, as the user gave them. Read-only."""

    pairs: Ints  # (m, 2)
    penalties: Floats  # (m,), >= 0 and finite

    def __len__(self) -> int:
        return len(self.penalties)

    @classmethod
    def empty(cls) -> PricedPairs:
        """No pairs."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty(0))


class ViolatedPair(NamedTuple):
    """A soft pair that a labelling violates, and the penalty for it."""

    kind: str  # "must_link" or "cannot_link"
    first: int  # row of the data, from 0
    second: int
    penalty: float


def validate_priced_pairs(rows: Any, name: str, n_points: int) -> tuple[PricedPairs, Ints]:
    """Return priced pairs, and the pairs of infinite penalty, which are hard.

    >>> validate_priced_pairs([(0, 1, 2.5), (1, 2, math.inf)], "soft_must_link", 3)[1]
    array([[1, 2]])
    """
    hint = "give rows (i, j, penalty): two row numbers and a number, 0 or more"
    if rows is None:
        return PricedPairs.empty(), np.empty((0, 2), dtype=np.int64)
    if isinstance(rows, PricedPairs):
        table = np.column_stack([rows.pairs.astype(np.float64), rows.penalties])
    else:
        if hasattr(rows, "to_numpy"):
            rows = rows.to_numpy()
        elif not hasattr(rows, "__array__"):
            rows = list(rows)
        try:
            table = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: not a table of numbers ({error})", hint=hint) from error
    if table.size == 0:
        return PricedPairs.empty(), np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 3:
        raise InputError(f"{name}: expected three columns, got shape {table.shape}", hint=hint)
    ends, penalties = table[:, :2], table[:, 2].copy()
    with np.errstate(invalid="ignore"):
        whole = (ends == np.floor(ends)) & (ends >= 0) & (ends < n_points)
    if not whole.all():
        row = int(np.flatnonzero(~whole.all(axis=1))[0])
        raise InputError(
            f"{name}[{row}]: ({ends[row, 0]:g}, {ends[row, 1]:g}) does not name two points",
            hint=f"points are numbered 0 to {n_points - 1}",
        )
    bad = ~(penalties >= 0.0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        hint = "penalties are 0 or more"
        if penalties[row] < 0.0:
            hint += "; a negative one would reward a violation: give the pair in the other list"
        raise InputError(f"{name}[{row}]: the penalty is {penalties[row]}", hint=hint)
    hard = np.isinf(penalties)
    if (penalties[~hard] > MAX_PENALTY).any():
        row = int(np.flatnonzero(~hard & (penalties > MAX_PENALTY))[0])
        raise InputError(
            f"{name}[{row}]: the penalty {penalties[row]:g} is too large for this arithmetic",
            hint=f"use at most {MAX_PENALTY:g}, or inf for a hard pair",
        )
    pairs = ends.astype(np.int64)
    kept = PricedPairs(pairs[~hard], penalties[~hard])
    kept.pairs.flags.writeable = kept.penalties.flags.writeable = False
    return kept, pairs[hard]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoftPairs(ConstraintKind):
    """Bonuses between groups, each pair once."""

    name: ClassVar[str] = "soft pairs"

    n_groups: int
    pairs: Ints  # (m, 2), first < second, distinct, sorted
    bonus: Floats  # (m,), not 0; rounding to nearest of the exact sums
    constant: float  # penalty of a labelling in which no pair shares a cluster
    error: float  # at least the rounding error of the sums of bonuses and of the constant
    # Whether the penalty is exactly the sum of |bonus| over violated pairs, see `split_fixed`.
    normalized: bool = False

    @classmethod
    def of(
        cls, n_groups: int, pairs: Ints, bonus: Floats, constant: float, error: float
    ) -> SoftPairs | None:
        """Add up parallel pairs; a pair inside a group is together in every labelling."""
        inside = pairs[:, 0] == pairs[:, 1]
        ends = np.sort(pairs[~inside], axis=1)
        key = ends[:, 0] * np.int64(n_groups) + ends[:, 1]
        order = np.argsort(key, kind="stable")
        distinct, starts = np.unique(key[order], return_index=True)
        values = bonus[~inside][order]
        sums = values[starts]
        parallel = np.flatnonzero(np.diff(starts, append=len(values)) > 1)
        for row in parallel.tolist():
            end = starts[row + 1] if row + 1 < len(starts) else len(values)
            sums[row] = math.fsum(values[starts[row] : end].tolist())
        constant = math.fsum([constant, *(-bonus[inside]).tolist()])
        # `fsum` rounds once: half a unit in the last place each.
        error += 2.0**-52 * (math.fsum(np.abs(sums[parallel]).tolist()) + abs(constant)) * 1.001
        kept = sums != 0.0
        distinct, sums = distinct[kept], sums[kept]
        if len(sums) == 0 and constant == 0.0 and error == 0.0:
            return None
        ends = np.stack([distinct // n_groups, distinct % n_groups], axis=1)
        return cls(n_groups, ends, sums, constant, error)

    def satisfied_by(self, labels: Ints) -> bool:
        """Always True."""
        return True

    def penalty(self, labels: Ints) -> float:
        """Price of the labels, rounded up."""
        first, second = self.pairs.T
        together = labels[first] == labels[second]
        if self.normalized:
            violated = np.abs(self.bonus[together == (self.bonus < 0.0)])
            value = math.fsum(violated.tolist())
            return math.nextafter(value, math.inf) if value > 0.0 else 0.0
        paid = -self.bonus[together]
        value = math.fsum([self.constant, *paid.tolist()])
        return max(0.0, math.nextafter(value + self.error, math.inf))

    def split_fixed(self, separated: Mask) -> tuple[SoftPairs | None, float]:
        """Separate the penalty that every labelling pays from the rest.

        Parameters
        ----------
        separated : ndarray of shape (m,)
            Pairs that share a cluster in no feasible labelling; their bonus is never earned.

        Returns
        -------
        pairs : SoftPairs or None
            The others, with ``constant`` the sum of the positive bonuses: their penalty is the sum
            of ``|bonus|`` over violated pairs.
        fixed : float
            For every feasible labelling, the exact penalty before all roundings is at least
            ``fixed`` plus the exact penalty of ``pairs``. Negative by a rounding error at most.
        """
        bonus = self.bonus[~separated]
        gains = bonus[bonus > 0.0].tolist()
        fixed = math.fsum([self.constant, *(-gain for gain in gains)])
        fixed = math.nextafter(fixed, -math.inf) if fixed != 0.0 else 0.0
        if self.error > 0.0:
            fixed = math.nextafter(fixed - self.error, -math.inf)
        if len(bonus) == 0:
            return None, fixed
        constant = math.fsum(gains)
        pairs = self.pairs[~separated]
        error = 2.0**-52 * constant
        return SoftPairs(self.n_groups, pairs, bonus, constant, error, normalized=True), fixed

    def subset(self, rows: Ints) -> SoftPairs | None:
        """Pairs among the groups ``rows``."""
        position = np.full(self.n_groups, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        ends = position[self.pairs]
        inside = (ends >= 0).all(axis=1)
        bonus = self.bonus[inside]
        constant = math.fsum(bonus[bonus > 0.0].tolist())
        soft = SoftPairs.of(len(rows), ends[inside], bonus, constant, 2.0**-52 * constant)
        return None if soft is None else replace(soft, normalized=True)

    def merged(self, group_of: Ints, n_groups: int) -> SoftPairs | None:
        """Bonuses between the merged groups."""
        return SoftPairs.of(n_groups, group_of[self.pairs], self.bonus, self.constant, self.error)

    def adjacency(self) -> tuple[Ints, Ints, Floats]:
        """Compressed rows: ``indptr``, neighbours and bonuses in both directions."""
        tails = np.concatenate([self.pairs[:, 0], self.pairs[:, 1]])
        heads = np.concatenate([self.pairs[:, 1], self.pairs[:, 0]])
        both = np.concatenate([self.bonus, self.bonus])
        order = np.lexsort((heads, tails))
        indptr = np.zeros(self.n_groups + 1, dtype=np.int64)
        np.cumsum(np.bincount(tails, minlength=self.n_groups), out=indptr[1:])
        return indptr, heads[order], both[order]
