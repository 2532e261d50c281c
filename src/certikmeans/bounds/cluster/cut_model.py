"""Cutting-plane model of the Lagrangian bound: sparse cuts, projections, cut management.

Every column (cluster) found by pricing is a cut that bounds the dual function from above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.dual_box import DualBox
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.cluster.projection import DEFAULT_PARAMS as PROJECTION_PARAMS
from certikmeans.bounds.cluster.projection import ProjectionParams, project
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.kernels.rows import add_weighted_rows, row_products
from certikmeans.stop import StopSignal

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
        """Rows of a dense matrix."""
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix) + 1))
        values = np.ascontiguousarray(matrix[row, column], dtype=np.float64)
        return cls(starts, column.astype(np.int32), values, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def extended(
        self, variables: Sequence[NDArray[np.int32]], values: Sequence[Vector]
    ) -> SparseRows:
        """Append rows, given by their entries."""
        ends = self.starts[-1] + np.cumsum([len(entries) for entries in values], dtype=np.int64)
        return SparseRows(
            np.concatenate([self.starts, ends]),
            np.concatenate([self.variables, *variables]),
            np.concatenate([self.values, *values]),
            self.n_variables,
        )

    def chosen(self, rows: NDArray[np.int64]) -> SparseRows:
        """Select rows."""
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
        """Dense matrix."""
        matrix = np.zeros((len(self), self.n_variables))
        for row, first, last in zip(matrix, self.starts[:-1], self.starts[1:], strict=True):
            row[self.variables[first:last]] = self.values[first:last]
        return matrix

    def rmatvec(self, weights: Vector) -> Vector:
        """Weighted sum of the rows."""
        total = np.zeros(self.n_variables)
        add_weighted_rows(self.starts, self.variables, self.values, weights, total)
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Piecewise linear model of the dual function, in scaled variables ``t``.

    ``base + total.t - sum_f counts_f max(0, max over cuts i of class f of constants_i + rows_i.t)``

    Without the 0 if the empty cluster is not admissible.
    """

    rows: SparseRows
    constants: Vector  # (p,)
    sym_class: NDArray[np.int64]  # (p,)
    counts: Vector  # (n_classes,): clusters of each symmetry class
    total: Vector  # (n,)
    base: float
    high: Vector  # (n,): variables are in [0, high]
    empty: bool = True  # whether the empty cluster is admissible

    def extended(
        self,
        variables: Sequence[NDArray[np.int32]],
        values: Sequence[Vector],
        constants: Sequence[float],
        sym_class: int,
    ) -> Cuts:
        """Append cuts of one symmetry class."""
        return Cuts(
            self.rows.extended(variables, values),
            np.append(self.constants, constants),
            np.append(self.sym_class, np.full(len(constants), sym_class)),
            self.counts, self.total, self.base, self.high, self.empty,
        )  # fmt: skip

    def chosen(self, cuts: NDArray[np.int64]) -> Cuts:
        """Select cuts by ascending indices."""
        if len(cuts) == len(self.constants):
            return self
        return Cuts(
            self.rows.chosen(cuts), self.constants[cuts], self.sym_class[cuts],
            self.counts, self.total, self.base, self.high, self.empty,
        )  # fmt: skip

    def column_values(self, t: Vector) -> Vector:
        """Value of the column of every cut."""
        return self.constants + self.rows.matvec(t)

    def class_values(self, t: Vector) -> Vector:
        """Largest value of a column of each symmetry class; at least that of the empty set."""
        best = self.empty_values()
        np.maximum.at(best, self.sym_class, self.column_values(t))
        return best

    def empty_values(self) -> Vector:
        """Value of the empty cluster for each class: 0, or -inf if it is not admissible.

        0 also for a class without cuts, whose value is not known.
        """
        if self.empty:
            return np.zeros(len(self.counts))
        known = np.bincount(self.sym_class, minlength=len(self.counts)) > 0
        return np.where(known, -np.inf, 0.0)

    def value(self, t: Vector) -> float:
        """Value of the model."""
        return self.base + float(self.total @ t) - float(self.counts @ self.class_values(t))

    def upper_bound(self, weights: Vector) -> float:
        """Upper bound on the model over the box, from a convex combination of columns.

        Valid for weights >= 0 whose sum over each class is at most its count.
        """
        slope = self.total - self.rows.rmatvec(weights)
        constant = self.base - float(weights @ self.constants)
        return constant + float(np.maximum(slope, 0.0) @ self.high)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProjectionResult:
    """Point where the model reaches the level, or a proof that there is none."""

    point: Vector
    mu: Vector  # (p,): multipliers of the cuts, >= 0
    weights: Vector  # (p,): of the combination of columns that gives the upper bound
    upper_bound: float  # of the model over the box
    steps: int

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.upper_bound < level


