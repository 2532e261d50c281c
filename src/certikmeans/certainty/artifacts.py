"""What a solve keeps for `Result.certainty`, and the problem that certainty is computed for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import Problem
from certikmeans.proof import AbstractEvidence, GroupMultipliers
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundArtifact:
    """What a bound has left behind: evidence, what it proves of the reduced cost, where it was."""

    evidence: AbstractEvidence
    value: float
    warm_start: Any = None  # what the bound could go on from


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolveArtifacts:
    """The problem as stated, and where to begin. What it says of bounds is not trusted."""

    problem: Problem
    bound_artifacts: tuple[BoundArtifact, ...] = ()  # about the whole; groups numbered by presolve
    group_representatives: NDArray[np.int64] | None = (
        None  # of those groups: whether they are the same
    )
    seed: int = 0
    n_threads: int = 1
    seconds: float = 0.0  # what the bounds took: certainty may take as long again
    presolved: PresolvedProblem | None = (
        None  # of this very problem; None: it was too large to keep
    )


def transfer_multipliers(basis: SolveArtifacts, problem: Problem) -> NDArray[np.float64] | None:
    """The multipliers of a run, for the same points with more pairs; None: there are none.

    One number per point: that of its group at the first point of the group, else 0. A group that
    has grown is worth to every centre what its parts were: their multipliers add up, less the sum
    of squares that joining puts inside. Any numbers are valid multipliers.
    """
    every = (one.evidence for one in basis.bound_artifacts)
    evidence = next((one for one in every if isinstance(one, GroupMultipliers)), None)
    if evidence is None or basis.group_representatives is None:
        return None
    n = problem.n_points
    new_group = must_link_groups(n, problem.must_link)
    n_groups = int(new_group.max()) + 1
    first = np.full(n_groups, n)
    np.minimum.at(first, new_group, np.arange(n))
    old_group = must_link_groups(n, basis.problem.must_link)
    added_cost = _within_group_costs(problem, new_group) - np.bincount(
        new_group[np.unique(old_group, return_index=True)[1]],
        _within_group_costs(problem, old_group),
        n_groups,
    )
    group_sums = np.bincount(new_group[basis.group_representatives], evidence.values, n_groups)
    multipliers = np.zeros(n)
    multipliers[first] = group_sums - np.maximum(added_cost, 0.0)
    return multipliers


def _within_group_costs(problem: Problem, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of squares inside the groups, about."""
    mass = np.bincount(group, problem.weights)
    total = np.zeros(len(mass))
    for column in problem.points.T:
        away = column - column.mean()
        sums = np.bincount(group, problem.weights * away)
        total += np.bincount(group, problem.weights * away * away)
        total -= sums * sums / np.where(mass > 0.0, mass, 1.0)
    return total


# What is asked: a labelling, the problem it is about in both forms, and how much time there is.

Labels = NDArray[np.int64]

MIN_TIME_LIMIT = 8.0  # whatever the proof took: nobody minds, and half an answer is none


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertaintyProblem:
    """A labelling, and the problem it is about in both forms."""

    basis: SolveArtifacts
    presolved: PresolvedProblem
    labels: Labels  # of the points
    groups: Labels  # of the groups
    cost: float
    slack: float
    time_limit: float | None = None

    @classmethod
    def of(
        cls,
        basis: SolveArtifacts,
        labels: Labels,
        cost: float,
        slack: float,
        stop: StopSignal,
        time_limit: float | None = None,
    ) -> CertaintyProblem:
        """Presolve, unless the run has left that behind."""
        presolved = basis.presolved
        if presolved is None:
            found = presolve(basis.problem, stop, feasibility_seconds=0.0)
            if isinstance(found, InfeasibilityProof):  # there are labels: it cannot be
                raise AssertionError("a problem with a labelling was called infeasible")
            presolved = found
        groups = presolved.presolve_labels(labels)
        return cls(basis, presolved, labels, groups, cost, slack, time_limit)

    def seconds(self, least: float = MIN_TIME_LIMIT) -> float:
        """How long it may take: as long as the proof, and ``least`` at least."""
        return max(least, self.basis.seconds) if self.time_limit is None else self.time_limit

    def bound_artifacts(self) -> tuple[BoundArtifact, ...]:
        """What the run has left behind, if groups are numbered as they were."""
        basis, known = self.basis, self.basis.group_representatives
        if basis.presolved is None and (
            known is None or not np.array_equal(known, self.presolved.group_representatives)
        ):
            return ()
        return basis.bound_artifacts
