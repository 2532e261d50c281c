"""Multipliers that are worth nearly what the labelling costs: those of the run, raised.

A proof to 0.1 % would double a slack of 0.1 %, so the bundle goes on from where the run has left it
until what is missing is a tenth of the slack. With many groups it does so on a small core of them,
and where that turns out to have left something out, on all of them.

What multipliers are worth is only said here; the regions prove it, or say that it is not so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import BoundResult, Root, Setting
from certikmeans.bounds.cluster.bound import ClusterBound, ClusterRestart
from certikmeans.bounds.cluster.pricing import Column, Pricer
from certikmeans.certainty.case import Case
from certikmeans.certainty.core import Core, core_of
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


def raised_multipliers(
    case: Case, pricer: Pricer, threads: Executor | None, stop: StopSignal
) -> Iterator[Raised]:
    """Multipliers to try, one after the other, while it is shown that they are worth less."""
    limited = stop.within(TIME_SHARE * case.seconds)
    given = next((one for one in case.shown() if isinstance(one.evidence, GroupMultipliers)), None)
    if given is None and case.presolved.reduced.n_axes > MOST_AXES:
        return
    aim = max(AIM * case.slack, LEAST_AIM)
    restart = None
    if given is not None:
        assert isinstance(given.evidence, GroupMultipliers)
        known = given.evidence.values
        columns = given.restart.columns if isinstance(given.restart, ClusterRestart) else ()
        restart = ClusterRestart(known, columns, np.empty((0, 0)))
        missing = most_reduced_cost(case.presolved, case.cost, case.slack) - given.value
        core = core_of(pricer, case.groups, known, missing)
        if core is not None:
            found = _in_core(case, core, restart, aim, threads, limited)
            if found is not None:
                yield found
    yield from _in_all(case, pricer, restart, 0.0 if given is None else given.value, aim, threads,
                       limited)  # fmt: skip


def _in_core(
    case: Case,
    core: Core,
    restart: ClusterRestart,
    aim: float,
    threads: Executor | None,
    stop: StopSignal,
) -> Raised | None:
    """Raise the multipliers of the core; None where they do not reach what is asked for."""
    inner, others = core.restart(restart.columns)
    found = _bundled(case, core.problem, core.labels, inner, aim, threads, stop)
    evidence = found.leaf.evidence
    if not isinstance(evidence, GroupMultipliers) or found.value <= 0.0:
        return None
    multipliers = core.taken_apart(evidence.values)
    value = found.value + core.inside
    sigma = (float(multipliers.sum()) - value) / case.presolved.reduced.n_clusters
    if any(float(multipliers @ one.members) - one.cost > sigma for one in others):
        return None
    assert isinstance(found.restart, ClusterRestart)
    guide = Guide(Pricer(core.problem, threads), evidence.values, found.restart.columns)
    return Raised(multipliers, value, aim * case.cost, guide)


def _in_all(
    case: Case,
    pricer: Pricer,
    restart: ClusterRestart | None,
    before: float,
    aim: float,
    threads: Executor | None,
    stop: StopSignal,
) -> Iterator[Raised]:
    found = _bundled(case, pricer.reduced, case.groups, restart, aim, threads, stop)
    if restart is not None and before > max(found.value, 0.0):
        # There was no time to raise them.
        guide = Guide(pricer, restart.multipliers, restart.columns)
        yield Raised(restart.multipliers, before, aim * case.cost, guide)
        return
    evidence = found.leaf.evidence
    if isinstance(evidence, GroupMultipliers) and 0.0 < found.value < math.inf:
        assert isinstance(found.restart, ClusterRestart)
        guide = Guide(pricer, evidence.values, found.restart.columns)
        yield Raised(evidence.values, found.value, aim * case.cost, guide)


def _bundled(
    case: Case,
    problem: ReducedProblem,
    labels: Labels,
    restart: ClusterRestart | None,
    aim: float,
    threads: Executor | None,
    stop: StopSignal,
) -> BoundResult:
    """Run the bundle around a labelling, from where it was if it was anywhere."""
    bound = ClusterBound()
    setting = Setting(
        problem,
        assigner_for(problem, labels),
        gap=aim,
        seed=case.basis.seed,
        familiar=restart is not None,
    )
    root = Root(_Known(labels), threads, in_a_hurry=restart is None)
    whole = Subproblem.root(problem)
    return bound.evaluate(bound.prepare(setting), whole, math.inf, stop, restart, root)


class _Known(Unheard):
    """News of a labelling that stays the best."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels
