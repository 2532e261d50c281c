"""Set-partitioning heuristic over the columns of a lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from certikmeans._types import Floats, Ints
from certikmeans.heuristics.base import AbstractHeuristic, Centers, HeuristicContext, Labels
from certikmeans.heuristics.genetic_search import GeneticBudget, GeneticSearch
from certikmeans.incumbent import CandidateCluster


@final
@dataclass(frozen=True, slots=True)
class SetPartitioningParams:
    """Settings of the set-partitioning heuristic."""

    # Up to these sizes the integer program takes seconds.
    max_groups: int = 5_000
    max_columns: int = 400
    milp_time_limit: float = 5.0
    n_replaced_centers: int = 8  # columns whose centre replaces one of the known labelling


DEFAULT_PARAMS = SetPartitioningParams()


@final
class SetPartitioningHeuristic(AbstractHeuristic):
    """Recombine the columns of a bound into a labelling, then descend.

    Two kinds of starts: the cheapest exact partition of the groups into columns (a small integer
    program), and the known labelling with one centre replaced by that of a column.

    Parameters
    ----------
    columns : sequence of CandidateCluster
        Most promising first.
    labels : ndarray of shape (n_groups,)
        The labelling to be improved; returned if nothing better is found.
    """

    name: ClassVar[str] = "columns"

    def __init__(
        self,
        columns: Sequence[CandidateCluster],
        labels: Labels,
        params: SetPartitioningParams = DEFAULT_PARAMS,
    ) -> None:
        self._columns = columns
        self._labels = labels
        self._params = params

    def search(self, ctx: HeuristicContext) -> Labels:
        """Return the best labelling found."""
        if ctx.finished() or not self._columns:
            return self._labels
        problem = ctx.problem
        known = problem.cluster_means(self._labels)
        starts = [known]
        partition = self._partition(ctx)
        if partition is not None:
            starts.append(problem.cluster_means(partition))
        starts += [
            _replace_nearest_center(known, column.center)
            for column in self._columns[: self._params.n_replaced_centers]
        ]
        return GeneticSearch(GeneticBudget(0, 0, 0)).search(ctx.replace(starts=tuple(starts)))

    def _partition(self, ctx: HeuristicContext) -> Labels | None:
        """Cheapest labelling made of columns, or None if no subset of them is a partition."""
        problem = ctx.problem
        if problem.n_groups > self._params.max_groups:
            return None
        columns = self._columns[: self._params.max_columns]
        membership = np.stack([column.members for column in columns], axis=1).astype(np.float64)
        chosen = _solve_set_partitioning(
            np.array([column.cost for column in columns]),
            membership,
            problem.n_clusters,
            min(self._params.milp_time_limit, ctx.stop.remaining),
        )
        if chosen is None:
            return None
        labels: Labels = np.argmax(membership[:, chosen], axis=1).astype(np.int64)
        return labels


def _solve_set_partitioning(
    costs: Floats, membership: Floats, n_clusters: int, seconds: float
) -> Ints | None:
    """Choose at most ``n_clusters`` columns of least cost that contain every group exactly once.

    >>> membership = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> _solve_set_partitioning(np.array([1.0, 1.0, 5.0]), membership, 2, 1.0)
    array([0, 1])
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_array

    found = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(csc_array(membership), 1.0, 1.0),
            LinearConstraint(np.ones((1, len(costs))), 0.0, n_clusters),
        ],
        options={"time_limit": max(0.1, seconds)},
    )
    if found.x is None:
        return None
    chosen: Ints = np.flatnonzero(found.x > 0.5)
    if len(chosen) > n_clusters or not (membership[:, chosen].sum(axis=1) == 1.0).all():
        return None
    return chosen


def _replace_nearest_center(centers: Centers, by: Floats) -> Centers:
    """Replace the centre nearest to ``by`` with it."""
    away = centers - by
    replaced = centers.copy()
    replaced[int(np.argmin(np.einsum("ij,ij->i", away, away)))] = by
    return replaced
