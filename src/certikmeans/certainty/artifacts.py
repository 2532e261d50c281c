"""Data that a solve keeps for `Result.certainty`, and the input of the certainty computation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.certainty.params import CertaintyParams
from certikmeans.presolve.infeasibility_search import InfeasibilityProof
from certikmeans.presolve.pipeline import PresolvedProblem, presolve
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import CannotLinks, Problem
from certikmeans.proof import AbstractEvidence, GroupMultipliers
from certikmeans.stop import StopSignal

Labels = Ints


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoundArtifact:
    """Result of a bound at the root: evidence, bound on the reduced cost, and warm start."""

    evidence: AbstractEvidence
    value: float
    warm_start: Any = None  # state from which the bound can continue


@final
@dataclass(frozen=True, slots=True, eq=False)
class SolveArtifacts:
    """Original problem and artifacts of its bounds; the latter are not trusted.

    Attributes
    ----------
    problem : Problem
    bound_artifacts : tuple of BoundArtifact
        Of the root node; groups are numbered by presolve.
    group_representatives : ndarray, optional
        First point of each of those groups, to recognize the numbering.
    seed, n_threads : int
    seconds : float
        Time that the bounds took; by default certainty may take as long again.
    presolved : PresolvedProblem, optional
        Of this problem; None if it was too large to keep.
    """

    problem: Problem
    bound_artifacts: tuple[BoundArtifact, ...] = ()
    group_representatives: Labels | None = None
    seed: int = 0
    n_threads: int = 1
    seconds: float = 0.0
    presolved: PresolvedProblem | None = None


def transfer_multipliers(basis: SolveArtifacts, problem: Problem) -> Floats | None:
    """Map the multipliers of a run to the same points with more pairs.

    Returns one number per point, that of its group at the first point of the group and 0
    elsewhere, or None if the run left no multipliers. The value of a merged group for any center
    is the sum of those of its parts: their multipliers add up, less the sum of squares that the
    merge moves into the group. Any numbers are valid multipliers.
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


def _within_group_costs(problem: Problem, group: Labels) -> Floats:
    """Sums of squares within the groups, approximately."""
    mass = np.bincount(group, problem.weights)
    total = np.zeros(len(mass))
    for column in problem.points.T:
        deviation = column - column.mean()
        sums = np.bincount(group, problem.weights * deviation)
        total += np.bincount(group, problem.weights * deviation * deviation)
        total -= sums * sums / np.where(mass > 0.0, mass, 1.0)
    return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertaintyProblem:
    """A labelling, its problem in original and presolved form, the slack and the time limit.

    Constraints beside pairs are left out. That is a relaxation: a labelling that satisfies all
    constraints, and whose objective is within the slack, satisfies the pairs, and its sum of
    squares is at most its objective, because penalties are not negative. So it is among the
    labellings about which something is proven.
    """

    basis: SolveArtifacts
    presolved: PresolvedProblem
    labels: Labels  # of the points
    groups: Labels  # of the groups
    cost: float
    slack: float
    time_limit: float | None = None
    params: CertaintyParams = field(default_factory=CertaintyParams)
    relaxed: bool = False  # whether constraints beside pairs were left out

    @classmethod
    def of(
        cls,
        basis: SolveArtifacts,
        labels: Labels,
        cost: float,
        slack: float,
        stop: StopSignal,
        time_limit: float | None = None,
        params: CertaintyParams | None = None,
    ) -> CertaintyProblem:
        """Build the input; presolve the problem unless the run has kept the result."""
        presolved = basis.presolved
        if presolved is None:
            found = presolve(basis.problem, stop, feasibility_seconds=0.0)
            if isinstance(found, InfeasibilityProof):  # impossible: `labels` is feasible
                raise AssertionError("a problem with a labelling was called infeasible")
            presolved = found
        groups = presolved.presolve_labels(labels)
        params = CertaintyParams() if params is None else params
        relaxed = not presolved.reduced.label_constraints.is_cannot_link_only
        if relaxed:
            pairs = CannotLinks(presolved.reduced.graph)
            presolved = replace(
                presolved, reduced=replace(presolved.reduced, label_constraints=pairs)
            )
        return cls(basis, presolved, labels, groups, cost, slack, time_limit, params, relaxed)

    def seconds(self, least: float | None = None) -> float:
        """Time allowed: the limit, or else the time of the proof and at least ``least``."""
        if self.time_limit is not None:
            return self.time_limit
        return max(self.params.min_seconds if least is None else least, self.basis.seconds)

    def bound_artifacts(self) -> tuple[BoundArtifact, ...]:
        """Artifacts of the run if its groups are numbered as in `presolved`, else nothing.

        Values that were proven with other constraints do not hold for the relaxation.
        """
        if self.relaxed:
            return ()
        basis, known = self.basis, self.basis.group_representatives
        if basis.presolved is None and (
            known is None or not np.array_equal(known, self.presolved.group_representatives)
        ):
            return ()
        return basis.bound_artifacts
