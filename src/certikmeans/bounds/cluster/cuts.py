"""Cuts of the cutting-plane model: sparse rows, and what they say about any position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.cuts import apply_rows, combine_rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of a sparse matrix."""

    starts: NDArray[np.int64]  # (p + 1,): row i has the entries starts[i] .. starts[i + 1]
    variables: NDArray[np.int32]  # (nnz,)
    values: Vector  # (nnz,)
    n_variables: int

    @classmethod
    def of(cls, matrix: Matrix) -> Rows:
        """Rows of a full matrix."""
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix) + 1))
        values = np.ascontiguousarray(matrix[row, column], dtype=np.float64)
        return cls(starts, column.astype(np.int32), values, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def extended(self, variables: Sequence[NDArray[np.int32]], values: Sequence[Vector]) -> Rows:
        """More rows, given by their entries."""
        ends = self.starts[-1] + np.cumsum([len(entries) for entries in values], dtype=np.int64)
        return Rows(
            np.concatenate([self.starts, ends]),
            np.concatenate([self.variables, *variables]),
            np.concatenate([self.values, *values]),
            self.n_variables,
        )

    def chosen(self, rows: NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return Rows(starts, self.variables[entries], self.values[entries], self.n_variables)

    def times(self, point: Vector) -> Vector:
        """Product of every row with a point."""
        products = np.empty(len(self))
        apply_rows(self.starts, self.variables, self.values, point, products)
        return products

    def full(self) -> Matrix:
        """Return the matrix with its zeros."""
        matrix = np.zeros((len(self), self.n_variables))
        for row, first, last in zip(matrix, self.starts[:-1], self.starts[1:], strict=True):
            row[self.variables[first:last]] = self.values[first:last]
        return matrix

    def mix(self, weights: Vector) -> Vector:
        """Sum of the rows with weights."""
        total = np.zeros(self.n_variables)
        combine_rows(self.starts, self.variables, self.values, weights, total)
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """``base + total.t - sum_f counts_f max(0, constants_i + rows_i.t of family f)``."""

    rows: Rows
    constants: Vector  # (p,)
    family: NDArray[np.int64]  # (p,)
    counts: Vector  # (n_families,)
    total: Vector  # (n,)
    base: float
    high: Vector  # (n,): variables are in [0, high]

    def extended(
        self,
        variables: Sequence[NDArray[np.int32]],
        values: Sequence[Vector],
        constants: Sequence[float],
        family: int,
    ) -> Cuts:
        """More cuts of one family."""
        return Cuts(
            self.rows.extended(variables, values),
            np.append(self.constants, constants),
            np.append(self.family, np.full(len(constants), family)),
            self.counts, self.total, self.base, self.high,
        )  # fmt: skip

    def chosen(self, cuts: NDArray[np.int64]) -> Cuts:
        """Some of the cuts, in ascending order."""
        if len(cuts) == len(self.constants):
            return self
        return Cuts(
            self.rows.chosen(cuts), self.constants[cuts], self.family[cuts],
            self.counts, self.total, self.base, self.high,
        )  # fmt: skip

    def worth_at(self, t: Vector) -> Vector:
        """Worth of every cut's column."""
        return self.constants + self.rows.times(t)

    def family_worth(self, t: Vector) -> Vector:
        """Largest worth of a column of each family; at least 0, the empty one's."""
        best = np.zeros(len(self.counts))
        np.maximum.at(best, self.family, self.worth_at(t))
        return best

    def value(self, t: Vector) -> float:
        """The model at ``t``."""
        return self.base + float(self.total @ t) - float(self.counts @ self.family_worth(t))

    def ceiling(self, weights: Vector) -> float:
        """Largest value over the box of a mixture of columns: the model is nowhere higher.

        Valid for weights >= 0 that sum up to at most the count in each family.
        """
        slope = self.total - self.rows.mix(weights)
        constant = self.base - float(weights @ self.constants)
        return constant + float(np.maximum(slope, 0.0) @ self.high)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """Where the model reaches the level, or a proof that it does not."""

    point: Vector
    mu: Vector  # (p,): of the cuts, >= 0
    weights: Vector  # (p,): the mixture that gives the ceiling
    ceiling: float  # the model is nowhere higher
    steps: int

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.ceiling < level
