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
from certikmeans.bounds.cluster.pricing import Column, SymmetryClass
from certikmeans.bounds.cluster.step_rule import Target
from certikmeans.bounds.sample import min_box_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.arrays import iter_row_blocks
from certikmeans.problem.domain import Domain
from certikmeans.stop import StopSignal

if TYPE_CHECKING:
    from certikmeans.bounds.cluster.driver import RootProgress

# Columns handed on to the parts of a part: the heaviest ones.
MAX_WARM_START_COLUMNS = 40
MIN_WEIGHT = 1e-6
# With many clusters their means alone, so many for each cluster.
WARM_START_CENTERS_PER_CLUSTER = 100

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class BundleStart:
    """What a bundle begins with.

    ``incumbent`` has the clusters of a labelling in the part, by the number of their family; ``columns``
    are clusters found before, and ``column_centers`` are centres of more of them, of which the groups are
    forgotten.
    """

    incumbent: Sequence[tuple[int, Column]]
    columns: Sequence[Column] = ()
    column_centers: Sequence[Vector] = ()
    in_node: bool = False
    multipliers_proven: bool = (
        False  # ascents from known clusters were all that exact pricing could find
    )
    target_reachable: bool = True  # the goal may be in reach


def columns_of(reduced: ReducedProblem, labels: NDArray[np.int64]) -> list[Column]:
    """One column per cluster of the labels, worth nothing where multipliers are costs."""
    used = np.flatnonzero(np.bincount(labels))
    return [column_of(reduced, labels == k) for k in used]


def column_of(reduced: ReducedProblem, members: NDArray[Any]) -> Column:
    """Column of a set that is not empty."""
    rows = np.flatnonzero(members)
    weights, points = reduced.weights[rows], reduced.points[rows]
    mass = float(weights.sum())
    mean = weights @ points / mass
    cost = 0.0
    for block in iter_row_blocks(points):
        away = points[block] - mean
        cost += float(weights[block] @ np.einsum("ij,ij->i", away, away))
    return Column.of(mean, members, mass, cost, 0.0)


def heaviest_columns(columns: Sequence[Column], weights: Vector) -> tuple[Column, ...]:
    """Columns to hand on."""
    order = np.argsort(-weights, kind="stable")[:MAX_WARM_START_COLUMNS]
    return tuple(columns[int(i)] for i in order)


def heaviest_centers(
    columns: Sequence[Column], weights: Vector, reduced: ReducedProblem
) -> NDArray[np.float64]:
    """Means of columns to hand on: what they hold is found again there."""
    order = np.argsort(-weights, kind="stable")[
        : WARM_START_CENTERS_PER_CLUSTER * reduced.n_clusters
    ]
    chosen = [columns[int(i)].center for i in order if weights[i] > 0.0]
    return np.array(chosen).reshape(len(chosen), reduced.n_dims)


def improvement_columns(model: CutModel, incumbent: Sequence[Column]) -> list[Column]:
    """The incumbent's own clusters, then what is known, in the order of weight in the mixture."""
    order = np.argsort(-model.weights, kind="stable")
    return [*incumbent, *(model.columns[int(i)] for i in order)]


def fractional_solution_of(
    columns: Sequence[Column], weights: Vector, clusters_of: Callable[[int], tuple[int, ...]]
) -> FractionalSolution | None:
    """The relaxation's own solution: columns in proportion to the weights that cap the model."""
    chosen = np.flatnonzero(weights > MIN_WEIGHT)
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
    """Centres of the heaviest columns of every family."""
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


# Where to look for multipliers: a labelling of a part, its centres in their boxes.

