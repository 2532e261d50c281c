"""Multipliers of the semidefinite bound: what it hands to a sceptic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.sdp.cuts import joined
from certikmeans.proof import AbstractEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class MatrixMultipliers(AbstractEvidence):
    """Multipliers of entries of ``Z``, and of cuts of three groups."""

    says_more_up_to: ClassVar[float] = 1_000  # a few matrices of this order; and they take a while

    entries: NDArray[np.float64]  # (n, n) symmetric; >= 0, of any sign on cannot-links
    cuts: NDArray[np.int64]  # (m, 3): s, t, u; u = -1 for a pair cut
    amounts: NDArray[np.float64]  # (m,) >= 0

    @classmethod
    def none(cls, n_groups: int) -> MatrixMultipliers:
        """All zero."""
        no_cuts = np.empty((0, 3), dtype=np.int64)
        return cls(np.zeros((n_groups, n_groups)), no_cuts, np.empty(0))

    def renumbered(self, order: NDArray[np.int64]) -> MatrixMultipliers:
        """Return the same with group ``order[i]`` as group i."""
        return self.added_up(np.argsort(order), len(order))

    def joined(
        self, group_of: NDArray[np.int64], n_groups: int, inside: NDArray[np.float64]
    ) -> MatrixMultipliers:
        """Multipliers add up: what joining puts inside is taken out by the proof itself."""
        return self.added_up(group_of, n_groups)

    def added_up(self, group_of: NDArray[np.int64], n_groups: int) -> MatrixMultipliers:
        """The same on a problem in which group s has become part of ``group_of[s]``.

        ``Z`` of the smaller problem, repeated, is feasible for the larger, so multipliers add up.
        With a permutation, groups are only numbered anew.
        """
        halfway = np.zeros((n_groups, len(self.entries)))
        np.add.at(halfway, group_of, self.entries)
        entries = np.zeros((n_groups, n_groups))
        np.add.at(entries, group_of, halfway.T)
        cuts, amounts = joined(self.cuts, self.amounts, group_of, n_groups)
        return MatrixMultipliers(0.5 * (entries + entries.T), cuts, amounts)

    def row(self) -> NDArray[np.float64]:
        """Return the upper triangle, then every cut that counts."""
        used = self.amounts > 0.0
        cuts = np.column_stack([self.cuts[used].astype(np.float64), self.amounts[used]])
        return np.concatenate([self.entries[np.triu_indices(len(self.entries))], cuts.ravel()])
