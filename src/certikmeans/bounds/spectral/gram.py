"""Inner products of a few long columns, by chunks of rows, with a proven error.

The columns are ``v = sqrt(w)``, the axes ``y_sj = v_s (x_sj - centre_j)``, those of the hat
functions (``v_s hat_k(m_s(b))``, which are zero outside one cluster and never negative), and unit
vectors of the groups with a link multiplier. Centre and multipliers have no error: the bound holds
for any values. Data are scaled by a power of two, exactly, so that coordinates are at most 1.

**Rounding.** With ``EPS = 2 u``: ``v`` errs by u of itself, ``y`` by 3 u. An inner product of m
numbers in any order errs by m u of the product of absolute values, whose sum is at most the
product of the norms h. With chunks of at most `CHUNK` rows and the sums of the chunks added one
after the other, an entry errs by at most ``relative_error h_i h_j``,

    relative_error = (min(n, CHUNK) + n_chunks + 16) EPS,

more than twice the first-order terms, so it covers the others, and h computed from the diagonal.
Underflow: fewer than 1e10 terms lose less than 1e-310 each, times a factor below 1e7; where norms
enter, they are raised to at least `MIN_NORM`, and 1e-290 / MIN_NORM^2 is far below EPS.

**Multipliers** are functions of the distances of groups from bisectors of two clusters. For a group
s of cluster a of some labelling and another cluster b let

    m_s(b) = |x_s - c_b|^2 - |x_s - c_a|^2,      c the means of the clusters.

On nodes ``t_1 < .. < t_q`` there are hat functions: ``hat_k`` is 1 at ``t_k``, 0 at the other
nodes, linear between them and constant beyond the first and the last. The multiplier of s in a
and t in b is

    ell_st = sum_kl coefficients[k, l] hat_k(m_s(b)) hat_l(m_t(a)),      coefficients >= 0,

and 0 for two groups of one cluster. Cannot-links may have an additional multiplier of either sign:
``link_pairs``, ``link_multipliers``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpectralMultipliers:
    """Evidence of the spectral bound; `safe_value` is valid for any values.

    As a flat array (`row`): the numbers of pairs of clusters, of nodes and of link multipliers; a
    label per group; for each pair ``a``, ``b``, the nodes of ``m_s(b)``, the nodes of ``m_t(a)``,
    the coefficients row by row; for each link multiplier its two groups and its value.
    """

    labels: Ints  # (n_groups,)
    pairs: Ints  # (p, 2): clusters a and b
    nodes: Floats  # (p, 2, q), ascending: of groups in a, of groups in b
    coefficients: Floats  # (p, q, q) >= 0
    link_pairs: Ints  # (e, 2): groups with a cannot-link
    link_multipliers: Floats  # (e,)

    @classmethod
    def zeros(cls, n_groups: int) -> SpectralMultipliers:
        """No multipliers: proves `eigenvalue_bound`."""
        labels = np.zeros(n_groups, dtype=np.int64)
        no_pairs = np.empty((0, 2), dtype=np.int64)
        return cls(
            labels, no_pairs, np.empty((0, 2, 2)), np.empty((0, 2, 2)), no_pairs, np.empty(0)
        )

    def renumbered(self, new_of_old: Ints) -> SpectralMultipliers:
        """Multipliers of the problem in which group s has the index ``new_of_old[s]``."""
        labels = np.empty_like(self.labels)
        labels[new_of_old] = self.labels
        link_pairs = new_of_old[self.link_pairs]
        return SpectralMultipliers(
            labels, self.pairs, self.nodes, self.coefficients, link_pairs, self.link_multipliers
        )

    def row(self) -> Floats:
        """Flat array of all values; empty if there are no multipliers."""
        p, _, q = self.nodes.shape
        if not p and not len(self.link_pairs):
            return np.empty(0)
        by_pair = np.concatenate(
            [self.pairs, self.nodes.reshape(p, 2 * q), self.coefficients.reshape(p, q * q)], axis=1
        )
        by_link = np.concatenate([self.link_pairs, self.link_multipliers[:, None]], axis=1)
        head = np.array([p, q, len(self.link_pairs)], dtype=np.float64)
        return np.concatenate(
            [head, self.labels.astype(np.float64), by_pair.ravel(), by_link.ravel()]
        )


CHUNK = 1024
MIN_NORM = 1e-100


@final
@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Origin and power-of-two scale of the coordinates."""

    center: Floats
    exponent: int

    @classmethod
    def of(cls, problem: ReducedProblem) -> Frame:
        """Frame with the mean as origin, in which coordinates are at most 1 in size."""
        points, weights = problem.points, problem.weights
        low, high = points.min(axis=0), points.max(axis=0)
        center = weights @ points / float(weights.sum())
        center = np.clip(np.nan_to_num(center), low, high)
        reach = float(np.maximum(high - center, center - low).max())
        return cls(center, math.frexp(reach)[1] if reach > 0.0 else 0)

    def rows(self, problem: ReducedProblem, which: Ints | slice) -> Floats:
        """Selected points in this frame."""
        shifted: Floats = problem.points[which] - self.center
        shifted *= math.ldexp(1.0, -self.exponent)
        return shifted


