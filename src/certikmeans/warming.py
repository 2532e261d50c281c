"""Compile everything before the clock starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from certikmeans.assignment import assigner_for
from certikmeans.bounds.base import Root, Setting
from certikmeans.bounds.registry import make_bound
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import certificate_bytes
from certikmeans.errors import InputError
from certikmeans.generate import random_pairs
from certikmeans.news import Labels, Unheard
from certikmeans.options import BOUNDS, BRANCHINGS, check_choice
from certikmeans.presolve.pipeline import Presolved, presolve
from certikmeans.problem import Problem
from certikmeans.problem.subproblem import Subproblem
from certikmeans.solver import solve
from certikmeans.stop import StopSignal

_TRIANGLE_WITH_TAIL = [(0, 5), (5, 10), (10, 0), (10, 3)]  # a cycle and a tree are two methods


def warm_up(bounds: Iterable[str] | None = None) -> None:
    """Compile the kernels, or load those that were compiled before.

    Solves tiny problems through every compiled path: with and without pairs of each kind,
    every bound at a root and in a tree with each branching, and the checker of certificates.
    Time limits do not count compilation, but a first run takes longer: call it when an image is
    built, at the start of a server, in a worker before its first task. It takes a minute or two
    where the kernels were never compiled, and a few seconds in a process where they were. On the
    command line: ``certikmeans warm-up``.

    Parameters
    ----------
    bounds : iterable of str, optional
        Compile these bounds alone, by the names that `solve` takes; by default, all of them.

    Examples
    --------
    >>> import certikmeans
    >>> certikmeans.warm_up(bounds=["cluster"])
    """
    wanted = BOUNDS if bounds is None else tuple(bounds)
    for bound in wanted:
        check_choice("bound", bound, BOUNDS)
    easy = _easy_problems()
    for problem in easy:
        solve(problem)
    result = solve(easy[-1], keep_proof=True)
    check_certificate(
        easy[-1].points,
        certificate_bytes(easy[-1], result),
        must_link=easy[-1].must_link,
        cannot_link=easy[-1].cannot_link,
    )
    hard = _hard_problem()
    for bound in wanted:
        for branching in BRANCHINGS:
            if bound == "auto" or branching == "auto":
                continue  # one of the others
            try:
                solve(hard, bound=bound, branching=branching, gap=1e-6, node_limit=3)
            except InputError:  # a bound that cannot be branched like this
                continue


def compile_bound(name: str, linked: bool) -> None:
    """Compile what one bound calls at the root of an ordinary problem, and nothing else.

    Parameters
    ----------
    name : str
        As `solve` takes it.
    linked : bool
        With cannot-links.
    """
    problem = _easy_problems()[1 if linked else 0]
    done = presolve(problem, StopSignal())
    assert isinstance(done, Presolved)
    assert done.witness is not None
    setting = Setting(done.reduced, assigner_for(done.reduced, done.witness))
    bound, whole = make_bound(name), Subproblem.root(done.reduced)
    root = Root(_Known(done.witness))
    bound.evaluate(bound.prepare(setting), whole, np.inf, StopSignal(), None, root)


@final
class _Known(Unheard):
    """A labelling, told by nobody."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def labels(self) -> Labels:
        """Return the labelling."""
        return self._labels


def _easy_problems() -> tuple[Problem, ...]:
    """A small grid without pairs, with must-links, with cannot-links, with both."""
    points = [[float(i % 4), float(i // 4)] for i in range(12)]
    return tuple(
        Problem.from_data(points, 3, must_link=must, cannot_link=cannot)
        for must in (None, [(1, 2)])
        for cannot in (None, _TRIANGLE_WITH_TAIL)
    )


def _hard_problem() -> Problem:
    """Cannot-links that cut across the geometry, such that no bound closes the gap at the root."""
    rng = np.random.default_rng(2)
    points, classes = rng.uniform(size=(20, 2)), rng.integers(4, size=20)
    _, apart = random_pairs(classes, 0, 30, seed=2)
    return Problem.from_data(points, 4, cannot_link=apart)
