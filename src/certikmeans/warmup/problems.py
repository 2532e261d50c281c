"""Tiny problems that reach every compiled path, and bounds at their roots."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.assignment import make_assigner
from certikmeans.bounds.base import BoundContext, BoundInput, LowerBound
from certikmeans.generate import random_pairs
from certikmeans.incumbent import Labels, NullIncumbent
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.problem import Problem
from certikmeans.problem.domain import Domain
from certikmeans.stop import StopSignal

_TRIANGLE_WITH_TAIL = [(0, 5), (5, 10), (10, 0), (10, 3)]  # a cycle and a tree are two methods


def easy_problems() -> tuple[Problem, ...]:
    """A small grid without pairs, with must-links, with cannot-links, with both."""
    points = [[float(i % 4), float(i // 4)] for i in range(12)]
    return tuple(
        Problem.from_data(points, 3, must_link=must, cannot_link=cannot)
        for must in (None, [(1, 2)])
        for cannot in (None, _TRIANGLE_WITH_TAIL)
    )


def hard_problem() -> Problem:
    """Cannot-links that cut across the geometry, such that no bound closes the gap at the root."""
    rng = np.random.default_rng(2)
    points, classes = rng.uniform(size=(20, 2)), rng.integers(4, size=20)
    _, apart = random_pairs(classes, 0, 30, seed=2)
    return Problem.from_data(points, 4, cannot_link=apart)


def many_clusters() -> tuple[Problem, ...]:
    """So many clusters that centres are swapped, without pairs and with entangled ones."""
    rng = np.random.default_rng(0)
    points, classes = rng.uniform(size=(60, 2)), rng.integers(12, size=60)
    _, apart = random_pairs(classes, 0, 90, seed=1)
    return (Problem.from_data(points, 12), Problem.from_data(points, 12, cannot_link=apart))


def contradictions() -> tuple[Problem, ...]:
    """Cannot-links that cannot hold: an odd cycle, a clique, a graph with neither to blame."""
    points = np.arange(12.0)[:, None]
    hull = [(i, (i + 1) % 5) for i in range(5)]
    spokes = [(5 + i, (i + step) % 5) for i in range(5) for step in (1, 4)]
    groetzsch = hull + spokes + [(5 + i, 10) for i in range(5)]
    return (
        Problem.from_data(points, 2, cannot_link=hull),
        Problem.from_data(points, 3, cannot_link=complete_graph(4)),
        Problem.from_data(points, 3, cannot_link=groetzsch),
    )


def complete_graph(size: int) -> NDArray[np.int64]:
    """Every pair of so many points."""
    return np.stack(np.triu_indices(size, 1), axis=1)


# A bound at the root of a problem, and nothing else of a run.


def presolve_feasible(problem: Problem) -> PresolvedProblem:
    """Presolve a problem that has a labelling."""
    presolved = presolve(problem, StopSignal())
    assert isinstance(presolved, PresolvedProblem)
    assert presolved.feasible_labels is not None
    return presolved


def make_bound_input(presolved: PresolvedProblem) -> BoundInput:
    """What a bound is prepared with."""
    assert presolved.feasible_labels is not None
    return BoundInput(
        presolved.reduced, make_assigner(presolved.reduced, presolved.feasible_labels)
    )


def compute_root_bound(bound: LowerBound[Any], problem: Problem) -> None:
    """Ask for a bound, with any labelling as the best one known."""
    presolved = presolve_feasible(problem)
    assert presolved.feasible_labels is not None
    whole, ctx = (
        Domain.root(presolved.reduced),
        BoundContext(_FixedIncumbent(presolved.feasible_labels)),
    )
    bound.compute(bound.setup(make_bound_input(presolved)), whole, np.inf, StopSignal(), None, ctx)


@final
class _FixedIncumbent(NullIncumbent):
    """A labelling, told by nobody."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels
