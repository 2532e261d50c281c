"""What multipliers for pairs of groups prove: the semidefinite bound, rounding included.

A labelling is the matrix ``Z`` with ``1 / W`` for two groups of one cluster of weight W, 0 for
two of different clusters. It costs ``<C, Z>``, ``C_st = w_s w_t |p_s - p_t|^2 / 2``, and

    Z >= 0,   Z_st = 0 for cannot-links,   Z_st <= Z_ss,   Z_st + Z_su <= Z_ss + Z_tu.

So for multipliers ``L`` (not negative but on cannot-links) and ``mu >= 0`` of cuts
``<A_c, Z> <= 0`` it costs at least ``<S, Z>``, ``S = C - L + sum_c mu_c A_c``. The document shows
how the least eigenvalues of one matrix bound that, and where the factors of rounding come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, total, up
from certikmeans.certificate.format import Reason, Refusal

# A row: the upper triangle of a matrix, row by row, then its cuts.
MOST_MATRIX_GROUPS = 2_500
MOST_CUTS_PER_GROUP = 1_000
NUMBERS_PER_CUT = 4  # three groups and the multiplier

LARGEST_SLACK, LARGEST_ENTRY = 1e200, 1e150  # so that no sum, and no sum of squares, overflows
TINY_NORM = 1e-150  # per row: what squares lose that underflow


def least_by_matrix(
    points: Floats, weights: Floats, edges: Ints, n_clusters: int, row: Floats
) -> float:
    """At most the cost of every proper labelling of the groups, for any multipliers whatsoever."""
    n = len(points)
    if n > MOST_MATRIX_GROUPS:
        raise Refusal(Reason.LIMIT, f"more than {MOST_MATRIX_GROUPS} groups for a matrix")
    slack = _slack(points, weights, edges, row)
    if not float(slack.sizes.max()) <= LARGEST_SLACK:
        raise Refusal(Reason.BOUND, "the multipliers are too large for this arithmetic")
    mass = math.fsum(weights.tolist())
    level = math.fsum(slack.entries.ravel().tolist()) / mass
    level_error = (slack.relative + 8.0 * EPS) * up(total(slack.sizes), 300) / mass
    rank = min(n_clusters, n) - 1
    spent = _least_eigenvalues(slack, np.sqrt(weights), mass, rank) if rank else 0.0
    return level - spent - up(level_error + 8.0 * EPS * (abs(level) + spent), 16)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Slack:
    entries: Floats  # (n, n) symmetric: S
    sizes: Floats  # (n, n): the sum of the sizes of all that S is made of
    relative: float  # every entry of S errs by at most this part of its size


def _slack(points: Floats, weights: Floats, edges: Ints, row: Floats) -> _Slack:
    n, n_axes = points.shape
    n_entries = n * (n + 1) // 2
    if len(row) < n_entries or (len(row) - n_entries) % NUMBERS_PER_CUT:
        raise Refusal(Reason.BOUND, f"the multipliers are not those of {n} groups and of cuts")
    if len(row) - n_entries > n * MOST_CUTS_PER_GROUP * NUMBERS_PER_CUT:
        raise Refusal(Reason.LIMIT, "too many cuts for a matrix")
    costs = np.zeros((n, n))
    for column in points.T:
        away = column[:, None] - column[None, :]
        costs += away * away
    costs *= 0.5 * weights[:, None] * weights[None, :]

    free = np.zeros((n, n), dtype=np.bool_)
    free[edges[:, 0], edges[:, 1]] = True
    upper = np.zeros((n, n))
    upper[np.triu_indices(n)] = row[:n_entries]
    upper = np.where(free, upper, np.maximum(upper, 0.0))  # those of the wrong sign count as 0
    multipliers = upper + np.triu(upper, 1).T

    s, t, u, amounts = _cuts(row[n_entries:], n)
    more = np.zeros(n * n)
    less = np.zeros(n * n)
    terms = np.zeros(n * n)
    three = u >= 0
    # Half of an entry off the diagonal stands on either side of it.
    for sums, one, two, share in (
        (more, s, t, 0.5 * amounts),
        (more, s[three], u[three], 0.5 * amounts[three]),
        (less, s, s, 0.5 * amounts),
        (less, t[three], u[three], 0.5 * amounts[three]),
    ):
        for place in (one * n + two, two * n + one):
            sums += np.bincount(place, share, n * n)
            terms += np.bincount(place, minlength=n * n)
    more, less = more.reshape(n, n), less.reshape(n, n)
    return _Slack(
        entries=(costs - multipliers) + (more - less),
        sizes=costs + np.abs(multipliers) + (more + less),
        relative=(n_axes + float(terms.max()) + 16.0) * EPS,
    )


def _cuts(numbers: Floats, n: int) -> tuple[Ints, Ints, Ints, Floats]:
    """Groups s, t, u (-1: a pair) and the multiplier of every cut; any groups make a valid one."""
    table = numbers.reshape(-1, NUMBERS_PER_CUT)
    named = table[:, :3]
    least = np.array([0.0, 0.0, -1.0])
    if not np.all((named >= least) & (named < n) & (named == np.floor(named))):
        raise Refusal(Reason.BOUND, "a cut is about groups that do not exist")
    s, t, u = named.astype(np.int64).T
    return s, t, u, np.maximum(table[:, 3], 0.0)


def _least_eigenvalues(slack: _Slack, v: Floats, mass: float, rank: int) -> float:
    """At least minus the sum of the ``rank`` least eigenvalues of ``T'``, where negative."""
    n = len(v)
    scale = np.outer(v, v)
    turned = slack.entries / scale
    pull = turned @ v
    # Any y would do; this one takes v out of the matrix.
    y = pull / mass - (0.5 * float(v @ pull) / mass / mass) * v
    outer = np.outer(y, v)
    matrix = turned - (outer + outer.T)
    size = slack.sizes / scale + np.abs(outer) + np.abs(outer.T)
    if not np.all(np.maximum(np.abs(matrix), size) <= LARGEST_ENTRY):
        raise Refusal(Reason.BOUND, "the multipliers are too large for this arithmetic")
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        raise Refusal(Reason.BOUND, "the eigenvalues cannot be computed") from error
    # Whether they are eigenvalues is not taken for granted: both residuals are measured.
    product = (n + 4) * EPS
    squares = total(vectors * vectors)
    skew = up(_norm(vectors.T @ vectors - np.eye(n)) + product * squares, 300)
    missed = _norm(matrix - (vectors * values) @ vectors.T)
    missed += product * (1.0 + skew) * total(np.abs(values))
    astray = (slack.relative + 8.0 * EPS) * _norm(size)
    least = np.sort(values)[:rank]
    spent = (1.0 + skew) * math.fsum(np.maximum(-least, 0.0).tolist())
    return up(spent + math.sqrt(rank) * up(astray + missed, 300), 16)


def _norm(matrix: Floats) -> float:
    """At least the root of the sum of squares."""
    # What underflows is made up for after the root: before it, it would weigh far more.
    return up(math.sqrt(total(matrix * matrix)), 300) + len(matrix) * TINY_NORM
