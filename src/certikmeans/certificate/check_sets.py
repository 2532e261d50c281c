"""Bound by linear assignments between disjoint cannot-link sets.

For the groups of a cluster of weight W the sum of squares is ``1 / W`` times the sum over pairs of
``w_s w_t |p_s - p_t|^2``. Of disjoint sets a cluster has at most one group each, so those groups
weigh at most ``W*``, the sum over the sets of their heaviest groups, and others add to the cost.
Two sets meet in clusters as a matching of K rows and K columns does, where rows and columns without
a group cost nothing. For multipliers ``p >= 0`` of the columns,

    matching >= sum over rows of min over columns of (cost + p) - sum of p,
    cost of the groups of a batch of sets >= 1 / W* sum over its pairs of sets of matchings,

and batches without common groups add up.

**Rounding.** ``EPS = 2 u``; a product ``w_s w_t |p_s - p_t|^2`` errs by ``(d + 5) u`` of itself,
sums of m terms by m u of the sum of their absolute values.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints
from certikmeans.certificate.check_constraints import GroupConstraints
from certikmeans.certificate.format import Reason, Rejection

MAX_MATCHING_ENTRIES = 4e9  # costs of all matchings together


def set_lower_bound(
    points: Floats,
    weights: Floats,
    edges: Ints,
    n_clusters: int,
    row: Floats,
    constraints: GroupConstraints | None,
) -> float:
    """Lower bound on the sum of squares of every feasible labelling of the groups, for any row.

    The row is the number of batches; then for each the number of its sets, their sizes, their
    groups, and K multipliers for every pair of sets that meet: the second with the first, the third
    with the first and the second, and so on.
    """
    n, position, values = len(points), 1, []
    separated = _Separated(n, edges, [] if constraints is None else constraints.sets)
    seen = np.zeros(n, dtype=bool)
    entries = 0.0
    for _ in range(_count(row, 0, n)):
        n_sets = _count(row, position, n)
        sizes = [_count(row, position + 1 + i, n_clusters) for i in range(n_sets)]
        position += 1 + n_sets
        sets = []
        for size in sizes:
            members = _groups(row[position : position + size], size, seen)
            position += size
            if not separated.contains(members.tolist()):
                raise Rejection(Reason.BOUND, "groups of a set that may share a cluster")
            sets.append(members)
        meet = [
            [j for j in range(i) if sizes[i] + sizes[j] > n_clusters] for i in range(len(sizes))
        ]
        n_matchings = sum(map(len, meet))
        entries += float(n_matchings) * n_clusters * n_clusters
        if entries > MAX_MATCHING_ENTRIES:
            raise Rejection(Reason.LIMIT, "too many matchings")
        length = n_matchings * n_clusters
        if position + length > len(row):
            raise Rejection(Reason.BOUND, "multipliers of matchings are missing")
        multipliers = row[position : position + length].reshape(-1, n_clusters)
        position += length
        values.append(_batch_value(points, weights, n_clusters, sets, meet, multipliers))
    if position != len(row):
        raise Rejection(Reason.BOUND, "there are numbers after the last batch")
    return math.nextafter(math.fsum(values), 0.0)


@final
class _Separated:
    """Pairs of groups that share no cluster."""

    def __init__(self, n: int, edges: Ints, sets: list[Ints]) -> None:
        self._n = n
        ends = np.sort(edges, axis=1)
        self._edges = frozenset((ends[:, 0] * n + ends[:, 1]).tolist())
        self._sets_of: dict[int, set[int]] = {}
        for number, one in enumerate(sets):
            for s in one.tolist():
                self._sets_of.setdefault(s, set()).add(number)

    def contains(self, members: list[int]) -> bool:
        """Whether no two members share a cluster."""
        none: set[int] = set()
        if set.intersection(*(self._sets_of.get(s, none) for s in members)):
            return True
        return all(
            min(s, t) * self._n + max(s, t) in self._edges
            or not self._sets_of.get(s, none).isdisjoint(self._sets_of.get(t, none))
            for s, t in combinations(members, 2)
        )


def _count(row: Floats, at: int, most: int) -> int:
    value = float(row[at]) if at < len(row) else -1.0
    if not (0.0 <= value <= most and value == math.floor(value)):
        raise Rejection(Reason.BOUND, "a count is missing or not an integer")
    return int(value)


def _groups(named: Floats, size: int, seen: NDArray[np.bool_]) -> Ints:
    """Groups of a set; no group may be in two sets."""
    valid = (named >= 0.0) & (named < len(seen)) & (named == np.floor(named))
    if size < 1 or len(named) < size or not valid.all():
        raise Rejection(Reason.BOUND, "a set has groups that do not exist")
    members = named.astype(np.int64)
    for s in members.tolist():
        if seen[s]:
            raise Rejection(Reason.BOUND, "a group is in two sets")
        seen[s] = True
    return members


def _batch_value(
    points: Floats,
    weights: Floats,
    n_clusters: int,
    sets: list[Ints],
    meet: list[list[int]],
    multipliers: Floats,
) -> float:
    """Bound on the cost of the groups of a batch; at least 0."""
    values: list[float] = []
    number, relative = 0, (points.shape[1] + 8) * EPS
    for i, earlier in enumerate(meet):
        for j in earlier:
            prices = np.maximum(multipliers[number], 0.0)
            number += 1
            first, second = sets[i], sets[j]
            away = points[first][:, None, :] - points[second][None, :, :]
            costs = np.zeros((n_clusters, n_clusters))
            products = weights[first][:, None] * weights[second][None, :]
            squares = (away * away).sum(axis=2)
            costs[: len(first), : len(second)] = products * squares * (1.0 - relative)
            gained = float((costs + prices).min(axis=1).sum())
            paid = float(prices.sum())
            value = gained - paid - (2 * n_clusters + 8) * EPS * (gained + paid)
            if not value >= -math.inf:
                raise Rejection(Reason.BOUND, "a multiplier is not a number")
            values.append(max(0.0, value))
    heaviest = math.fsum(float(weights[one].max()) for one in sets)
    return math.fsum(values) / heaviest * (1.0 - 8.0 * EPS) if values else 0.0
