"""Initial points of a bundle: columns of a labelling, boxed Lloyd steps, warm starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.base import FractionalSolution
from certikmeans.bounds.cluster.cut_model import CutModel
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.cluster.size_cuts import SizeCuts
from certikmeans.bounds.cluster.step_rule import Target
from certikmeans.bounds.cluster.symmetry import SymmetryClass
from certikmeans.bounds.sample import min_box_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import iter_row_blocks
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.bounds.cluster.driver import RootProgress

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class InitialPointParams:
    """Settings of initial points, targets and warm starts."""

    max_lloyd_steps: int = 12
    presolve_margin: float = 0.01  # of the gap, reserved for rounding in postsolve
    level_offset: float = 0.75  # of the level of the cuts beyond the target, in units of the gap
    max_warm_start_columns: int = 40  # passed to child nodes, by descending weight
    warm_start_centers_per_cluster: int = 100  # with many clusters, means instead of columns
    min_weight: float = 1e-6  # of a column of the fractional solution

    def __post_init__(self) -> None:
        if not 0.0 <= self.presolve_margin < 1.0 or self.max_lloyd_steps < 1:
            raise ValueError("presolve_margin has to be in [0, 1), max_lloyd_steps positive")


DEFAULT_PARAMS = InitialPointParams()


@final
@dataclass(frozen=True, slots=True, eq=False)
class BundleStart:
    """Initial cuts of a bundle.

    ``incumbent`` has the clusters of a labelling of the domain with the index of their symmetry
    class; ``columns`` are clusters of earlier pricings, and ``column_centers`` are centres of
    further ones, without their members.
    """

    incumbent: Sequence[tuple[int, Column]]
    columns: Sequence[Column] = ()
    column_centers: Sequence[Vector] = ()
    in_node: bool = False
    multipliers_proven: bool = False  # ascents from known columns found all improving columns
    target_reachable: bool = True  # False if multipliers in the box cannot reach the target


def columns_of(reduced: ReducedProblem, labels: NDArray[np.int64]) -> list[Column]:
    """One column per non-empty cluster of the labels."""
    used = np.flatnonzero(np.bincount(labels))
    return [column_of(reduced, labels == k) for k in used]


def column_of(reduced: ReducedProblem, members: NDArray[Any]) -> Column:
    """Column of a non-empty set; its cost is the sum of squares minus the bonuses inside."""
    rows = np.flatnonzero(members)
    weights, points = reduced.weights[rows], reduced.points[rows]
    mass = float(weights.sum())
    mean = weights @ points / mass
    cost = 0.0
    for block in iter_row_blocks(points):
        away = points[block] - mean
        cost += float(weights[block] @ np.einsum("ij,ij->i", away, away))
    soft = reduced.label_constraints.soft
    if soft is not None:
        inside = np.asarray(members, dtype=bool)[soft.pairs].all(axis=1)
        cost -= float(soft.bonus[inside].sum())
    return Column.of(mean, members, mass, cost, 0.0)


def heaviest_columns(
    columns: Sequence[Column], weights: Vector, params: InitialPointParams = DEFAULT_PARAMS
) -> tuple[Column, ...]:
    """Columns of a warm start."""
    order = np.argsort(-weights, kind="stable")[: params.max_warm_start_columns]
    return tuple(columns[int(i)] for i in order)


def heaviest_centers(
    columns: Sequence[Column],
    weights: Vector,
    reduced: ReducedProblem,
    params: InitialPointParams = DEFAULT_PARAMS,
) -> NDArray[np.float64]:
    """Means of the columns of a warm start; pricing finds their members again."""
    count = params.warm_start_centers_per_cluster * reduced.n_clusters
    order = np.argsort(-weights, kind="stable")[:count]
    chosen = [columns[int(i)].center for i in order if weights[i] > 0.0]
    return np.array(chosen).reshape(len(chosen), reduced.n_dims)


def improvement_columns(model: CutModel, incumbent: Sequence[Column]) -> list[Column]:
    """Clusters of the incumbent, then known columns by descending weight."""
    order = np.argsort(-model.weights, kind="stable")
    return [*incumbent, *(model.columns[int(i)] for i in order)]


def fractional_solution_of(
    columns: Sequence[Column],
    weights: Vector,
    clusters_of: Callable[[int], tuple[int, ...]],
    params: InitialPointParams = DEFAULT_PARAMS,
) -> FractionalSolution | None:
    """Fractional solution of the relaxation: columns with their weights."""
    chosen = np.flatnonzero(weights > params.min_weight)
    if len(chosen) == 0:
        return None
    return FractionalSolution(
        members=np.stack([columns[int(i)].members for i in chosen]),
        centers=np.stack([columns[int(i)].center for i in chosen]),
        weights=weights[chosen],
        clusters=tuple(clusters_of(int(i)) for i in chosen),
    )


def rounded_fractional_solution(
    fractional: FractionalSolution | None,
    sym_classes: Sequence[SymmetryClass],
    centers: NDArray[np.float64],
) -> tuple[NDArray[np.float64], ...]:
    """Centres of the heaviest columns of every symmetry class."""
    if fractional is None:
        return ()
    rounded = centers.copy()
    for sym_class in sym_classes:
        mine = [
            i for i, clusters in enumerate(fractional.clusters) if clusters == sym_class.clusters
        ]
        mine.sort(key=lambda i: -fractional.weights[i])
        for k, i in zip(sym_class.clusters, mine, strict=False):
            rounded[k] = fractional.centers[i]
    return (rounded,)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterWarmStart:
    """Multipliers and columns to start from, in a node or at the root.

    ``progress`` is the state of a computation at the root that was stopped, to be continued.
    """

    multipliers: Vector  # (n_groups,)
    columns: tuple[Column, ...]
    centers: NDArray[np.float64]  # (n_clusters, n_dims)
    column_centers: NDArray[np.float64] | None = None  # (m, n_dims): means of further columns
    proven: bool = False  # exact pricing at the multipliers found no column that ascents do not
    progress: RootProgress | None = None
    cuts: SizeCuts | None = None
    cut_prices: Vector | None = None  # (n_cuts,): their multipliers


@final
@dataclass(frozen=True, slots=True, eq=False)
class InitialPoint:
    """Labelling that defines the dual box, target, and data of a warm start."""

    labels: NDArray[np.int64]
    centers: NDArray[np.float64]  # one per cluster, each in its box
    target: Target
    cost: float
    multipliers: Vector | None = None
    columns: tuple[Column, ...] = ()
    column_centers: NDArray[np.float64] | None = None
    cuts: SizeCuts | None = None
    cut_prices: Vector | None = None

    def with_warm_start(self, warm_start: ClusterWarmStart | None) -> InitialPoint:
        """The same with multipliers and columns of a warm start, if there is one."""
        if warm_start is None:
            return self
        return dataclasses.replace(
            self,
            multipliers=warm_start.multipliers,
            columns=warm_start.columns,
            column_centers=warm_start.column_centers,
            cuts=warm_start.cuts,
            cut_prices=warm_start.cut_prices,
        )

    def with_size_cuts(self, cuts: SizeCuts, prices: Vector) -> InitialPoint:
        """The same with cuts, the first of which have these multipliers."""
        padded = np.append(prices, np.zeros(len(cuts) - len(prices)))
        return dataclasses.replace(self, cuts=cuts, cut_prices=padded)


def root_initial_point(
    reduced: ReducedProblem,
    labels: NDArray[np.int64],
    gap: float,
    cutoff: float,
    params: InitialPointParams = DEFAULT_PARAMS,
) -> InitialPoint:
    """Initial point at the incumbent; the target is the cutoff, or the incumbent's if lower.

    The incumbent's own target is its cost minus the gap: it is lower than the cutoff if the
    incumbent was improved since the cutoff was set.
    """
    cost = sum(column.cost for column in columns_of(reduced, labels))
    soft = reduced.label_constraints.soft
    cost += 0.0 if soft is None else soft.constant
    abs_gap = gap * (cost + reduced.offset)
    if cost <= abs_gap * (1.0 - params.presolve_margin):
        target = Target(0.0, 0.0, abs_gap)
    else:
        abs_gap = max(abs_gap, 1e-12 * cost)
        margin, offset = params.presolve_margin * abs_gap, params.level_offset * abs_gap
        bound = min(cost - (1.0 - params.presolve_margin) * abs_gap, cutoff + margin)
        level = min(cost - (1.0 - params.level_offset) * abs_gap, cutoff + offset)
        target = Target(bound=bound, level=level, abs_gap=abs_gap)
    return InitialPoint(labels, sorted_means(reduced, labels), target, cost)


def node_initial_point(
    reduced: ReducedProblem,
    assigner: AbstractAssigner,
    domain: Domain,
    bound: tuple[float, float],
    stop: StopSignal,
    warm_start: ClusterWarmStart | None,
    params: InitialPointParams = DEFAULT_PARAMS,
) -> InitialPoint:
    """Initial point in a node, near that of its parent; ``bound`` is the cutoff and a gap."""
    cutoff, gap = bound
    initial_centers = farthest_first(reduced, domain) if warm_start is None else warm_start.centers
    labels, centers = boxed_lloyd(reduced, assigner, domain, initial_centers, stop, params)
    cost = cost_at_centers(reduced, labels, centers)
    if not np.isfinite(cutoff):
        cutoff = cost
    abs_gap = max(gap * (cutoff + reduced.offset), 1e-12 * max(cutoff, cost), 1e-300)
    level = cutoff + params.level_offset * abs_gap
    target = Target(bound=cutoff, level=level, abs_gap=abs_gap)
    return InitialPoint(labels, centers, target, cost).with_warm_start(warm_start)


def sorted_means(reduced: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means ordered by their first coordinate; empty clusters repeat the last mean."""
    sums, masses = reduced.cluster_sums(labels)
    means = sums[masses > 0.0] / masses[masses > 0.0, None]
    means = means[np.argsort(means[:, 0], kind="stable")]
    return np.concatenate([means, np.repeat(means[-1:], reduced.n_clusters - len(means), axis=0)])