@final
@dataclass(frozen=True, slots=True)
class Column:
    """Column of one hat function: side 0 or 1 of a pair of clusters, and its node."""

    pair: int
    side: int
    node: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """Inner products of all columns: v, axes, hat functions, unit vectors."""

    products: Floats  # (r, r)
    relative_error: float  # of an entry, relative to the product of the norms of its columns
    n_dims: int
    columns: tuple[Column, ...]
    unit_groups: Ints  # groups with a unit vector

    @property
    def norms(self) -> Floats:
        """Norms of the columns, at least `MIN_NORM`."""
        squares = np.maximum(np.diagonal(self.products), 0.0)
        return np.maximum(np.sqrt(squares), MIN_NORM)


def axes_gram(problem: ReducedProblem, frame: Frame, chunk: int = CHUNK) -> Gram:
    """Inner products of v and of the axes alone."""
    n, d = problem.points.shape
    products = np.zeros((1 + d, 1 + d))
    for start in range(0, n, chunk):
        rows = slice(start, start + chunk)
        block = _block(frame.rows(problem, rows), problem.weights[rows], 0)
        products += block.T @ block
    error = _relative_error(n, -(-n // chunk), chunk)
    return Gram(products, error, d, (), np.empty(0, dtype=np.int64))


def full_gram(
    problem: ReducedProblem,
    frame: Frame,
    evidence: SpectralMultipliers,
    axes: Gram | None = None,
    *,
    chunk: int = CHUNK,
) -> Gram:
    """Inner products of v, the axes, and the columns that the evidence uses.

    ``axes`` is the result of `axes_gram`, if it was computed before.
    """
    n, d = problem.points.shape
    columns = _columns(evidence)
    unit_groups = np.unique(evidence.link_pairs)
    n_columns = 1 + d + len(columns)
    r = n_columns + len(unit_groups)
    products = np.zeros((r, r))
    units = np.zeros((len(unit_groups), n_columns))
    order = np.argsort(evidence.labels, kind="stable")
    ends = np.cumsum(np.bincount(evidence.labels))
    builder = _ColumnBuilder(problem, frame, evidence, columns)
    n_chunks = len(ends)
    for cluster, end in enumerate(ends.tolist()):
        members = order[int(ends[cluster - 1]) if cluster else 0 : end]
        n_chunks += -(-len(members) // chunk)
        positions = np.concatenate([np.arange(1 + d), 1 + d + builder.positions(cluster)])
        block_products = np.zeros((len(positions), len(positions)))
        for start in range(0, len(members), chunk):
            rows = members[start : start + chunk]
            block = builder.block(cluster, rows)
            if axes is None:
                block_products += block.T @ block
            else:
                block_products[:, 1 + d :] += block.T @ block[:, 1 + d :]
            _copy_unit_rows(units, unit_groups, rows, positions, block)
        products[np.ix_(positions, positions)] += block_products
    if axes is not None:
        products[1 + d :, : 1 + d] = products[: 1 + d, 1 + d :].T
        products[: 1 + d, : 1 + d] = axes.products
        n_chunks += -(-n // chunk)
    products[n_columns:, :n_columns] = units
    products[:n_columns, n_columns:] = units.T
    products[n_columns:, n_columns:] = np.eye(len(unit_groups))
    return Gram(products, _relative_error(n, n_chunks, chunk), d, columns, unit_groups)


def with_indicators(
    gram: Gram, problem: ReducedProblem, frame: Frame, evidence: SpectralMultipliers
) -> Gram:
    """Add a column for every cluster of the evidence: v in the cluster, 0 elsewhere.

    ``gram`` is the `full_gram` of evidence without link multipliers. Rounding errors are those of
    the other columns.
    """
    d = gram.n_dims
    before = len(gram.products)
    k = int(evidence.labels.max()) + 1
    products = np.zeros((before + k, before + k))
    products[:before, :before] = gram.products
    builder = _ColumnBuilder(problem, frame, evidence, gram.columns)
    for cluster in range(k):
        rows = np.flatnonzero(evidence.labels == cluster)
        positions = np.concatenate([np.arange(1 + d), 1 + d + builder.positions(cluster)])
        block_products = np.zeros(len(positions))
        for start in range(0, len(rows), CHUNK):
            block = builder.block(cluster, rows[start : start + CHUNK])
            block_products += block[:, 0] @ block
        products[before + cluster, positions] = products[positions, before + cluster] = (
            block_products
        )
        products[before + cluster, before + cluster] = block_products[0]
    return Gram(products, gram.relative_error, d, gram.columns, gram.unit_groups)


def all_columns(
    problem: ReducedProblem, frame: Frame, evidence: SpectralMultipliers
) -> tuple[Gram, Floats]:
    """Columns of the hat functions and the unit vectors; inner products are left 0."""
    n, d = problem.points.shape
    columns, unit_groups = _columns(evidence), np.unique(evidence.link_pairs)
    values = np.zeros((n, len(columns) + len(unit_groups)))
    builder = _ColumnBuilder(problem, frame, evidence, columns)
    for cluster in np.unique(evidence.labels).tolist():
        rows = np.flatnonzero(evidence.labels == cluster)
        values[np.ix_(rows, builder.positions(cluster))] = builder.block(cluster, rows)[:, 1 + d :]
    values[unit_groups, len(columns) + np.arange(len(unit_groups))] = 1.0
    order = 1 + d + values.shape[1]
    return Gram(np.zeros((order, order)), 0.0, d, columns, unit_groups), values


def _relative_error(n: int, n_chunks: int, chunk: int) -> float:
    return (min(n, chunk) + n_chunks + 16) * EPS


def _block(offsets: Floats, weights: Floats, n_more: int) -> Floats:
    """Rows of v and y, and space for ``n_more`` columns."""
    d = offsets.shape[1]
    block = np.empty((len(offsets), 1 + d + n_more))
    sqrt_weights = np.sqrt(weights)
    block[:, 0] = sqrt_weights
    np.multiply(sqrt_weights[:, None], offsets, out=block[:, 1 : 1 + d])
    return block


def _copy_unit_rows(
    units: Floats, unit_groups: Ints, rows: Ints, positions: Ints, block: Floats
) -> None:
    """Copy the rows of groups that have a unit vector."""
    if not len(unit_groups):
        return
    found = np.minimum(np.searchsorted(unit_groups, rows), len(unit_groups) - 1)
    here = np.flatnonzero(unit_groups[found] == rows)
    if len(here):
        units[np.ix_(found[here], positions)] = block[here]


def _columns(evidence: SpectralMultipliers) -> tuple[Column, ...]:
    """Hat functions with a positive coefficient."""
    used = evidence.coefficients > 0.0
    return tuple(
        Column(pair, side, int(node))
        for pair in range(len(evidence.pairs))
        for side in (0, 1)
        for node in np.flatnonzero(used[pair].any(axis=1 - side))
    )


@final
class _ColumnBuilder:
    """Builds the rows of one cluster."""

    def __init__(
        self,
        problem: ReducedProblem,
        frame: Frame,
        evidence: SpectralMultipliers,
        columns: tuple[Column, ...],
    ) -> None:
        self._problem, self._frame = problem, frame
        self._nodes = np.ldexp(evidence.nodes, -2 * frame.exponent)
        self._centers = cluster_centers(problem, frame, evidence.labels)
        # For each cluster, of every pair it is in: other cluster, pair, side, columns.
        self._tasks: dict[int, list[tuple[int, int, int, list[int]]]] = {}
        by_side: dict[tuple[int, int], list[int]] = {}
        for index, column in enumerate(columns):
            by_side.setdefault((column.pair, column.side), []).append(index)
        self._basis = np.eye(evidence.nodes.shape[2])
        self._column = columns
        for (pair, side), positions in by_side.items():
            here, other = evidence.pairs[pair, side], evidence.pairs[pair, 1 - side]
            self._tasks.setdefault(int(here), []).append((int(other), pair, side, positions))

    def positions(self, cluster: int) -> Ints:
        """Indices of the columns that are not zero in this cluster."""
        listed = [index for task in self._tasks.get(cluster, ()) for index in task[3]]
        return np.array(listed, dtype=np.int64)

    def block(self, cluster: int, rows: Ints) -> Floats:
        """Rows of v, y and those columns."""
        tasks = self._tasks.get(cluster, ())
        offsets = self._frame.rows(self._problem, rows)
        block = _block(offsets, self._problem.weights[rows], sum(len(task[3]) for task in tasks))
        position = 1 + offsets.shape[1]
        if tasks:
            others = self._centers[[task[0] for task in tasks]]
            margins = bisector_margins(offsets, self._centers[cluster], others)
        for number, (_, pair, side, positions) in enumerate(tasks):
            for index in positions:
                basis_function = self._basis[self._column[index].node]
                value = np.interp(margins[:, number], self._nodes[pair, side], basis_function)
                # Nodes are arbitrary: values that are NaN or negative count as 0.
                block[:, position] = block[:, 0] * np.where(value > 0.0, value, 0.0)
                position += 1
        return block


def cluster_centers(problem: ReducedProblem, frame: Frame, labels: Ints) -> Floats:
    """Means of the clusters in the frame; the origin for an empty cluster."""
    k = int(labels.max(initial=0)) + 1
    masses = np.bincount(labels, problem.weights, k)
    sums = np.empty((k, problem.n_dims))
    for j, column in enumerate(problem.points.T):
        shifted = np.ldexp(column - frame.center[j], -frame.exponent)
        sums[:, j] = np.bincount(labels, problem.weights * shifted, k)
    return np.asarray(sums / np.where(masses > 0.0, masses, 1.0)[:, None])


def bisector_margins(offsets: Floats, own: Floats, others: Floats) -> Floats:
    """``|x - c_b|^2 - |x - c_a|^2`` for every row and every other centre."""
    difference = others - own
    # Relative to the midpoint of the two centres the difference is linear.
    middle = 0.5 * (others + own)
    return np.asarray(2.0 * (np.sum(middle * difference, axis=1) - offsets @ difference.T))
