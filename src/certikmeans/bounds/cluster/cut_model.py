"""Cutting-plane model of the Lagrangian bound: sparse cuts, values, projections, cut management."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.dual_box import DualBox
from certikmeans.bounds.cluster.pricing import Column, SymmetryClass
from certikmeans.bounds.cluster.projection import project
from certikmeans.kernels.rows import add_weighted_rows, row_products

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Rows of a sparse matrix."""

    starts: NDArray[np.int64]  # (p + 1,): row i has the entries starts[i] .. starts[i + 1]
    variables: NDArray[np.int32]  # (nnz,)
    values: Vector  # (nnz,)
    n_variables: int

    @classmethod
    def of(cls, matrix: Matrix) -> SparseRows:
        """Rows of a full matrix."""
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix) + 1))
        values = np.ascontiguousarray(matrix[row, column], dtype=np.float64)
        return cls(starts, column.astype(np.int32), values, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def extended(
        self, variables: Sequence[NDArray[np.int32]], values: Sequence[Vector]
    ) -> SparseRows:
        """More rows, given by their entries."""
        ends = self.starts[-1] + np.cumsum([len(entries) for entries in values], dtype=np.int64)
        return SparseRows(
            np.concatenate([self.starts, ends]),
            np.concatenate([self.variables, *variables]),
            np.concatenate([self.values, *values]),
            self.n_variables,
        )

    def chosen(self, rows: NDArray[np.int64]) -> SparseRows:
        """Some of the rows."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return SparseRows(starts, self.variables[entries], self.values[entries], self.n_variables)

    def matvec(self, point: Vector) -> Vector:
        """Product of every row with a point."""
        products = np.empty(len(self))
        row_products(self.starts, self.variables, self.values, point, products)
        return products

    def full(self) -> Matrix:
        """Return the matrix with its zeros."""
        matrix = np.zeros((len(self), self.n_variables))
        for row, first, last in zip(matrix, self.starts[:-1], self.starts[1:], strict=True):
            row[self.variables[first:last]] = self.values[first:last]
        return matrix

    def rmatvec(self, weights: Vector) -> Vector:
        """Sum of the rows with weights."""
        total = np.zeros(self.n_variables)
        add_weighted_rows(self.starts, self.variables, self.values, weights, total)
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """``base + total.t - sum_f counts_f max(0, constants_i + rows_i.t of sym_class f)``."""

    rows: SparseRows
    constants: Vector  # (p,)
    sym_class: NDArray[np.int64]  # (p,)
    counts: Vector  # (n_families,)
    total: Vector  # (n,)
    base: float
    high: Vector  # (n,): variables are in [0, high]

    def extended(
        self,
        variables: Sequence[NDArray[np.int32]],
        values: Sequence[Vector],
        constants: Sequence[float],
        sym_class: int,
    ) -> Cuts:
        """More cuts of one family."""
        return Cuts(
            self.rows.extended(variables, values),
            np.append(self.constants, constants),
            np.append(self.sym_class, np.full(len(constants), sym_class)),
            self.counts, self.total, self.base, self.high,
        )  # fmt: skip

    def chosen(self, cuts: NDArray[np.int64]) -> Cuts:
        """Some of the cuts, in ascending order."""
        if len(cuts) == len(self.constants):
            return self
        return Cuts(
            self.rows.chosen(cuts), self.constants[cuts], self.sym_class[cuts],
            self.counts, self.total, self.base, self.high,
        )  # fmt: skip

    def column_values(self, t: Vector) -> Vector:
        """Worth of every cut's column."""
        return self.constants + self.rows.matvec(t)

    def class_values(self, t: Vector) -> Vector:
        """Largest worth of a column of each family; at least 0, the empty one's."""
        best = np.zeros(len(self.counts))
        np.maximum.at(best, self.sym_class, self.column_values(t))
        return best

    def value(self, t: Vector) -> float:
        """The model at ``t``."""
        return self.base + float(self.total @ t) - float(self.counts @ self.class_values(t))

    def upper_bound(self, weights: Vector) -> float:
        """Largest value over the box of a mixture of columns: the model is nowhere higher.

        Valid for weights >= 0 that sum up to at most the count in each family.
        """
        slope = self.total - self.rows.rmatvec(weights)
        constant = self.base - float(weights @ self.constants)
        return constant + float(np.maximum(slope, 0.0) @ self.high)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProjectionResult:
    """Where the model reaches the level, or a proof that it does not."""

    point: Vector
    mu: Vector  # (p,): of the cuts, >= 0
    weights: Vector  # (p,): the mixture that gives the ceiling
    upper_bound: float  # the model is nowhere higher
    steps: int

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.upper_bound < level


# The cutting-plane model of the bound: every cluster found is a cut that caps it.

# Cuts that are kept where few are active at once, and a limit to what their columns take of memory.
MAX_CUTS = 180
MIN_CUTS = 24
MAX_CUT_BYTES = 4e8
# Where many are, those go that had no weight for so long, when they are this part of all; and the
# longest idle first when rows have more entries than this.
MAX_IDLE_ROUNDS, IDLE_FRACTION = 8, 0.25
MAX_ENTRIES = 3e7
# A projection begins with the cuts that had weight in one of the last few, and with new ones.
RECENT_ROUNDS = 2
# Weights below this part of the largest one are none.
MIN_WEIGHT = 1e-3
# Times that a projection is done again with the cuts that it was found to violate.
MAX_REPROJECTIONS = 5
# All cuts take part at once if their full rows have no more entries than this.
MAX_ENTRIES_ALL_CUTS = 1_000_000
# With several families, moving the worth of one is this much cheaper than moving multipliers to
# the same effect.
CLASS_VALUE_SCALE = 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProjectionStep:
    """Where a projection leads, and the best value that the cuts themselves allow."""

    position: Vector
    upper_bound: float  # no multipliers in the box give the model more than this

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.upper_bound < level


@final
class CutModel:
    """``sum lam - sum over sym_classes of count * (largest class_values of a known column)``.

    At least ``L(lam)`` everywhere, since a column stays a valid cut for every ``lam``. Positions
    are handed in and out as variables ``t`` of the space; inside, they are divided by the
    metric's scale. A column of family f is worth ``e_i + g_i.t`` there, and ``g_i`` has entries
    at its members alone.
    """

    def __init__(self, dual_box: DualBox, sym_classes: Sequence[SymmetryClass]) -> None:
        self._dual_box = dual_box
        self._families = sym_classes
        counts = np.array([sym_class.count for sym_class in sym_classes], dtype=np.float64)
        n_variables = len(dual_box.high)
        self._inverse = np.divide(
            1.0, dual_box.scale, out=np.zeros(n_variables), where=dual_box.scale > 0.0
        )
        self._max_cuts = int(max(min(MAX_CUT_BYTES / len(dual_box.low), MAX_CUTS), MIN_CUTS))
        self._cuts = Cuts(
            rows=SparseRows.of(np.empty((0, n_variables))),
            constants=np.empty(0),
            sym_class=np.empty(0, dtype=np.int64),
            counts=counts,
            total=dual_box.gather(np.ones(len(dual_box.low))) * dual_box.scale,
            base=float(dual_box.low.sum()),
            high=dual_box.high * self._inverse,
        )
        self._keys: list[tuple[int, int]] = []  # of the columns
        self._known_keys: set[tuple[int, int]] = set()
        self._idle = np.empty(0, dtype=np.int64)  # projections since a cut had weight
        self._n_permanent = 0  # so many columns are never forgotten
        self.columns: list[Column] = []
        self.weights = np.empty(0)  # of the columns, in the mixture that gives the ceiling

    def add(self, columns: Iterable[Column], sym_class: int = 0) -> int:
        """Add the columns that are new to the family; returns how many."""
        constants, variables, values = [], [], []
        region, dual_box = self._families[sym_class].region, self._dual_box
        for column in columns:
            key = (sym_class, _fingerprint(column))
            if key in self._known_keys or column.mass <= 0.0:
                continue
            members = np.flatnonzero(column.members)
            self._known_keys.add(key)
            self._keys.append(key)
            self.columns.append(column)
            touched, entries = dual_box.gather_sparse(members)
            variables.append(touched)
            values.append(entries * dual_box.scale[touched])
            within = column.cost_in_region(region)
            constants.append(float(dual_box.low[members].sum()) - within)
        added = len(constants)
        if added:
            self._cuts = self._cuts.extended(variables, values, constants, sym_class)
            self._idle = np.append(self._idle, np.zeros(added, dtype=np.int64))
            self.weights = np.append(self.weights, np.zeros(added))
        return added

    def inherit(self, previous: CutModel) -> None:
        """Take over, for the columns known to both, which of them matter."""
        index_of_key = {key: i for i, key in enumerate(previous._keys)}
        for i, key in enumerate(self._keys):
            if key in index_of_key:
                self._idle[i] = previous._idle[index_of_key[key]]

    def column_values(self, t: Vector) -> Vector:
        """Worth of every column at ``t``."""
        return self._cuts.column_values(t * self._inverse)

    def class_values(self, t: Vector) -> Vector:
        """Largest known worth of a cluster of each family at ``t``; at least 0, the empty one."""
        return self._cuts.class_values(t * self._inverse)

    def class_of(self, column: int) -> int:
        """Family that a column belongs to."""
        return int(self._cuts.sym_class[column])

    def columns_of(self, sym_class: int) -> list[int]:
        """Numbers of the columns of a family."""
        return [int(i) for i in np.flatnonzero(self._cuts.sym_class == sym_class)]

    def value(self, t: Vector) -> float:
        """The model at ``t``: at least the bound there."""
        return self._cuts.value(t * self._inverse)

    @property
    def cuts(self) -> Cuts:
        """The cuts themselves, in variables divided by the metric's scale."""
        return self._cuts

    def scaled(self, t: Vector) -> Vector:
        """Variables as the cuts see them."""
        return t * self._inverse

    def unscaled(self, t: Vector) -> Vector:
        """The way back."""
        return t * self._dual_box.scale

    def project(self, t: Vector, level: float, tolerance: float) -> ProjectionStep:
        """Nearest position to ``t`` where the model reaches ``level``, or proof of none.

        Only the cuts that matter take part: a projection that violates others is done again.
        """
        cuts, reference = self._cuts, t * self._inverse
        chosen = self._idle < RECENT_ROUNDS
        chosen[np.argsort(-cuts.column_values(reference), kind="stable")[: len(cuts.counts)]] = True
        if len(chosen) * len(t) <= MAX_ENTRIES_ALL_CUTS:
            chosen[:] = True
        for _ in range(MAX_REPROJECTIONS):
            working = np.flatnonzero(chosen)
            domain = cuts.chosen(working)
            found = _project_on_level(domain, reference, level, tolerance)
            if found.infeasible(level):
                break
            if cuts.value(found.point) >= level - 2.0 * tolerance:
                break
            known = domain.class_values(found.point)
            chosen |= cuts.column_values(found.point) > known[cuts.sym_class]
        mu = np.zeros(len(self.columns))
        mu[working] = found.mu
        self._idle = np.where(mu > MIN_WEIGHT * mu.max(initial=0.0), 0, self._idle + 1)
        weights = np.zeros(len(self.columns))
        weights[working] = found.weights
        self.weights = np.where(weights > 1e-6 * weights.max(initial=0.0), weights, 0.0)
        position = np.clip(found.point * self._dual_box.scale, 0.0, self._dual_box.high)
        return ProjectionStep(position, found.upper_bound)

    def set_weights(self, weights: Vector, active: NDArray[np.bool_]) -> None:
        """Take note of the mixture, and of the cuts that matter; the others are idle."""
        self.weights = weights
        self._idle = np.where(active, 0, self._idle + 1)

    def make_permanent(self) -> None:
        """Never forget the columns of now."""
        self._n_permanent = len(self.columns)

    def drop_oldest(self) -> None:
        """Drop columns when there are too many: those that have been idle for longest."""
        if len(self.columns) > self._n_permanent + self._max_cuts:
            idle = self._idle.copy()
            idle[: self._n_permanent] = -1
            kept = self._n_permanent + 2 * self._max_cuts // 3
            self._keep(np.sort(np.argsort(idle, kind="stable")[:kept]))

    def drop_idle(self) -> None:
        """Drop columns that have long been idle, when they are many."""
        idle = self._idle.copy()
        idle[: self._n_permanent] = 0
        keep = idle <= MAX_IDLE_ROUNDS
        entries = len(self._cuts.rows.values)
        if entries > MAX_ENTRIES:
            order = np.argsort(idle, kind="stable")
            sizes = np.cumsum(np.diff(self._cuts.rows.starts)[order])
            keep[order[sizes > 0.75 * MAX_ENTRIES]] = False
            keep[: self._n_permanent] = True
        elif np.count_nonzero(~keep) < IDLE_FRACTION * len(keep):
            return
        self._keep(np.flatnonzero(keep))

    def _keep(self, keep: NDArray[np.int64]) -> None:
        self._cuts = self._cuts.chosen(keep)
        self._idle, self.weights = self._idle[keep], self.weights[keep]
        self.columns = [self.columns[i] for i in keep]
        self._keys = [self._keys[i] for i in keep]
        self._known_keys = set(self._keys)


def _project_on_level(
    cuts: Cuts, reference: Vector, level: float, tolerance: float
) -> ProjectionResult:
    """Project on the level with few cuts.

    With one family the row of a cut is ``total - K g_i``. With several the worth of a family is a
    variable of its own: rows are ``-g_i``, and one more row says that the whole reaches the level.
    """
    upper_bound, weights = np.inf, np.zeros(len(cuts.constants))

    def excess(mu: Vector) -> float:
        nonlocal upper_bound, weights
        multipliers = np.maximum(mu[: len(weights)], 0.0)
        mass = np.zeros(len(cuts.counts))
        np.add.at(mass, cuts.sym_class, multipliers)
        scale = np.divide(cuts.counts, mass, out=np.zeros_like(mass), where=mass > 0.0)
        here = cuts.upper_bound(multipliers * scale[cuts.sym_class])
        if here < upper_bound:
            upper_bound, weights = here, multipliers * scale[cuts.sym_class]
        return upper_bound - level

    if len(cuts.counts) > 1:
        found = project(*_augmented(cuts, reference, level), tolerance, excess)
        point = np.clip(found.point[: len(reference)], 0.0, cuts.high)
        return ProjectionResult(point, found.mu[: len(weights)], weights, upper_bound, found.steps)
    rows = cuts.rows.full()
    rows *= -cuts.counts[0]
    rows += cuts.total
    rhs = level - cuts.base + cuts.counts[0] * cuts.constants
    low = np.zeros(len(reference))
    found = project(rows, rhs, reference, low, cuts.high, tolerance)
    weights = found.mu * (cuts.counts[0] / max(float(found.mu.sum()), 1e-300))
    return ProjectionResult(found.point, found.mu, weights, level + found.excess, found.steps)


def _augmented(
    cuts: Cuts, reference: Vector, level: float
) -> tuple[Matrix, Vector, Vector, Vector, Vector]:
    """Rows, needs, reference and box with the worth of each family as a variable."""
    n_cuts, n_variables, n_sym_classes = len(cuts.constants), len(reference), len(cuts.counts)
    class_values = cuts.class_values(reference)
    square = float(cuts.total @ cuts.total)
    if n_cuts:
        square = float(cuts.rows.values @ cuts.rows.values) / n_cuts
    scale = CLASS_VALUE_SCALE * math.sqrt(max(square, 1e-300))
    rows = np.zeros((n_cuts + 1, n_variables + n_sym_classes))
    rows[:-1, :n_variables] = -cuts.rows.full()
    rows[np.arange(n_cuts), n_variables + cuts.sym_class] = scale
    rows[-1, :n_variables] = cuts.total
    rows[-1, n_variables:] = -scale * cuts.counts
    rhs = np.append(cuts.constants - class_values[cuts.sym_class], 0.0)
    rhs[-1] = level - cuts.base + float(cuts.counts @ class_values)
    max_value = (abs(cuts.base) + float(np.abs(cuts.total) @ cuts.high) + abs(level)) / scale
    low = np.append(np.zeros(n_variables), -class_values / scale)
    high = np.append(cuts.high, np.full(n_sym_classes, max_value))
    return rows, rhs, np.append(reference, np.zeros(n_sym_classes)), low, high


def _fingerprint(column: Column) -> int:
    """Of a set of groups; the same in every process, unlike `hash`."""
    return int.from_bytes(
        blake2b(column.packed_members.tobytes(), digest_size=8).digest(), "little"
    )
