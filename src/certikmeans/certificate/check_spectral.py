"""Spectral bound from a few eigenvalues, with or without multipliers, rounding included.

A labelling is the matrix M with ``v_s v_t / W_k`` for two groups of one cluster of weight W_k, 0
for others; ``v = sqrt(w)``. M is a projection of rank at most K, not negative, 0 at cannot-links,
and ``M v = v``. With ``y_s = v_s (p_s - c)``, any c, a labelling costs
``sum |y_s|^2 - <Y Y^T, M>``, so for any ``Lambda`` that is not negative but at cannot-links

    cost >= sum |y_s|^2 - v^T A v / W - <A, N>,     A = Y Y^T + Lambda,     M = v v^T / W + N,

N a projection of rank at most ``m = K - 1`` with ``N v = 0``.

**The row.** Numbers ``p``, ``q``, ``e``; a label per group; p times: clusters a and b, q nodes
for ``m_s(b)``, q nodes for ``m_t(a)``, q x q coefficients; e times: two groups and a coefficient.
Fewer than three numbers: no multipliers. ``m_s(b) = |x_s - c_b|^2 - |x_s - c_a|^2`` with the means
c of the clusters. ``hat_k`` is 1 at node k, 0 at the others, linear between, constant outside. For
s in a and t in b, ``Lambda_st`` has the terms
``v_s v_t coefficients[k, l] hat_k(m_s(b)) hat_l(m_t(a))``; the coefficient of two groups is added
at these groups, which must have a cannot-link. Other negative coefficients are rejected.

**Few columns.** ``A = B C B^T``, B the axes of Y, the columns ``v hat`` and unit vectors, C small.
``S = B^T N B`` has rank at most m and ``0 <= S <= H = B^T B - b b^T / W``, ``b = B^T v``. If R is
not singular and ``R^T R >= H``, then ``S = R^T T R`` with ``0 <= T <= I`` of rank at most m, so
``<A, N> = <R C R^T, T>`` is at most the sum of the m largest eigenvalues of ``R C R^T``, where
positive.

**Rounding.** The columns ``v hat`` are used as computed: it only matters that they are not
negative. v and Y err by 3 u of themselves. Sums over rows: `BLOCK_ROWS` at a time, then one by
one, so an inner product errs by less than ``relative = (BLOCK_ROWS + sums + 16) EPS`` of the norms
of its columns (twice the first order). Columns are divided by their norms; H then errs by
``4 relative + 8 EPS`` in each entry. The residuals of the root R and of the eigenvectors are
measured. Coordinates are scaled by a power of two to at most 1; norms count as `MIN_NORM` at least:
underflow is negligible beside it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    cholesky_factor,
    distinct,
    frobenius_norm,
    measured_eigenvalues,
    total,
    up,
)
from certikmeans.certificate.format import Reason, Rejection

BLOCK_ROWS = 1_024
MIN_NORM = 1e-100
NEGLIGIBLE = 1e-11  # an off-diagonal part of this relative size counts as an error
MAX_COLUMNS, MAX_DIMS, MAX_EIGEN_ORDER = 2_000, 6_000, 3_000
MAX_INNER_PRODUCT_WORK = 2e12  # multiplications in inner products
HEADER_LENGTH = 3
NO_GROUPS: Ints = np.empty(0, dtype=np.int64)


def spectral_lower_bound(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    deadline: float = math.inf,
) -> float:
    """Lower bound on the cost of every feasible labelling of the groups, for any row.

    Raises `Rejection` if the row cannot be evaluated, or needs too much work: a few bytes can
    require inner products of many columns. ``deadline`` is a time by `time.monotonic`.
    """
    n, d = points.shape
    if min(n, d) > MAX_DIMS or float(n) * d * min(n, d) > MAX_INNER_PRODUCT_WORK:
        raise Rejection(Reason.LIMIT, f"{d} axes are too many for their inner products")
    rank = min(n_clusters, n) - 1
    middle = weights @ points / float(weights.sum())
    reach = float(np.maximum(points.max(axis=0) - middle, middle - points.min(axis=0)).max())
    if not math.isfinite(reach):
        raise Rejection(Reason.BOUND, "the points are too large for this arithmetic")
    exponent = math.frexp(reach)[1]
    scaled = _ScaledPoints(points, weights, middle, exponent, deadline)
    with np.errstate(all="ignore"):
        if len(row) < HEADER_LENGTH or rank == 0:
            value = _eigenvalue_bound(scaled, rank)
        else:
            value = _with_multipliers(scaled, _parse_row(row, n, n_clusters, edges), rank)
    if math.isnan(value):
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    if not value > MIN_NORM:
        return 0.0
    return math.ldexp(value, 2 * exponent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ScaledPoints:
    points: Floats
    weights: Floats
    middle: Floats
    exponent: int
    deadline: float = math.inf

    def rows(self, which: Ints | slice) -> tuple[Floats, Floats]:
        """Roots of weights, and coordinates of at most 1."""
        if time.monotonic() > self.deadline:
            raise Rejection(Reason.LIMIT, "not proven within the time allowed")
        deviation = self.points[which] - self.middle
        deviation *= math.ldexp(1.0, -self.exponent)
        return np.sqrt(self.weights[which]), deviation


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    labels: Ints
    pairs: Ints  # (p, 2)
    nodes: Floats  # (p, 2, q)
    coefficients: Floats  # (p, q, q)
    cannot_link_terms: Ints  # (e, 2)
    cannot_link_coefficients: Floats


def _as_indices(numbers: Floats, most: int, what: str) -> Ints:
    if not np.all((numbers >= 0.0) & (numbers < most) & (numbers == np.floor(numbers))):
        raise Rejection(Reason.BOUND, f"{what} that do not exist")
    return numbers.astype(np.int64)


def _parse_row(row: Floats, n: int, n_clusters: int, edges: Ints) -> _Evidence:
    if not np.isfinite(row).all():
        raise Rejection(Reason.BOUND, "a multiplier is not finite")
    p, q, e = (int(count) for count in _as_indices(row[:HEADER_LENGTH], 1 << 24, "counts"))
    width = 2 + 2 * q + q * q
    if not 2 <= q <= MAX_COLUMNS or len(row) != HEADER_LENGTH + n + p * width + 3 * e:
        raise Rejection(Reason.BOUND, f"the multipliers are not those of {n} groups")
    labels = _as_indices(row[HEADER_LENGTH : HEADER_LENGTH + n], n_clusters, "labels of clusters")
    by_pair = row[HEADER_LENGTH + n : HEADER_LENGTH + n + p * width].reshape(p, width)
    by_cannot_link = row[HEADER_LENGTH + n + p * width :].reshape(e, 3)
    nodes = by_pair[:, 2 : 2 + 2 * q].reshape(p, 2, q)
    coefficients = by_pair[:, 2 + 2 * q :].reshape(p, q, q)
    if not np.all(np.diff(nodes, axis=2) > 0.0):
        raise Rejection(Reason.BOUND, "nodes do not ascend")
    if not np.all(coefficients >= 0.0):
        raise Rejection(Reason.BOUND, "a coefficient is negative")
    cannot_link_terms = np.sort(_as_indices(by_cannot_link[:, :2], n, "groups"), axis=1)
    codes = cannot_link_terms[:, 0] * n + cannot_link_terms[:, 1]
    known = edges.min(axis=1) * n + edges.max(axis=1)
    if len(distinct(codes)) != e or not np.isin(codes, known).all():
        raise Rejection(Reason.BOUND, "a coefficient is not at a cannot-link, or given twice")
    return _Evidence(
        labels,
        _as_indices(by_pair[:, :2], n_clusters, "clusters"),
        nodes,
        coefficients,
        cannot_link_terms,
        by_cannot_link[:, 2],
    )


def _eigenvalue_bound(scaled: _ScaledPoints, rank: int) -> float:
    """Bound without multipliers, from the smaller of ``Y^T Y`` and ``Y Y^T``."""
    n, d = scaled.points.shape
    if rank >= min(n, d):
        return 0.0
    if n < d:
        roots, deviation = scaled.rows(slice(0, n))
        y = roots[:, None] * deviation
        relative = (n + d + 300) * EPS
        matrix, trace = y @ y.T, total(y * y)
        pull, lengths = roots @ y, np.sqrt((y * y).sum(axis=0))
    else:
        products, relative, _ = _inner_products(scaled, [(np.arange(n), None)], 1 + d, NO_GROUPS)
        matrix, pull = products[1:, 1:], products[0, 1:]
        lengths = np.sqrt(np.diagonal(matrix))
        trace = math.fsum(np.diagonal(matrix).tolist())
    mass = total(scaled.weights)
    eigenvalue_sum = _largest_eigenvalues(matrix, relative * up(trace, 300), rank)
    return _rounded_bound(
        trace, relative, _mean_term(pull, lengths, relative, mass), eigenvalue_sum
    )


def _mean_term(pull: Floats, lengths: Floats, relative: float, mass: float) -> float:
    """Upper bound on ``|Y^T v|^2 / W``."""
    size = np.abs(pull) + 2.0 * relative * np.maximum(lengths, MIN_NORM) * math.sqrt(mass)
    return up(total(size * size) / mass, 300) * 1.01


def _rounded_bound(trace: float, relative: float, level: float, eigenvalue_sum: float) -> float:
    rounding_error = 2.0 * relative * trace + 8.0 * EPS * (trace + abs(level) + eigenvalue_sum)
    return trace - level - eigenvalue_sum - up(rounding_error, 16)


def _with_multipliers(scaled: _ScaledPoints, row: _Evidence, rank: int) -> float:
    d = scaled.points.shape[1]
    basis = _HatBasis(scaled, row)
    linked_groups = distinct(row.cannot_link_terms)
    n_long = 1 + d + basis.n_columns
    order = n_long + len(linked_groups)
    if order > MAX_COLUMNS:
        raise Rejection(Reason.LIMIT, f"more than {MAX_COLUMNS} columns")
    parts: list[tuple[Ints, _HatBasis | None]] = [(rows, basis) for rows in _members(row.labels)]
    sizes = [1.0 + d + len(basis.columns_of(int(row.labels[rows[0]]))) for rows, _ in parts]
    work = [len(rows) * size**2 for (rows, _), size in zip(parts, sizes, strict=True)]
    if math.fsum(work) > MAX_INNER_PRODUCT_WORK:
        raise Rejection(Reason.LIMIT, "too much work in inner products")
    products = np.eye(order)
    products[:n_long, :n_long], relative, unit_rows = _inner_products(
        scaled, parts, n_long, linked_groups
    )
    products[n_long:, :n_long], products[:n_long, n_long:] = unit_rows, unit_rows.T
    middle = basis.middle(order - 1, linked_groups)

    # v is removed; the other columns are normalized, and their lengths go into the middle matrix.
    lengths = np.maximum(np.sqrt(np.maximum(np.diagonal(products), 0.0)), MIN_NORM)[1:]
    mass = float(products[0, 0])
    pull = products[0, 1:]
    terms = pull[d:, None] * middle[d:, d:] * pull[d:] / mass
    level = math.fsum(terms.ravel().tolist())
    level += up((4.0 * relative + 16.0 * EPS) * total(np.abs(terms)), 300)
    level += _mean_term(pull[:d], lengths[:d], relative, mass)
    unit = pull / lengths
    inner = products[1:, 1:] / lengths[:, None] / lengths - np.outer(unit, unit / mass)
    root = cholesky_factor(inner, len(inner) * (4.0 * relative + 8.0 * EPS))
    core = lengths[:, None] * middle * lengths
    matrix = root @ core @ root.T
    size = np.abs(root) @ np.abs(core) @ np.abs(root).T
    if not np.isfinite(size).all():
        return math.nan
    perturbation = (2.0 * len(core) + 12.0) * EPS * frobenius_norm(size)
    trace = math.fsum(np.diagonal(products)[1 : 1 + d].tolist())
    return _rounded_bound(
        trace, relative, level, _largest_eigenvalues(0.5 * (matrix + matrix.T), perturbation, rank)
    )


@final
class _HatBasis:
    """The columns ``v hat`` with a nonzero coefficient, numbered from ``1 + d``."""

    def __init__(self, scaled: _ScaledPoints, row: _Evidence) -> None:
        self._row, self._exponent = row, scaled.exponent
        self._first = 1 + scaled.points.shape[1]
        self._nodes = np.ldexp(row.nodes, -2 * scaled.exponent)
        used = np.stack([row.coefficients.any(axis=2), row.coefficients.any(axis=1)], axis=1)
        self._number = np.where(used, np.cumsum(used.ravel()).reshape(used.shape) - 1, -1)
        self.n_columns = int(used.sum())
        n_clusters = int(row.labels.max()) + 1
        n_clusters = max(n_clusters, int(row.pairs.max(initial=0)) + 1)
        self._means = _means(scaled, row.labels, n_clusters)
        self._sides: dict[int, list[tuple[int, int]]] = {}
        for pair, clusters in enumerate(row.pairs.tolist()):
            for side in np.flatnonzero(used[pair].any(axis=1)).tolist():
                self._sides.setdefault(clusters[side], []).append((pair, side))

    def cluster_of(self, group: int) -> int:
        return int(self._row.labels[group])

    def columns_of(self, cluster: int) -> Ints:
        """Columns that are not zero in the cluster, in the order of `values`."""
        numbers = [self._number[pair, side] for pair, side in self._sides.get(cluster, ())]
        every = np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)
        return np.asarray(every[every >= 0] + self._first)

    def values(self, cluster: int, deviation: Floats) -> Floats:
        columns = []
        line = np.arange(len(deviation))
        for pair, side in self._sides.get(cluster, ()):
            other = self._means[self._row.pairs[pair, 1 - side]]
            step = other - self._means[cluster]
            margin = 2.0 * (float((0.5 * (other + self._means[cluster])) @ step) - deviation @ step)
            nodes = self._nodes[pair, side]
            left = np.clip(np.searchsorted(nodes, margin, side="right") - 1, 0, len(nodes) - 2)
            share = (margin - nodes[left]) / (nodes[left + 1] - nodes[left])
            share = np.clip(np.nan_to_num(share), 0.0, 1.0)
            table = np.zeros((len(deviation), len(nodes)))
            table[line, left] = 1.0 - share
            table[line, left + 1] = share
            columns.append(table[:, self._number[pair, side] >= 0])
        return np.concatenate(columns, axis=1) if columns else np.empty((len(deviation), 0))

    def middle(self, order: int, linked_groups: Ints) -> Floats:
        """``C``, without the column v."""
        d = self._first - 1
        matrix = np.zeros((order, order))
        matrix[np.arange(d), np.arange(d)] = 1.0
        coefficients = np.ldexp(self._row.coefficients, -2 * self._exponent)
        for number, coefficient in zip(self._number, coefficients, strict=True):
            one, two = (np.flatnonzero(side >= 0) for side in number)
            ends = np.ix_(d + number[0][one], d + number[1][two])
            matrix[ends] = coefficient[np.ix_(one, two)]
        matrix += np.triu(matrix, 1).T  # columns of the first side stand before the second's
        at = d + self.n_columns + np.searchsorted(linked_groups, self._row.cannot_link_terms)
        cannot_link_coefficients = np.ldexp(self._row.cannot_link_coefficients, -2 * self._exponent)
        matrix[at[:, 0], at[:, 1]] = matrix[at[:, 1], at[:, 0]] = cannot_link_coefficients
        return matrix


def _members(labels: Ints) -> list[Ints]:
    """Groups of every nonempty cluster."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _means(scaled: _ScaledPoints, labels: Ints, n_clusters: int) -> Floats:
    """Means of the clusters, approximately: any points are valid."""
    means = np.zeros((n_clusters, scaled.points.shape[1]))
    for rows in _members(labels):
        weights = scaled.weights[rows] / float(scaled.weights[rows].sum())
        for start in range(0, len(rows), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            means[labels[rows[0]]] += weights[some] @ scaled.rows(rows[some])[1]
    return means


def _columns(scaled: _ScaledPoints, rows: Ints, basis: _HatBasis | None) -> tuple[Ints, Floats]:
    """Numbers and values of all columns that are not zero in these rows of one cluster."""
    roots, deviation = scaled.rows(rows)
    numbers = np.arange(1 + deviation.shape[1])
    block = [roots[:, None], roots[:, None] * deviation]
    if basis is not None:
        cluster = basis.cluster_of(int(rows[0]))
        numbers = np.concatenate([numbers, basis.columns_of(cluster)])
        block.append(roots[:, None] * basis.values(cluster, deviation))
    return numbers, np.concatenate(block, axis=1)


def _inner_products(
    scaled: _ScaledPoints,
    parts: list[tuple[Ints, _HatBasis | None]],
    order: int,
    linked_groups: Ints,
) -> tuple[Floats, float, Floats]:
    """Inner products of the columns, their error relative to the norms, and rows of columns.

    The rows are those of ``linked_groups``: exactly the numbers that the columns have there.
    Computed again, a margin may be rounded otherwise, and a hat between two close nodes differ.
    """
    products = np.zeros((order, order))
    unit_rows = np.zeros((len(linked_groups), order))
    sums = len(parts)
    for rows, basis in parts:
        numbers, _ = _columns(scaled, rows[:1], basis)
        part = np.zeros((len(numbers), len(numbers)))
        for start in range(0, len(rows), BLOCK_ROWS):
            some = rows[start : start + BLOCK_ROWS]
            _, block = _columns(scaled, some, basis)
            part += block.T @ block
            sums += 1
            named, index, here = np.intersect1d(linked_groups, some, return_indices=True)
            if len(named):
                unit_rows[np.ix_(index, numbers)] = block[here]
        products[np.ix_(numbers, numbers)] += part
    return products, (min(len(scaled.points), BLOCK_ROWS) + sums + 16) * EPS, unit_rows


def _largest_eigenvalues(matrix: Floats, perturbation: float, rank: int) -> float:
    """Upper bound on ``<A, T>`` for ``0 <= T <= I`` of trace at most ``rank``.

    A is any matrix within ``perturbation`` of ``matrix``, in the Frobenius norm.
    """
    if rank == 0:
        return 0.0
    order = len(matrix)
    if not np.isfinite(matrix).all():
        return math.nan
    values = np.diagonal(matrix)
    off_diagonal = frobenius_norm(matrix - np.diag(values))
    if off_diagonal <= NEGLIGIBLE * total(
        np.abs(values)
    ):  # principal axes: the diagonal has the eigenvalues
        orthogonality_error, residual = 0.0, off_diagonal
    elif order > MAX_EIGEN_ORDER:
        raise Rejection(Reason.LIMIT, "too many axes for eigenvalues")
    else:
        values, orthogonality_error, residual = measured_eigenvalues(matrix)
    largest = np.sort(values)[::-1][:rank]
    eigenvalue_sum = (1.0 + orthogonality_error) * math.fsum(np.maximum(largest, 0.0).tolist())
    return up(eigenvalue_sum + math.sqrt(rank) * up(perturbation + residual, 300), 16)
