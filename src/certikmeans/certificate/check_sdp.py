"""Semidefinite bound from multipliers for pairs of groups, rounding included.

A labelling is the matrix ``Z`` with ``1 / W`` for two groups of one cluster of weight W, 0 for
two of different clusters. It costs ``<C, Z>``, ``C_st = w_s w_t |p_s - p_t|^2 / 2``, and

    Z >= 0,   Z_st = 0 for cannot-links,   Z_st <= Z_ss,   Z_st + Z_su <= Z_ss + Z_tu.

So for multipliers ``L`` (not negative but on cannot-links) and ``mu >= 0`` of cuts
``<A_c, Z> <= 0`` it costs at least ``<S, Z>``, ``S = C - L + sum_c mu_c A_c``.
docs/certificate-format.md shows how the least eigenvalues of one matrix bound that, and derives
the factors of rounding.

Limits on the weights of clusters (`check_weight_limits`) allow L of any sign, at a price, and
positive eigenvalues count where clusters cannot be empty. Size cuts ``<a a^T, Z> <= b`` add
``beta a a^T`` to S and ``- beta b`` to the value, penalties of soft pairs are a part of C.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    distinct,
    down,
    frobenius_norm,
    measured_eigenvalues,
    total,
    up,
)
from certikmeans.certificate.check_constraints import GroupConstraints
from certikmeans.certificate.check_weight_limits import (
    AssumedSizes,
    WeightLimits,
    penalty_matrix,
    price_of_limits,
    weight_limits,
)
from certikmeans.certificate.format import Reason, Rejection

# A row: the upper triangle of a matrix, row by row, then its cuts.
MAX_MATRIX_GROUPS = 2_500
MAX_CUTS_PER_GROUP = 1_000
NUMBERS_PER_CUT = 4  # three groups and the multiplier
SIZE_CUT, MAX_SIZE_CUTS = -2.0, 100

MAX_DUAL_ENTRY, MAX_MATRIX_ENTRY = 1e200, 1e150  # so that no sum, and no sum of squares, overflows


def sdp_lower_bound(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    constraints: GroupConstraints | None = None,
    assumed: AssumedSizes | None = None,
) -> float:
    """Lower bound on the cost of every feasible labelling of the groups, for any multipliers.

    With ``assumed``, on the cost of those with these sizes.
    """
    n = len(points)
    if n > MAX_MATRIX_GROUPS:
        raise Rejection(Reason.LIMIT, f"more than {MAX_MATRIX_GROUPS} groups for a matrix")
    limits = weight_limits(weights, constraints, n_clusters, assumed)
    dual_matrix = dual_matrix_of(points, weights, edges, row, constraints, limits)
    if not float(dual_matrix.sizes.max()) <= MAX_DUAL_ENTRY:
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    mass = math.fsum(weights.tolist())
    level = math.fsum(dual_matrix.entries.ravel().tolist()) / mass
    level_error = (dual_matrix.relative + 8.0 * EPS) * up(total(dual_matrix.sizes), 300) / mass
    rank = min(n_clusters, n) - 1
    min_rank = 0 if limits is None else min(rank, limits.min_clusters - 1)
    found = (0.0, 0.0)
    if rank:
        found = _least_eigenvalues(dual_matrix, np.sqrt(weights), mass, rank, min_rank)
    eigenvalue_sum, gain = found
    if limits is not None:
        level_error += 8.0 * EPS * (abs(dual_matrix.price) + gain)
        level += dual_matrix.price + gain
    return level - eigenvalue_sum - up(level_error + 8.0 * EPS * (abs(level) + eigenvalue_sum), 16)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualMatrix:
    """The matrix S of the bound."""

    entries: Floats  # (n, n) symmetric: S
    sizes: Floats  # (n, n): sum of the absolute values of all terms of S
    relative: float  # relative error of the entries of S
    price: float = 0.0  # at most what limits and right sides of size cuts contribute


def dual_matrix_of(
    points: Floats,
    weights: Floats,
    edges: Ints,
    row: Floats,
    constraints: GroupConstraints | None,
    limits: WeightLimits | None,
) -> DualMatrix:
    """Matrix S of a row of multipliers."""
    n, n_dims = points.shape
    n_entries = n * (n + 1) // 2
    if len(row) < n_entries or (len(row) - n_entries) % NUMBERS_PER_CUT:
        raise Rejection(Reason.BOUND, f"the multipliers are not those of {n} groups and of cuts")
    if len(row) - n_entries > n * MAX_CUTS_PER_GROUP * NUMBERS_PER_CUT:
        raise Rejection(Reason.LIMIT, "too many cuts for a matrix")
    costs = np.zeros((n, n))
    for column in points.T:
        deviation = column[:, None] - column[None, :]
        costs += deviation * deviation
    costs *= 0.5 * weights[:, None] * weights[None, :]

    free = np.zeros((n, n), dtype=np.bool_)
    free[edges[:, 0], edges[:, 1]] = True
    for members in [] if constraints is None else constraints.sets:
        first, second = np.triu_indices(len(members), k=1)
        free[members[first], members[second]] = True  # ascending
    upper = np.zeros((n, n))
    upper[np.triu_indices(n)] = row[:n_entries]
    if limits is None:
        upper = np.where(free, upper, np.maximum(upper, 0.0))  # of the wrong sign: 0
    multipliers = upper + np.triu(upper, 1).T

    sizes, more_terms, price = np.abs(costs), 0.0, 0.0
    if limits is not None:
        price = price_of_limits(multipliers, free | free.T, weights, limits)
    if constraints is not None:
        penalties, size = penalty_matrix(weights, constraints, limits)
        # A penalty cancels against the costs of another one: each counts with its absolute value.
        costs, sizes, more_terms = costs + penalties, sizes + size, float(n if size.any() else 0)
    numbers, size_cuts = _split_size_cuts(row[n_entries:], n)
    s, t, u, cut_multipliers = _cuts(numbers, n)
    for members, beta in size_cuts:
        if limits is None or not limits.allow_size_cuts:
            break  # without them the bound is lower
        weight = float(weights[members].sum())
        term = beta * np.outer(weights[members], weights[members])
        costs[np.ix_(members, members)] += term
        sizes[np.ix_(members, members)] += term
        more_terms += 3.0
        cost_of_cut = beta * limits.right_side(weight) * (1.0 + 4.0 * EPS)
        price = math.nextafter(price - cost_of_cut, -math.inf)
    positive = np.zeros(n * n)
    negative = np.zeros(n * n)
    terms = np.zeros(n * n)
    three = u >= 0
    # Half of an entry off the diagonal stands on either side of it.
    for sums, one, two, share in (
        (positive, s, t, 0.5 * cut_multipliers),
        (positive, s[three], u[three], 0.5 * cut_multipliers[three]),
        (negative, s, s, 0.5 * cut_multipliers),
        (negative, t[three], u[three], 0.5 * cut_multipliers[three]),
    ):
        for index in (one * n + two, two * n + one):
            sums += np.bincount(index, share, n * n)
            terms += np.bincount(index, minlength=n * n)
    positive, negative = positive.reshape(n, n), negative.reshape(n, n)
    return DualMatrix(
        entries=(costs - multipliers) + (positive - negative),
        sizes=sizes + np.abs(multipliers) + (positive + negative),
        relative=(n_dims + float(terms.max()) + more_terms + 16.0) * EPS,
        price=price,
    )


def _split_size_cuts(numbers: Floats, n: int) -> tuple[Floats, list[tuple[Ints, float]]]:
    """Separate size cuts, which come last: a record -2, number of groups m, -1, multiplier.

    It is followed by m groups, padded with -1 to whole records.
    """
    if len(numbers) % NUMBERS_PER_CUT:
        raise Rejection(Reason.BOUND, "the last cut is incomplete")
    table = numbers.reshape(-1, NUMBERS_PER_CUT)
    first = np.flatnonzero(table[:, 0] == SIZE_CUT)
    position = int(first[0]) if len(first) else len(table)
    plain = numbers[: position * NUMBERS_PER_CUT]
    found: list[tuple[Ints, float]] = []
    while position < len(table):
        mark, count, _, beta = table[position].tolist()
        if mark != SIZE_CUT or not (1.0 <= count <= n and count == math.floor(count)):
            raise Rejection(Reason.BOUND, "a size cut is damaged")
        if len(found) == MAX_SIZE_CUTS:
            raise Rejection(Reason.LIMIT, "too many size cuts")
        start, length = (position + 1) * NUMBERS_PER_CUT, int(count)
        named = numbers[start : start + length]
        if len(named) < length or not np.all(
            (named >= 0.0) & (named < n) & (named == np.floor(named))
        ):
            raise Rejection(Reason.BOUND, "a size cut is about groups that do not exist")
        members = distinct(named.astype(np.int64))
        found.append((members, max(0.0, beta) if math.isfinite(beta) else 0.0))
        position += 1 + -(-length // NUMBERS_PER_CUT)
    return plain, found


def _cuts(numbers: Floats, n: int) -> tuple[Ints, Ints, Ints, Floats]:
    """Groups s, t, u (-1 for a pair) and multiplier of every cut; any groups are valid."""
    table = numbers.reshape(-1, NUMBERS_PER_CUT)
    named = table[:, :3]
    least = np.array([0.0, 0.0, -1.0])
    if not np.all((named >= least) & (named < n) & (named == np.floor(named))):
        raise Rejection(Reason.BOUND, "a cut is about groups that do not exist")
    s, t, u = named.astype(np.int64).T
    return s, t, u, np.maximum(table[:, 3], 0.0)


def _least_eigenvalues(
    dual_matrix: DualMatrix, v: Floats, mass: float, rank: int, min_rank: int
) -> tuple[float, float]:
    """Bound the sum of eigenvalues of ``T'`` that a labelling has.

    Returns an upper bound on minus the sum of the ``rank`` least ones, where negative, errors
    included, and a lower bound on the sum of the ``min_rank`` least ones, where positive. For these
    v is given a large eigenvalue: it is not among those of the labelling. With
    ``|Q^T Q - I|_F <= delta`` the weights of the eigenvalues, at most ``1 + delta`` each, add up to
    at least ``(1 - delta) min_rank``, so what is positive is at least
    ``(1 + delta) sum - 2 delta min_rank`` times the largest of them.
    """
    scale = np.outer(v, v)
    scaled_entries = dual_matrix.entries / scale
    pull = scaled_entries @ v
    # Any y is valid; this one removes v from the matrix.
    y = pull / mass - (0.5 * float(v @ pull) / mass / mass) * v
    outer = np.outer(y, v)
    matrix = scaled_entries - (outer + outer.T)
    if min_rank:
        y = y - (0.5 * float(np.sqrt(np.sum(matrix * matrix))) / mass) * v
        outer = np.outer(y, v)
        matrix = scaled_entries - (outer + outer.T)
    size = dual_matrix.sizes / scale + np.abs(outer) + np.abs(outer.T)
    if not np.all(np.maximum(np.abs(matrix), size) <= MAX_MATRIX_ENTRY):
        raise Rejection(Reason.BOUND, "the multipliers are too large for this arithmetic")
    values, orthogonality_error, residual = measured_eigenvalues(matrix)
    perturbation = (dual_matrix.relative + 8.0 * EPS) * frobenius_norm(size)
    least = np.sort(values)[:rank]
    eigenvalue_sum = (1.0 + orthogonality_error) * math.fsum(np.maximum(-least, 0.0).tolist())
    negative = up(eigenvalue_sum + math.sqrt(rank) * up(perturbation + residual, 300), 16)
    gains = np.maximum(least[:min_rank], 0.0).tolist()
    gain = math.fsum(gains) - 2.0 * orthogonality_error * min_rank * max(gains, default=0.0)
    return negative, max(0.0, gain * (1.0 - 8.0 * EPS))


# Partition bound: the sum of the semidefinite bounds of parts.
#
# If ``sum_t w_ts <= f w_s`` for every group s, with a factor f >= 1, then for any labelling
#
#     cost(w) >= cost(sum_t w_t) / f >= sum_t cost(w_t) / f
#
# because a cost with common centers is linear and monotone in the weights, and each part may choose
# centers and labels of its own, with fewer pairs to satisfy. Weights are added exactly: `math.fsum`
# is correctly rounded, so the sign of its result is the sign of the sum. f is 1 but for the
# rounding of aggregated weights.
#
# A row holds the number of parts, then for every part: the number m of its groups, the number c of
# its cuts, m groups, m weights, then the row of its matrix as `sdp_lower_bound` reads it:
# ``m (m + 1) / 2`` multipliers and c cuts of four numbers.

MIN_PART_WEIGHT = 1e-100  # so that quotients do not overflow
MAX_PARTS_PER_GROUP = 2  # the solver never has more than one; more only cost time


@final
@dataclass(frozen=True, slots=True, eq=False)
class _PartEvidence:
    rows: Ints  # groups
    weights: Floats
    matrix: Floats  # multipliers and cuts


def partition_lower_bound(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    max_work: float,
    deadline: float = math.inf,
) -> float:
    """Lower bound on the cost of every feasible labelling of the groups, for any row.

    ``max_work`` limits the sum of the cubes of the parts' sizes, ``deadline`` is a time by
    `time.monotonic`.
    """
    n = len(points)
    parts = list(_parse_parts(row, n))
    if math.fsum(float(len(part_evidence.rows)) ** 3 for part_evidence in parts) > max_work:
        raise Rejection(Reason.LIMIT, "too many large matrices")
    factor = _weight_excess(parts, weights)
    values = []
    position = np.full(n, -1)
    for part_evidence in parts:
        if time.monotonic() > deadline:
            raise Rejection(Reason.LIMIT, "not proven within the time allowed")
        position[part_evidence.rows] = np.arange(len(part_evidence.rows))
        ends = position[edges]
        position[part_evidence.rows] = -1
        inside = np.sort(ends[(ends >= 0).all(axis=1)], axis=1)
        value = sdp_lower_bound(
            points[part_evidence.rows],
            part_evidence.weights,
            inside,
            n_clusters,
            part_evidence.matrix,
        )
        values.append(max(0.0, value))
    total = math.nextafter(math.fsum(values), 0.0)
    return total if factor <= 1.0 else down(total / factor)


def _parse_parts(row: Floats, n: int) -> Iterator[_PartEvidence]:
    """Split the row; every count is validated against the rest before it is used."""
    (n_parts,), position = _read_counts(row, 0, 1)
    if not 1 <= n_parts <= MAX_PARTS_PER_GROUP * n:
        raise Rejection(Reason.BOUND, f"{n_parts} parts of {n} groups")
    for _ in range(n_parts):
        (m, n_cuts), position = _read_counts(row, position, 2)
        if m > MAX_MATRIX_GROUPS:
            raise Rejection(Reason.LIMIT, f"more than {MAX_MATRIX_GROUPS} groups for a matrix")
        length = m * (m + 1) // 2 + NUMBERS_PER_CUT * n_cuts
        if m < 1 or position + 2 * m + length > len(row):
            raise Rejection(Reason.BOUND, "a part is longer than its row")
        named, part_weights = row[position : position + m], row[position + m : position + 2 * m]
        position += 2 * m
        if not np.all((named >= 0.0) & (named < n) & (named == np.floor(named))):
            raise Rejection(Reason.BOUND, "a part has groups that do not exist")
        rows = named.astype(np.int64)
        if len(distinct(rows)) < m:
            raise Rejection(Reason.BOUND, "a part has a group twice")
        if not np.all((part_weights >= MIN_PART_WEIGHT) & (part_weights < math.inf)):
            raise Rejection(Reason.BOUND, "a part has weights that are not positive")
        yield _PartEvidence(rows, part_weights, row[position : position + length])
        position += length
    if position != len(row):
        raise Rejection(Reason.BOUND, "there are numbers after the last part")


def _read_counts(row: Floats, position: int, count: int) -> tuple[list[int], int]:
    numbers = row[position : position + count]
    whole = (numbers >= 0.0) & (numbers <= len(row)) & (numbers == np.floor(numbers))
    if len(numbers) < count or not np.all(whole):
        raise Rejection(Reason.BOUND, "a count is missing or not an integer")
    return [int(number) for number in numbers], position + count


def _weight_excess(parts: list[_PartEvidence], weights: Floats) -> float:
    """Upper bound on the largest ratio of the weight in parts to that of a group; at least 1."""
    rows = np.concatenate([part_evidence.rows for part_evidence in parts])
    part_weights = np.concatenate([part_evidence.weights for part_evidence in parts])
    order = np.argsort(rows, kind="stable")
    rows, part_weights = rows[order], part_weights[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = np.append(starts[1:], len(rows))
    single = ends - starts == 1
    # A single weight is compared directly; several are added exactly, less the own weight.
    over = starts[single][part_weights[starts[single]] > weights[rows[starts[single]]]]
    ratios = [float(part_weights[i]) / float(weights[rows[i]]) for i in over.tolist()]
    for first, end in zip(starts[~single].tolist(), ends[~single].tolist(), strict=True):
        shares = part_weights[first:end].tolist()
        group_weight = float(weights[rows[first]])
        if math.fsum([*shares, -group_weight]) > 0.0:
            ratios.append(math.fsum(shares) / group_weight)
    factor = max((up(ratio) for ratio in ratios), default=1.0)
    if not factor < math.inf:
        raise Rejection(Reason.BOUND, "the weights of the parts are too large")
    return max(1.0, factor)
