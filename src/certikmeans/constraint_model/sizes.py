"""Cluster sizes: limits on the total demand of every cluster.

The demand of a point is 1, or a number given by the user; that of a group is the sum over its
points. Limits are those of clusters in any order: cluster ``k`` of an answer has the limits
``lower[k]`` and ``upper[k]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Floats, Ints
from certikmeans.constraint_model.base import ConstraintKind
from certikmeans.errors import Argument, InputError, Message

MAX_DEMAND = 1e12


def validate_demand(demand: Any, n_points: int) -> NDArray[np.float64] | None:
    """Return demands as an array, or None if all are 1."""
    if demand is None:
        return None
    try:
        array = np.array(demand, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"demand: not numbers ({error})", hint="give one number per point, 0 or more"
        ) from error
    if array.shape != (n_points,):
        raise InputError(
            f"demand: expected shape ({n_points},), got {array.shape}",
            hint="give one number per point, 0 or more",
        )
    bad = ~((array >= 0.0) & (array <= MAX_DEMAND))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"demand: row {row} is {array[row]}",
            hint=f"demands are numbers from 0 to {MAX_DEMAND:g}",
        )
    if np.all(array == 1.0):
        return None
    array.flags.writeable = False
    return array


def validate_limit(
    value: Any, name: str, n_clusters: int, total: float, *, counted: bool
) -> NDArray[np.float64] | None:
    """Return one limit per cluster, or None; ``counted``: sizes are numbers of points.

    >>> validate_limit(2, "size_min", 3, 9.0, counted=True)
    array([2., 2., 2.])
    """
    if value is None:
        return None
    try:
        array = np.array(value, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            Message(Argument(name), f": not a number ({error})"),
            hint="give a number, or one number per cluster",
        ) from error
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_clusters):
        raise InputError(
            Message(Argument(name), f": {array.size} numbers for {n_clusters} clusters"),
            hint="give one number for all clusters, or one per cluster",
        )
    array = np.broadcast_to(array, (n_clusters,)).copy()
    if not (np.isfinite(array).all() and (array >= 0.0).all()):
        k = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))[0])
        raise InputError(
            Message(Argument(name), f": {array[k]:g} of cluster {k} is not a size"),
            hint="sizes are finite numbers, 0 or more; leave the argument out for no limit",
        )
    if counted and (array != np.floor(array)).any():
        k = int(np.flatnonzero(array != np.floor(array))[0])
        hint = "sizes count points: give a whole number"
        if array[k] < 1.0:
            meant = math.floor(array[k] * total)
            hint += f"; for a fraction of the points multiply by n, for example {meant}"
        raise InputError(
            Message(Argument(name), f": {array[k]:g} is not a number of points"), hint=hint
        )
    array.flags.writeable = False
    return array


def balanced_limits(n_points: int, n_clusters: int) -> tuple[int, int]:
    """Sizes of clusters that differ by at most one point.

    >>> balanced_limits(10, 3)
    (3, 4)
    """
    return n_points // n_clusters, -(-n_points // n_clusters)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SizeLimits(ConstraintKind):
    """Demands of the groups, and limits on their sum in every cluster."""

    name: ClassVar[str] = "cluster sizes"

    demand: Floats  # (n_groups,), >= 0
    lower: Floats  # (n_clusters,)
    upper: Floats  # (n_clusters,)

    @property
    def unit(self) -> bool:
        """Whether every demand is 1."""
        return bool((self.demand == 1.0).all())

    @property
    def uniform(self) -> bool:
        """Whether all clusters have the same limits."""
        return bool((self.lower == self.lower[0]).all() and (self.upper == self.upper[0]).all())

    def totals(self, labels: Ints) -> Floats:
        """Sum of the demands in every cluster."""
        return np.bincount(labels, self.demand, len(self.lower)).astype(np.float64)

    def satisfied_by(self, labels: Ints) -> bool:
        """Whether the sums are within the limits, clusters in any order."""
        return self._order(labels) is not None

    def aligned(self, labels: Ints) -> Ints:
        """Number the clusters such that each satisfies its own limits."""
        order = self._order(labels)
        return labels if order is None else order[labels]

    def _order(self, labels: Ints) -> Ints | None:
        """Return the limits that each cluster satisfies, all different, or None.

        Sums may exceed the limits by their rounding error.
        """
        totals, slack = self.totals(labels), self.tolerance
        if ((totals >= self.lower - slack) & (totals <= self.upper + slack)).all():
            return np.arange(len(totals))
        if self.uniform:
            return None
        fits = (totals[:, None] >= self.lower - slack) & (totals[:, None] <= self.upper + slack)
        from scipy.optimize import linear_sum_assignment  # loaded here: slow to import

        rows, columns = linear_sum_assignment(~fits)
        return columns.astype(np.int64) if fits[rows, columns].all() else None

    @property
    def tolerance(self) -> float:
        """Rounding error of a sum of demands: 0 for whole numbers."""
        whole = bool((self.demand == np.floor(self.demand)).all())
        if whole and float(self.demand.sum()) < 2.0**53:
            return 0.0
        return 4.0 * len(self.demand) * 2.0**-53 * float(self.demand.sum())

    def subset(self, rows: Ints) -> SizeLimits | None:
        """Limits scaled to the demand of the groups ``rows``.

        They are rounded away from the mean, by a group where demands differ, so that there are
        labels within them.
        """
        demand = self.demand[rows]
        share = float(demand.sum()) / max(float(self.demand.sum()), 1e-290)
        lower, upper = self.lower * share, self.upper * share
        if self.unit:
            return SizeLimits(demand, np.floor(lower), np.ceil(upper))
        largest = float(demand.max(initial=0.0))
        return SizeLimits(demand, np.maximum(lower - largest, 0.0), upper + largest)

    def merged(self, group_of: Ints, n_groups: int) -> SizeLimits:
        """Demands added up."""
        demand = np.bincount(group_of, self.demand, n_groups).astype(np.float64)
        return SizeLimits(demand, self.lower, self.upper)
