"""Multipliers of a part in little space, and the flat row that a certificate holds.

Any multipliers prove something, so they may be rounded; what is claimed is what the rounded ones
prove. Short mantissas make small files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.sdp.admm import Start
from certikmeans.bounds.sdp.model import Matrix
from certikmeans.bounds.sdp.multipliers import MatrixMultipliers

MANTISSA_BITS = 12  # of 23


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactMultipliers:
    """`MatrixMultipliers` as float32: the upper triangle row by row, and the cuts in use.

    All times ``2^exponent``, so that data of any scale fit into float32.
    """

    n_groups: int
    triangle: NDArray[np.float32]  # (n (n + 1) / 2,)
    cuts: NDArray[np.int32]  # (m, 3)
    amounts: NDArray[np.float32]  # (m,)
    exponent: int = 0

    @classmethod
    def of(cls, given: MatrixMultipliers, *, short: bool = True) -> CompactMultipliers:
        """Round, to short mantissas or to float32 alone."""
        n = len(given.entries)
        rounded = shortened if short else _single
        entries = given.entries[np.triu_indices(n)]
        largest = max(np.abs(entries).max(initial=0.0), given.amounts.max(initial=0.0))
        exponent = int(np.frexp(largest)[1]) if np.isfinite(largest) else 0
        triangle = rounded(np.ldexp(entries, -exponent))
        amounts = rounded(np.ldexp(given.amounts, -exponent))
        used = amounts > 0.0
        return cls(n, triangle, given.cuts[used].astype(np.int32), amounts[used], exponent)

    @classmethod
    def none(cls, n_groups: int) -> CompactMultipliers:
        """All zero."""
        return cls.of(MatrixMultipliers.none(n_groups))

    def full(self) -> MatrixMultipliers:
        """Symmetric, in double precision."""
        return MatrixMultipliers(
            symmetric(self.scaled(self.triangle), self.n_groups),
            self.cuts.astype(np.int64),
            self.scaled(self.amounts),
        )

    def scaled(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """The values that are meant, exactly."""
        return np.ldexp(values.astype(np.float64), self.exponent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompactStart:
    """Where a part may go on from."""

    multipliers: CompactMultipliers
    z: NDArray[np.float32]  # upper triangle
    penalty: float

    @classmethod
    def of(cls, start: Start) -> CompactStart:
        """Keep half of what is symmetric."""
        multipliers = CompactMultipliers.of(start.multipliers, short=False)
        upper = start.z[np.triu_indices(multipliers.n_groups)].astype(np.float32)
        return cls(multipliers, upper, start.penalty)

    def full(self) -> Start:
        """What the solver takes."""
        z = symmetric(self.z, self.multipliers.n_groups)
        return Start(self.multipliers.full(), z, self.penalty)


def shortened(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Nearest float32 with a short mantissa.

    >>> shortened(np.array([1.0, -0.1, 0.0]))
    array([ 1.       , -0.1000061,  0.       ], dtype=float32)
    """
    short = values.astype(np.float32)
    dropped = 23 - MANTISSA_BITS
    bits = short.view(np.int32)
    bits += 1 << (dropped - 1)
    bits &= -1 << dropped
    return short


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return values.astype(np.float32)


def symmetric(triangle: NDArray[Any], n: int) -> Matrix:
    """The matrix whose upper triangle, row by row, is given."""
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n)] = triangle
    matrix += np.triu(matrix, 1).T
    return matrix