MAX_LLOYD_STEPS = 12
# Of the gap asked for, this much is left to rounding on the way back through presolve.
PRESOLVE_MARGIN = 0.01
# How far beyond the bound asked for the cuts are asked to be, in units of the gap asked for.
LEVEL_OFFSET = 0.75


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterWarmStart:
    """Multipliers and columns to start from, in a node or at the root.

    ``progress`` is set where the computation at the root was stopped; another one continues there.
    """

    multipliers: Vector  # (n_groups,)
    columns: tuple[Column, ...]
    centers: NDArray[np.float64]  # (n_clusters, n_axes)
    column_centers: NDArray[np.float64] | None = (
        None  # (m, n_axes): means of more, to be found again there
    )
    proven: bool = False  # exact pricing at the multipliers found no column that ascents do not
    progress: RootProgress | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class InitialPoint:
    """Around which labelling the multipliers are sought, and what is known already."""

    labels: NDArray[np.int64]
    centers: NDArray[np.float64]  # one per cluster, each in its box
    target: Target
    cost: float
    multipliers: Vector | None = None
    columns: tuple[Column, ...] = ()
    column_centers: NDArray[np.float64] | None = None

    def with_warm_start(self, warm_start: ClusterWarmStart | None) -> InitialPoint:
        """Return the same point with multipliers and columns of a warm start."""
        if warm_start is None:
            return self
        return dataclasses.replace(
            self,
            multipliers=warm_start.multipliers,
            columns=warm_start.columns,
            column_centers=warm_start.column_centers,
        )


def root_initial_point(
    reduced: ReducedProblem, labels: NDArray[np.int64], gap: float, cutoff: float
) -> InitialPoint:
    """Return the incumbent, with the cutoff as target, or the incumbent's own if that is lower.

    The incumbent's own target is its cost less the gap: it is lower than the cutoff where the
    incumbent was improved since the cutoff was set.
    """
    cost = sum(column.cost for column in columns_of(reduced, labels))
    abs_gap = gap * (cost + reduced.offset)
    if cost <= abs_gap * (1.0 - PRESOLVE_MARGIN):
        target = Target(0.0, 0.0, abs_gap)
    else:
        abs_gap = max(abs_gap, 1e-12 * cost)
        bound = min(cost - (1.0 - PRESOLVE_MARGIN) * abs_gap, cutoff + PRESOLVE_MARGIN * abs_gap)
        level = min(cost - (1.0 - LEVEL_OFFSET) * abs_gap, cutoff + LEVEL_OFFSET * abs_gap)
        target = Target(bound=bound, level=level, abs_gap=abs_gap)
    return InitialPoint(labels, sorted_means(reduced, labels), target, cost)


def node_initial_point(
    reduced: ReducedProblem,
    assigner: AbstractAssigner,
    domain: Domain,
    bound: tuple[float, float],
    stop: StopSignal,
    warm_start: ClusterWarmStart | None,
) -> InitialPoint:
    """A labelling of the part near that of the larger part; ``bound`` is the cutoff, and a gap."""
    cutoff, gap = bound
    initial_centers = farthest_first(reduced, domain) if warm_start is None else warm_start.centers
    labels, centers = boxed_lloyd(reduced, assigner, domain, initial_centers, stop)
    cost = cost_at_centers(reduced, labels, centers)
    if not np.isfinite(cutoff):
        cutoff = cost
    abs_gap = max(gap * (cutoff + reduced.offset), 1e-12 * max(cutoff, cost), 1e-300)
    target = Target(bound=cutoff, level=cutoff + LEVEL_OFFSET * abs_gap, abs_gap=abs_gap)
    return InitialPoint(labels, centers, target, cost).with_warm_start(warm_start)


def sorted_means(reduced: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means in the order of axis 0; an empty cluster sits on the last of the others."""
    sums, masses = reduced.cluster_sums(labels)
    means = sums[masses > 0.0] / masses[masses > 0.0, None]
    means = means[np.argsort(means[:, 0], kind="stable")]
    return np.concatenate([means, np.repeat(means[-1:], reduced.n_clusters - len(means), axis=0)])


def farthest_first(reduced: ReducedProblem, domain: Domain) -> NDArray[np.float64]:
    """Centres far apart, each inside its box: for a start from nothing."""
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
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Lloyd with the centres kept in their boxes: a good labelling of the part, or nearly."""
    centers = np.clip(centers, domain.lower, domain.upper)
    labels = np.full(reduced.n_groups, -1, dtype=np.int64)
    for _ in range(MAX_LLOYD_STEPS):
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
    """Cost of the labels about the centres."""
    away = reduced.points - centers[labels]
    return float(reduced.weights @ np.einsum("ij,ij->i", away, away))
