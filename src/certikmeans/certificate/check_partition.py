"""What parts prove: every part by its own matrix, and their sum.

If ``sum_t w_ts <= f w_s`` for every group s, with a factor f >= 1, then for any labelling

    cost(w) >= cost(sum_t w_t) / f >= sum_t cost(w_t) / f

because a cost with common centres is linear and monotone in the weights, and each part may choose
centres and labels of its own, with fewer pairs to respect. Weights are added exactly: `math.fsum`
is correctly rounded, so the sign of its result is the sign of the sum. f is 1 but for the
rounding of collapsed weights.

A row holds the number of parts, then for every part: the number m of its groups, the number c of
its cuts, m groups, m weights, then the row of its matrix as `check_matrix` reads it:
``m (m + 1) / 2`` multipliers and c cuts of four numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import Floats, Ints, distinct, down, up
from certikmeans.certificate.check_matrix import (
    MOST_MATRIX_GROUPS,
    NUMBERS_PER_CUT,
    least_by_matrix,
)
from certikmeans.certificate.format import Reason, Refusal

LEAST_WEIGHT = 1e-100  # so that quotients do not overflow
MOST_PARTS_PER_GROUP = 2  # a solver never has more than one; more only keep the checker busy


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    rows: Ints  # groups
    weights: Floats
    matrix: Floats  # multipliers and cuts


def least_by_partition(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    most_work: float,
    deadline: float = math.inf,
) -> float:
    """At most the cost of every proper labelling of the groups, whatever the row says.

    ``most_work`` limits the sum of the cubes of the parts' sizes, ``deadline`` is a time by
    `time.monotonic`.
    """
    n = len(points)
    pieces = list(_pieces(row, n))
    if math.fsum(float(len(piece.rows)) ** 3 for piece in pieces) > most_work:
        raise Refusal(Reason.LIMIT, "too many large matrices")
    factor = _factor(pieces, weights)
    values = []
    place = np.full(n, -1)
    for piece in pieces:
        if time.monotonic() > deadline:
            raise Refusal(Reason.LIMIT, "not proven within the time allowed")
        place[piece.rows] = np.arange(len(piece.rows))
        ends = place[edges]
        place[piece.rows] = -1
        inside = np.sort(ends[(ends >= 0).all(axis=1)], axis=1)
        value = least_by_matrix(points[piece.rows], piece.weights, inside, n_clusters, piece.matrix)
        values.append(max(0.0, value))
    total = math.nextafter(math.fsum(values), 0.0)
    return total if factor <= 1.0 else down(total / factor)


def _pieces(row: Floats, n: int) -> Iterator[_Piece]:
    """Cut the row up; every count is compared with what is left before it is used."""
    (n_parts,), place = _counts(row, 0, 1)
    if not 1 <= n_parts <= MOST_PARTS_PER_GROUP * n:
        raise Refusal(Reason.BOUND, f"{n_parts} parts of {n} groups")
    for _ in range(n_parts):
        (m, n_cuts), place = _counts(row, place, 2)
        if m > MOST_MATRIX_GROUPS:
            raise Refusal(Reason.LIMIT, f"more than {MOST_MATRIX_GROUPS} groups for a matrix")
        length = m * (m + 1) // 2 + NUMBERS_PER_CUT * n_cuts
        if m < 1 or place + 2 * m + length > len(row):
            raise Refusal(Reason.BOUND, "a part is longer than its row")
        named, given = row[place : place + m], row[place + m : place + 2 * m]
        place += 2 * m
        if not np.all((named >= 0.0) & (named < n) & (named == np.floor(named))):
            raise Refusal(Reason.BOUND, "a part has groups that do not exist")
        rows = named.astype(np.int64)
        if len(distinct(rows)) < m:
            raise Refusal(Reason.BOUND, "a part has a group twice")
        if not np.all((given >= LEAST_WEIGHT) & (given < math.inf)):
            raise Refusal(Reason.BOUND, "a part has weights that are not positive")
        yield _Piece(rows, given, row[place : place + length])
        place += length
    if place != len(row):
        raise Refusal(Reason.BOUND, "there are numbers after the last part")


def _counts(row: Floats, place: int, how_many: int) -> tuple[list[int], int]:
    numbers = row[place : place + how_many]
    whole = (numbers >= 0.0) & (numbers <= len(row)) & (numbers == np.floor(numbers))
    if len(numbers) < how_many or not np.all(whole):
        raise Refusal(Reason.BOUND, "a count is missing or no whole number")
    return [int(number) for number in numbers], place + how_many


def _factor(pieces: list[_Piece], weights: Floats) -> float:
    """At least the largest ratio of what parts have of a group to its weight; at least 1."""
    rows = np.concatenate([piece.rows for piece in pieces])
    given = np.concatenate([piece.weights for piece in pieces])
    order = np.argsort(rows, kind="stable")
    rows, given = rows[order], given[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = np.append(starts[1:], len(rows))
    single = ends - starts == 1
    # One weight is compared as it is; several are added up exactly, less the group's own.
    over = starts[single][given[starts[single]] > weights[rows[starts[single]]]]
    ratios = [float(given[i]) / float(weights[rows[i]]) for i in over.tolist()]
    for first, end in zip(starts[~single].tolist(), ends[~single].tolist(), strict=True):
        mine = given[first:end].tolist()
        own = float(weights[rows[first]])
        if math.fsum([*mine, -own]) > 0.0:
            ratios.append(math.fsum(mine) / own)
    factor = max((up(ratio) for ratio in ratios), default=1.0)
    if not factor < math.inf:
        raise Refusal(Reason.BOUND, "the weights of the parts are too large")
    return max(1.0, factor)
