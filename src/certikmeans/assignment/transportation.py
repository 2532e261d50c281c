"""Cheapest labels with limits on cluster sizes, for a table of costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans.constraint_model.sizes import SizeLimits
from certikmeans.kernels.transportation.groups import improve_totals, repair_totals
from certikmeans.kernels.transportation.prices import (
    nearest_at_prices,
    raise_dual_by_coordinates,
    total_violation,
)
from certikmeans.kernels.transportation.units import transport_units
from certikmeans.rounding import UNIT

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


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
    improvement_passes: int = 10
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
    table = _writable(costs)
    n_clusters = table.shape[1]
    start = np.zeros(n_clusters) if prices is None else np.array(prices, dtype=np.float64)
    if n_clusters == 1:
        return SizedAssignment(np.zeros(len(table), dtype=np.int64), np.zeros(1), True)
    start[~np.isfinite(start)] = 0.0
    positive = size_limits.demand > 0.0
    unit = _common_demand(size_limits.demand[positive])
    if unit is not None:
        found = _assign_units(table, size_limits, positive, unit, start, params)
    else:
        found = _assign_groups(table, size_limits, start, start_labels, params)
    if found is None:
        if start_labels is None:
            raise ValueError("no labels within the limits were found, and no start labels given")
        return SizedAssignment(np.array(start_labels, dtype=np.int64), start, False)
    return found


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
    table, price = _writable(costs), _writable(prices)
    n, n_clusters = table.shape
    labels, totals = np.empty(n, dtype=np.int64), np.empty(n_clusters)
    demand = _writable(size_limits.demand)
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


def _writable(values: ArrayLike) -> Floats:
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


def _assign_units(
    table: Floats,
    size_limits: SizeLimits,
    positive: NDArray[np.bool_],
    unit: float,
    prices: Floats,
    params: TransportationParams,
) -> SizedAssignment | None:
    """Solve the transportation problem of groups of equal demand; others take the nearest."""
    everything = bool(positive.all())
    inside = table if everything else np.ascontiguousarray(table[positive])
    n, n_clusters = inside.shape
    lower, upper = _whole_limits(size_limits, unit, n)
    if (lower > upper).any() or not lower.sum() <= n <= upper.sum():
        return None
    per_group = prices * unit
    ones, least, most = np.ones(n), lower.astype(np.float64), upper.astype(np.float64)
    labels, totals = np.empty(n, dtype=np.int64), np.empty(n_clusters)
    nearest_at_prices(inside, ones, per_group, labels, totals)
    enough = params.path_fraction * n
    if total_violation(totals, least, most) > enough or not per_group.any():
        raise_dual_by_coordinates(inside, ones, least, most, params.max_sweeps, enough, per_group)
    steps = transport_units(inside, lower, upper, params.max_paths_per_group * n, per_group, labels)
    if steps < 0:
        return None
    if not everything:
        found, labels = labels, np.argmin(table, axis=1).astype(np.int64)
        labels[positive] = found
    return SizedAssignment(labels, per_group / unit, True)


def _assign_groups(
    table: Floats,
    size_limits: SizeLimits,
    prices: Floats,
    start_labels: ArrayLike | None,
    params: TransportationParams,
) -> SizedAssignment | None:
    """Labels at good prices, repaired and improved."""
    n, n_clusters = table.shape
    demand = _writable(size_limits.demand)
    lower, upper = _writable(size_limits.lower), _writable(size_limits.upper)
    raise_dual_by_coordinates(table, demand, lower, upper, params.max_sweeps, 0.0, prices)
    labels, totals = np.empty(n, dtype=np.int64), np.empty(n_clusters)
    nearest_at_prices(table, demand, prices, labels, totals)
    limits, slack = np.stack([lower, upper]), size_limits.tolerance
    if not repair_totals(table, demand, limits, slack, params.max_repair_steps, labels):
        if start_labels is None:
            return None
        labels = np.array(start_labels, dtype=np.int64)
    at_price = table + demand[:, None] * prices
    at_price.partition(1, axis=1)
    regret = at_price[:, 1] - at_price[:, 0]
    candidates = np.argsort(regret, kind="stable")[: params.max_swap_candidates]
    improve_totals(
        table, demand, limits, np.ascontiguousarray(candidates), params.improvement_passes, labels
    )
    bound = transportation_bound(table, size_limits, prices)
    cost = float(table[np.arange(n), labels].sum())
    exact = cost - bound <= params.exact_tolerance * abs(cost)
    return SizedAssignment(labels, prices, exact)
