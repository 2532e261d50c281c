"""A bound at the root of a problem, and nothing else of a run."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import AbstractBound, Root, Setting
from certikmeans.news import Labels, Unheard
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.stop import StopSignal


def reduced_of(problem: Problem) -> Presolved:
    """Presolve a problem that has a labelling."""
    done = presolve(problem, StopSignal())
    assert isinstance(done, Presolved)
    assert done.witness is not None
    return done


def setting_of(done: Presolved) -> Setting:
    """What a bound is prepared with."""
    assert done.witness is not None
    return Setting(done.reduced, assigner_for(done.reduced, done.witness))


def evaluate_at_root(bound: AbstractBound[Any], problem: Problem) -> None:
    """Ask for a bound, with any labelling as the best one known."""
    done = reduced_of(problem)
    assert done.witness is not None
    whole, root = Subproblem.root(done.reduced), Root(_Known(done.witness))
    bound.evaluate(bound.prepare(setting_of(done)), whole, np.inf, StopSignal(), None, root)


@final
class _Known(Unheard):
    """A labelling, told by nobody."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels
