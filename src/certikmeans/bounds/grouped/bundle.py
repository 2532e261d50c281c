"""Lagrangian dual of the grouped bound, maximized by a proximal bundle method.

**Rounding.** Write ``u`` for the unit roundoff, ``EPS = 2 u``; ``m``, ``K``, ``d`` for the numbers
of samples of a group, clusters and axes; ``Y`` for the largest norm in any box, and for a set of
samples with a share ``s`` of the linear term

    M = sum_i w_i (|x_i| + Y)^2  +  s sum_kj |nu_kj| Y_kj ,

``Y_kj`` the largest absolute value of that coordinate in the box of cluster k. M is additive when
samples and share are split, and at least the sum of the absolute values of all terms below.

**Value of a labelling.** ``sum_kj (W c - 2 b + s nu) c + q`` at a computed ``c`` inside the box.
The sums W, b, q have at most ``m`` terms, and each term rounds at most ``d + 2`` times; there are
``K (d + 1)`` products to add. So the evaluation errs by at most ``(m + K d + K + d + 10) u M``.
The computed ``c`` is not quite the minimiser: before clamping it errs by some ``delta``, and the
value there is too high by at most ``3 W delta^2``, and not at all if the exact minimiser before
clamping is farther than ``delta`` from the box. Otherwise ``delta <= 4 (m + 4) u (X + Y)``, with X
the mean of ``|x_j|`` in the cluster, and ``W X^2 <= sum w x_j^2`` makes that excess below ``u M``
for fewer than 9,000,000 samples.

**Additions.** They start from the computed centre instead of the exact one: replacing it in
``W |mu - c|^2`` costs at most ``4 W Y delta <= 16 (m + 4) u M``. The weights in ``ratio`` err by
``(m + 3) u``, which moves an addition, monotone in them, by ``(2 m + 10) u`` of its size at most;
its own arithmetic by ``(d + 10) u``; summation by ``m u``. An addition is at most
``w (|x| + Y)^2``, so all this is below ``(20 m + d + 100) u M``.

**Russian doll search.** Labelled part and tail have their own errors, in proportion to their own
parts of M, so along the chain of tails they add up to the above for the whole group. Each link
rounds the share (three times) and a sum, and so does each block: ``6 u M``, at most ``m`` times.

The total is below ``(27 m + K d + K + 2 d + 120) u M``; `group_errors` returns ``16 (m + K d + 16)
EPS M``. Minima, maxima and comparisons are exact, and every branch that the search did not follow
is in the minimum with its own bound, whatever the tolerance.

**The sum.** For common centres ``mu`` the linear terms of all groups add up to ``r.mu`` with
``r = sum_g nu_g``, which is zero only up to rounding. ``|r|`` is at most its computed value plus
``G EPS sum_g |nu_g|``, and `lagrangian_lower_bound` takes ``|r|.Y`` off. Underflow does not occur:
`Problem` keeps squares far above the smallest normal number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.bounds.grouped.sample_groups import SampleGroups
from certikmeans.kernels.grouped.master import CuttingPlanes, solve_master
from certikmeans.kernels.grouped.solve import Chunk, GroupSolutions, SearchLimits, solve_groups
from certikmeans.parallel import SharedData, TaskPool
from certikmeans.problem.data import Domain
from certikmeans.rounding import EPS
from certikmeans.stop import StopSignal


def sample_magnitudes(
    points: Floats,
    weights: Floats,
    starts: Ints,
    max_abs_center: Floats,
) -> Floats:
    """The part of M that comes from the samples, per group; ``max_abs_center`` is ``Y_kj``."""
    largest = math.sqrt(float(np.max(np.sum(max_abs_center * max_abs_center, axis=1))))
    norms = np.sqrt(np.einsum("ij,ij->i", points, points))
    magnitudes: Floats = np.add.reduceat(weights * (norms + largest) ** 2, starts[:-1])
    return magnitudes


def group_errors(
    magnitudes: Floats,
    starts: Ints,
    nu: Floats,
    max_abs_center: Floats,
) -> Floats:
    """At least the rounding error of the bound of every group."""
    magnitude = magnitudes + np.einsum("gkj,kj->g", np.abs(nu), max_abs_center)
    errors: Floats = 16.0 * (np.diff(starts) + max_abs_center.size + 16) * EPS * magnitude
    return errors


def lagrangian_lower_bound(
    bounds: Floats,
    errors: Floats,
    nu: Floats,
    max_abs_center: Floats,
) -> float:
    """At most the cost of every labelling, given the groups' bounds and their errors.

    >>> zero = np.zeros((2, 1, 1))
    >>> bound = lagrangian_lower_bound(np.array([1.0, 2.0]), np.zeros(2), zero, np.ones((1, 1)))
    >>> 2.9 < bound <= 3.0
    True
    """
    residual = np.abs(nu.sum(axis=0)) + (len(nu) * EPS) * np.abs(nu).sum(axis=0)
    residual_term = float(np.sum(residual * max_abs_center)) * (
        1.0 + (max_abs_center.size + 8) * EPS
    )
    total = math.fsum([*bounds.tolist(), *(-errors).tolist(), -residual_term])
    return max(0.0, total - 2.0 * EPS * abs(total))


CHUNK_SIZE = 4  # groups; the stop signal is checked between chunks

ChunkSolver = Callable[[Chunk, Floats, Ints, SearchLimits], GroupSolutions]


def make_chunks(
    groups: SampleGroups, domain: Domain, allowed: Mask, nearest: Floats
) -> list[Chunk]:
    """Divide the groups into tasks, independently of the number of workers."""
    chunks = []
    for first in range(0, groups.n_sets, CHUNK_SIZE):
        starts = groups.starts[first : first + CHUNK_SIZE + 1]
        a, b = int(starts[0]), int(starts[-1])
        links = groups.link_start[a : b + 1]
        chunks.append(
            Chunk(
                starts=starts - a,
                points=groups.points[a:b],
                weights=groups.weights[a:b],
                link_start=links - links[0],
                link=groups.link[links[0] : links[-1]] - a,
                allowed=allowed[a:b],
                nearest=nearest[a:b],
                lower=domain.lower,
                upper=domain.upper,
            )
        )
    return chunks


def concatenate(solutions: list[GroupSolutions]) -> GroupSolutions:
    """Concatenate the solutions of all chunks."""
    if len(solutions) == 1:
        return solutions[0]
    return GroupSolutions(*(np.concatenate(parts) for parts in zip(*solutions, strict=True)))


def solve_chunk(chunk: Chunk, nu: Floats, labels: Ints, limits: SearchLimits) -> GroupSolutions:
    """Solve the groups of ``chunk`` with linear terms ``nu``, starting from ``labels``."""
    n_sets = len(chunk.starts) - 1
    solutions = GroupSolutions(
        values=np.empty(n_sets),
        bounds=np.empty(n_sets),
        centers=np.empty_like(nu),
        masses=np.empty(nu.shape[:2]),
        nodes=np.empty(n_sets, dtype=np.int64),
        labels=labels.copy(),
    )
    solve_groups(chunk, nu, limits, solutions)
    return solutions


WORK_PER_SEARCH_NODE = 4e3  # units of work of a node of the search in a group

Task = tuple[int, Floats, Ints, SearchLimits]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualEvaluation:
    """The bound at given multipliers."""

    value: float  # proven lower bound
    nu: Floats  # (G, K, d)
    solutions: GroupSolutions


@final
class GroupedDual:
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

    def compute(self, nu: Floats, labels: Ints) -> DualEvaluation:
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

    def _solve_all(self, nu: Floats, labels: Ints) -> GroupSolutions:
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


def symmetry_classes(lower: Floats, upper: Floats, allowed: Mask) -> Ints:
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


def average_over_classes(table: Floats, classes: Ints) -> Floats:
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
        weights: Floats,
        classes: Ints,
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

    def propose(self) -> tuple[Floats, float]:
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
    labels: Ints  # initial labels of the next searches
    history: list[float]  # best value after each evaluation
    converged: bool = False


def ascend(
    lagrangian: GroupedDual,
    first: DualEvaluation,
    classes: Ints,
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
    lagrangian: GroupedDual,
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