@final
@dataclass(frozen=True, slots=True)
class CutModelParams:
    """Settings of projections and of cut management."""

    # Level projections have few active cuts: limits to their number, and to the memory of columns.
    max_cuts: int = 180
    min_cuts: int = 24
    max_cut_bytes: float = 4e8
    # With many active cuts, those idle for more rounds than this are dropped once they are this
    # fraction of all; and the longest idle first if the rows have more entries than the limit, down
    # to this fraction of it.
    max_idle_rounds: int = 8
    idle_fraction: float = 0.25
    max_entries: float = 3e7
    entries_after_drop: float = 0.75
    # A projection starts with the cuts that were active in one of the last rounds, and new ones.
    recent_rounds: int = 2
    min_active_weight: float = 1e-3  # relative to the largest multiplier
    min_weight: float = 1e-6  # of a column in the combination, relative to the largest
    max_reprojections: int = 5  # with the cuts that the last projection violated
    max_entries_all_cuts: int = 1_000_000  # of dense rows; below it, all cuts are used at once
    # With several classes, moving the value of one is this much cheaper than moving multipliers
    # to the same effect.
    class_value_scale: float = 10.0
    projection: ProjectionParams = PROJECTION_PARAMS

    def __post_init__(self) -> None:
        if not 1 <= self.min_cuts <= self.max_cuts or self.max_reprojections < 1:
            raise ValueError("1 <= min_cuts <= max_cuts and max_reprojections >= 1 are required")


DEFAULT_PARAMS = CutModelParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProjectionStep:
    """Result of a projection on a level of the model."""

    position: Vector
    upper_bound: float  # of the model over the box

    def infeasible(self, level: float) -> bool:
        """Whether the cuts prove that the level cannot be reached."""
        return self.upper_bound < level


