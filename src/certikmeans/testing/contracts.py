"""What every plug-in must keep. Run these over a new heuristic or bound before anything else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np

from certikmeans.assignment import Assigner
from certikmeans.bounds.base import AbstractBound
from certikmeans.heuristics.base import AbstractHeuristic, Labels, Workshop
from certikmeans.presolve.infeasible import InfeasibilityProof
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def workshop_for(problem: Problem, *, seed: int = 0) -> Workshop | None:
    """Prepare a workshop for ``problem``; None if it is infeasible."""
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof) or done.witness is None:
        return None
    return Workshop(
        problem=done.reduced,
        assigner=Assigner(done.reduced, done.witness),
        witness=done.witness,
        stop=StopSignal(),
        seed=seed,
    )


def check_proper(problem: ReducedProblem, labels: Labels) -> None:
    """Labels are in range and differ across every cannot-link."""
    assert labels.shape == (problem.n_groups,)
    assert labels.dtype == np.int64
    assert 0 <= labels.min() <= labels.max() < problem.n_clusters
    tails, heads = problem.graph.edges().T
    assert (labels[tails] != labels[heads]).all()


def check_heuristic(heuristic: AbstractHeuristic, problem: Problem, *, seed: int = 0) -> None:
    """Proper labels; the same with threads; the witness when there is no time."""
    workshop = workshop_for(problem, seed=seed)
    if workshop is None:
        return
    reported: list[Labels] = []
    alone = workshop.but(on_labels=lambda labels, *_: reported.append(labels.copy()))
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


def check_bound(
    make: Callable[[Presolved], AbstractBound[object, Subproblem]], problem: Problem
) -> None:
    """The value at the root is below the exact cost of every feasible labelling."""
    done = presolve(problem, StopSignal())
    if isinstance(done, InfeasibilityProof):
        return
    bound = make(done)
    state = bound.prepare(done.reduced)
    found = bound.evaluate(state, Subproblem.root(done.reduced), np.inf, StopSignal())
    lifted = done.restore_bound(found.value)
    for labels in feasible_labellings(problem):
        groups = done.reduce_labels(np.array(labels))
        reduced = exact_cost(done.reduced.points, done.reduced.weights, groups)
        assert Fraction(found.value) <= reduced
        assert Fraction(lifted) <= exact_cost(problem.points, problem.weights, labels)


def _cost(workshop: Workshop, labels: Labels) -> float:
    return float(exact_cost(workshop.problem.points, workshop.problem.weights, labels))
