"""What a few eigenvalues prove: the spectral floor, and multipliers of few columns, rounded down.

A labelling is the matrix M with ``v_s v_t / W_k`` for two groups of one cluster of weight W_k, 0
for others; ``v = sqrt(w)``. M is a projection of rank at most K, not negative, 0 at cannot-links,
and ``M v = v``. With ``y_s = v_s (p_s - c)``, any c, a labelling costs
``sum |y_s|^2 - <Y Y^T, M>``, so for any ``Lambda`` that is not negative but at cannot-links

    cost >= sum |y_s|^2 - v^T A v / W - <A, N>,     A = Y Y^T + Lambda,     M = v v^T / W + N,

N a projection of rank at most ``m = K - 1`` with ``N v = 0``.

**The row.** Numbers ``p``, ``q``, ``e``; a label per group; p times: clusters a and b, q nodes
for ``m_s(b)``, q nodes for ``m_t(a)``, q x q gains; e times: two groups and an amount. Fewer than
three numbers: no multipliers (the floor). ``m_s(b) = |x_s - c_b|^2 - |x_s - c_a|^2`` with the means
c of the clusters. ``hat_k`` is 1 at node k, 0 at the others, linear between, constant outside. For
s in a and t in b, ``Lambda_st`` has the terms ``v_s v_t gains[k, l] hat_k(m_s(b)) hat_l(m_t(a))``;
an amount is added at its two groups, which must have a cannot-link. Negative gains are refused.

**Few columns.** ``A = B C B^T``, B the axes of Y, the columns ``v hat`` and unit vectors, C small.
``S = B^T N B`` has rank at most m and ``0 <= S <= H = B^T B - b b^T / W``, ``b = B^T v``. If R is
not singular and ``R^T R >= H``, then ``S = R^T T R`` with ``0 <= T <= I`` of rank at most m, so
``<A, N> = <R C R^T, T>`` is at most the sum of the m largest eigenvalues of ``R C R^T``, where
positive.

**Rounding.** The columns ``v hat`` are what was computed: being not negative is all that counts.
v and Y err by 3 u of themselves. Sums over rows: `ROWS` at a time, then one by one, so an inner
product errs by less than ``relative = (ROWS + sums + 16) EPS`` of the norms of its columns (twice
the first order). Columns are divided by their norms; H then errs by ``4 relative + 8 EPS`` in each
entry. The residuals of the root R and of the eigenvectors are measured. Coordinates are scaled by
a power of two to at most 1; norms count as `LEAST_NORM` at least: underflow is nothing beside it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, distinct, total, up
from certikmeans.certificate.format import Reason, Refusal

ROWS = 1_024
LEAST_NORM = 1e-100
TINY_NORM = 1e-150
NEGLIGIBLE = 1e-11  # an off-diagonal part of this size is as good as an eigenvector's error
MOST_COLUMNS, MOST_AXES, MOST_ORDER = 2_000, 6_000, 3_000
MOST_WORK = 2e12  # multiplications in inner products
HEAD = 3
NONE: Ints = np.empty(0, dtype=np.int64)


def least_by_spectrum(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    deadline: float = math.inf,
) -> float:
    """At most the cost of every proper labelling of the groups, whatever the row says.

    A `Refusal` if the row says nothing that can be evaluated, or asks for too much work: a few
    bytes can ask for inner products of many columns. ``deadline`` is a time by `time.monotonic`.
    """
    n, d = points.shape
    if min(n, d) > MOST_AXES or float(n) * d * min(n, d) > MOST_WORK:
        raise Refusal(Reason.LIMIT, f"{d} axes are too many for their inner products")
    rank = min(n_clusters, n) - 1
    middle = weights @ points / float(weights.sum())
    reach = float(np.maximum(points.max(axis=0) - middle, middle - points.min(axis=0)).max())
    if not math.isfinite(reach):
        raise Refusal(Reason.BOUND, "the points are too large for this arithmetic")
    exponent = math.frexp(reach)[1]
    scaled = _Scaled(points, weights, middle, exponent, deadline)
    with np.errstate(all="ignore"):
        if len(row) < HEAD or rank == 0:
            value = _floor(scaled, rank)
        else:
            value = _with_multipliers(scaled, _read(row, n, n_clusters, edges), rank)
    if math.isnan(value):
        raise Refusal(Reason.BOUND, "the multipliers are too large for this arithmetic")
    if not value > LEAST_NORM:
        return 0.0
    return math.ldexp(value, 2 * exponent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    points: Floats
    weights: Floats
    middle: Floats
    exponent: int
    deadline: float = math.inf

    def rows(self, which: Ints | slice) -> tuple[Floats, Floats]:
        """Roots of weights, and coordinates of at most 1."""
        if time.monotonic() > self.deadline:
            raise Refusal(Reason.LIMIT, "not proven within the time allowed")
        away = self.points[which] - self.middle
        away *= math.ldexp(1.0, -self.exponent)
        return np.sqrt(self.weights[which]), away


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    labels: Ints
    pairs: Ints  # (p, 2)
    nodes: Floats  # (p, 2, q)
    gains: Floats  # (p, q, q)
    spikes: Ints  # (e, 2)
    amounts: Floats


def _whole(numbers: Floats, most: int, what: str) -> Ints:
    if not np.all((numbers >= 0.0) & (numbers < most) & (numbers == np.floor(numbers))):
        raise Refusal(Reason.BOUND, f"{what} that do not exist")
    return numbers.astype(np.int64)


def _read(row: Floats, n: int, n_clusters: int, edges: Ints) -> _Row:
    if not np.isfinite(row).all():
        raise Refusal(Reason.BOUND, "a multiplier is not finite")
    p, q, e = (int(count) for count in _whole(row[:HEAD], 1 << 24, "counts"))
    width = 2 + 2 * q + q * q
    if not 2 <= q <= MOST_COLUMNS or len(row) != HEAD + n + p * width + 3 * e:
        raise Refusal(Reason.BOUND, f"the multipliers are not those of {n} groups")
    labels = _whole(row[HEAD : HEAD + n], n_clusters, "labels of clusters")
    by_pair = row[HEAD + n : HEAD + n + p * width].reshape(p, width)
    by_spike = row[HEAD + n + p * width :].reshape(e, 3)
    nodes = by_pair[:, 2 : 2 + 2 * q].reshape(p, 2, q)
    gains = by_pair[:, 2 + 2 * q :].reshape(p, q, q)
    if not np.all(np.diff(nodes, axis=2) > 0.0):
        raise Refusal(Reason.BOUND, "nodes do not ascend")
    if not np.all(gains >= 0.0):
        raise Refusal(Reason.BOUND, "a gain is negative")
    spikes = np.sort(_whole(by_spike[:, :2], n, "groups"), axis=1)
    codes = spikes[:, 0] * n + spikes[:, 1]
    known = edges.min(axis=1) * n + edges.max(axis=1)
    if len(distinct(codes)) != e or not np.isin(codes, known).all():
        raise Refusal(Reason.BOUND, "an amount is not at a cannot-link of its own")
    return _Row(
        labels, _whole(by_pair[:, :2], n_clusters, "clusters"), nodes, gains, spikes, by_spike[:, 2]
    )


def _floor(scaled: _Scaled, rank: int) -> float:
    """No multipliers: the smaller one of ``Y^T Y`` and ``Y Y^T``, whose eigenvalues agree."""
    n, d = scaled.points.shape
    if rank >= min(n, d):
        return 0.0
    if n < d:
        roots, away = scaled.rows(slice(0, n))
        y = roots[:, None] * away
        relative = (n + d + 300) * EPS
        matrix, trace = y @ y.T, total(y * y)
        pull, lengths = roots @ y, np.sqrt((y * y).sum(axis=0))
    else:
        products, relative, _ = _inner(scaled, [(np.arange(n), None)], 1 + d, NONE)
        matrix, pull = products[1:, 1:], products[0, 1:]
        lengths = np.sqrt(np.diagonal(matrix))
        trace = math.fsum(np.diagonal(matrix).tolist())
    mass = total(scaled.weights)
    spent = _largest(matrix, relative * up(trace, 300), rank)
    return _value(trace, relative, _drift(pull, lengths, relative, mass), spent)


def _drift(pull: Floats, lengths: Floats, relative: float, mass: float) -> float:
    """At least ``|Y^T v|^2 / W``."""
    size = np.abs(pull) + 2.0 * relative * np.maximum(lengths, LEAST_NORM) * math.sqrt(mass)
    return up(total(size * size) / mass, 300) * 1.01


def _value(trace: float, relative: float, level: float, spent: float) -> float:
    doubt = 2.0 * relative * trace + 8.0 * EPS * (trace + abs(level) + spent)
    return trace - level - spent - up(doubt, 16)


def _with_multipliers(scaled: _Scaled, row: _Row, rank: int) -> float:
    d = scaled.points.shape[1]
    hats = _Hats(scaled, row)
    singles = distinct(row.spikes)
    n_long = 1 + d + hats.n_columns
    order = n_long + len(singles)
    if order > MOST_COLUMNS:
        raise Refusal(Reason.LIMIT, f"more than {MOST_COLUMNS} columns")
    parts: list[tuple[Ints, _Hats | None]] = [(rows, hats) for rows in _members(row.labels)]
    sizes = [1.0 + d + len(hats.places(int(row.labels[rows[0]]))) for rows, _ in parts]
    work = [len(rows) * size**2 for (rows, _), size in zip(parts, sizes, strict=True)]
    if math.fsum(work) > MOST_WORK:
        raise Refusal(Reason.LIMIT, "too much work in inner products")
    products = np.eye(order)
    products[:n_long, :n_long], relative, units = _inner(scaled, parts, n_long, singles)
    products[n_long:, :n_long], products[:n_long, n_long:] = units, units.T
    middle = hats.middle(order - 1, singles)

    # v leaves; the other columns get the length 1, and what they were goes into the middle.
    lengths = np.maximum(np.sqrt(np.maximum(np.diagonal(products), 0.0)), LEAST_NORM)[1:]
    mass = float(products[0, 0])
    pull = products[0, 1:]
    terms = pull[d:, None] * middle[d:, d:] * pull[d:] / mass
    level = math.fsum(terms.ravel().tolist())
    level += up((4.0 * relative + 16.0 * EPS) * total(np.abs(terms)), 300)
    level += _drift(pull[:d], lengths[:d], relative, mass)
    unit = pull / lengths
    inner = products[1:, 1:] / lengths[:, None] / lengths - np.outer(unit, unit / mass)
    root = _root(inner, len(inner) * (4.0 * relative + 8.0 * EPS))
    core = lengths[:, None] * middle * lengths
    matrix = root @ core @ root.T
    size = np.abs(root) @ np.abs(core) @ np.abs(root).T
    if not np.isfinite(size).all():
        return math.nan
    astray = (2.0 * len(core) + 12.0) * EPS * _norm(size)
    trace = math.fsum(np.diagonal(products)[1 : 1 + d].tolist())
    return _value(trace, relative, level, _largest(0.5 * (matrix + matrix.T), astray, rank))


@final
class _Hats:
    """The columns ``v hat`` that some gain uses, numbered from ``1 + d`` on."""

    def __init__(self, scaled: _Scaled, row: _Row) -> None:
        self._row, self._exponent = row, scaled.exponent
        self._first = 1 + scaled.points.shape[1]
        self._nodes = np.ldexp(row.nodes, -2 * scaled.exponent)
        used = np.stack([row.gains.any(axis=2), row.gains.any(axis=1)], axis=1)
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

    def places(self, cluster: int) -> Ints:
        """Columns that are not zero in the cluster, in the order of `values`."""
        numbers = [self._number[pair, side] for pair, side in self._sides.get(cluster, ())]
        every = np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)
        return np.asarray(every[every >= 0] + self._first)

    def values(self, cluster: int, away: Floats) -> Floats:
        columns = []
        line = np.arange(len(away))
        for pair, side in self._sides.get(cluster, ()):
            other = self._means[self._row.pairs[pair, 1 - side]]
            step = other - self._means[cluster]
            margin = 2.0 * (float((0.5 * (other + self._means[cluster])) @ step) - away @ step)
            nodes = self._nodes[pair, side]
            left = np.clip(np.searchsorted(nodes, margin, side="right") - 1, 0, len(nodes) - 2)
            share = (margin - nodes[left]) / (nodes[left + 1] - nodes[left])
            share = np.clip(np.nan_to_num(share), 0.0, 1.0)
            table = np.zeros((len(away), len(nodes)))
            table[line, left] = 1.0 - share
            table[line, left + 1] = share
            columns.append(table[:, self._number[pair, side] >= 0])
        return np.concatenate(columns, axis=1) if columns else np.empty((len(away), 0))

    def middle(self, order: int, singles: Ints) -> Floats:
        """``C``, without the column v."""
        d = self._first - 1
        matrix = np.zeros((order, order))
        matrix[np.arange(d), np.arange(d)] = 1.0
        gains = np.ldexp(self._row.gains, -2 * self._exponent)
        for number, gain in zip(self._number, gains, strict=True):
            one, two = (np.flatnonzero(side >= 0) for side in number)
            ends = np.ix_(d + number[0][one], d + number[1][two])
            matrix[ends] = gain[np.ix_(one, two)]
        matrix += np.triu(matrix, 1).T  # columns of the first side stand before the second's
        at = d + self.n_columns + np.searchsorted(singles, self._row.spikes)
        amounts = np.ldexp(self._row.amounts, -2 * self._exponent)
        matrix[at[:, 0], at[:, 1]] = matrix[at[:, 1], at[:, 0]] = amounts
        return matrix


def _members(labels: Ints) -> list[Ints]:
    """Groups of every cluster that has some."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _means(scaled: _Scaled, labels: Ints, n_clusters: int) -> Floats:
    """Means of the clusters; any would do."""
    means = np.zeros((n_clusters, scaled.points.shape[1]))
    for rows in _members(labels):
        weights = scaled.weights[rows] / float(scaled.weights[rows].sum())
        for start in range(0, len(rows), ROWS):
            some = slice(start, start + ROWS)
            means[labels[rows[0]]] += weights[some] @ scaled.rows(rows[some])[1]
    return means


