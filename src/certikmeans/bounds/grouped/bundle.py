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
from certikmeans.kernels.grouped.master import CuttingPlanes, solve_master
from certikmeans.parallel import SharedData, TaskPool
from certikmeans.problem.domain import Domain
from certikmeans.stop import StopSignal

WORK_PER_SEARCH_NODE = 4e3  # units of work of a node of the search in a group

Task = tuple[int, NDArray[np.float64], NDArray[np.int64], SearchLimits]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualEvaluation:
    """The bound at given multipliers."""

    value: float  # proven lower bound
    nu: NDArray[np.float64]  # (G, K, d)
    solutions: GroupSolutions


@final
class LagrangianDual:
    """Lagrangian dual function: sum of the bounds of all groups for given multipliers."""

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
        self._shared = SharedData(tuple(chunks))  # tasks refer to them by number
        self._stop = stop
        self._starts = groups.starts
        self._max_abs_center = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        self._magnitudes = sample_magnitudes(
            groups.points, groups.weights, groups.starts, self._max_abs_center
        )
        self._work = 0.0
        self.group_weights = np.add.reduceat(groups.weights, groups.starts[:-1])

    def compute(self, nu: NDArray[np.float64], labels: NDArray[np.int64]) -> DualEvaluation:
        """Evaluate the proven bound at ``nu``; the searches start from ``labels``."""
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
        """Solutions of all groups, in order."""
        tasks = []
        limits = self._limits._replace(seconds=self._stop.remaining)
        first, row = 0, 0
        for number, chunk in enumerate(self._chunks):
            last, end = first + len(chunk.starts) - 1, row + len(chunk.points)
            tasks.append((number, nu[first:last], labels[row:end], limits))
            first, row = last, end
        solve = partial(_solve_or_relax, solve=self._solve, stop=self._stop)
        found = concatenate(self._task_pool.map(solve, tasks, shared=self._shared, stop=self._stop))
        self._work += WORK_PER_SEARCH_NODE * float(found.nodes.sum())
        return found

    def take_work(self) -> float:
        """Return the units of work since the last call."""
        work, self._work = self._work, 0.0
        return work


def _solve_or_relax(
    chunks: tuple[Chunk, ...], task: Task, solve: ChunkSolver, stop: StopSignal
) -> GroupSolutions:
    """Solve a chunk, or, when time is up, bound its groups without solving them.

    Squares are nonnegative, and the minimum of a linear term over a box is at a corner.
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


# Maximization of the dual: a proximal bundle with separate cuts for every group.


@final
@dataclass(frozen=True, slots=True)
class BundleParams:
    """Settings of the proximal bundle method."""

    max_cuts: int = 16  # per group
    serious_step_fraction: float = 0.1  # of the predicted gain, for a serious step
    stall_window: int = 3  # evaluations over which progress is measured
    # Least progress in that window: as a fraction of the distance to the cutoff, and of the value.
    min_progress_to_cutoff: float = 0.02
    min_relative_progress: float = 1e-5

    def __post_init__(self) -> None:
        if min(self.max_cuts, self.stall_window) < 1:
            raise ValueError("max_cuts and stall_window must be positive")


DEFAULT_PARAMS = BundleParams()


def symmetry_classes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Symmetry class of each cluster: those with the same box and allowed samples.

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

    The Lagrangian bound is concave and invariant under permutations of clusters of a class, so it
    has a maximiser with equal multipliers for them; the search exploits that symmetry.
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
    """Cuts of all groups, and the best evaluation so far as stability centre."""

    def __init__(
        self,
        first: DualEvaluation,
        weights: NDArray[np.float64],
        classes: NDArray[np.int64],
        params: BundleParams = DEFAULT_PARAMS,
    ) -> None:
        n_sets, max_cuts = len(first.nu), params.max_cuts
        self.params = params
        self._classes = classes
        self._weights = weights  # (G,) weight of each group
        self._cuts = CuttingPlanes(
            n_cuts=np.zeros(n_sets, dtype=np.int64),
            costs=np.zeros((n_sets, max_cuts)),
            centers=np.zeros((n_sets, max_cuts, first.nu[0].size)),
            alpha=np.zeros((n_sets, max_cuts)),
        )
        self._step_scale = 1.0
        self._n_null_steps = 0
        self.best = first
        self._add_cuts(first)

    def propose(self) -> tuple[NDArray[np.float64], float]:
        """Next multipliers, and the gain predicted by the model, an upper bound."""
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
        tolerance = 1e-4 * self.params.min_relative_progress * abs(level)
        model = solve_master(self._cuts, flat, columns, tolerance, proposed)
        return average_over_classes(proposed.reshape(nu.shape), self._classes), model - level

    def update(self, trial: DualEvaluation, predicted_gain: float) -> None:
        """Add the cuts of an evaluation; a serious step if it gained enough."""
        gain = trial.value - self.best.value
        self._add_cuts(trial)
        if gain >= self.params.serious_step_fraction * predicted_gain:
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
        """Add the cut of each group, replacing the one of least weight if there are too many."""
        n_sets = len(trial.nu)
        centers = average_over_classes(trial.solutions.centers, self._classes).reshape(n_sets, -1)
        costs = trial.solutions.values - np.einsum(
            "gc,gc->g", trial.nu.reshape(n_sets, -1), centers
        )
        cuts = self._cuts
        full = cuts.n_cuts == self.params.max_cuts
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
    """State of an ascent between two evaluations."""

    bundle: ProximalBundle
    labels: NDArray[np.int64]  # initial labels of the next searches
    history: list[float]  # best value after each evaluation
    converged: bool = False


def ascend(
    lagrangian: LagrangianDual,
    first: DualEvaluation,
    classes: NDArray[np.int64],
    cutoff: float,
    max_evaluations: int,
    checkpoint: Callable[[AscentState], None] = lambda ascent: None,
    params: BundleParams = DEFAULT_PARAMS,
) -> tuple[DualEvaluation, list[float]]:
    """Maximize the dual until it reaches ``cutoff`` or stalls.

    Returns the best evaluation, and the best value after each evaluation. An interrupted
    evaluation has no labels for some groups, hence no cuts: it is the last.
    """
    history = [first.value]
    if len(first.nu) == 1 or not np.isfinite(first.solutions.values).all():
        return first, history
    bundle = ProximalBundle(first, lagrangian.group_weights, classes, params)
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
    """Continue an ascent; ``checkpoint`` is called after every evaluation."""
    bundle, history = ascent.bundle, ascent.history
    params, window = bundle.params, bundle.params.stall_window
    while not ascent.converged and len(history) < max_evaluations and bundle.best.value < cutoff:
        proposed, predicted_gain = bundle.propose()
        min_progress = params.min_relative_progress * bundle.best.value
        if np.isfinite(cutoff):
            to_cutoff = cutoff - bundle.best.value
            min_progress = max(min_progress, params.min_progress_to_cutoff * to_cutoff)
        if not predicted_gain > min_progress / window or not np.isfinite(proposed).all():
            break
        trial = lagrangian.compute(proposed, ascent.labels)
        if not np.isfinite(trial.solutions.values).all():
            break
        ascent.labels = trial.solutions.labels
        bundle.update(trial, predicted_gain)
        history.append(bundle.best.value)
        ascent.converged = (
            len(history) > window and history[-1] - history[-1 - window] <= min_progress
        )
        checkpoint(ascent)
    return bundle.best, history