@final
class CutModel:
    """``sum lam - sum over classes of count * (largest value of a known column of the class)``.

    At least ``L(lam)`` everywhere, since a column gives a valid cut for every ``lam``. Methods take
    and return variables ``t`` of the dual box; internally they are divided by the scale of the
    metric. The value of column i is ``e_i + g_i.t`` there, with entries of ``g_i`` at its members
    only.
    """

    def __init__(
        self,
        dual_box: DualBox,
        sym_classes: Sequence[SymmetryClass],
        params: CutModelParams = DEFAULT_PARAMS,
        *,
        constant: float = 0.0,
        empty: bool = True,
    ) -> None:
        self._params = params
        self._dual_box = dual_box
        self._sym_classes = sym_classes
        counts = np.array([sym_class.count for sym_class in sym_classes], dtype=np.float64)
        n_variables = len(dual_box.high)
        self._inverse = np.divide(
            1.0, dual_box.scale, out=np.zeros(n_variables), where=dual_box.scale > 0.0
        )
        affordable = min(params.max_cut_bytes / len(dual_box.low), params.max_cuts)
        self._max_cuts = int(max(affordable, params.min_cuts))
        self._cuts = Cuts(
            rows=SparseRows.of(np.empty((0, n_variables))),
            constants=np.empty(0),
            sym_class=np.empty(0, dtype=np.int64),
            counts=counts,
            total=dual_box.total_gradient() * dual_box.scale,
            base=float(dual_box.low.sum()) + constant,
            high=dual_box.high * self._inverse,
            empty=empty,
        )
        self._keys: list[tuple[int, int]] = []  # of the columns
        self._known_keys: set[tuple[int, int]] = set()
        self._idle = np.empty(0, dtype=np.int64)  # rounds since a cut was active
        self._n_permanent = 0  # the first columns, which are never dropped
        self.columns: list[Column] = []
        self.weights = np.empty(0)  # of the columns in the fractional solution

    def add(self, columns: Iterable[Column], sym_class: int = 0) -> int:
        """Add the columns that are new to the symmetry class; returns their number."""
        constants, variables, values = [], [], []
        region, dual_box = self._sym_classes[sym_class].region, self._dual_box
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
        """Copy the idle rounds of the columns that both models have."""
        index_of_key = {key: i for i, key in enumerate(previous._keys)}
        for i, key in enumerate(self._keys):
            if key in index_of_key:
                self._idle[i] = previous._idle[index_of_key[key]]

    def column_values(self, t: Vector) -> Vector:
        """Value of every column at ``t``."""
        return self._cuts.column_values(t * self._inverse)

    def class_values(self, t: Vector) -> Vector:
        """Largest value of a known column of each class at ``t``, or of the empty set."""
        return self._cuts.class_values(t * self._inverse)

    def class_of(self, column: int) -> int:
        """Symmetry class of a column."""
        return int(self._cuts.sym_class[column])

    def columns_of(self, sym_class: int) -> list[int]:
        """Indices of the columns of a symmetry class."""
        return [int(i) for i in np.flatnonzero(self._cuts.sym_class == sym_class)]

    def value(self, t: Vector) -> float:
        """Value of the model at ``t``: at least that of the dual function."""
        return self._cuts.value(t * self._inverse)

    @property
    def cuts(self) -> Cuts:
        """The cuts, in variables divided by the scale of the metric."""
        return self._cuts

    def scaled(self, t: Vector) -> Vector:
        """Variables of the cuts from those of the dual box."""
        return t * self._inverse

    def unscaled(self, t: Vector) -> Vector:
        """Variables of the dual box from those of the cuts; multipliers of size cuts at least 0."""
        position = t * self._dual_box.scale
        n_cuts = self._dual_box.n_cuts
        if n_cuts:
            position[-n_cuts:] = np.maximum(position[-n_cuts:], 0.0)
        return position

    def project(
        self, t: Vector, level: float, tolerance: float, stop: StopSignal | None = None
    ) -> ProjectionStep:
        """Project ``t`` on the set where the model reaches ``level``, or prove it empty.

        Only a working set of cuts is used; it grows by the cuts that the result violates. Ended
        early by ``stop``, the result is any point of the dual box.
        """
        params = self._params
        cuts, reference = self._cuts, t * self._inverse
        chosen = self._idle < params.recent_rounds
        chosen[np.argsort(-cuts.column_values(reference), kind="stable")[: len(cuts.counts)]] = True
        if len(chosen) * len(t) <= params.max_entries_all_cuts:
            chosen[:] = True
        for _ in range(params.max_reprojections):
            working = np.flatnonzero(chosen)
            working_cuts = cuts.chosen(working)
            found = _project_on_level(working_cuts, reference, level, tolerance, params, stop)
            if found.infeasible(level) or (stop is not None and stop.reason() is not None):
                break
            if cuts.value(found.point) >= level - 2.0 * tolerance:
                break
            known = working_cuts.class_values(found.point)
            chosen |= cuts.column_values(found.point) > known[cuts.sym_class]
        mu = np.zeros(len(self.columns))
        mu[working] = found.mu
        self._idle = np.where(
            mu > params.min_active_weight * mu.max(initial=0.0), 0, self._idle + 1
        )
        weights = np.zeros(len(self.columns))
        weights[working] = found.weights
        min_weight = params.min_weight * weights.max(initial=0.0)
        self.weights = np.where(weights > min_weight, weights, 0.0)
        position = np.clip(found.point * self._dual_box.scale, 0.0, self._dual_box.high)
        return ProjectionStep(position, found.upper_bound)

    def set_weights(self, weights: Vector, active: NDArray[np.bool_]) -> None:
        """Set the weights of the columns, and which cuts are active."""
        self.weights = weights
        self._idle = np.where(active, 0, self._idle + 1)

    def make_permanent(self) -> None:
        """Exempt the current columns from being dropped."""
        self._n_permanent = len(self.columns)

    def drop_oldest(self) -> None:
        """If there are too many columns, drop those that have been idle for longest."""
        if len(self.columns) > self._n_permanent + self._max_cuts:
            idle = self._idle.copy()
            idle[: self._n_permanent] = -1
            n_kept = self._n_permanent + 2 * self._max_cuts // 3
            self._keep(np.sort(np.argsort(idle, kind="stable")[:n_kept]))

    def drop_idle(self) -> None:
        """Drop columns that have been idle for long, if they are many."""
        idle = self._idle.copy()
        idle[: self._n_permanent] = 0
        params = self._params
        keep = idle <= params.max_idle_rounds
        if len(self._cuts.rows.values) > params.max_entries:
            order = np.argsort(idle, kind="stable")
            sizes = np.cumsum(np.diff(self._cuts.rows.starts)[order])
            keep[order[sizes > params.entries_after_drop * params.max_entries]] = False
            keep[: self._n_permanent] = True
        elif np.count_nonzero(~keep) < params.idle_fraction * len(keep):
            return
        self._keep(np.flatnonzero(keep))

    def _keep(self, keep: NDArray[np.int64]) -> None:
        self._cuts = self._cuts.chosen(keep)
        self._idle, self.weights = self._idle[keep], self.weights[keep]
        self.columns = [self.columns[i] for i in keep]
        self._keys = [self._keys[i] for i in keep]
        self._known_keys = set(self._keys)


