"""Pricing with any kind of constraints: kernel data, boxes and columns.

Soft pairs enter as bonuses for pairs that share a cluster, so that multipliers, values and costs of
columns are those of ``sum of squares - bonuses``; the constant of the penalty is added to the
bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.constraint_model.arrays import (
    ConstraintArrays,
    constraint_arrays,
    size_bounds,
)
from certikmeans.constraint_model.model import LabelConstraints
from certikmeans.kernels.pricing.priced_ascent import ascend_priced, complete_set, set_bonus
from certikmeans.kernels.pricing.priced_box import PricedInstance
from certikmeans.kernels.pricing.priced_search import (
    ImprovingSets,
    PricedSearchParams,
    PricedStack,
    search_priced_boxes,
)
from certikmeans.kernels.soft_assignment import Forest, PairGraph, spanning_forest
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import iter_row_blocks
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.bounds.cluster.pricing import Column, OpenBox, PricingParams
    from certikmeans.bounds.cluster.size_cuts import SizeCuts

Vector = NDArray[np.float64]
# Cannot-links are priced by their spanning forest up to this many per group.
MAX_LINKS_FOR_FOREST = 1.0
# With few groups the forest is exact: it branches on groups where it ignores a cannot-link.
MIN_GROUPS_FOR_PRICES = 200
# Pairs beyond a spanning forest, as a fraction of it, up to which sets are selected by the forest.
MAX_EXTRA_FRACTION = 0.05


def uses_prices(constraints: LabelConstraints) -> bool:
    """Whether prices are better than the spanning forest of the cannot-links."""
    if not constraints.is_cannot_link_only:
        return True
    graph = constraints.cannot_links
    many = len(graph.neighbors) > 2.0 * MAX_LINKS_FOR_FOREST * graph.n_vertices
    return many and graph.n_vertices >= MIN_GROUPS_FOR_PRICES


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedConstraints:
    """All constraints on a cluster, as arrays for kernels, and constants of the penalty."""

    arrays: ConstraintArrays
    sum_of_bonuses: Vector  # (n_groups,): of absolute values, without hard cannot-links
    constant: float  # of the penalty
    constant_error: float
    rank_sizes: bool
    needs_members: bool  # whether the empty cluster is not admissible
    forest: Forest  # of the pairs where they are nearly one and the only constraints, else empty
    disjoint_sets: bool  # they are the only constraints

    @classmethod
    def of(cls, constraints: LabelConstraints) -> PricedConstraints:
        """Constraints on a single cluster, with the loosest limits of its size."""
        arrays = constraint_arrays(constraints)
        n = constraints.cannot_links.n_vertices
        tails = np.repeat(np.arange(n), np.diff(arrays.pair_indptr))
        finite = np.isfinite(arrays.pair_bonus)
        sums = np.bincount(tails[finite], np.abs(arrays.pair_bonus[finite]), n).astype(np.float64)
        soft, sizes = constraints.soft, constraints.sizes
        only_sizes = len(arrays.pair_neighbors) == 0 and len(arrays.set_members) == 0
        return cls(
            arrays,
            sums,
            0.0 if soft is None else soft.constant,
            0.0 if soft is None else soft.error,
            sizes is not None and sizes.unit and only_sizes,
            sizes is not None and float(arrays.size_limits[0]) > 0.0,
            _nearly_forest(arrays, n),
            _only_disjoint_sets(arrays),
        )

    def with_limits(
        self, constraints: LabelConstraints, limits: tuple[float, float]
    ) -> PricedConstraints:
        """Return the constraints on a cluster with these limits of its size."""
        bounds = size_bounds(constraints, limits)
        return replace(
            self,
            arrays=self.arrays._replace(size_limits=bounds),
            needs_members=float(bounds[0]) > 0.0,
        )


def _only_disjoint_sets(arrays: ConstraintArrays) -> bool:
    """Whether there are sets, nothing else, and no group is in two of them."""
    others = len(arrays.demand) or len(arrays.pair_neighbors)
    most = int(np.diff(arrays.group_set_indptr).max(initial=0))
    return most == 1 and not others


def _nearly_forest(arrays: ConstraintArrays, n_groups: int) -> Forest:
    """Spanning forest of the pairs if few are left over and there is nothing else; else empty."""
    empty = Forest(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    if len(arrays.demand) or len(arrays.set_members):
        return empty
    neighbors = arrays.pair_neighbors.astype(np.int64)
    graph = PairGraph(arrays.pair_indptr.astype(np.int64), neighbors, arrays.pair_bonus.copy())
    n_paired = int((np.diff(graph.indptr) > 0).sum())
    forest = Forest(
        np.empty(n_paired, dtype=np.int64), np.empty(n_paired, dtype=np.int64), np.empty(n_paired)
    )
    tails = np.repeat(np.arange(n_groups), np.diff(graph.indptr))
    by_size = np.argsort(-np.abs(graph.bonus), kind="stable")
    starts = spanning_forest(graph, by_size, tails, forest)
    n_tree_edges = n_paired - (len(starts) - 1)
    n_extra = len(neighbors) // 2 - n_tree_edges
    return forest if n_extra <= MAX_EXTRA_FRACTION * n_tree_edges else empty


def priced_instance(
    reduced: ReducedProblem,
    constraints: PricedConstraints,
    multipliers: Vector,
    cuts: SizeCuts | None = None,
) -> PricedInstance:
    """Kernel data for given multipliers: those of the groups, then those of the size cuts."""
    lam = np.ascontiguousarray(multipliers[: reduced.n_groups])
    arrays = constraints.arrays
    if cuts is not None:
        prices = np.ascontiguousarray(multipliers[reduced.n_groups :])
        arrays = arrays._replace(cut_of=cuts.cut_of, cut_free=cuts.free, cut_price=prices)
    base = lam.copy()
    for rows in iter_row_blocks(reduced.points):
        points = reduced.points[rows]
        base[rows] -= reduced.weights[rows] * np.einsum("ij,ij->i", points, points)
    return PricedInstance(
        points=reduced.points,
        weights=reduced.weights,
        lam=lam,
        base=base,
        magnitude=np.abs(lam) + constraints.sum_of_bonuses,
        constraints=arrays,
        rank_sizes=constraints.rank_sizes and cuts is None,
        forest=constraints.forest,
        disjoint_sets=constraints.disjoint_sets,
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundSet:
    """Improving set at a centre: open groups in it are 1, other open groups 2, decided ones 0."""

    value: float
    center: Vector
    members: NDArray[np.uint8]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PricedSearchDone:
    """Result of the search of one box."""

    open_boxes: list[dict[str, Any]]
    found: list[FoundSet]
    cutoff: float
    unsplittable_bound: float
    unsplittable_center: Vector
    boxes: int


def search_priced(
    box: OpenBox,
    instance: PricedInstance,
    search_params: PricedSearchParams,
    cutoff: float,
    params: PricingParams,
) -> PricedSearchDone:
    """Search one box with a budget, by one call of the kernel."""
    n = len(instance.weights)
    stack = _stack_with(box, params.stack_capacity)
    slots = params.max_improving_centers
    improving = ImprovingSets(
        np.empty((slots, len(box.low))), np.empty(slots), np.empty((slots, n), dtype=np.uint8)
    )
    search_params = search_params._replace(active_faces=box.active_faces)
    done = search_priced_boxes(instance, stack, 1, search_params, cutoff, improving)
    shared: dict[tuple[int, int], tuple[NDArray[np.int32], Vector]] = {}
    open_boxes = []
    for i in range(done.n_open):
        first, last = int(stack.starts[i]), int(stack.starts[i] + stack.sizes[i])
        if (first, last) not in shared:
            shared[first, last] = stack.arena[first:last].copy(), stack.shifts[first:last].copy()
        members, shifts = shared[first, last]
        open_boxes.append(
            {
                "neg_upper_bound": -float(stack.uppers[i]),
                "number": 0,
                "low": stack.lows[i].copy(),
                "high": stack.highs[i].copy(),
                "fixed_sums": stack.fixed_sums[i].copy(),
                "members": members,
                "active_faces": box.active_faces,
                "excluded_box": box.excluded_box,
                "region": box.region,
                "shifts": shifts,
                "fixed_demand": float(stack.fixed_demands[i]),
            }
        )
    kept = range(min(done.n_found, slots))
    return PricedSearchDone(
        open_boxes,
        [
            FoundSet(
                float(improving.values[i]),
                improving.centers[i].copy(),
                improving.members[i].copy(),
            )
            for i in kept
        ],
        float(done.cutoff),
        float(done.unsplittable_bound),
        done.unsplittable_center,
        int(done.n_bounded),
    )


def _stack_with(box: OpenBox, capacity: int) -> PricedStack:
    """Stack with one box on it."""
    d, size = len(box.low), len(box.members)
    stack = PricedStack(
        lows=np.empty((capacity, d)),
        highs=np.empty((capacity, d)),
        fixed_sums=np.empty((capacity, d + 2)),
        fixed_demands=np.empty(capacity),
        uppers=np.empty(capacity),
        starts=np.empty(capacity, dtype=np.int64),
        sizes=np.empty(capacity, dtype=np.int64),
        arena=np.empty(8 * size + 1024, dtype=np.int32),
        shifts=np.empty(8 * size + 1024),
    )
    stack.arena[:size] = box.members
    stack.shifts[:size] = 0.0 if box.shifts is None else box.shifts
    stack.lows[0], stack.highs[0], stack.fixed_sums[0] = box.low, box.high, box.fixed_sums
    stack.fixed_demands[0] = box.fixed_demand
    stack.uppers[0], stack.starts[0], stack.sizes[0] = -box.neg_upper_bound, 0, size
    return stack


def column_cost(constraints: PricedConstraints | None, members: NDArray[Any]) -> float:
    """Bonuses of the pairs inside a column, to be subtracted from its sum of squares."""
    if constraints is None:
        return 0.0
    return float(set_bonus(constraints.arrays, members.astype(np.uint8)))


def ascend_from_set(
    start: tuple[Vector, NDArray[np.uint8]],
    instance: PricedInstance,
    allowed: NDArray[np.uint8],
    active_faces: NDArray[np.float64],
    limits: Vector,
) -> tuple[Vector, Vector, NDArray[np.uint8], float]:
    """Ascend from a centre and, unless it is empty, a set found there by the search.

    Returns the sums and members, the value, and the mean.
    """
    center, members = start[0].copy(), start[1].copy()
    sums = np.empty(instance.points.shape[1] + 2)
    if members.any():
        complete_set(instance, allowed, center, members)
    value = ascend_priced(instance, allowed, active_faces, center, sums, members, limits)
    return center, sums, members, float(value)


def ascend_unless_stopped(
    start: NDArray[np.float64],
    ascent: Callable[[NDArray[np.float64]], Column],
    stop: StopSignal,
) -> Column | None:
    """Column of one ascent, or None if the run is stopped before it."""
    return ascent(start) if stop.reason() is None else None


def continued_ascent(
    column: Column,
    ascent: Callable[[NDArray[np.float64]], Column],
    n_pieces: int,
    stop: StopSignal,
) -> Column | None:
    """Continue an ascent piece by piece, until it ends or the run is stopped."""
    best: Column | None = None
    for _ in range(n_pieces):
        found = ascend_unless_stopped((best or column).center, ascent, stop)
        if found is None or (best is not None and found.value <= best.value):
            break
        best = found
    return best


def completed(columns: Sequence[Column | None]) -> list[Column]:
    """The columns of the ascents that were not stopped."""
    return [column for column in columns if column is not None]