def farthest_first(reduced: ReducedProblem, domain: Domain) -> NDArray[np.float64]:
    """Centres by farthest-first traversal, each in its box."""
    centers = 0.5 * (domain.lower + domain.upper)
    nearest = np.full(reduced.n_groups, np.inf)
    for k in range(reduced.n_clusters):
        away = reduced.points - np.clip(reduced.points, domain.lower[k], domain.upper[k])
        outside = np.einsum("ij,ij->i", away, away)
        score = reduced.weights * (np.minimum(nearest, 1e300) - outside)
        chosen = np.clip(reduced.points[int(np.argmax(score))], domain.lower[k], domain.upper[k])
        centers[k] = chosen
        away = reduced.points - chosen
        nearest = np.minimum(nearest, np.einsum("ij,ij->i", away, away))
    return centers


def boxed_lloyd(
    reduced: ReducedProblem,
    assigner: AbstractAssigner,
    domain: Domain,
    centers: NDArray[np.float64],
    stop: StopSignal,
    params: InitialPointParams = DEFAULT_PARAMS,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Lloyd's algorithm with centres clipped to their boxes; returns labels and centres."""
    centers = np.clip(centers, domain.lower, domain.upper)
    labels = np.full(reduced.n_groups, -1, dtype=np.int64)
    for _ in range(params.max_lloyd_steps):
        if domain.allowed is None:
            step = assigner.step(centers, labels, stop=stop)
            masses, sums, changed = step.masses, step.sums, step.changed
        else:
            costs = min_box_costs(reduced, Domain(centers, centers))
            found = assigner.assign_costs(np.where(domain.allowed, costs, np.inf), stop=stop)
            changed = int(np.count_nonzero(found.labels != labels))
            labels = found.labels
            sums, masses = reduced.cluster_sums(labels)
        if changed == 0 or stop.reason() is not None:
            break
        filled = masses > 0.0
        moved = centers.copy()
        moved[filled] = sums[filled] / masses[filled, None]
        centers = np.clip(moved, domain.lower, domain.upper)
    return labels, centers


def cost_at_centers(
    reduced: ReducedProblem, labels: NDArray[np.int64], centers: NDArray[np.float64]
) -> float:
    """Cost of the labels at given centres, with the penalty of soft pairs."""
    away = reduced.points - centers[labels]
    cost = float(reduced.weights @ np.einsum("ij,ij->i", away, away))
    return cost + reduced.label_constraints.penalty(labels)