def _project_on_level(
    cuts: Cuts,
    reference: Vector,
    level: float,
    tolerance: float,
    params: CutModelParams,
    stop: StopSignal | None,
) -> ProjectionResult:
    """Project on the level set of the model of a few cuts.

    With one symmetry class the row of a cut is ``total - K g_i``. With several, the value of each
    class is an additional variable: rows are ``-g_i``, and one more row states that the model
    reaches the level.
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
        rows, rhs, extended, low, high = _augmented(cuts, reference, level, params)
        found = project(rows, rhs, extended, low, high, tolerance, excess, params.projection, stop)
        point = np.clip(found.point[: len(reference)], 0.0, cuts.high)
        return ProjectionResult(point, found.mu[: len(weights)], weights, upper_bound, found.steps)
    rows = cuts.rows.full()
    rows *= -cuts.counts[0]
    rows += cuts.total
    rhs = level - cuts.base + cuts.counts[0] * cuts.constants
    low = np.zeros(len(reference))
    found = project(
        rows, rhs, reference, low, cuts.high, tolerance, params=params.projection, stop=stop
    )
    weights = found.mu * (cuts.counts[0] / max(float(found.mu.sum()), 1e-300))
    return ProjectionResult(found.point, found.mu, weights, level + found.excess, found.steps)


def _augmented(
    cuts: Cuts, reference: Vector, level: float, params: CutModelParams
) -> tuple[Matrix, Vector, Vector, Vector, Vector]:
    """Rows, right-hand sides, reference and box with the class values as variables."""
    n_cuts, n_variables, n_sym_classes = len(cuts.constants), len(reference), len(cuts.counts)
    class_values = cuts.class_values(reference)
    square = float(cuts.total @ cuts.total)
    if n_cuts:
        square = float(cuts.rows.values @ cuts.rows.values) / n_cuts
    scale = params.class_value_scale * math.sqrt(max(square, 1e-300))
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
    """Hash of the members; the same in every process, unlike `hash`."""
    return int.from_bytes(
        blake2b(column.packed_members.tobytes(), digest_size=8).digest(), "little"
    )
