"""Multipliers that are worth nearly what the labelling costs: those of the run, raised.

A proof to 0.1 % would double a slack of 0.1 %, so the bundle goes on from where the run has left it
until what is missing is a tenth of the slack. With many groups it does so on a small core of them,
and where that turns out to have left something out, on all of them.

What multipliers are worth is only said here; the regions prove it, or say that it is not so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import BoundResult, Root, Setting
from certikmeans.bounds.cluster.bound import ClusterBound
from certikmeans.bounds.cluster.columns import KEPT_COLUMNS
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.bounds.cluster.starts import ClusterRestart
from certikmeans.certainty.basis import Shown
from certikmeans.certainty.case import Case
from certikmeans.certainty.core import core_of
from certikmeans.certainty.level import most_reduced_cost
from certikmeans.news import Unheard
from certikmeans.problem import ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.proof import GroupMultipliers
from certikmeans.stop import StopSignal

Labels = NDArray[np.int64]
Vector = NDArray[np.float64]

# Multipliers are raised until what is left to gain is this share of the slack.
AIM = 0.1
LEAST_AIM = 1e-5  # of the cost
# After this share of the time there is, they are raised no further.
TIME_SHARE = 0.4
# Beyond so many axes exact pricing is hopeless without multipliers to begin with.
MOST_AXES = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """Where to look for good clusters: pricing that may be about fewer groups than there are."""

    pricer: Pricer
    multipliers: Vector
    columns: tuple[Column, ...]

    def worth(self, column: Column) -> float:
        """Of a cluster of its groups."""
        return float(self.multipliers @ column.members) - column.cost


@final
@dataclass(frozen=True, slots=True, eq=False)
class Raised:
    """Multipliers, and what they are said to be worth."""

    multipliers: Vector
    value: float
    unit: float  # what it is worth while to gain: a tenth of the slack
    guide: Guide

    def alone(self) -> Raised:
        """The same without threads, which will be gone."""
        guide = dataclasses.replace(self.guide, pricer=Pricer(self.guide.pricer.reduced))
        return dataclasses.replace(self, guide=guide)


def raised_multipliers(
    case: Case, pricer: Pricer, threads: Executor | None, stop: StopSignal
) -> Iterator[Raised]:
    """Multipliers to try, one after the other, while it is shown that they are worth less."""
    given = next((one for one in case.shown() if isinstance(one.evidence, GroupMultipliers)), None)
    if given is None and case.presolved.reduced.n_axes > MOST_AXES:
        return
    raising = _Raising(
        case, pricer, threads, stop.within(TIME_SHARE * case.seconds()),
        max(AIM * case.slack, LEAST_AIM),
    )  # fmt: skip
    if given is None:
        found = raising.bundled(pricer.reduced, case.groups, None)
        evidence = found.leaf.evidence
        if isinstance(evidence, GroupMultipliers) and 0.0 < found.value < math.inf:
            yield raising.raised(found, evidence.values)
        return
    restart = _left_by_the_run(pricer, given)
    in_core = raising.in_core(restart, given.value)
    if in_core is not None:
        yield in_core
    yield raising.in_all(restart, given.value)


def _left_by_the_run(pricer: Pricer, given: Shown) -> ClusterRestart:
    """Where the run has left the bundle; the clusters it knew, in any case."""
    assert isinstance(given.evidence, GroupMultipliers)
    restart = ClusterRestart(given.evidence.values, (), np.empty((0, 0)))
    if isinstance(given.restart, ClusterRestart):
        restart = dataclasses.replace(given.restart, multipliers=given.evidence.values)
    return dataclasses.replace(restart, columns=_known(pricer, restart))


def _known(pricer: Pricer, restart: ClusterRestart) -> tuple[Column, ...]:
    """Clusters to begin with; where only their places were kept, they are found again there."""
    if restart.columns or restart.places is None:
        return restart.columns
    most = max(KEPT_COLUMNS, 2 * pricer.reduced.n_clusters)
    return tuple(
        column
        for column in pricer.best_sets(restart.multipliers, list(restart.places[:most]))
        if column.mass > 0.0
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Raising:
    """What it takes to raise multipliers."""

    case: Case
    pricer: Pricer
    threads: Executor | None
    stop: StopSignal
    aim: float  # share of the cost that may be missing at last

    def bundled(
        self, problem: ReducedProblem, labels: Labels, restart: ClusterRestart | None
    ) -> BoundResult:
        """Run the bundle around a labelling, from where it was if it was anywhere."""
        bound = ClusterBound()
        setting = Setting(
            problem,
            assigner_for(problem, labels),
            gap=self.aim,
            seed=self.case.basis.seed,
            familiar=restart is not None,
        )
        root = Root(_Known(labels), self.threads, in_a_hurry=restart is None)
        whole = Subproblem.root(problem)
        return bound.evaluate(bound.prepare(setting), whole, math.inf, self.stop, restart, root)

    def raised(self, found: BoundResult, multipliers: Vector) -> Raised:
        """What a bundle over all groups has found."""
        assert isinstance(found.restart, ClusterRestart)
        guide = Guide(self.pricer, multipliers, _known(self.pricer, found.restart))
        return Raised(multipliers, found.value, self.aim * self.case.cost, guide)

    def in_all(self, restart: ClusterRestart, value: float) -> Raised:
        """Raise multipliers worth ``value``."""
        found = self.bundled(self.pricer.reduced, self.case.groups, restart)
        evidence = found.leaf.evidence
        if isinstance(evidence, GroupMultipliers) and value <= found.value < math.inf:
            return self.raised(found, evidence.values)
        # There was no time to raise them.
        guide = Guide(self.pricer, restart.multipliers, restart.columns)
        return Raised(restart.multipliers, value, self.aim * self.case.cost, guide)

    def in_core(self, restart: ClusterRestart, value: float) -> Raised | None:
        """Raise them on the core; None where there is none, or where it leaves something out."""
        case, k = self.case, self.pricer.reduced.n_clusters
        most = most_reduced_cost(case.presolved, case.cost, case.slack)
        core = core_of(self.pricer, case.groups, restart.multipliers, most - value)
        if core is None:
            return None
        inner, others = core.restart(restart)
        # Clusters that the core does not know and that matter already would be in the way: those
        # worth more than the clusters of a labelling spoken of have to be on average.
        average = (float(restart.multipliers.sum()) - most) / k
        if any(float(restart.multipliers @ one.members) - one.cost > average for one in others):
            return None
        found = self.bundled(core.problem, core.labels, inner)
        evidence = found.leaf.evidence
        if not isinstance(evidence, GroupMultipliers) or found.value + core.inside < value:
            return None
        assert isinstance(found.restart, ClusterRestart)
        pricer = Pricer(core.problem, self.threads)
        guide = Guide(pricer, evidence.values, _known(pricer, found.restart))
        multipliers = core.taken_apart(evidence.values)
        return Raised(multipliers, found.value + core.inside, self.aim * case.cost, guide)


class _Known(Unheard):
    """News of a labelling that stays the best."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels
