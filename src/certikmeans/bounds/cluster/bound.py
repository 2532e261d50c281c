"""The cluster bound: one Lagrangian subproblem in R^d, the same for all K clusters.

    z  >=  L(lam) = sum_s lam_s - K sigma(lam)

for any multipliers ``lam``: relaxing "every group is in exactly one cluster" splits the
problem by cluster, and each of the K clusters is worth at most ``sigma(lam)``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certikmeans.bounds.cluster.bundle import Aim, BundleStatistics, LevelBundle, Outcome
from certikmeans.bounds.cluster.families import Family
from certikmeans.bounds.cluster.multipliers import multiplier_space
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.problem import ReducedProblem
from certikmeans.stop import StopSignal

# Of the gap asked for, this much is left to rounding on the way back through presolve.
MARGIN = 0.01
# Where between the goal and the incumbent's cost the cuts are asked to be.
LEVEL = 0.25


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterProof:
    """A proven bound on the reduced cost, with its proof and what was learnt on the way."""

    value: float  # at most the reduced cost of every labelling, ``offset`` not included
    multipliers: NDArray[np.float64]  # (n_groups,): ``value`` follows from these; K = 1: zeros
    columns: list[Column]  # clusters worth trying; centres for the heuristics
    labels: NDArray[np.int64]  # (n_groups,): the best labelling known at the end
    outcome: Outcome
    ceiling: float  # no multipliers in the incumbent's box prove more; may be infinite
    statistics: BundleStatistics
    weights: NDArray[np.float64]  # of the columns, in the relaxation's own solution

    @property
    def reached(self) -> bool:
        """Whether the gap asked for is proven."""
        return self.outcome is Outcome.PROVEN


Improve = Callable[[list[Column]], NDArray[np.int64] | None]


def cluster_bound(
    reduced: ReducedProblem,
    labels: NDArray[np.int64],
    *,
    target_gap: float,
    stop: StopSignal,
    executor: Executor | None = None,
    improve: Improve | None = None,
    on_bound: Callable[[float], None] = lambda value: None,
    seed: int = 0,
    doubt_after: float = np.inf,
) -> ClusterProof:
    """Prove that ``labels`` are within ``target_gap`` of the optimum, or come close.

    Parameters
    ----------
    reduced : ReducedProblem
    labels : ndarray of shape (n_groups,)
        A proper labelling; the better, the closer the bound.
    target_gap : float
        Relative to the cost of the labels, ``offset`` included.
    stop : StopSignal
        Ends the work early; what is proven by then is returned.
    executor : concurrent.futures.Executor, optional
        Threads for pricing.
    improve : callable, optional
        Called with the clusters found when the goal turns out to be unreachable: then the
        labels are not optimal, or the relaxation has a gap. May return better labels.
    on_bound : callable
        Told every proven improvement.
    seed : int
        For the choice of starting points.
    doubt_after : float
        Boxes of an exact pricing from which on it is given up if it makes no progress. Infinite:
        up to half of what is left of a time limit may go into one.

    Examples
    --------
    >>> from certikmeans.problem import Problem
    >>> from certikmeans.presolve.pipeline import presolve
    >>> problem = Problem.from_data([[0.0], [1.0], [8.0], [9.0]], 2)
    >>> reduced = presolve(problem, StopSignal()).reduced
    >>> bound = cluster_bound(reduced, np.array([0, 0, 1, 1]), target_gap=1e-3, stop=StopSignal())
    >>> 0.999 <= bound.value <= 1.0
    True
    """
    incumbent = incumbent_columns(reduced, labels)
    cost = sum(column.cost for column in incumbent)
    unit = target_gap * (cost + reduced.offset)
    trivial = _trivial_bound(reduced, cost, unit)
    if trivial is not None:
        return ClusterProof(
            trivial, np.zeros(len(labels)), incumbent, labels, Outcome.PROVEN, cost,
            BundleStatistics(), np.ones(len(incumbent)),
        )  # fmt: skip
    with threadpool_limits(limits=1):  # small products: more threads only get in the way
        return _raise_bound(
            Pricer(reduced, executor),
            labels,
            target_gap,
            stop,
            improve,
            _Best(on_bound),
            seed,
            doubt_after,
        )


def _raise_bound(
    pricer: Pricer,
    labels: NDArray[np.int64],
    target_gap: float,
    stop: StopSignal,
    improve: Improve | None,
    best: _Best,
    seed: int,
    doubt_after: float,
) -> ClusterProof:
    """Run the bundle of the labels; where the goal is out of reach, of better ones."""
    reduced = pricer.reduced
    incumbent = incumbent_columns(reduced, labels)
    cost = sum(column.cost for column in incumbent)
    families = [Family(pricer.everywhere, tuple(range(reduced.n_clusters)))]
    space = multiplier_space(reduced, labels)
    make_bundle = partial(LevelBundle, pricer, doubt_after=doubt_after)
    bundle = make_bundle(space, families, incumbent, seed, best.offer)
    while True:
        aim = _aim(cost, target_gap * (cost + reduced.offset))
        outcome = bundle.run(aim, stop, pause_if_unreachable=improve is not None)
        best.keep(bundle)
        if outcome is not Outcome.UNREACHABLE or improve is None:
            break
        better = improve(bundle.model.columns)
        incumbent = [] if better is None else incumbent_columns(reduced, better)
        if better is None or sum(c.cost for c in incumbent) >= cost * (1.0 - 1e-9):
            improve = None  # it has had its turn: go on to the best bound there is
            continue
        labels, cost = better, sum(column.cost for column in incumbent)
        columns, statistics = bundle.model.columns, bundle.statistics
        space = multiplier_space(reduced, labels)
        bundle = make_bundle(space, families, incumbent, seed, best.offer, columns)
        bundle.statistics = statistics
    if best.value >= aim.goal:
        outcome = Outcome.PROVEN
    return ClusterProof(
        value=best.value,
        multipliers=best.multipliers(len(labels)),
        columns=bundle.model.columns,
        labels=labels,
        outcome=outcome,
        ceiling=bundle.ceiling,
        statistics=bundle.statistics,
        weights=bundle.model.weights,
    )


def _trivial_bound(reduced: ReducedProblem, cost: float, unit: float) -> float | None:
    """Bound that needs no work: one cluster, or nothing worth proving."""
    if reduced.n_clusters == 1:
        return cost_about_one_centre(reduced.points, reduced.weights)
    return 0.0 if cost <= unit * (1.0 - MARGIN) else None


def _aim(cost: float, unit: float) -> Aim:
    unit = max(unit, 1e-12 * cost)
    return Aim(goal=cost - (1.0 - MARGIN) * unit, level=cost - LEVEL * unit, unit=unit)


@final
class _Best:
    """The best bound over all incumbents: it never goes down."""

    def __init__(self, on_bound: Callable[[float], None]) -> None:
        self.value = 0.0  # no cost is negative
        self._lam: NDArray[np.float64] | None = None
        self._told = 0.0
        self._on_bound = on_bound

    def offer(self, value: float) -> None:
        if value > self._told:
            self._told = value
            self._on_bound(value)

    def keep(self, bundle: LevelBundle) -> None:
        if bundle.proven > self.value:
            self.value, self._lam = bundle.proven, bundle.proven_lam

    def multipliers(self, n_groups: int) -> NDArray[np.float64]:
        return np.zeros(n_groups) if self._lam is None else self._lam


def incumbent_columns(reduced: ReducedProblem, labels: NDArray[np.int64]) -> list[Column]:
    """One column per cluster of the labels, worth nothing where multipliers are costs."""
    compact = np.unique(labels, return_inverse=True)[1]
    return [column_of(reduced, compact == k) for k in range(int(compact.max()) + 1)]


def column_of(reduced: ReducedProblem, members: NDArray[np.bool_]) -> Column:
    """Column of a set that is not empty."""
    weights, points = reduced.weights[members], reduced.points[members]
    mass = float(weights.sum())
    mean = weights @ points / mass
    away = points - mean
    cost = float(weights @ np.einsum("ij,ij->i", away, away))
    return Column(mean, members.astype(np.uint8), mass, cost, 0.0)
