"""Cheapest labels with limits on cluster sizes, for a table of costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from certikmeans._types import Floats, Ints
from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.kernels.transportation.descent import AssignmentLimits, assign_with_limits
from certikmeans.kernels.transportation.groups import repair_totals
from certikmeans.kernels.transportation.prices import nearest_at_prices
from certikmeans.rounding import UNIT

Labels = Ints


@final
@dataclass(frozen=True, slots=True)
class TransportationParams:
    """Limits of the work for an assignment with sizes. None affects validity."""

    # Prices are improved by coordinates before paths are searched, if the limits are violated by
    # more than this fraction of the demand.
    path_fraction: float = 0.02
    max_sweeps: int = 4
    max_paths_per_group: int = 8  # then the labels are given up
    # Groups of different demands.
    max_repair_steps: int = 200
    max_swap_candidates: int = 200
    max_program_variables: int = 2_000  # of an integer program
    exact_tolerance: float = 1e-9  # relative gap at which labels count as optimal

    def __post_init__(self) -> None:
        if self.max_sweeps < 1 or self.max_repair_steps < 1:
            raise ValueError("sweeps and steps must be positive")


DEFAULT_PARAMS = TransportationParams()


class SizedAssignment(NamedTuple):
    """Labels within the limits, and the prices of the clusters."""

    labels: Labels
    prices: Floats  # (n_clusters,): a point of demand a costs a * price more
    exact: bool  # the labels are optimal, up to rounding


def assign_sizes(
    costs: ArrayLike,
    size_limits: SizeLimits,
    start_labels: ArrayLike | None = None,
    prices: ArrayLike | None = None,
    params: TransportationParams = DEFAULT_PARAMS,
) -> SizedAssignment:
    """Cheapest labels with the demand of every cluster within its limits.

    With equal demands this is a transportation problem, solved exactly. With others (groups of
    must-linked points) it is a generalised assignment problem: the labels are those at good prices,
    repaired and improved by moves and swaps.

    Parameters
    ----------
    costs : array-like of shape (n_groups, n_clusters)
        Finite.
    size_limits : SizeLimits
        Demands of the groups, and limits of cluster ``k`` on the sum in column ``k``.
    start_labels : array-like of shape (n_groups,), optional
        Feasible labels, returned where the search finds none.
    prices : array-like of shape (n_clusters,), optional
        Those of a similar table, for speed.

    Raises
    ------
    ValueError
        If no feasible labels are found, and no start labels were given.

    Examples
    --------
    >>> limits = SizeLimits(np.ones(4), np.full(2, 2.0), np.full(2, 2.0))
    >>> found = assign_sizes([[0, 5], [1, 4], [2, 3], [3, 9]], limits)
    >>> found.labels, found.exact
    (array([0, 1, 1, 0]), True)
    """
    table = writable(costs)
    n_clusters = table.shape[1]
    start = np.zeros(n_clusters) if prices is None else np.array(prices, dtype=np.float64)
    if n_clusters == 1:
        return SizedAssignment(np.zeros(len(table), dtype=np.int64), np.zeros(1), True)
    start[~np.isfinite(start)] = 0.0
    scaled = scale_sizes(size_limits, params)
    if scaled is None:
        status, labels = -1, np.empty(0, dtype=np.int64)
    else:
        start *= scaled.unit
        labels = np.empty(len(table), dtype=np.int64)
        status = assign_with_limits(table, scaled.demand, scaled.limits, start, labels)
        start /= scaled.unit
    if status < 0:
        if start_labels is None:
            raise ValueError("no labels within the limits were found, and no start labels given")
        return SizedAssignment(np.array(start_labels, dtype=np.int64), start, False)
    exact = status == 1
    if not exact:
        cost = float(table[np.arange(len(table)), labels].sum())
        gap = cost - transportation_bound(table, size_limits, start)
        exact = gap <= params.exact_tolerance * abs(cost)
    return SizedAssignment(labels, start, exact)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScaledSizes:
    """Demands and limits for kernels: in units of the common demand, if there is one."""

    demand: Floats  # (n_groups,)
    limits: AssignmentLimits
    unit: float


def scale_sizes(
    size_limits: SizeLimits, params: TransportationParams = DEFAULT_PARAMS
) -> ScaledSizes | None:
    """Prepare limits for kernels; None if numbers show that no labels are within them."""
    demand = writable(size_limits.demand)
    active = np.flatnonzero(demand > 0.0)
    n_clusters, n = len(size_limits.lower), len(active)
    unit = _common_demand(demand[active])
    whole = np.empty((0, n_clusters), dtype=np.int64)
    if unit is not None:
        demand = demand / unit
        whole = np.stack(_whole_limits(size_limits, unit, n))
        totals = whole.astype(np.float64)
        if (whole[0] > whole[1]).any() or not whole[0].sum() <= n <= whole[1].sum():
            return None
    else:
        totals = np.stack([size_limits.lower, size_limits.upper]).astype(np.float64)
        if size_limits.tolerance == 0.0:  # whole demands
            totals = np.stack([np.ceil(totals[0]), np.floor(totals[1])])
        totals[1] = np.minimum(totals[1], 2.0 * demand.sum())
    limits = AssignmentLimits(
        whole,
        totals,
        active.astype(np.int64),
        0.25 * size_limits.tolerance if unit is None else 0.0,
        params.path_fraction,
        params.max_sweeps,
        params.max_paths_per_group * max(n, n_clusters),
        params.max_repair_steps,
        params.max_swap_candidates,
    )
    return ScaledSizes(demand, limits, 1.0 if unit is None else unit)


def improve_by_program(
    costs: ArrayLike,
    size_limits: SizeLimits,
    labels: Labels,
    prices: ArrayLike,
    seconds: float,
    params: TransportationParams = DEFAULT_PARAMS,
) -> Labels:
    """Improve labels of groups by an integer program, if it is small and ends in time.

    A label whose value at the prices exceeds the cheapest by more than the gap between the cost
    and the dual value is in no better labelling: it is left out, and few variables remain.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    table, price = writable(costs), writable(prices)
    n, n_clusters = table.shape
    rows = np.arange(n)
    cost = float(table[rows, labels].sum())
    gap = cost - transportation_bound(table, size_limits, price)
    if gap <= params.exact_tolerance * abs(cost):
        return labels
    at_price = table + size_limits.demand[:, None] * price
    kept = at_price - at_price.min(axis=1, keepdims=True) <= gap
    group, cluster = np.nonzero(kept)
    free = kept.sum(axis=1)[group] > 1
    if np.count_nonzero(free) > params.max_program_variables:
        return labels
    columns = np.arange(len(group))
    one = coo_array((np.ones(len(group)), (group, columns)), shape=(n, len(group)))
    totals = coo_array(
        (size_limits.demand[group], (cluster, columns)), shape=(n_clusters, len(group))
    )
    found = milp(
        table[group, cluster],
        integrality=np.ones(len(group)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(one.tocsr(), 1.0, 1.0),
            LinearConstraint(totals.tocsr(), size_limits.lower, size_limits.upper),
        ],
        options={"time_limit": seconds},
    )
    if found.x is None:
        return labels
    better = np.empty(n, dtype=np.int64)
    chosen = found.x > 0.5
    better[group[chosen]] = cluster[chosen]
    whole = np.array_equal(group[chosen], rows)
    if not whole or not _within(size_limits, better):
        return labels
    return better if float(table[rows, better].sum()) < cost else labels


