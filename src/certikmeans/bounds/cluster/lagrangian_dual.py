"""Lagrangian dual of one reduced problem: multipliers, columns and exact pricing.

For analyses that start from a finished solve. With multipliers ``lam`` and ``sigma`` the largest
value of a cluster, ``sum lam - K sigma`` is a lower bound. `LagrangianDual.maximize` improves
multipliers from a warm start; the other methods price clusters under given multipliers. Upper
bounds that they return include their rounding error (`pricing_error`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.cluster import initial_point
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.initial_point import ClusterWarmStart
from certikmeans.bounds.cluster.pricing import (
    DEFAULT_PARAMS,
    BoxSearchResult,
    Column,
    OpenBox,
    Pricer,
    PricingParams,
    no_excluded_box,
    search_box,
)
from certikmeans.bounds.cluster.pricing_error import mean_rounding_error
from certikmeans.incumbent import NullIncumbent
from certikmeans.kernels.aggregation import FIXED, mark_fixed_groups
from certikmeans.kernels.pricing.box_bound import Instance
from certikmeans.kernels.pricing.search import bound_box, make_workspace
from certikmeans.parallel import TaskPool
from certikmeans.problem import ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.proof import GroupMultipliers
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]
Vector = NDArray[np.float64]
Box = tuple[Vector, Vector]


def benefits_from_threads(reduced: ReducedProblem) -> bool:
    """Whether pricing is long enough to be run by several threads."""
    return reduced.points.size >= DEFAULT_PARAMS.min_parallel_size


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualPoint:
    """Multipliers and clusters of high value under them."""

    dual: LagrangianDual
    multipliers: Vector
    columns: tuple[Column, ...]
    bound: float = -math.inf  # ``sum lam - K sigma`` as the ascent reported it

    def value_of(self, column: Column) -> float:
        """Value of a cluster under the multipliers."""
        return float(self.multipliers @ column.members) - column.cost


@final
@dataclass(frozen=True, slots=True, eq=False)
class QuadraticBound:
    """Concave quadratic above the cluster value over a box: ``value - mass |y - peak|^2``.

    ``value`` is evaluated at the computed ``peak`` with an error below that of pricing.
    ``mass`` 0: the bound is constant.
    """

    mass: float
    peak: Vector
    value: float


@final
class BoxSearch:
    """Exact pricing of given boxes: each call searches some of them with a growing budget."""

    def __init__(self, pricer: Pricer, multipliers: Vector, cutoff: float, error: float) -> None:
        self._pricer, self._error = pricer, error
        self._search = partial(search_box, instance=pricer.instance(multipliers), cutoff=cutoff)
        self._budget = pricer.params.min_budget
        self._stall_detector = pricer.stall_detector()
        self._n_boxes = 0

    def search(self, batch: Sequence[OpenBox]) -> list[BoxSearchResult]:
        """Search some boxes; results in the order of the boxes."""
        params = self._pricer.search_params(self._error, 2.0 * self._error, self._budget)
        found: list[BoxSearchResult] = self._pricer.task_pool.map(
            partial(self._search, search_params=params), batch
        )
        self._n_boxes += sum(one.boxes for one in found)
        self._budget = self._pricer.next_budget(self._budget)
        return found

    def stalled(self, distance: float) -> bool:
        """Whether to give up, with the largest bound ``distance`` above the cutoff."""
        return self._stall_detector.stalled(distance, self._n_boxes)


@final
class LagrangianDual:
    """Multipliers, columns and exact pricing of one reduced problem.

    Parameters
    ----------
    problem : ReducedProblem
    executor : concurrent.futures.Executor, optional
        Threads that price boxes in parallel.
    params : PricingParams
    """

    def __init__(
        self,
        problem: ReducedProblem,
        executor: Executor | None = None,
        params: PricingParams = DEFAULT_PARAMS,
    ) -> None:
        self.problem = problem
        self._executor = executor
        self._pricer = Pricer(problem, executor, params=params)
        self.mean_error = mean_rounding_error(problem.points)

    def without_executor(self) -> LagrangianDual:
        """Return the same dual for use after its threads have ended."""
        return LagrangianDual(self.problem, params=self._pricer.params)

    @property
    def data_box(self) -> Box:
        """Box of all points: the mean of any set of groups lies in it."""
        return self._pricer.full_region.low, self._pricer.full_region.high

    def error(self, multipliers: Vector) -> float:
        """Upper bound on the rounding error of the bound of any box."""
        return self._pricer.error(multipliers)

    def maximize(
        self,
        labels: Labels,
        gap: float,
        seed: int,
        stop: StopSignal,
        warm_start: ClusterWarmStart | None = None,
    ) -> DualPoint | None:
        """Run the bundle method around a labelling, from a warm start if there is one.

        None if it found no multipliers with a finite bound.
        """
        bound = ClusterBound()
        # The multipliers of the groups have to prove the bound alone.
        assigner = make_assigner(self.problem, labels)
        inputs = BoundInput(self.problem, assigner, gap=gap, seed=seed, keep_proof=True)
        ctx = BoundContext(
            stop,
            at_root=True,
            incumbent=NullIncumbent(labels),
            pool=TaskPool(self._executor),
            time_boxed=warm_start is None,
        )
        if warm_start is not None:
            warm_start = replace(warm_start, proven=True)
        root = Domain.root(self.problem)
        found = bound.compute(bound.setup(inputs), root, math.inf, ctx, warm_start)
        evidence = found.leaf.evidence
        if not (isinstance(evidence, GroupMultipliers) and found.value < math.inf):
            return None
        assert isinstance(found.warm_start, ClusterWarmStart)
        columns = self._initial_columns(found.warm_start)
        return DualPoint(self, evidence.values, columns, found.value)

    def warm_start(self, multipliers: Vector, saved: Any) -> ClusterWarmStart:
        """Return the warm start that a run has left, with its columns and these multipliers."""
        warm_start = ClusterWarmStart(multipliers, (), np.empty((0, 0)))
        if isinstance(saved, ClusterWarmStart):
            # The bundle restarts at these multipliers: its state belongs to another target.
            warm_start = replace(saved, multipliers=multipliers, progress=None)
        return replace(warm_start, columns=self._initial_columns(warm_start))

    def _initial_columns(self, warm_start: ClusterWarmStart) -> tuple[Column, ...]:
        """Columns of a warm start; where only their centers were saved, they are priced again."""
        if warm_start.columns or warm_start.column_centers is None:
            return warm_start.columns
        most = max(initial_point.DEFAULT_PARAMS.max_warm_start_columns, 2 * self.problem.n_clusters)
        centers = list(warm_start.column_centers[:most])
        columns = self.best_columns_at(warm_start.multipliers, centers)
        return tuple(column for column in columns if column.mass > 0.0)

    def best_columns_at(self, multipliers: Vector, centers: Sequence[Vector]) -> list[Column]:
        """Return a cluster of largest value for every center, in their order."""
        return self._pricer.best_columns_at(multipliers, centers)

    def local_maximum(self, multipliers: Vector, start: Vector) -> Vector:
        """Return the center at which an ascent of the cluster value from ``start`` ends."""
        return self._pricer.price_heuristic(multipliers, [start.copy()])[0].center

    def max_value(
        self,
        multipliers: Vector,
        cutoff: float,
        boxes: Sequence[Box],
        tolerance: float,
        stop: StopSignal,
    ) -> float:
        """Upper bound on the value of clusters centered in the boxes.

        At most the cutoff plus rounding where that can be proven, else the largest value up to
        ``tolerance``.
        """
        regions = [self._pricer.full_region.subregion(low, high) for low, high in boxes]
        return self._pricer.price_regions(multipliers, cutoff, stop, regions, tolerance).upper

    def quadratic_bounds(
        self, multipliers: Vector, boxes: Sequence[Box], error: float
    ) -> list[QuadraticBound]:
        """Return, for every box, the quadratic above the cluster value that pricing uses."""
        instance = self._pricer.instance(multipliers)
        bound = partial(_quadratic_bound, problem=self.problem, instance=instance, error=error)
        return self._pricer.task_pool.map(bound, boxes)

    def box_search(self, multipliers: Vector, cutoff: float, error: float) -> BoxSearch:
        """Return a search for clusters of value above ``cutoff``, by boxes."""
        return BoxSearch(self._pricer, multipliers, cutoff, error)

    def root_box(self, multipliers: Vector) -> OpenBox:
        """Return the box of all points, with every group of positive multiplier."""
        region, d = self._pricer.full_region, self.problem.n_dims
        members = np.flatnonzero(multipliers > 0.0).astype(np.int32)
        return OpenBox(
            *(-np.inf, 0, region.low, region.high, np.zeros(d + 2), members),
            *(region.active_faces, no_excluded_box(d), 0),
        )

    def active_faces(self, low: Vector, high: Vector) -> NDArray[np.float64]:
        """Return the faces of a box beyond which means can lie; infinite elsewhere."""
        return self._pricer.full_region.subregion(low, high).active_faces

    def fixed_groups(
        self, multipliers: Vector, labels: Labels, centers: Vector, reach: Vector, margin: float
    ) -> NDArray[np.bool_]:
        """Mark groups of positive value for their own center alone, wherever it is in its reach."""
        state = np.empty(self.problem.n_groups, dtype=np.uint8)
        instance = self._pricer.instance(multipliers)
        mark_fixed_groups(instance, labels, centers, reach, margin, state)
        fixed: NDArray[np.bool_] = state == FIXED
        return fixed


def _quadratic_bound(
    box: Box, problem: ReducedProblem, instance: Instance, error: float
) -> QuadraticBound:
    low, high = box
    n, d = problem.points.shape
    work = make_workspace(n, d, problem.graph.n_linked)
    here = work.box
    here.lo[:], here.hi[:], here.sums[:] = low, high, 0.0
    members = np.flatnonzero(instance.lam > 0.0).astype(np.int32)
    bound_box(instance, members, work, error)
    sums = here.sums + here.estimate
    if not sums[1] > 0.0:
        return QuadraticBound(0.0, 0.5 * (low + high), math.inf)
    peak = sums[2:] / sums[1]
    value = float(sums[0] + peak @ (2.0 * sums[2:] - sums[1] * peak))
    return QuadraticBound(float(sums[1]), peak, value)
