"""Limits on the weight of a cluster, and what they say about the entries of ``Z``.

In a labelling ``Z_ss = 1 / W`` for the weight W of the cluster of group s. Whatever is known about
weights of clusters is therefore a range of the diagonal, and ``0 <= Z_st <= min(Z_ss, Z_tt)``.

**Sizes.** ``L <= a(I) <= U`` for the demand of every cluster I. Where demands are weights, these
are the limits. Otherwise, by linear duality of the knapsack, for any ``theta >= 0``

    w(I) <= theta U + sum_s max(w_s - theta a_s, 0),
    w(I) >= theta L + sum_s min(w_s - theta a_s, 0),

where ``theta`` is the ratio ``w_s / a_s`` at which the knapsack is full. The limits of one cluster
also follow from those of the others, as demands add up to a known sum.

**Sets.** A cluster has at most one member of a cannot-link set, and exactly one of a set with K
members. Disjoint sets are added up.

Limits are rounded outwards. Sums of demands of a feasible labelling may exceed their limits by
`SizeLimits.tolerance`, and are computed with an error of that size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats
from certikmeans.constraint_model.cannot_link_sets import CannotLinkSets
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.problem import ReducedProblem
from certikmeans.rounding import EPS

MAX_WHOLE = 2.0**53


@final
@dataclass(frozen=True, slots=True, eq=False)
class WeightLimits:
    """Limits on the weight of every non-empty cluster, and on the number of these.

    Attributes
    ----------
    low, high : float
        In any feasible labelling, every non-empty cluster has a weight between them.
    min_clusters : int
        Number of clusters that cannot be empty.
    whole : bool
        Whether all weights are whole numbers; the limits are whole numbers then.
    group_low : ndarray of shape (n_groups,), optional
        Least weight of the cluster of every group.
    """

    low: float
    high: float
    min_clusters: int = 1
    whole: bool = False
    group_low: Floats | None = None

    def least(self, weights: Floats) -> Floats:
        """Least weight of the cluster of every group: at least as much as that of the group."""
        found: Floats = np.maximum(self.low, weights)
        return found if self.group_low is None else np.maximum(found, self.group_low)

    def diagonal(self, weights: Floats) -> tuple[Floats, Floats]:
        """Limits on ``Z_ss``, rounded outwards."""
        low = np.full(len(weights), math.nextafter(1.0 / self.high, 0.0))
        high = np.nextafter(1.0 / self.least(weights), np.inf)
        return low, high


@final
@dataclass(frozen=True, slots=True, eq=False)
class AssumedSizes:
    """Sizes that a caller assumes: the bound is one for labellings with these sizes.

    Attributes
    ----------
    least : ndarray of shape (n_groups,)
        Least weight of the cluster of every group.
    nonempty : bool
        Whether no cluster is empty.
    """

    least: Floats
    nonempty: bool


def weight_limits(
    problem: ReducedProblem, assumed: AssumedSizes | None = None
) -> WeightLimits | None:
    """Limits that follow from sizes, sets and assumptions; None if they say nothing."""
    constraints, weights = problem.label_constraints, problem.weights
    k, mass = problem.n_clusters, math.fsum(problem.weights.tolist())
    low, high, min_clusters = 0.0, math.inf, 1
    if assumed is not None:
        low = float(assumed.least.min())
        min_clusters = k if assumed.nonempty else 1
    if constraints.sizes is not None:
        low_demand, high_demand = _demand_limits(constraints.sizes)
        if low_demand > 0.0:
            min_clusters = k
        elif high_demand > 0.0:
            total = float(constraints.sizes.demand.sum()) * (1.0 - len(weights) * EPS)
            min_clusters = max(min_clusters, math.ceil(total / high_demand * (1.0 - 4.0 * EPS)))
        lowest, highest = _weights_of_demands(weights, constraints.sizes, low_demand, high_demand)
        low, high = max(low, lowest), min(high, highest)
    if constraints.sets is not None:
        min_clusters = max(min_clusters, int(constraints.sets.sizes.max()))
        lowest, highest = _weights_of_sets(weights, constraints.sets, k)
        low, high = max(low, lowest), min(high, highest)
    min_clusters = min(min_clusters, k)
    # The clusters weigh `mass` together; without empty ones, the others weigh at least `low` each.
    up, down = 1.0 + 4.0 * (k + 2) * EPS, 1.0 - 4.0 * (k + 2) * EPS
    high = min(high, mass * up - (min_clusters - 1) * low * down)
    low = max(low, mass * down - (k - 1) * high * up, 0.0)
    whole = mass < MAX_WHOLE and bool((weights == np.floor(weights)).all())
    if whole:
        low, high = math.ceil(low * (1.0 - 4.0 * EPS)), math.floor(high * (1.0 + 4.0 * EPS))
    if not low <= high:  # infeasible, which is for presolve to prove
        return None
    informative = min_clusters > 1 or low > float(weights.min()) or high < mass * down
    group_low = None if assumed is None else assumed.least
    if not informative and group_low is None:
        return None
    return WeightLimits(float(low), float(high), min_clusters, whole, group_low)


def _demand_limits(sizes: SizeLimits) -> tuple[float, float]:
    """Limits on the demand of any cluster, with those that follow from the other clusters."""
    total = math.fsum(sizes.demand.tolist())
    lower, upper = sizes.lower, np.minimum(sizes.upper, total)
    k = len(lower)
    slack = 4.0 * (k + 1) * sizes.tolerance
    rest_upper = math.fsum(upper.tolist()) - upper
    rest_lower = math.fsum(lower.tolist()) - lower
    low = float(np.maximum(lower, total - rest_upper).min())
    high = float(np.minimum(upper, total - rest_lower).max())
    whole = sizes.tolerance == 0.0 and total < MAX_WHOLE
    whole &= bool((lower == np.floor(lower)).all() and (upper == np.floor(upper)).all())
    if not whole:
        slack += 8.0 * (k + 2) * EPS * (total + float(upper.sum()))
    return max(0.0, low - slack), high + slack


def _weights_of_demands(
    weights: Floats, sizes: SizeLimits, low: float, high: float
) -> tuple[float, float]:
    """Limits on weights from limits on demands."""
    demand = sizes.demand
    if np.array_equal(demand, weights):
        return low, high
    n = len(weights)
    with np.errstate(divide="ignore"):
        ratios = np.where(demand > 0.0, weights / demand, np.inf)
    order = np.argsort(ratios, kind="stable")
    highest, lowest = math.inf, 0.0
    # Largest weight: groups of the largest ratio first; smallest weight: of the smallest first.
    for limit, sequence in ((high, order[::-1]), (low, order)):
        filled = np.cumsum(demand[sequence])
        critical = sequence[min(int(np.searchsorted(filled, limit)), n - 1)]
        theta = float(ratios[critical])
        if not math.isfinite(theta):
            continue
        excess = weights - theta * demand
        error = 2.0 * (n + 8) * EPS * float(weights.sum() + theta * demand.sum() + theta * limit)
        if sequence is order:
            lowest = theta * limit + float(np.minimum(excess, 0.0).sum()) - error
        else:
            highest = theta * limit + float(np.maximum(excess, 0.0).sum()) + error
    return max(0.0, lowest), highest


def _weights_of_sets(weights: Floats, sets: CannotLinkSets, n_clusters: int) -> tuple[float, float]:
    """Limits on weights from disjoint sets, the largest ones first."""
    taken = np.zeros(sets.n_groups, dtype=np.bool_)
    lowest, highest = [], []
    for number in np.argsort(-sets.sizes, kind="stable").tolist():
        members = sets.members_of(number)
        members = members[~taken[members]]
        if len(members) == 0:
            continue
        taken[members] = True
        highest.append(float(weights[members].max()))
        if len(members) == n_clusters:
            lowest.append(float(weights[members].min()))
    highest += weights[~taken].tolist()
    return math.nextafter(math.fsum(lowest), 0.0), math.nextafter(math.fsum(highest), math.inf)
