"""What sizes, sets and soft pairs say about the matrix ``Z`` of a labelling (`check_sdp`).

``Z`` has ``1 / W`` for two groups of one cluster of weight W, 0 for two of different clusters.

**Weights of clusters.** If every non-empty cluster weighs between ``low`` and ``high``, then
``1 / high <= Z_ss <= 1 / max(low, w_s)``, and ``0 <= Z_st <= min(Z_ss, Z_tt)``. Limits on the
demand are limits on the weight where demands are weights; otherwise, for any ``theta >= 0``,

    w(I) <= theta U + sum max(w_s - theta a_s, 0),    w(I) >= theta L + sum min(w_s - theta a_s, 0).

Of disjoint cannot-link sets a cluster has at most one member each, and exactly one of a set with K
members. The weight of one cluster is what the others leave of the total.

**Size cuts.** For weights that are whole numbers let a set A of groups have weight ``m_k`` in
cluster k, of weight ``W_k`` from low to high. ``sum over A of w_s w_t Z_st = sum m_k^2 / W_k`` is
convex in m for given ``W_k``, so it is largest at a vertex of ``0 <= m_k <= W_k, sum m_k = w(A)``:
q clusters lie in A, the others outside, but for one of weight N that has r of A. Then the sum is
``w(A) - r (N - r) / N``, and this loss is concave in r, so least at an end of its range

    max(0, w(A) - min(q high, T - N - (K-1-q) low)) <= r
        <= min(N, w(A) - max(q low, T - N - (K-1-q) high)),

with T the total. All q and N are tried.

**Soft pairs.** A cluster with two groups of weights ``w_s, w_t`` weighs at least
``m = max(low, w_s + w_t)``, so ``together >= m Z_st``; clusters of separated groups weigh at least
``m = min(max(low, w_s), max(low, w_t))``, so ``apart >= m ((Z_ss + Z_tt) / 2 - Z_st)``. Penalties
are at least linear functions of Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, total
from certikmeans.certificate.check_constraints import GroupConstraints

MAX_CUT_TOTAL, MAX_CUT_SIZES = 2.0**26, 20_000


@final
@dataclass(frozen=True, slots=True)
class WeightLimits:
    """Weights of non-empty clusters, and how many clusters are not empty."""

    low: float
    high: float
    n_clusters: int
    min_clusters: int
    mass: float
    whole: bool
    group_low: Floats | None = None  # weight of the cluster of every group, at least

    def least(self, weights: Floats) -> Floats:
        """Lower limits on the weight of the cluster of every group."""
        found: Floats = np.maximum(self.low, weights)
        return found if self.group_low is None else np.maximum(found, self.group_low)

    def diagonal(self, weights: Floats) -> tuple[Floats, Floats]:
        """Limits of the diagonal of Z."""
        low = np.full(len(weights), math.nextafter(1.0 / self.high, 0.0))
        return low, np.nextafter(1.0 / self.least(weights), np.inf)

    @property
    def allow_size_cuts(self) -> bool:
        """Whether right sides of size cuts are known."""
        known = self.whole and self.min_clusters == self.n_clusters and self.low >= 1.0
        return known and self.mass <= MAX_CUT_TOTAL and self.high - self.low <= MAX_CUT_SIZES

    def right_side(self, weight: float) -> float:
        """Upper bound on ``sum over A of w_s w_t Z_st`` for a set A of this weight."""
        size = np.arange(self.low, self.high + 1.0)
        least_loss = math.inf
        for inside in range(self.n_clusters):
            outside = self.n_clusters - 1 - inside
            rest = self.mass - size
            most = np.minimum(inside * self.high, rest - outside * self.low)
            least = np.maximum(inside * self.low, rest - outside * self.high)
            first, last = np.maximum(0.0, weight - most), np.minimum(size, weight - least)
            possible = (least <= most) & (first <= last)
            loss = np.minimum(first * (size - first), last * (size - last)) / size
            if possible.any():
                least_loss = min(least_loss, float(loss[possible].min()))
        if not math.isfinite(least_loss):
            least_loss = 0.0
        # Products of whole numbers below 2^52 are exact, the quotient is rounded once.
        return math.nextafter(weight - least_loss * (1.0 - 4.0 * EPS), math.inf)


@final
@dataclass(frozen=True, slots=True, eq=False)
class AssumedSizes:
    """Labellings that a bound is about: weights of clusters, and whether none is empty."""

    least: Floats  # (n_groups,): of the cluster of every group, at least
    nonempty: bool


def weight_limits(
    weights: Floats,
    constraints: GroupConstraints | None,
    n_clusters: int,
    assumed: AssumedSizes | None = None,
) -> WeightLimits | None:
    """Limits that follow from sizes, sets and assumptions; None if there are none of these."""
    stated = constraints is not None and (constraints.demand is not None or constraints.sets)
    if not stated and assumed is None:
        return None
    mass = math.fsum(weights.tolist())
    whole = mass < 2.0**52 and bool(np.all(weights == np.floor(weights)))
    error = 0.0 if whole else 8.0 * (len(weights) + n_clusters + 8) * EPS * mass
    low, high, filled = 0.0, mass + error, 1
    if assumed is not None:
        low, filled = float(assumed.least.min()), n_clusters if assumed.nonempty else 1
    if constraints is not None and constraints.demand is not None:
        lowest, highest, least_filled = _demands(weights, constraints, n_clusters)
        low, high, filled = max(low, lowest), min(high, highest), max(filled, least_filled)
    if constraints is not None and constraints.sets:
        filled = max(filled, min(n_clusters, max(len(one) for one in constraints.sets)))
        lowest, highest = _weights_of_sets(weights, constraints.sets, n_clusters)
        low, high = max(low, lowest - error), min(high, highest + error)
    high = min(high, (mass - (filled - 1) * low) * (1.0 + 4.0 * EPS) + error)
    low = max(low, (mass - (n_clusters - 1) * high) - 4.0 * EPS * n_clusters * mass - error)
    if whole:
        low, high = math.ceil(low - 1e-6), math.floor(high + 1e-6)
    if not max(low, 1e-300) <= high:
        return None  # there is no labelling, which other evidence has to show
    group_low = None if assumed is None else assumed.least
    return WeightLimits(float(low), float(high), n_clusters, filled, mass, whole, group_low)


def _demands(
    weights: Floats, constraints: GroupConstraints, n_clusters: int
) -> tuple[float, float, int]:
    """Limits on weights that follow from those on demand, and the number of filled clusters."""
    demand = constraints.demand
    assert demand is not None
    whole = math.fsum(demand.tolist())
    low, high = float(constraints.lower.min()), float(constraints.upper.max())
    filled = 1
    if low > 0.0:
        filled = n_clusters
    elif high > 0.0:
        filled = min(n_clusters, math.ceil(whole / high * (1.0 - 1e-9)))
    if np.array_equal(demand, weights):
        return low, high, max(1, filled)
    order = np.argsort(weights / np.maximum(demand, 1e-300), kind="stable")
    found = []
    for limit, sequence in ((low, order), (high, order[::-1])):
        position = min(int(np.searchsorted(np.cumsum(demand[sequence]), limit)), len(order) - 1)
        critical = sequence[position]
        theta = float(weights[critical] / demand[critical]) if demand[critical] > 0.0 else 0.0
        excess = weights - theta * demand
        size = float(np.sum(weights) + theta * np.sum(demand) + theta * abs(limit))
        error = 4.0 * (len(weights) + 8) * EPS * size
        found.append((theta * limit, excess, error))
    (least, excess, error), (most, over, more) = found
    lowest = least + float(np.minimum(excess, 0.0).sum()) - error
    return max(0.0, lowest), most + float(np.maximum(over, 0.0).sum()) + more, max(1, filled)


def _weights_of_sets(weights: Floats, sets: list[Ints], n_clusters: int) -> tuple[float, float]:
    taken = np.zeros(len(weights), dtype=bool)
    lowest, highest = [], []
    for members in sorted(sets, key=len, reverse=True):
        if taken[members].any():
            continue
        taken[members] = True
        highest.append(float(weights[members].max()))
        if len(members) == n_clusters:
            lowest.append(float(weights[members].min()))
    highest += weights[~taken].tolist()
    return math.nextafter(math.fsum(lowest), 0.0), math.nextafter(math.fsum(highest), math.inf)


def penalty_matrix(
    weights: Floats, constraints: GroupConstraints, limits: WeightLimits | None
) -> tuple[Floats, Floats]:
    """Matrix whose product with Z is at most the penalty, and the sums of its absolute terms.

    If the clusters of s and t weigh at least ``m_s`` and ``m_t``, then a pair together pays the
    share ``max(m_s, m_t) Z_st`` of a penalty, and a pair apart
    ``(m_s Z_ss + m_t Z_tt) / 2 - (m_s + m_t) / 2 Z_st``. Off the diagonal that is rounded down.
    """
    n = len(weights)
    matrix, size = np.zeros((n, n)), np.zeros((n, n))
    if len(constraints.bonus) == 0:
        return matrix, size
    s, t = constraints.pairs.T
    together = constraints.bonus < 0.0
    least = weights if limits is None else limits.least(weights)
    both = np.maximum((weights[s] + weights[t]) * (1.0 - 2.0 * EPS), np.maximum(least[s], least[t]))
    half = 0.5 * np.abs(constraints.bonus) * (1.0 - 8.0 * EPS)
    at_s, at_t = half * least[s], half * least[t]
    away = np.where(together, half * both, -0.5 * (at_s + at_t) * (1.0 + 8.0 * EPS))
    matrix[s, t] = matrix[t, s] = away
    size[s, t] = size[t, s] = np.abs(away)
    ends = np.concatenate([s[~together], t[~together]])
    diagonal = np.bincount(ends, np.concatenate([at_s[~together], at_t[~together]]), n)
    matrix[np.arange(n), np.arange(n)] = size[np.arange(n), np.arange(n)] = diagonal
    return matrix, size


def price_of_limits(
    multipliers: Floats, free: NDArray[np.bool_], weights: Floats, limits: WeightLimits
) -> float:
    """Lower bound on ``<L, Z>`` for L of any sign, where the entries of Z have limits."""
    low, high = limits.diagonal(weights)
    prices = np.minimum(multipliers, 0.0) * np.minimum.outer(high, high)
    prices[free] = 0.0
    diagonal = np.diagonal(multipliers)
    np.fill_diagonal(prices, np.minimum(diagonal * low, diagonal * high))
    error = 8.0 * EPS * total(np.abs(prices))
    return math.fsum(prices.ravel().tolist()) - 1.01 * error
