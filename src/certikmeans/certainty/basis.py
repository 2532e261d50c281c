"""What a run leaves behind so that certainty can be asked for later: the problem, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.must_link import must_link_groups
from certikmeans.presolve.pipeline import Presolved
from certikmeans.problem import Problem
from certikmeans.proof import AbstractEvidence, GroupMultipliers


@final
@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a bound has left behind: evidence, what it proves of the reduced cost, where it was."""

    evidence: AbstractEvidence
    value: float
    restart: Any = None  # what the bound could go on from


@final
@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """The problem as stated, and where to begin. What it says of bounds is not trusted."""

    problem: Problem
    shown: tuple[Shown, ...] = ()  # about the whole; groups numbered by presolve
    first_points: NDArray[np.int64] | None = None  # of those groups: whether they are the same
    seed: int = 0
    n_threads: int = 1
    seconds: float = 0.0  # what the bounds took: certainty may take as long again
    presolved: Presolved | None = None  # of this very problem; None: it was too large to keep


def carried_multipliers(basis: Basis, problem: Problem) -> NDArray[np.float64] | None:
    """The multipliers of a run, for the same points with more pairs; None: there are none.

    One number per point: that of its group at the first point of the group, else 0. A group that
    has grown is worth to every centre what its parts were: their multipliers add up, less the sum
    of squares that joining puts inside. Any numbers are valid multipliers.
    """
    every = (one.evidence for one in basis.shown)
    given = next((one for one in every if isinstance(one, GroupMultipliers)), None)
    if given is None or basis.first_points is None:
        return None
    n = problem.n_points
    after = must_link_groups(n, problem.must_link)
    n_after = int(after.max()) + 1
    first = np.full(n_after, n)
    np.minimum.at(first, after, np.arange(n))
    before = must_link_groups(n, basis.problem.must_link)
    inside = _inside(problem, after) - np.bincount(
        after[np.unique(before, return_index=True)[1]], _inside(problem, before), n_after
    )
    joined = np.bincount(after[basis.first_points], given.values, n_after)
    multipliers = np.zeros(n)
    multipliers[first] = joined - np.maximum(inside, 0.0)
    return multipliers


def _inside(problem: Problem, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of squares inside the groups, about."""
    mass = np.bincount(group, problem.weights)
    total = np.zeros(len(mass))
    for column in problem.points.T:
        away = column - column.mean()
        sums = np.bincount(group, problem.weights * away)
        total += np.bincount(group, problem.weights * away * away)
        total -= sums * sums / np.where(mass > 0.0, mass, 1.0)
    return total
