"""Points of weight 0: they cost nothing, but their pairs still bind the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.presolve.infeasible import InfeasibilityProof, find_contradiction
from certikmeans.presolve.must_link import must_link_groups
from certikmeans.problem import Problem
from certikmeans.problem.distances import squared_distances


@final
@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """The part of a problem that carries weight, and how to label the rest of it."""

    problem: Problem
    stated: Problem
    rows: NDArray[np.int64]  # (n_weighted,) rows of the stated problem
    groups: NDArray[np.int64]  # (n_points,) must-link components of the stated problem

    def restore_labels(
        self,
        labels: NDArray[np.int64],
        centers: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Labels of all samples, given labels of those with weight.

        A group without any weight has no cannot-link, so every label is allowed; its sum of
        squared distances is least at the centre nearest to its mean.
        """
        sizes = np.bincount(self.groups)
        means = np.stack(
            [np.bincount(self.groups, column) / sizes for column in self.stated.points.T], axis=1
        )
        of_group: NDArray[np.int64] = squared_distances(means, centers).argmin(axis=1)
        of_group[self.groups[self.rows]] = labels
        return of_group[self.groups]


def leave_out_zero_weights(
    problem: Problem, weights: NDArray[np.float64]
) -> Weighted | InfeasibilityProof:
    """Leave out the points of weight 0 without losing what their pairs say about others.

    Every must-link group with weight is represented by its first weighted member, to which
    the group's other weighted members and its cannot-links are attached.
    """
    rows = np.flatnonzero(weights)
    groups = must_link_groups(problem.n_points, problem.must_link)
    contradiction = find_contradiction(problem, groups)
    if contradiction is not None:
        return contradiction

    # Positions among the weighted rows; the first of each group wins, hence the reversal.
    delegate = np.full(problem.n_points, -1, dtype=np.int64)
    delegate[groups[rows[::-1]]] = np.arange(len(rows))[::-1]
    cannot_link = delegate[groups[problem.cannot_link]]
    if (cannot_link < 0).any():
        pair = problem.cannot_link[np.flatnonzero((cannot_link < 0).any(axis=1))[0]]
        row = next(int(i) for i in pair if delegate[groups[i]] < 0)
        raise InputError(
            f"cannot_link: pair ({pair[0]}, {pair[1]}) names sample {row}, which has weight 0 "
            "and is not linked to a sample with weight",
            hint="the pair restricts other samples, so it cannot be left out: give the sample a "
            "positive weight, or remove its cannot-links",
        )
    attached = np.stack([delegate[groups[rows]], np.arange(len(rows))], axis=1)
    part = Problem.from_data(
        problem.points[rows],
        problem.n_clusters,
        must_link=attached[attached[:, 0] != attached[:, 1]],
        cannot_link=cannot_link,
        weights=weights[rows],
    )
    return Weighted(part, problem, rows, groups)
