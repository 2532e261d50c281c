"""The cluster bound: one Lagrangian subproblem in R^d for every family of alike clusters.

    z  >=  L(lam) = sum_s lam_s - sum_k sigma_k(lam)

for any multipliers ``lam``: relaxing "every group is in exactly one cluster" splits the
problem by cluster, and cluster k is worth at most ``sigma_k(lam)``. At the root all K clusters
look alike, and one subproblem does.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import AbstractAssigner
from certikmeans.bounds.base import AbstractBound, BoundResult, Root, Setting
from certikmeans.bounds.cluster.aim import Aim, Outcome
from certikmeans.bounds.cluster.bundle import FEW_CLUSTERS, MOST_ROUNDS, LevelBundle
from certikmeans.bounds.cluster.columns import (
    column_of,
    columns_of,
    columns_to_recombine,
    heaviest_columns,
    mixture_of,
    rounded_mixture,
)
from certikmeans.bounds.cluster.families import families_of
from certikmeans.bounds.cluster.multipliers import multiplier_space
from certikmeans.bounds.cluster.patience import ROUNDS
from certikmeans.bounds.cluster.pricing import DOUBT_AFTER, Column, Pricer
from certikmeans.bounds.cluster.pricing_error import pricing_error
from certikmeans.bounds.cluster.starts import cost_about, means_in_order, settle, spread
from certikmeans.bounds.one_centre import cost_about_one_centre
from certikmeans.execution.blas import one_blas_thread
from certikmeans.kernels.pricing.ascent import ascend
from certikmeans.kernels.pricing.search import search_boxes
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import GroupMultipliers, Leaf
from certikmeans.stop import StopSignal

# Of the gap asked for, this much is left to rounding on the way back through presolve.
MARGIN = 0.01
# How far beyond the bound asked for the cuts are asked to be, in units of the gap asked for.
BEYOND = 0.75
# Rounds of the bundle in a node: a split gains more than many small steps. With many clusters a
# round moves little, and the bundle goes on for as long as so many rounds bring it closer.
ROUNDS_IN_A_NODE = 60
PATIENCE_IN_A_NODE = 12
# Where another bound waits, exact pricing has to show progress from so many boxes on: those that
# many looks at a group make, but no fewer than so many.
DOUBT_SOON, LOOKS_SOON = 5_000, 1e7
# Where the goal is out of reach, the box goes on by so many times its own width on either side.
WIDER = 1.0
# A labelling that is better by less is the same one, as far as the box goes.
SAME_COST = 1e-9

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterState:
    """What every evaluation shares."""

    pricer: Pricer
    assigner: AbstractAssigner  # finds labels to build the multipliers' box around
    gap: float
    seed: int
    multipliers: Vector | None = None  # of an earlier run
    familiar: bool = False  # it has proven something of this problem with them


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClusterRestart:
    """What a smaller part starts from, or the whole if it is asked again for more."""

    multipliers: Vector  # (n_groups,)
    columns: tuple[Column, ...]
    centers: NDArray[np.float64]  # (n_clusters, n_axes)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """Around which labelling the multipliers are sought, and what is known already."""

    labels: NDArray[np.int64]
    centers: NDArray[np.float64]  # one per cluster, each in its box
    aim: Aim
    cost: float
    multipliers: Vector | None = None
    columns: tuple[Column, ...] = ()


@final
class ClusterBound(AbstractBound[ClusterState]):
    """``sum lam - sum_k sigma_k(lam)``, cluster k worth what it can be with its centre in its box.

    Valid for any multipliers: a labelling in the part pays ``sum lam`` minus what its clusters are
    worth, and cluster k, whose mean lies in box k, is worth at most ``sigma_k``, the most that any
    set allowed there is worth about any centre in the box.

    At the root the multipliers are sought around the best labelling known. Where they cannot reach
    the gap, that labelling is not optimal or the relaxation has a gap: the clusters found are
    handed back to be recombined, once, before the bound goes on to the best there is.

    Examples
    --------
    >>> from certikmeans.assignment import assigner_for
    >>> from certikmeans.presolve.pipeline import presolve
    >>> from certikmeans.problem import Problem
    >>> done = presolve(Problem.from_data([[0.0], [1.0], [8.0], [9.0]], 2), StopSignal())
    >>> bound = ClusterBound()
    >>> state = bound.prepare(Setting(done.reduced, assigner_for(done.reduced, done.witness)))
    >>> found = bound.evaluate(state, Subproblem.root(done.reduced), 0.999, StopSignal())
    >>> 0.999 <= found.value <= 1.0
    True
    """

    name: ClassVar[str] = "cluster"
    suggests_pairs: ClassVar[bool] = True

    def rounding(self, problem: ReducedProblem) -> float:
        """Return what pricing takes off, once per cluster."""
        nothing = np.zeros(problem.n_groups)
        return problem.n_clusters * pricing_error(problem.points, problem.weights, nothing)

    def kernels(self) -> Sequence[Any]:
        """Return the two that pricing consists of."""
        return ascend, search_boxes

    def rehearse(self, setting: Setting) -> None:
        """Share multipliers, and project on cuts as where there are hundreds."""
        from certikmeans.bounds.cluster.rehearsal import rehearse  # loads much

        rehearse(setting.problem)

    def prepare(self, setting: Setting) -> ClusterState:
        """Prepare pricing."""
        return ClusterState(
            Pricer(setting.problem),
            setting.assigner,
            setting.gap,
            setting.seed,
            setting.multipliers,
            setting.familiar,
        )

    def evaluate(
        self,
        state: ClusterState,
        part: Subproblem,
        cutoff: float,
        stop: StopSignal,
        restart: Any = None,
        root: Root | None = None,
    ) -> BoundResult:
        """Bound the reduced cost of every labelling in ``part``."""
        reduced = state.pricer.reduced
        if reduced.n_clusters == 1:
            value = cost_about_one_centre(reduced.points, reduced.weights)
            return BoundResult(value, Leaf("one cluster"))
        if root is None:
            start = _start_in_a_node(state, part, cutoff, stop, restart)
            return _climb(state, state.pricer, part, start, stop, None)
        start = _start_at_the_root(state, root, restart)
        # What groups cost inside is enough; or there is no time, and a box takes seconds to build.
        if start.aim.goal <= 0.0 or stop.cause() is not None:
            return BoundResult(0.0, Leaf("trivial"), ClusterRestart(
                np.zeros(reduced.n_groups), (), start.centers
            ))  # fmt: skip
        with one_blas_thread():
            pricer = Pricer(reduced, root.executor, root.on_work)
            return _climb(state, pricer, part, start, stop, root)

    def carried_over(
        self,
        restart: ClusterRestart,
        before: ReducedProblem,
        after: ReducedProblem,
        joined: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> ClusterRestart:
        """Carry a start over to a problem in which some groups have become one.

        A joined group is worth to every centre what its parts were worth together: their
        multipliers add up, less the sum of squares that it has inside. Columns that hold a part
        of a joined group without the rest, or two groups that are apart now, are left behind.
        """
        inside = before.weights * np.einsum("ij,ij->i", before.points, before.points)
        within = np.bincount(joined, inside, after.n_groups).astype(np.float64)
        within -= after.weights * np.einsum("ij,ij->i", after.points, after.points)
        lam = GroupMultipliers(restart.multipliers).joined(joined, after.n_groups, within)
        sizes = np.bincount(joined, minlength=after.n_groups)
        tails, heads = after.graph.edges().T
        columns = []
        for column in restart.columns:
            held = np.bincount(joined, column.members, after.n_groups)
            members = held > 0
            whole = bool((held[members] == sizes[members]).all())
            if whole and members.any() and not (members[tails] & members[heads]).any():
                columns.append(column_of(after, members))
        return ClusterRestart(lam.values, tuple(columns), centers)


def _start_at_the_root(
    state: ClusterState, root: Root, restart: ClusterRestart | None = None
) -> _Start:
    """The best labelling known; its cost less the gap asked for is the goal."""
    reduced, labels = state.pricer.reduced, root.news.labels()
    cost = sum(column.cost for column in columns_of(reduced, labels))
    unit = state.gap * (cost + reduced.offset)
    if cost <= unit * (1.0 - MARGIN):
        aim = Aim(0.0, 0.0, unit)
    else:
        unit = max(unit, 1e-12 * cost)
        goal = cost - (1.0 - MARGIN) * unit
        aim = Aim(goal=goal, level=cost - (1.0 - BEYOND) * unit, unit=unit)
    centers = means_in_order(reduced, labels)
    if restart is None:
        return _Start(labels, centers, aim, cost, state.multipliers)
    return _Start(labels, centers, aim, cost, restart.multipliers, restart.columns)


def _start_in_a_node(
    state: ClusterState,
    part: Subproblem,
    cutoff: float,
    stop: StopSignal,
    restart: ClusterRestart | None,
) -> _Start:
    """A labelling of the part near that of the larger part; the cutoff is the goal."""
    reduced = state.pricer.reduced
    guess = spread(reduced, part) if restart is None else restart.centers
    labels, centers = settle(reduced, state.assigner, part, guess, stop)
    cost = cost_about(reduced, labels, centers)
    if not np.isfinite(cutoff):
        cutoff = cost
    unit = max(state.gap * (cutoff + reduced.offset), 1e-12 * max(cutoff, cost), 1e-300)
    aim = Aim(goal=cutoff, level=cutoff + BEYOND * unit, unit=unit)
    if restart is None:
        return _Start(labels, centers, aim, cost)
    return _Start(labels, centers, aim, cost, restart.multipliers, restart.columns)


def _climb(
    state: ClusterState,
    pricer: Pricer,
    part: Subproblem,
    start: _Start,
    stop: StopSignal,
    root: Root | None,
) -> BoundResult:
    """Run the bundle; where the goal is out of reach at the root, again around a better one."""
    reduced, families = pricer.reduced, families_of(pricer.reduced, part)
    best = _Best(lambda value: None if root is None else root.news.prove(value, "cluster"))
    doubt_after: float = DOUBT_AFTER
    most_rounds, patience, hopeful = MOST_ROUNDS, ROUNDS, root is not None
    if root is None:
        few = reduced.n_clusters <= FEW_CLUSTERS
        most_rounds = ROUNDS_IN_A_NODE if few else MOST_ROUNDS
        patience = ROUNDS if few else PATIENCE_IN_A_NODE
    if root is not None:
        soon = max(DOUBT_SOON, LOOKS_SOON / reduced.n_groups)
        doubt_after = soon if root.in_a_hurry else np.inf
    bundle: LevelBundle | None = None
    last: LevelBundle | None = None
    before: _Kept | None = None if root is None else root.kept
    if before is not None:
        start, hopeful = before.start, before.hopeful
        best.restore(*before.best)
    while True:
        if bundle is None:
            # At the root clusters are where their means are, and their box is not a given.
            centers = None if root is not None else start.centers
            bundle = LevelBundle(
                pricer,
                multiplier_space(
                    reduced, start.labels, centers, start.multipliers, 0.0 if hopeful else WIDER
                ),
                families,
                columns_of(reduced, start.labels),
                state.seed,
                best.offer,
                start.columns,
                doubt_after,
                familiar=state.familiar and hopeful,
            )
            if last is not None:
                bundle.follow(last)
            if before is not None:
                bundle.restore(before.bundle)
                before = None
        here = functools.partial(_kept, start, best, bundle, hopeful)
        outcome = bundle.run(
            start.aim,
            stop,
            pause_if_unreachable=hopeful,
            most_rounds=most_rounds,
            patience=patience,
            on_round=functools.partial(_nothing if root is None else root.keep, here),
        )
        best.keep(bundle)
        if outcome is not Outcome.UNREACHABLE or root is None or not hopeful:
            break
        root.recombine(columns_to_recombine(bundle.model, columns_of(reduced, start.labels)))
        columns = tuple(bundle.model.columns)
        better = _start_at_the_root(state, root)
        better = dataclasses.replace(better, multipliers=None, columns=columns)
        if better.cost < start.cost * (1.0 - SAME_COST):
            start = better
        else:
            # The relaxation has a gap: its multipliers need not be in the labelling's box.
            hopeful = False
            known = bundle.best_multipliers()
            start = dataclasses.replace(start, multipliers=known, columns=columns)
        last, bundle = bundle, None
    model = bundle.model
    if root is not None and outcome is Outcome.EXHAUSTED and reduced.n_clusters > FEW_CLUSTERS:
        # By now the mixture is close to the relaxation's own solution.
        root.recombine(columns_to_recombine(model, columns_of(reduced, start.labels)))
    mixture = mixture_of(
        model.columns, model.weights, lambda i: families[model.family_of(i)].clusters
    )
    lam = best.multipliers(bundle)
    kept = heaviest_columns(model.columns, model.weights)
    return BoundResult(
        value=best.value,
        leaf=Leaf("cluster", GroupMultipliers(lam)),
        restart=ClusterRestart(lam, kept, start.centers),
        centers=(start.centers, *rounded_mixture(mixture, families, start.centers)),
        mixture=mixture,
        numbers=dataclasses.asdict(bundle.statistics) | _left_at_best(reduced, start.cost, bundle),
    )


def _left_at_best(reduced: ReducedProblem, cost: float, bundle: LevelBundle) -> dict[str, float]:
    """What the best multipliers of the box leave of the cost at least, where that is known."""
    if not np.isfinite(bundle.ceiling):
        return {}
    return {"gap_at_best": max(0.0, cost - bundle.ceiling) / (cost + reduced.offset)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What the bound needs to go on between two rounds of the bundle."""

    start: _Start
    best: tuple[float, Vector | None, float]
    bundle: dict[str, Any]
    hopeful: bool


def _kept(start: _Start, best: _Best, bundle: LevelBundle, hopeful: bool) -> _Kept:
    return _Kept(start, best.kept(), bundle.kept(), hopeful)


def _nothing(state: Callable[[], Any]) -> None:
    """Nodes are not saved before they are done."""


@final
class _Best:
    """The best bound over all incumbents: it never goes down."""

    def __init__(self, on_bound: Callable[[float], None]) -> None:
        self.value = 0.0  # no cost is negative
        self._lam: Vector | None = None
        self._told = 0.0
        self._on_bound = on_bound

    def offer(self, value: float) -> None:
        if value > self._told:
            self._told = value
            self._on_bound(value)

    def kept(self) -> tuple[float, Vector | None, float]:
        return self.value, self._lam, self._told

    def restore(self, value: float, lam: Vector | None, told: float) -> None:
        self.value, self._lam, self._told = value, lam, told
        if told > 0.0:
            self._on_bound(told)

    def keep(self, bundle: LevelBundle) -> None:
        if bundle.proven > self.value:
            self.value, self._lam = bundle.proven, bundle.proven_lam

    def multipliers(self, last: LevelBundle) -> Vector:
        return last.proven_lam if self._lam is None else self._lam