def _columns(scaled: _Scaled, rows: Ints, hats: _Hats | None) -> tuple[Ints, Floats]:
    """Numbers and values of all columns that are not zero in these rows of one cluster."""
    roots, away = scaled.rows(rows)
    numbers = np.arange(1 + away.shape[1])
    block = [roots[:, None], roots[:, None] * away]
    if hats is not None:
        cluster = hats.cluster_of(int(rows[0]))
        numbers = np.concatenate([numbers, hats.places(cluster)])
        block.append(roots[:, None] * hats.values(cluster, away))
    return numbers, np.concatenate(block, axis=1)


def _inner(
    scaled: _Scaled,
    parts: list[tuple[Ints, _Hats | None]],
    order: int,
    singles: Ints,
) -> tuple[Floats, float, Floats]:
    """Inner products of the columns, the part of the norms by which they may err, and rows.

    The rows are those of ``singles``: the very numbers that the columns have there. Computed once
    more, a margin may be rounded otherwise, and a hat between two close nodes be another one.
    """
    products = np.zeros((order, order))
    units = np.zeros((len(singles), order))
    sums = len(parts)
    for rows, hats in parts:
        numbers, _ = _columns(scaled, rows[:1], hats)
        part = np.zeros((len(numbers), len(numbers)))
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            _, block = _columns(scaled, some, hats)
            part += block.T @ block
            sums += 1
            named, place, here = np.intersect1d(singles, some, return_indices=True)
            if len(named):
                units[np.ix_(place, numbers)] = block[here]
        products[np.ix_(numbers, numbers)] += part
    return products, (min(len(scaled.points), ROWS) + sums + 16) * EPS, units