def _within(size_limits: SizeLimits, labels: Labels) -> bool:
    """Whether each cluster is within its own limits."""
    totals, slack = size_limits.totals(labels), size_limits.tolerance
    inside = (totals >= size_limits.lower - slack) & (totals <= size_limits.upper + slack)
    return bool(inside.all())


def repair_labels(
    costs: ArrayLike,
    size_limits: SizeLimits,
    labels: ArrayLike,
    params: TransportationParams = DEFAULT_PARAMS,
) -> Labels | None:
    """Move and swap groups at little cost until the limits hold; None if that fails."""
    table, changed = writable(costs), np.array(labels, dtype=np.int64)
    limits = writable(np.stack([size_limits.lower, size_limits.upper]))
    slack, steps = 0.25 * size_limits.tolerance, params.max_repair_steps
    demand = writable(size_limits.demand)
    return changed if repair_totals(table, demand, limits, slack, steps, changed) else None


def transportation_bound(costs: ArrayLike, size_limits: SizeLimits, prices: ArrayLike) -> float:
    """Lower bound on the cost of all labels within the limits, valid for any prices.

    ``sum_s min_k (costs[s, k] + a_s p_k) - sum_k max(p_k L_k, p_k U_k)``, rounded down. The
    tolerance of the limits for the rounding of sums of demands is included.

    Examples
    --------
    >>> limits = SizeLimits(np.ones(2), np.ones(2), np.ones(2))
    >>> 4.99 < transportation_bound([[0.0, 5.0], [0.0, 7.0]], limits, [5.0, 0.0]) <= 5.0
    True
    """
    table, price = writable(costs), writable(prices)
    n, n_clusters = table.shape
    labels, totals = np.empty(n, dtype=np.int64), np.empty(n_clusters)
    demand = writable(size_limits.demand)
    value, magnitude = nearest_at_prices(table, demand, price, labels, totals)
    slack = size_limits.tolerance
    # A limit of 0 demand needs no tolerance; a wider limit is a relaxation.
    upper = (size_limits.upper + slack) * (1.0 + 2.0 * UNIT)
    lower = np.maximum(size_limits.lower - slack, 0.0) * (1.0 - 2.0 * UNIT)
    paid = np.maximum(price * upper, price * lower)
    spent = math.fsum(paid)
    # Per group one product, one sum and one addition to a total of n terms.
    error = (n + 4.0) * 2.0 * UNIT * magnitude + 8.0 * UNIT * float(np.abs(paid).sum())
    bound = value - spent - error - 4.0 * UNIT * (abs(value) + abs(spent))
    return bound if np.isfinite(bound) else -math.inf


def writable(values: ArrayLike) -> Floats:
    """Return a writable array, a copy if necessary: kernels are compiled for one array type."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return array if array.flags.writeable else array.copy()


def _common_demand(demand: Floats) -> float | None:
    """Return the demand of all groups if it is the same, else None."""
    if len(demand) == 0:
        return 1.0
    return float(demand[0]) if bool((demand == demand[0]).all()) else None


def _whole_limits(size_limits: SizeLimits, unit: float, n: int) -> tuple[Labels, Labels]:
    """Limits in numbers of groups of the same demand."""
    slack = size_limits.tolerance
    lower = np.ceil(np.maximum(size_limits.lower - slack, 0.0) / unit * (1.0 - 4.0 * UNIT))
    upper = np.floor((size_limits.upper + slack) / unit * (1.0 + 4.0 * UNIT))
    return np.minimum(lower, n + 1).astype(np.int64), np.minimum(upper, n).astype(np.int64)
