"""From a start to a bound: run the bundle, and where its goal is out of reach, say what is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.bounds.base import BoundResult, Root
from certikmeans.bounds.cluster.aim import Outcome
from certikmeans.bounds.cluster.branching import most_promising_pair
from certikmeans.bounds.cluster.bundle import FEW_CLUSTERS, MOST_ROUNDS, Bundle
from certikmeans.bounds.cluster.columns import (
    Known,
    columns_of,
    columns_to_recombine,
    heaviest_columns,
    heaviest_places,
    mixture_of,
    rounded_mixture,
)
from certikmeans.bounds.cluster.families import families_of
from certikmeans.bounds.cluster.multipliers import multiplier_space
from certikmeans.bounds.cluster.patience import ROUNDS
from certikmeans.bounds.cluster.pricing import DOUBT_AFTER, Pricer
from certikmeans.bounds.cluster.starts import ClusterRestart, Start, start_at_the_root
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import GroupMultipliers, Leaf
from certikmeans.stop import StopSignal

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
@dataclass(frozen=True, slots=True)
class Manner:
    """How the bound is asked: the gap wanted, a seed, whether what it starts from has proven."""

    gap: float
    seed: int
    familiar: bool = False
    hopeful: bool = True  # the box of the labelling may hold what is needed; in a node it does not


def raise_at_the_root(
    pricer: Pricer, part: Subproblem, start: Start, manner: Manner, stop: StopSignal, root: Root
) -> BoundResult:
    """Raise the bound of the whole, around better labellings where those are found."""
    return _AtTheRoot(pricer, part, start, manner, root).run(stop)


def raise_in_a_node(
    pricer: Pricer, part: Subproblem, start: Start, manner: Manner, stop: StopSignal
) -> BoundResult:
    """Raise the bound of a part; it is not saved before it is done."""
    few = pricer.reduced.n_clusters <= FEW_CLUSTERS
    best = _Best(lambda value: None)
    bundle = _bundle(pricer, part, start, manner, best, in_a_node=True)
    bundle.run(
        start.aim,
        stop,
        most_rounds=ROUNDS_IN_A_NODE if few else MOST_ROUNDS,
        patience=ROUNDS if few else PATIENCE_IN_A_NODE,
    )
    best.keep(bundle)
    return _result(pricer.reduced, bundle, start, best, stop)


@final
class _AtTheRoot:
    """Runs bundles one after the other: around the labelling, around a better one, without a box.

    Where multipliers cannot reach the gap, the labelling is not optimal or the relaxation has a
    gap: the clusters found are handed back to be recombined, once, before the bound goes on to the
    best there is.
    """

    def __init__(
        self, pricer: Pricer, part: Subproblem, start: Start, manner: Manner, root: Root
    ) -> None:
        self._pricer, self._part, self._manner, self._root = pricer, part, manner, root
        self._start = start
        self._best = _Best(lambda value: root.news.prove(value, "cluster"))
        self._hopeful = True
        before: _Kept | None = root.kept
        if before is None:
            self._bundle = self._around()
            return
        self._start, self._hopeful = before.start, before.hopeful
        self._best.restore(*before.best)
        self._bundle = self._around()
        self._bundle.restore(before.bundle)

    def run(self, stop: StopSignal) -> BoundResult:
        """Raise it."""
        root, reduced = self._root, self._pricer.reduced
        while True:
            outcome = self._bundle.run(
                self._start.aim,
                stop,
                pause_if_unreachable=self._hopeful,
                on_round=lambda: root.keep(self._kept),
            )
            self._best.keep(self._bundle)
            if outcome is not Outcome.UNREACHABLE or not self._hopeful:
                break
            self._recombine()
            self._go_on()
        if outcome is Outcome.EXHAUSTED and reduced.n_clusters > FEW_CLUSTERS:
            self._recombine()  # by now the mixture is close to the relaxation's own solution
        return _result(reduced, self._bundle, self._start, self._best, stop)

    def _around(self) -> Bundle:
        """A bundle around the labelling: clusters are where their means are."""
        soon = max(DOUBT_SOON, LOOKS_SOON / self._pricer.reduced.n_groups)
        return _bundle(
            self._pricer,
            self._part,
            self._start,
            dataclasses.replace(
                self._manner,
                familiar=self._manner.familiar and self._hopeful,
                hopeful=self._hopeful,
            ),
            self._best,
            doubt_after=soon if self._root.in_a_hurry else np.inf,
        )

    def _recombine(self) -> None:
        own = columns_of(self._pricer.reduced, self._start.labels)
        self._root.recombine(columns_to_recombine(self._bundle.model, own))

    def _go_on(self) -> None:
        """Begin again around a better labelling, or without hope: the relaxation has a gap."""
        last, start = self._bundle, self._start
        in_box = last.mover.stays_in_box
        lam = last.best_multipliers()
        labels = self._root.news.labels()
        found = start_at_the_root(self._pricer.reduced, labels, self._manner.gap, None)
        better = found.cost < start.cost * (1.0 - SAME_COST)
        if not better:
            self._hopeful = False
            if not in_box:
                return  # nothing was in the way but the relaxation itself
            found = start
        # A box around a new labelling is left to itself; without one, good multipliers stay good.
        known = None if better and in_box else lam
        columns = tuple(last.model.columns)
        self._start = dataclasses.replace(found, multipliers=known, columns=columns)
        self._bundle = self._around()
        self._bundle.follow(last)

    def _kept(self) -> _Kept:
        return _Kept(self._start, self._best.kept(), self._bundle.kept(), self._hopeful)


def _bundle(
    pricer: Pricer,
    part: Subproblem,
    start: Start,
    manner: Manner,
    best: _Best,
    *,
    doubt_after: float = DOUBT_AFTER,
    in_a_node: bool = False,
) -> Bundle:
    """Set up a bundle with what is known at its start.

    In a node clusters are where their boxes allow; at the root, where their means are.
    """
    reduced, families = pricer.reduced, families_of(pricer.reduced, part)
    family_of = {k: number for number, family in enumerate(families) for k in family.clusters}
    used = np.flatnonzero(np.bincount(start.labels))
    own = columns_of(reduced, start.labels)
    return Bundle(
        pricer,
        multiplier_space(
            reduced,
            start.labels,
            start.centers if in_a_node else None,
            start.multipliers,
            wider=0.0 if manner.hopeful else WIDER,
        ),
        families,
        Known(
            own=[(family_of[int(k)], column) for k, column in zip(used, own, strict=True)],
            others=start.columns,
            places=() if start.places is None else tuple(start.places),
            in_a_node=in_a_node,
            familiar=manner.familiar,
            hopeful=manner.hopeful,
        ),
        manner.seed,
        best.offer,
        doubt_after,
    )


def _result(
    reduced: ReducedProblem, bundle: Bundle, start: Start, best: _Best, stop: StopSignal
) -> BoundResult:
    """What the bundle leaves: the bound, its proof, and where to go on."""
    model, families = bundle.model, bundle.families
    mixture = mixture_of(
        model.columns, model.weights, lambda i: families[model.family_of(i)].clusters
    )
    lam, pair = best.multipliers(bundle), None
    if reduced.n_clusters <= FEW_CLUSTERS:
        kept = heaviest_columns(model.columns, model.weights)
        restart = ClusterRestart(lam, kept, start.centers)
    else:
        places = heaviest_places(model.columns, model.weights, reduced)
        restart = ClusterRestart(lam, (), start.centers, places)
        if best.value < start.aim.goal and len(families) == 1:  # else the tree is one on centres
            pair = most_promising_pair(
                reduced, model, mixture, bundle.best_position, start.cost, stop
            )
    return BoundResult(
        value=best.value,
        leaf=Leaf("cluster", GroupMultipliers(lam)),
        restart=restart,
        centers=(start.centers, *rounded_mixture(mixture, families, start.centers)),
        mixture=mixture,
        pair=pair,
        numbers=dataclasses.asdict(bundle.statistics) | _left_at_best(reduced, start.cost, bundle),
    )


def _left_at_best(reduced: ReducedProblem, cost: float, bundle: Bundle) -> dict[str, float]:
    """What the best multipliers leave of the cost, about, where that is known."""
    if not np.isfinite(bundle.ceiling):
        return {}
    return {"gap_at_best": max(0.0, cost - bundle.ceiling) / (cost + reduced.offset)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What the bound needs to go on between two rounds of the bundle."""

    start: Start
    best: tuple[float, Vector | None, float]
    bundle: dict[str, Any]
    hopeful: bool


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

    def keep(self, bundle: Bundle) -> None:
        if bundle.proven > self.value:
            self.value, self._lam = bundle.proven, bundle.proven_lam

    def multipliers(self, last: Bundle) -> Vector:
        return last.proven_lam if self._lam is None else self._lam
