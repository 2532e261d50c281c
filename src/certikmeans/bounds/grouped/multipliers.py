"""Where the multipliers come from: a proximal bundle with the cuts of every group kept apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.grouped.lagrangian import Evaluated, Lagrangian
from certikmeans.kernels.grouped.master import Cuts, propose

MAX_CUTS = 16
SERIOUS = 0.1  # share of the promised gain that makes a step worth taking
PATIENCE = 3  # evaluations over which progress is judged
WORTHWHILE = 0.02  # progress asked for in that time, as a share of the way to the cutoff
NEGLIGIBLE = 1e-5  # the same relative to the value, where there is no cutoff


def same_boxes(
    lower: NDArray[np.float64], upper: NDArray[np.float64], viable: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Class of each cluster, such that clusters of a class cannot be told apart.

    >>> box = np.array([[0.0], [0.0], [1.0]])
    >>> same_boxes(box, box + 2.0, np.ones((4, 3), dtype=bool))
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
                and np.array_equal(viable[:, k], viable[:, t])
            ):
                classes[k] = t
                break
    return classes


def even_out(table: NDArray[np.float64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
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
class Bundle:
    """The cuts of all groups, and the position of the best bound so far."""

    def __init__(
        self, first: Evaluated, weights: NDArray[np.float64], classes: NDArray[np.int64]
    ) -> None:
        n_sets = len(first.nu)
        self._classes = classes
        self._weights = weights  # (G,) weight of each group
        self._cuts = Cuts(
            number=np.zeros(n_sets, dtype=np.int64),
            costs=np.zeros((n_sets, MAX_CUTS)),
            centers=np.zeros((n_sets, MAX_CUTS, first.nu[0].size)),
            alpha=np.zeros((n_sets, MAX_CUTS)),
        )
        self._reach = 1.0
        self._failures = 0
        self.best = first
        self._learn(first)

    def propose(self) -> tuple[NDArray[np.float64], float]:
        """Multipliers worth trying, and the gain that the cuts promise for them at most."""
        nu = self.best.nu
        masses = even_out(self.best.answers.masses.sum(axis=0, keepdims=True), self._classes)[0]
        shares = np.maximum(masses / masses.sum(), 0.02)
        scale = 2.0 * self._reach * self._weights[:, None] * shares[None, :]
        columns = np.ascontiguousarray(np.repeat(scale, nu.shape[2], axis=1))
        proposed = np.empty((len(nu), nu[0].size))
        flat = np.ascontiguousarray(nu.reshape(proposed.shape))
        level = float(np.sum(self.best.answers.values))
        model = propose(self._cuts, flat, columns, 1e-4 * NEGLIGIBLE * abs(level), proposed)
        return even_out(proposed.reshape(nu.shape), self._classes), model - level

    def accept(self, tried: Evaluated, promised: float) -> None:
        """Learn from an evaluation; move if it kept enough of the promise."""
        gain = tried.value - self.best.value
        self._learn(tried)
        if gain >= SERIOUS * promised:
            self._failures = 0
            if gain >= 0.5 * promised:
                self._reach = min(2.0 * self._reach, 64.0)
        else:
            self._failures += 1
            if self._failures >= 2:
                self._reach = max(0.5 * self._reach, 1.0 / 64.0)
        if gain > 0.0:
            self.best = tried

    def _learn(self, tried: Evaluated) -> None:
        """Add the cut of each group; the least used one makes room."""
        n_sets = len(tried.nu)
        centers = even_out(tried.answers.centers, self._classes).reshape(n_sets, -1)
        costs = tried.answers.values - np.einsum("gc,gc->g", tried.nu.reshape(n_sets, -1), centers)
        cuts = self._cuts
        full = cuts.number == MAX_CUTS
        slots = np.where(full, np.argmin(cuts.alpha, axis=1), cuts.number)
        rows = np.arange(n_sets)
        dropped = np.where(full, cuts.alpha[rows, slots], 0.0)
        cuts.costs[rows, slots] = costs
        cuts.centers[rows, slots] = centers
        cuts.alpha[rows, slots] = np.where(cuts.number == 0, 1.0, dropped)
        cuts.number[:] += ~full


@final
@dataclass(slots=True, eq=False)
class Climb:
    """How far an ascent is, between two evaluations."""

    bundle: Bundle
    labels: NDArray[np.int64]  # where the next searches start from
    history: list[float]  # best value after each evaluation
    ended: bool = False  # it gets no further


def climb(
    lagrangian: Lagrangian,
    first: Evaluated,
    classes: NDArray[np.int64],
    cutoff: float,
    max_evaluations: int,
    keep: Callable[[Climb], None] = lambda at: None,
) -> tuple[Evaluated, list[float]]:
    """Raise the bound until it reaches ``cutoff`` or gets no further.

    Returns the best evaluation and the best value after each. An evaluation that was cut short
    has no labels for some groups, hence no cuts: it is the last.
    """
    history = [first.value]
    if len(first.nu) == 1 or not np.isfinite(first.answers.values).all():
        return first, history
    bundle = Bundle(first, lagrangian.group_weights, classes)
    at = Climb(bundle, first.answers.labels, history)
    keep(at)
    return climb_on(lagrangian, at, cutoff, max_evaluations, keep)


def climb_on(
    lagrangian: Lagrangian,
    at: Climb,
    cutoff: float,
    max_evaluations: int,
    keep: Callable[[Climb], None] = lambda at: None,
) -> tuple[Evaluated, list[float]]:
    """The same from somewhere on the way; ``keep`` is told after every evaluation."""
    bundle, history = at.bundle, at.history
    while not at.ended and len(history) < max_evaluations and bundle.best.value < cutoff:
        proposed, promised = bundle.propose()
        worthwhile = NEGLIGIBLE * bundle.best.value
        if np.isfinite(cutoff):
            worthwhile = max(worthwhile, WORTHWHILE * (cutoff - bundle.best.value))
        if not promised > worthwhile / PATIENCE or not np.isfinite(proposed).all():
            break
        tried = lagrangian.evaluate(proposed, at.labels)
        if not np.isfinite(tried.answers.values).all():
            break
        at.labels = tried.answers.labels
        bundle.accept(tried, promised)
        history.append(bundle.best.value)
        at.ended = len(history) > PATIENCE and history[-1] - history[-1 - PATIENCE] <= worthwhile
        keep(at)
    return bundle.best, history
