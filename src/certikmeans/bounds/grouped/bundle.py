"""Lagrangian dual of the grouped bound, maximized by a proximal bundle method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.rounding_error import (
    group_errors,
    lagrangian_lower_bound,
    sample_magnitudes,
)
from certikmeans.bounds.grouped.sample_groups import SampleGroups
from certikmeans.bounds.grouped.tasks import (
    Chunk,
    ChunkSolver,
    GroupSolutions,
    SearchLimits,
    concatenate,
)
from certikmeans.kernels.grouped.master import CuttingPlanes, propose
from certikmeans.parallel import SharedData, TaskPool
from certikmeans.problem.domain import Domain
from certikmeans.stop import StopSignal

Task = tuple[int, NDArray[np.float64], NDArray[np.int64], SearchLimits]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualEvaluation:
    """The bound at one choice of multipliers."""

    value: float  # proven
    nu: NDArray[np.float64]  # (G, K, d)
    solutions: GroupSolutions


@final
class LagrangianDual:
    """Solves all groups for given multipliers and adds up what is proven."""

    def __init__(
        self,
        groups: SampleGroups,
        domain: Domain,
        chunks: list[Chunk],
        solve: ChunkSolver,
        limits: SearchLimits,
        task_pool: TaskPool,
        stop: StopSignal,
    ) -> None:
        self._chunks = chunks
        self._solve = solve
        self._limits = limits
        self._task_pool = task_pool
        self._shared = SharedData(tuple(chunks))  # tasks name one of them
        self._stop = stop
        self._starts = groups.starts
        self._max_abs_center = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        self._magnitudes = sample_magnitudes(
            groups.points, groups.weights, groups.starts, self._max_abs_center
        )
        self.group_weights = np.add.reduceat(groups.weights, groups.starts[:-1])

    def compute(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> DualEvaluation:
        """The proven value at ``nu``. Labels are where the searches start from."""
        solutions = self._solve_all(nu, labels)
        if np.isposinf(solutions.bounds).any():
            return DualEvaluation(np.inf, nu, solutions)
        errors = group_errors(self._magnitudes, self._starts, nu, self._max_abs_center)
        return DualEvaluation(
            lagrangian_lower_bound(solutions.bounds, errors, nu, self._max_abs_center),
            nu,
            solutions,
        )

    def _solve_all(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> GroupSolutions:
        """Answers for all groups, in their order whoever ran them."""
        tasks = []
        limits = self._limits._replace(seconds=self._stop.remaining)
        first, row = 0, 0
        for number, chunk in enumerate(self._chunks):
            last, end = first + len(chunk.starts) - 1, row + len(chunk.points)
            tasks.append((number, nu[first:last], labels[row:end], limits))
            first, row = last, end
        solve = partial(_solve_or_relax, solve=self._solve, stop=self._stop)
        return concatenate(self._task_pool.map(solve, tasks, shared=self._shared, stop=self._stop))


def _solve_or_relax(
    chunks: tuple[Chunk, ...], task: Task, solve: ChunkSolver, stop: StopSignal
) -> GroupSolutions:
    """Solve a few groups, or say what holds without solving when time is up.

    Squares are not negative, and a linear term is least at a corner of the box.
    """
    number, nu, labels, limits = task
    chunk = chunks[number]
    if stop.reason() is None:
        return solve(chunk, nu, labels, limits)
    n_sets = len(nu)
    return GroupSolutions(
        values=np.full(n_sets, np.inf),
        bounds=np.minimum(nu * chunk.lower, nu * chunk.upper).sum(axis=(1, 2)),
        centers=np.tile(0.5 * (chunk.lower + chunk.upper), (n_sets, 1, 1)),
        masses=np.zeros(nu.shape[:2]),
        nodes=np.zeros(n_sets, dtype=np.int64),
        labels=labels,
    )


# Where the multipliers come from: a proximal bundle with the cuts of every group kept apart.

MAX_CUTS = 16
SERIOUS_STEP_FRACTION = 0.1  # share of the promised gain that makes a step worth taking
STALL_WINDOW = 3  # evaluations over which progress is judged
MIN_PROGRESS_TO_CUTOFF = (
    0.02  # progress asked for in that time, as a share of the way to the cutoff
)
MIN_RELATIVE_PROGRESS = 1e-5  # the same relative to the value, where there is no cutoff


def symmetry_classes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Class of each cluster, such that clusters of a class cannot be told apart.

    >>> box = np.array([[0.0], [0.0], [1.0]])
    >>> symmetry_classes(box, box + 2.0, np.ones((4, 3), dtype=bool))
    array([0, 0, 2])
    """
    n_clusters = len(lower)
    classes = np.arange(n_clusters)
    for k in range(1, n_clusters):
        for t in range(k):
            if (
                classes[t] == t
                and np.array_equal(lower[k], lower[t])
                and np.array_equal(upper[k], upper[t])
                and np.array_equal(allowed[:, k], allowed[:, t])
            ):
                classes[k] = t
                break
    return classes