def _root(inner: Floats, error: float) -> Floats:
    """R, not singular, with ``R^T R`` above every matrix within ``error`` of ``inner``."""
    order = len(inner)
    if np.isfinite(inner).all() and math.isfinite(error):
        product = (order + 4) * EPS
        lift = 2.0 * error + 4.0 * product * order
        for _ in range(8):
            raised = inner + lift * np.eye(order)
            try:
                root = np.linalg.cholesky(raised).T
            except np.linalg.LinAlgError:
                lift *= 8.0
                continue
            missed = _norm(root.T @ root - raised)
            missed += product * (up(total(root * root), 300) + order)
            if 1.01 * missed + error <= lift and np.diagonal(root).min() > 0.0:
                return np.asarray(root)
            lift *= 8.0
    raise Refusal(Reason.BOUND, "the columns have no root in this arithmetic")


def _largest(matrix: Floats, astray: float, rank: int) -> float:
    """At least ``<A, T>`` for A within ``astray`` of the matrix, ``0 <= T <= I`` of that trace."""
    if rank == 0:
        return 0.0
    order = len(matrix)
    if not np.isfinite(matrix).all():
        return math.nan
    values = np.diagonal(matrix)
    beside = _norm(matrix - np.diag(values))
    if beside <= NEGLIGIBLE * total(np.abs(values)):  # principal axes: nothing to compute
        skew, missed = 0.0, beside
    elif order > MOST_ORDER:
        raise Refusal(Reason.LIMIT, "too many axes for eigenvalues")
    else:
        try:
            values, vectors = np.linalg.eigh(matrix)
        except np.linalg.LinAlgError as error:
            raise Refusal(Reason.BOUND, "the eigenvalues cannot be computed") from error
        # Whether they are eigenvalues is not taken for granted: both residuals are measured.
        product = (order + 4) * EPS
        skew = _norm(vectors.T @ vectors - np.eye(order))
        skew = up(skew + product * total(vectors * vectors), 300)
        missed = _norm(matrix - (vectors * values) @ vectors.T)
        missed += product * (1.0 + skew) * total(np.abs(values))
    largest = np.sort(values)[::-1][:rank]
    spent = (1.0 + skew) * math.fsum(np.maximum(largest, 0.0).tolist())
    return up(spent + math.sqrt(rank) * up(astray + missed, 300), 16)


def _norm(matrix: Floats) -> float:
    """At least the root of the sum of squares."""
    return up(math.sqrt(total(matrix * matrix)), 300) + len(matrix) * TINY_NORM
