"""What every plug-in must keep. Run these over a new heuristic or bound before anything else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput, LowerBound
from certikmeans.heuristics.base import AbstractHeuristic, HeuristicContext, Labels
from certikmeans.incumbent import NullIncumbent
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem, ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.solver.context import SolveContext
from certikmeans.solver.state import SolveState
from certikmeans.stop import StopSignal
from certikmeans.testing.oracle import exact_cost, feasible_labellings


def make_heuristic_context(problem: Problem, *, seed: int = 0) -> HeuristicContext:
    """Context of heuristics for ``problem``, which must be feasible."""
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof), "nothing to test: draw another problem"
    assert done.feasible_labels is not None
    return HeuristicContext(
        problem=done.reduced,
        assigner=make_assigner(done.reduced, done.feasible_labels),
        feasible_labels=done.feasible_labels,
        stop=StopSignal(),
        seed=seed,
    )


def check_feasible(problem: ReducedProblem, labels: Labels) -> None:
    """Labels are in range and respect the rules."""
    assert labels.shape == (problem.n_groups,)
    assert labels.dtype == np.int64
    assert 0 <= labels.min() <= labels.max() < problem.n_clusters
    assert problem.label_constraints.satisfied_by(labels)


@final
class _RecordingIncumbent(NullIncumbent):
    """Keeps every labelling that is offered."""

    def __init__(self) -> None:
        super().__init__()
        self.labellings: list[Labels] = []

    def update_incumbent(self, labels: Labels, source: str, iterations: int = 0) -> None:
        """Remember."""
        self.labellings.append(labels.copy())


def check_heuristic(heuristic: AbstractHeuristic, problem: Problem, *, seed: int = 0) -> None:
    """Check labels: feasible, equal with threads, and feasible without any time."""
    ctx = make_heuristic_context(problem, seed=seed)
    recorder = _RecordingIncumbent()
    alone, reported = ctx.replace(incumbent=recorder), recorder.labellings
    labels = heuristic.search(alone)
    check_feasible(ctx.problem, labels)
    for other in reported:
        check_feasible(ctx.problem, other)
    assert _cost(ctx, labels) <= min((_cost(ctx, other) for other in reported), default=np.inf)
    with ThreadPoolExecutor(2) as executor:
        threaded = heuristic.search(ctx.replace(executor=executor))
    assert np.array_equal(labels, threaded)
    assert np.array_equal(labels, heuristic.search(ctx))

    no_time = StopSignal()
    no_time.interrupt()
    check_feasible(ctx.problem, heuristic.search(ctx.replace(stop=no_time)))


def make_bound_input(
    done: PresolvedProblem, *, gap: float = 1e-3, keep_proof: bool = False
) -> BoundInput:
    """What a bound is prepared for, given a presolved problem with a labelling."""
    assert done.feasible_labels is not None
    return BoundInput(
        done.reduced, make_assigner(done.reduced, done.feasible_labels), gap, 0, keep_proof
    )


def check_bound(bound: LowerBound[Any], problem: Problem) -> None:
    """Check that the value at the root is at most the exact cost of every feasible labelling.

    In the context of a node and of a run; the problem has to be feasible, or nothing is tested.
    """
    done, costs = _feasible_costs(problem)
    assert bound.unsupported_reason(done.reduced) is None, "nothing to test: draw another problem"
    assert done.feasible_labels is not None
    model, whole = bound.setup(make_bound_input(done)), Domain.root(done.reduced)
    state = SolveState(problem, SolveContext())
    state.update_incumbent(done.postsolve_labels(done.feasible_labels), "feasible labels")
    at_root = BoundContext(at_root=True, incumbent=state.reduced_view(done), name=bound.name)
    for ctx in (BoundContext(), at_root):
        found = bound.compute(model, whole, np.inf, ctx)
        lifted = done.postsolve_bound(found.value)
        for reduced, stated in costs:
            assert Fraction(found.value) <= reduced
            assert Fraction(lifted) <= stated
    lowest = min(stated for _, stated in costs)
    assert Fraction(state.lower_bound) <= lowest, "a reported bound is too high"


@lru_cache(maxsize=2)
def _feasible_costs(problem: Problem) -> tuple[PresolvedProblem, list[tuple[Fraction, Fraction]]]:
    """Presolve, and the exact cost of every labelling, of the groups and of the points."""
    done = presolve(problem, StopSignal())
    assert not isinstance(done, InfeasibilityProof), "nothing to test: draw another problem"
    reduced, costs = done.reduced, []
    for labels in feasible_labellings(problem):
        groups = done.presolve_labels(np.array(labels))
        inner = exact_cost(reduced.points, reduced.weights, groups)
        costs.append((inner, exact_cost(problem.points, problem.weights, labels)))
    return done, costs


def _cost(ctx: HeuristicContext, labels: Labels) -> float:
    return float(exact_cost(ctx.problem.points, ctx.problem.weights, labels))
