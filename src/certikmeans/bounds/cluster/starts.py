"""Where to look for multipliers: a labelling of a part, its centres in their boxes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.cluster.aim import Aim
from certikmeans.bounds.cluster.columns import columns_of
from certikmeans.bounds.cluster.pricing import Column
from certikmeans.bounds.sample import least_costs
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal

LLOYD_STEPS = 12
# Of the gap asked for, this much is left to rounding on the way back through presolve.
MARGIN = 0.01
# How far beyond the bound asked for the cuts are asked to be, in units of the gap asked for.
BEYOND = 0.75

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterRestart:
    """What a smaller part starts from, or the whole if it is asked again for more."""

    multipliers: Vector  # (n_groups,)
    columns: tuple[Column, ...]
    centers: NDArray[np.float64]  # (n_clusters, n_axes)
    places: NDArray[np.float64] | None = None  # (m, n_axes): means of more, to be found again there


@final
@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Around which labelling the multipliers are sought, and what is known already."""

    labels: NDArray[np.int64]
    centers: NDArray[np.float64]  # one per cluster, each in its box
    aim: Aim
    cost: float
    multipliers: Vector | None = None
    columns: tuple[Column, ...] = ()
    places: NDArray[np.float64] | None = None

    def after(self, restart: ClusterRestart | None) -> Start:
        """The same with what is known from before."""
        if restart is None:
            return self
        return dataclasses.replace(
            self,
            multipliers=restart.multipliers,
            columns=restart.columns,
            places=restart.places,
        )


def start_at_the_root(
    reduced: ReducedProblem, labels: NDArray[np.int64], gap: float, multipliers: Vector | None
) -> Start:
    """The best labelling known; its cost less the gap asked for is the goal."""
    cost = sum(column.cost for column in columns_of(reduced, labels))
    unit = gap * (cost + reduced.offset)
    if cost <= unit * (1.0 - MARGIN):
        aim = Aim(0.0, 0.0, unit)
    else:
        unit = max(unit, 1e-12 * cost)
        goal = cost - (1.0 - MARGIN) * unit
        aim = Aim(goal=goal, level=cost - (1.0 - BEYOND) * unit, unit=unit)
    return Start(labels, means_in_order(reduced, labels), aim, cost, multipliers)


def start_in_a_node(
    reduced: ReducedProblem,
    assigner: AbstractAssigner,
    part: Subproblem,
    goal: tuple[float, float],
    stop: StopSignal,
    restart: ClusterRestart | None,
) -> Start:
    """A labelling of the part near that of the larger part; ``goal`` is the cutoff, and a gap."""
    cutoff, gap = goal
    guess = spread(reduced, part) if restart is None else restart.centers
    labels, centers = settle(reduced, assigner, part, guess, stop)
    cost = cost_about(reduced, labels, centers)
    if not np.isfinite(cutoff):
        cutoff = cost
    unit = max(gap * (cutoff + reduced.offset), 1e-12 * max(cutoff, cost), 1e-300)
    aim = Aim(goal=cutoff, level=cutoff + BEYOND * unit, unit=unit)
    return Start(labels, centers, aim, cost).after(restart)


def means_in_order(reduced: ReducedProblem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means in the order of axis 0; an empty cluster sits on the last of the others."""
    sums, masses = reduced.cluster_sums(labels)
    means = sums[masses > 0.0] / masses[masses > 0.0, None]
    means = means[np.argsort(means[:, 0], kind="stable")]
    return np.concatenate([means, np.repeat(means[-1:], reduced.n_clusters - len(means), axis=0)])


def spread(reduced: ReducedProblem, part: Subproblem) -> NDArray[np.float64]:
    """Centres far apart, each inside its box: for a start from nothing."""
    centers = 0.5 * (part.lower + part.upper)
    nearest = np.full(reduced.n_groups, np.inf)
    for k in range(reduced.n_clusters):
        away = reduced.points - np.clip(reduced.points, part.lower[k], part.upper[k])
        outside = np.einsum("ij,ij->i", away, away)
        score = reduced.weights * (np.minimum(nearest, 1e300) - outside)
        chosen = np.clip(reduced.points[int(np.argmax(score))], part.lower[k], part.upper[k])
        centers[k] = chosen
        away = reduced.points - chosen
        nearest = np.minimum(nearest, np.einsum("ij,ij->i", away, away))
    return centers


def settle(
    reduced: ReducedProblem,
    assigner: AbstractAssigner,
    part: Subproblem,
    centers: NDArray[np.float64],
    stop: StopSignal,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Lloyd with the centres kept in their boxes: a good labelling of the part, or nearly."""
    centers = np.clip(centers, part.lower, part.upper)
    labels = np.full(reduced.n_groups, -1, dtype=np.int64)
    for _ in range(LLOYD_STEPS):
        if part.viable is None:
            step = assigner.step(centers, labels, stop=stop)
            masses, sums, changed = step.masses, step.sums, step.changed
        else:
            costs = least_costs(reduced, Subproblem(centers, centers))
            found = assigner.assign_costs(np.where(part.viable, costs, np.inf), stop=stop)
            changed = int(np.count_nonzero(found.labels != labels))
            labels = found.labels
            sums, masses = reduced.cluster_sums(labels)
        if changed == 0 or stop.cause() is not None:
            break
        filled = masses > 0.0
        moved = centers.copy()
        moved[filled] = sums[filled] / masses[filled, None]
        centers = np.clip(moved, part.lower, part.upper)
    return labels, centers


def cost_about(
    reduced: ReducedProblem, labels: NDArray[np.int64], centers: NDArray[np.float64]
) -> float:
    """Cost of the labels about the centres."""
    away = reduced.points - centers[labels]
    return float(reduced.weights @ np.einsum("ij,ij->i", away, away))