def average_over_classes(
    table: NDArray[np.float64], classes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Average axis 1 over the clusters of each class.

    The Lagrangian bound is concave and does not change when clusters that cannot be told apart
    are swapped, so it has a maximiser that treats them alike; and the search can use that.
    """
    if np.array_equal(classes, np.arange(len(classes))):
        return table
    even = np.empty_like(table)
    for k in np.unique(classes):
        alike = np.flatnonzero(classes == k)
        even[:, alike] = table[:, alike].mean(axis=1, keepdims=True)
    return even


@final
class ProximalBundle:
    """The cuts of all groups, and the position of the best bound so far."""

    def __init__(
        self, first: DualEvaluation, weights: NDArray[np.float64], classes: NDArray[np.int64]
    ) -> None:
        n_sets = len(first.nu)
        self._classes = classes
        self._weights = weights  # (G,) weight of each group
        self._cuts = CuttingPlanes(
            n_cuts=np.zeros(n_sets, dtype=np.int64),
            costs=np.zeros((n_sets, MAX_CUTS)),
            centers=np.zeros((n_sets, MAX_CUTS, first.nu[0].size)),
            alpha=np.zeros((n_sets, MAX_CUTS)),
        )
        self._step_scale = 1.0
        self._n_null_steps = 0
        self.best = first
        self._add_cuts(first)

    def propose(self) -> tuple[NDArray[np.float64], float]:
        """Multipliers worth trying, and the gain that the cuts promise for them at most."""
        nu = self.best.nu
        masses = average_over_classes(
            self.best.solutions.masses.sum(axis=0, keepdims=True), self._classes
        )[0]
        shares = np.maximum(masses / masses.sum(), 0.02)
        scale = 2.0 * self._step_scale * self._weights[:, None] * shares[None, :]
        columns = np.ascontiguousarray(np.repeat(scale, nu.shape[2], axis=1))
        proposed = np.empty((len(nu), nu[0].size))
        flat = np.ascontiguousarray(nu.reshape(proposed.shape))
        level = float(np.sum(self.best.solutions.values))
        model = propose(
            self._cuts, flat, columns, 1e-4 * MIN_RELATIVE_PROGRESS * abs(level), proposed
        )
        return average_over_classes(proposed.reshape(nu.shape), self._classes), model - level

    def update(self, trial: DualEvaluation, predicted_gain: float) -> None:
        """Learn from an evaluation; move if it kept enough of the promise."""
        gain = trial.value - self.best.value
        self._add_cuts(trial)
        if gain >= SERIOUS_STEP_FRACTION * predicted_gain:
            self._n_null_steps = 0
            if gain >= 0.5 * predicted_gain:
                self._step_scale = min(2.0 * self._step_scale, 64.0)
        else:
            self._n_null_steps += 1
            if self._n_null_steps >= 2:
                self._step_scale = max(0.5 * self._step_scale, 1.0 / 64.0)
        if gain > 0.0:
            self.best = trial

    def _add_cuts(self, trial: DualEvaluation) -> None:
        """Add the cut of each group; the least used one makes room."""
        n_sets = len(trial.nu)
        centers = average_over_classes(trial.solutions.centers, self._classes).reshape(n_sets, -1)
        costs = trial.solutions.values - np.einsum(
            "gc,gc->g", trial.nu.reshape(n_sets, -1), centers
        )
        cuts = self._cuts
        full = cuts.n_cuts == MAX_CUTS
        slots = np.where(full, np.argmin(cuts.alpha, axis=1), cuts.n_cuts)
        rows = np.arange(n_sets)
        dropped = np.where(full, cuts.alpha[rows, slots], 0.0)
        cuts.costs[rows, slots] = costs
        cuts.centers[rows, slots] = centers
        cuts.alpha[rows, slots] = np.where(cuts.n_cuts == 0, 1.0, dropped)
        cuts.n_cuts[:] += ~full


@final
@dataclass(slots=True, eq=False)
class AscentState:
    """How far an ascent is, between two evaluations."""

    bundle: ProximalBundle
    labels: NDArray[np.int64]  # where the next searches start from
    history: list[float]  # best value after each evaluation
    converged: bool = False  # it gets no further


def ascend(
    lagrangian: LagrangianDual,
    first: DualEvaluation,
    classes: NDArray[np.int64],
    cutoff: float,
    max_evaluations: int,
    checkpoint: Callable[[AscentState], None] = lambda ascent: None,
) -> tuple[DualEvaluation, list[float]]:
    """Raise the bound until it reaches ``cutoff`` or gets no further.

    Returns the best evaluation and the best value after each. An evaluation that was cut short
    has no labels for some groups, hence no cuts: it is the last.
    """
    history = [first.value]
    if len(first.nu) == 1 or not np.isfinite(first.solutions.values).all():
        return first, history
    bundle = ProximalBundle(first, lagrangian.group_weights, classes)
    ascent = AscentState(bundle, first.solutions.labels, history)
    checkpoint(ascent)
    return continue_ascent(lagrangian, ascent, cutoff, max_evaluations, checkpoint)


def continue_ascent(
    lagrangian: LagrangianDual,
    ascent: AscentState,
    cutoff: float,
    max_evaluations: int,
    checkpoint: Callable[[AscentState], None] = lambda ascent: None,
) -> tuple[DualEvaluation, list[float]]:
    """The same from somewhere on the way; ``checkpoint`` is told after every evaluation."""
    bundle, history = ascent.bundle, ascent.history
    while not ascent.converged and len(history) < max_evaluations and bundle.best.value < cutoff:
        proposed, predicted_gain = bundle.propose()
        min_progress = MIN_RELATIVE_PROGRESS * bundle.best.value
        if np.isfinite(cutoff):
            min_progress = max(min_progress, MIN_PROGRESS_TO_CUTOFF * (cutoff - bundle.best.value))
        if not predicted_gain > min_progress / STALL_WINDOW or not np.isfinite(proposed).all():
            break
        trial = lagrangian.compute(proposed, ascent.labels)
        if not np.isfinite(trial.solutions.values).all():
            break
        ascent.labels = trial.solutions.labels
        bundle.update(trial, predicted_gain)
        history.append(bundle.best.value)
        ascent.converged = (
            len(history) > STALL_WINDOW and history[-1] - history[-1 - STALL_WINDOW] <= min_progress
        )
        checkpoint(ascent)
    return bundle.best, history
