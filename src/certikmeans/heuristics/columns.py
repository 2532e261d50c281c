"""Better labellings from clusters that a lower bound has found on its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.heuristics.base import AbstractHeuristic, Centers, Labels, Workshop
from certikmeans.heuristics.local_search import means_of
from certikmeans.heuristics.population import Budget, Population
from certikmeans.news import Cluster

# The partitioning program is small enough to be solved in seconds below these sizes.
MOST_GROUPS = 5_000
MOST_COLUMNS = 400
PARTITION_SECONDS = 5.0
REPLACED = 8


@final
class ColumnSearch(AbstractHeuristic):
    """Recombine given clusters, then descend.

    Two ways: the cheapest exact partition of the groups into given clusters (a small integer
    program), and the known labelling with one centre replaced by that of a given cluster.

    Parameters
    ----------
    columns : sequence of Cluster
        The most promising first.
    labels : ndarray of shape (n_groups,)
        The labelling to be improved; returned if nothing better is found.
    """

    name: ClassVar[str] = "columns"

    def __init__(self, columns: Sequence[Cluster], labels: Labels) -> None:
        self._columns = columns
        self._labels = labels

    def search(self, workshop: Workshop) -> Labels:
        """Return the best labelling found."""
        if workshop.finished() or not self._columns:
            return self._labels
        problem = workshop.problem
        known = means_of(problem, self._labels)
        starts = [known]
        partition = self._partition(workshop)
        if partition is not None:
            starts.append(means_of(problem, partition))
        starts += [_with_one_replaced(known, one.centre) for one in self._columns[:REPLACED]]
        return Population(Budget(0, 0, 0)).search(workshop.but(starts=tuple(starts)))

    def _partition(self, workshop: Workshop) -> Labels | None:
        """Cheapest labelling made of given clusters, if they can be fitted together."""
        problem = workshop.problem
        if problem.n_groups > MOST_GROUPS:
            return None
        columns = self._columns[:MOST_COLUMNS]
        inside = np.stack([one.members for one in columns], axis=1).astype(np.float64)
        chosen = _cheapest_partition(
            np.array([one.cost for one in columns]),
            inside,
            problem.n_clusters,
            min(PARTITION_SECONDS, workshop.stop.remaining),
        )
        if chosen is None:
            return None
        labels: Labels = np.argmax(inside[:, chosen], axis=1).astype(np.int64)
        return labels


def _cheapest_partition(
    costs: NDArray[np.float64], inside: NDArray[np.float64], n_clusters: int, seconds: float
) -> NDArray[np.int64] | None:
    """Columns that hold every group exactly once, at most ``n_clusters`` of them.

    >>> inside = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> _cheapest_partition(np.array([1.0, 1.0, 5.0]), inside, 2, 1.0)
    array([0, 1])
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_array

    found = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(csc_array(inside), 1.0, 1.0),
            LinearConstraint(np.ones((1, len(costs))), 0.0, n_clusters),
        ],
        options={"time_limit": max(0.1, seconds)},
    )
    if found.x is None:
        return None
    chosen: NDArray[np.int64] = np.flatnonzero(found.x > 0.5)
    if len(chosen) > n_clusters or not (inside[:, chosen].sum(axis=1) == 1.0).all():
        return None
    return chosen


def _with_one_replaced(centers: Centers, by: NDArray[np.float64]) -> Centers:
    """Move the centre that is nearest to ``by`` there."""
    away = centers - by
    replaced = centers.copy()
    replaced[int(np.argmin(np.einsum("ij,ij->i", away, away)))] = by
    return replaced
