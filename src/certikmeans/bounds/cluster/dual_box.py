"""Box of the multipliers around an incumbent, with shared variables for large data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.cluster.marginal_costs import model_cost_ranges
from certikmeans.bounds.cluster.priced import uses_prices
from certikmeans.bounds.cluster.size_cuts import SizeCuts
from certikmeans.kernels.kd_cells import assign_cells, median_cells, median_splits
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import iter_row_blocks
from certikmeans.rounding import EPS

MAX_CUT_PRICE = 2.0  # in units of the cost of moving a group


@final
@dataclass(frozen=True, slots=True)
class DualBoxParams:
    """Settings of the box."""

    # From this many groups on, free groups that are close together share one variable.
    shared_variables_min_groups: int = 20_000
    n_cells: int = 20_000  # of groups with a common variable, about
    samples_per_cell: int = 16  # with more groups per cell, medians are those of a sample
    # Stands for "no limit" on the multiplier of a group whose other clusters are all blocked,
    # in units of the incumbent's cost: the level never exceeds that cost.
    unlimited_factor: float = 4.0
    # Initial position of every multiplier in its range. At 0 the value of every group in its own
    # cluster is 0, and a small move of the centre leaves all of them undecided in the pricing;
    # inside, most are decided (5,000 points in 6 dimensions: 2,800 boxes; from 0, open after
    # 590,000).
    initial_fraction: float = 0.2

    def __post_init__(self) -> None:
        if self.n_cells < 1 or self.samples_per_cell < 1:
            raise ValueError("n_cells and samples_per_cell have to be positive")
        if not 0.0 <= self.initial_fraction <= 1.0:
            raise ValueError("initial_fraction has to be in [0, 1]")


DEFAULT_PARAMS = DualBoxParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualBox:
    """Box of the dual variables and their map to multipliers.

    Variables are ``t`` in [0, high], those of size cuts last; group s has the multiplier
    ``low_s + coefficient_s t[variable_s]``. ``low_s`` is the cost of s in its incumbent cluster,
    ``low_s + coefficient_s high`` that in the cheapest other cluster without a cannot-link
    neighbour of s: complementary slackness with an optimal incumbent leaves no other values. Any
    values give a valid bound.
    """

    low: NDArray[np.float64]  # (n_groups,)
    coefficient: NDArray[np.float64]  # (n_groups,)
    variable: NDArray[np.int64]  # (n_groups,)
    high: NDArray[np.float64]  # (n_variables,)
    scale: NDArray[np.float64]  # (n_variables,): of the variables in the metric of the bundle
    start: NDArray[np.float64]  # (n_variables,)
    cuts: SizeCuts | None = None

    @property
    def n_cuts(self) -> int:
        """Number of size cuts."""
        return 0 if self.cuts is None else len(self.cuts)

    def multipliers(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multipliers of the groups, then of the size cuts."""
        lam: NDArray[np.float64] = self.low + self.coefficient * t[self.variable]
        if self.cuts is None:
            return lam
        shifts = np.append(t[-2 * self.n_cuts : -self.n_cuts], 0.0)
        return np.concatenate([lam + shifts[self.cuts.cut_of], np.maximum(t[-self.n_cuts :], 0.0)])

    def cut_total(self, multipliers: NDArray[np.float64]) -> float:
        """Part of the bound due to right sides of size cuts, rounded up."""
        if self.cuts is None:
            return 0.0
        total = float(multipliers[len(self.low) :] @ self.cuts.right_side)
        return total * (1.0 + (self.n_cuts + 2) * EPS)

    def total_gradient(self) -> NDArray[np.float64]:
        """Gradient in ``t`` of the sum of all multipliers less the right sides of size cuts."""
        total = np.bincount(self.variable, self.coefficient, len(self.high)).astype(np.float64)
        if self.cuts is not None:
            total[-2 * self.n_cuts :] = np.append(
                self.cuts.sums(np.ones(len(self.low))), -self.cuts.right_side
            )
        return total

    def gather_sparse(
        self, members: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Gradient in ``t`` of the sum of the members' ``lam``: variables and values."""
        variables, coefficients = self.variable[members], self.coefficient[members]
        n_variables = len(self.high) - 2 * self.n_cuts
        if n_variables != len(self.low):  # not one variable per group
            touched = np.flatnonzero(np.bincount(variables, minlength=n_variables))
            sums = np.bincount(variables, coefficients, n_variables).astype(np.float64)
            variables, coefficients = touched, sums[touched]
        if self.cuts is not None:
            counts = self.cuts.sums(np.ones(len(members)), members)
            more = np.append(counts, -self.cuts.excess(members))
            touched = np.flatnonzero(more)
            variables = np.concatenate([variables, n_variables + touched])
            coefficients = np.concatenate([coefficients, more[touched]])
        return variables.astype(np.int32), coefficients

    def with_size_cuts(
        self, cuts: SizeCuts, prices: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> DualBox:
        """Append variables of size cuts.

        A cut has a shift of the multipliers of all groups of its set, from 0, and its own
        multiplier, from ``prices``. A cut that pays lets the multipliers of its set rise by up to
        what it takes to move a group to other ones.
        """
        limit = MAX_CUT_PRICE * cuts.distance * float(weights.mean())
        scale = 1.0 / np.sqrt(cuts.sums(1.0 / weights))
        return replace(
            self,
            high=np.concatenate([self.high, limit, np.maximum(limit, prices)]),
            scale=np.concatenate([self.scale, scale, scale]),
            start=np.concatenate([self.start, np.zeros(len(cuts)), prices]),
            cuts=cuts,
        )


def cluster_means(
    reduced: ReducedProblem, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of the non-empty clusters, and labels renumbered accordingly."""
    used, compact = np.unique(labels, return_inverse=True)
    sums, masses = reduced.cluster_sums(labels)
    return sums[used] / masses[used, None], compact


def make_dual_box(
    reduced: ReducedProblem,
    labels: NDArray[np.int64],
    centers: NDArray[np.float64] | None = None,
    start: NDArray[np.float64] | None = None,
    widening: float = 0.0,
    params: DualBoxParams = DEFAULT_PARAMS,
) -> DualBox:
    """Build the box of an incumbent.

    With many groups, free groups of one cluster in one small cell share a variable: their
    multipliers move together from one end of their ranges to the other.

    Parameters
    ----------
    reduced : ReducedProblem
    labels : ndarray of shape (n_groups,)
        The incumbent.
    centers : ndarray of shape (n_clusters, n_dims), optional
        Centres of the clusters; by default their means.
    start : ndarray of shape (n_groups,), optional
        Initial multipliers; the box is extended to contain them.
    widening : float
        Extension of every range beyond both of its ends, in units of its width.
    params : DualBoxParams
    """
    if centers is None:
        centers, labels = cluster_means(reduced, labels)
    own, other, initial = _ranges(reduced, centers, labels, params.initial_fraction)
    limit = params.unlimited_factor * (float(np.abs(own).sum()) + reduced.offset)
    low = np.minimum(own, other)  # labels need not be optimal
    width = np.abs(np.subtract(other, own, out=other), out=other)
    width[np.isinf(width)] = limit
    unlimited = width >= limit
    del own
    if widening > 0.0:
        more = np.where(unlimited, 0.0, widening * width)
        low, width = low - more, width + 2.0 * more
    n, n_linked = reduced.n_groups, reduced.graph.n_linked
    shared = reduced.label_constraints.sets is None and reduced.label_constraints.soft is None
    if n >= params.shared_variables_min_groups and n > n_linked and shared:
        variable = np.arange(n)
        cells = cells_of(reduced.points[n_linked:], labels[n_linked:], params)
        np.add(cells, n_linked, out=variable[n_linked:])
        high = np.concatenate([width[:n_linked], np.ones(int(cells.max()) + 1)])
        coefficient = width.copy()
        coefficient[:n_linked] = 1.0
        unlimited[n_linked:] = False
    else:
        variable, coefficient, high = np.arange(n), np.ones(n), width
    inverse_metric = np.bincount(
        variable, coefficient * coefficient / reduced.weights, minlength=len(high)
    )
    inverse_metric[inverse_metric <= 0.0] = np.inf  # all ranges are empty: a constant
    scale = 1.0 / np.sqrt(inverse_metric)
    if start is None:
        first = (params.initial_fraction + widening) / (1.0 + 2.0 * widening) * high
        first[variable[unlimited]] = 0.0
        if initial is not None and len(high) == n:
            first = np.minimum(np.maximum(initial - low, 0.0), high)
        return DualBox(low, coefficient, variable, high, scale, first)
    down, up = np.zeros(len(high)), np.zeros(len(high))
    moving = coefficient > 0.0
    for reach, slack in ((down, start - low), (up, low + width - start)):
        steps = np.divide(np.maximum(slack, 0.0), coefficient, out=np.zeros(n), where=moving)
        np.maximum.at(reach, variable, steps)
    return DualBox(
        start - coefficient * down[variable], coefficient, variable, down + up, scale, down
    )


def _ranges(
    reduced: ReducedProblem,
    means: NDArray[np.float64],
    labels: NDArray[np.int64],
    fraction: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Ranges of the multipliers, and initial values if they differ from ``fraction``."""
    if uses_prices(reduced.label_constraints):
        return model_cost_ranges(reduced, means, labels, fraction)
    own, other = _cost_ranges(reduced, means, labels)
    return own, other, None


def _cost_ranges(
    reduced: ReducedProblem, means: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cost of every group in its cluster, and in the cheapest other without a cannot-link."""
    n, n_used = reduced.n_groups, len(means)
    graph = reduced.graph
    blocked = np.zeros((graph.n_linked, n_used), dtype=bool)
    tails = np.repeat(np.arange(graph.n_linked), np.diff(graph.indptr[: graph.n_linked + 1]))
    blocked[tails, labels[graph.neighbors]] = True
    own, other = np.empty(n), np.full(n, np.inf)
    for rows in iter_row_blocks(reduced.points):
        n_linked = min(max(graph.n_linked - rows.start, 0), rows.stop - rows.start)
        for k, mean in enumerate(means):
            away = reduced.points[rows] - mean
            cost = reduced.weights[rows] * np.einsum("ij,ij->i", away, away)
            mine = labels[rows] == k
            own[rows][mine] = cost[mine]
            cost[mine] = np.inf
            cost[:n_linked][blocked[rows.start : rows.start + n_linked, k]] = np.inf
            np.minimum(other[rows], cost, out=other[rows])
    return own, other


def cells_of(
    points: NDArray[np.float64], labels: NDArray[np.int64], params: DualBoxParams = DEFAULT_PARAMS
) -> NDArray[np.int64]:
    """Split every cluster at medians along its widest axis into about ``n_cells`` cells in all."""
    cells = np.empty(len(points), dtype=np.int64)
    step = max(1, len(points) // (params.samples_per_cell * params.n_cells))
    max_size = max(1, len(points) // params.n_cells // step)
    count = 0
    for k in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == k)
        if step == 1:
            count += median_cells(points, rows, max_size, count, cells)
        else:
            splits = median_splits(points, rows[::step], max_size)
            count += assign_cells(points, rows, splits, count, cells)
    return cells
