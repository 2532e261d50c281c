"""What every plug-in must keep. Run these over a new heuristic or bound before anything else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.board import Board
from certikmeans.bounds.base import AbstractBound, Root, Setting
from certikmeans.events import Emitter
from certikmeans.heuristics.base import AbstractHeuristic, Labels, Workshop
from certikmeans.news import Unheard
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def workshop_for(problem: Problem, *, seed: int = 0) -> Workshop:
    """Prepare a workshop for ``problem``, which has to be feasible, or nothing is tested."""
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof), "nothing to test: draw another problem"
    assert done.witness is not None
    return Workshop(
        problem=done.reduced,
        assigner=assigner_for(done.reduced, done.witness),
        witness=done.witness,
        stop=StopSignal(),
        seed=seed,
    )


def check_proper(problem: ReducedProblem, labels: Labels) -> None:
    """Labels are in range and respect the rules."""
    assert labels.shape == (problem.n_groups,)
    assert labels.dtype == np.int64
    assert 0 <= labels.min() <= labels.max() < problem.n_clusters
    assert problem.rules.respected_by(labels)


@final
class _Heard(Unheard):
    """Remembers every labelling that it is told of."""

    def __init__(self) -> None:
        self.labellings: list[Labels] = []

    def offer(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Remember."""
        self.labellings.append(labels.copy())


def check_heuristic(heuristic: AbstractHeuristic, problem: Problem, *, seed: int = 0) -> None:
    """Proper labels; the same with threads; the witness when there is no time."""
    workshop = workshop_for(problem, seed=seed)
    heard = _Heard()
    alone, reported = workshop.but(news=heard), heard.labellings
    labels = heuristic.search(alone)
    check_proper(workshop.problem, labels)
    for other in reported:
        check_proper(workshop.problem, other)
    assert _cost(workshop, labels) <= min(
        (_cost(workshop, other) for other in reported), default=np.inf
    )
    with ThreadPoolExecutor(2) as executor:
        threaded = heuristic.search(workshop.but(executor=executor))
    assert np.array_equal(labels, threaded)
    assert np.array_equal(labels, heuristic.search(workshop))

    no_time = StopSignal()
    no_time.interrupt()
    check_proper(workshop.problem, heuristic.search(workshop.but(stop=no_time)))


def setting_for(done: Presolved, *, gap: float = 1e-3, keep_proof: bool = False) -> Setting:
    """What a bound is prepared for, given a presolved problem with a labelling."""
    assert done.witness is not None
    return Setting(done.reduced, assigner_for(done.reduced, done.witness), gap, 0, keep_proof)


def check_bound(bound: AbstractBound[Any], problem: Problem) -> None:
    """The value of the whole is below the exact cost of every feasible labelling.

    With the news of a run and without; the problem has to be feasible, or nothing is tested.
    """
    done, costs = _every_labelling(problem)
    assert bound.obstacle(done.reduced) is None, "nothing to test: draw another problem"
    assert done.witness is not None
    state, whole = bound.prepare(setting_for(done)), Subproblem.root(done.reduced)
    board = Board(problem, 1e-3, Emitter(), StopSignal())
    board.offer(done.restore_labels(done.witness), "witness")
    for root in (None, Root(board.seen_from(done))):
        found = bound.evaluate(state, whole, np.inf, StopSignal(), None, root)
        lifted = done.restore_bound(found.value)
        for reduced, stated in costs:
            assert Fraction(found.value) <= reduced
            assert Fraction(lifted) <= stated
    lowest = min(stated for _, stated in costs)
    assert Fraction(board.lower) <= lowest, "what was told on the way is more than is true"


@lru_cache(maxsize=2)
def _every_labelling(problem: Problem) -> tuple[Presolved, list[tuple[Fraction, Fraction]]]:
    """Presolve, and the exact cost of every labelling, of the groups and of the points."""
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof), "nothing to test: draw another problem"
    reduced, costs = done.reduced, []
    for labels in feasible_labellings(problem):
        groups = done.reduce_labels(np.array(labels))
        inner = exact_cost(reduced.points, reduced.weights, groups)
        costs.append((inner, exact_cost(problem.points, problem.weights, labels)))
    return done, costs


def _cost(workshop: Workshop, labels: Labels) -> float:
    return float(exact_cost(workshop.problem.points, workshop.problem.weights, labels))
