"""Must-link groups and the cannot-links between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certikmeans._estimator_utils import raise_infeasible
from certikmeans.presolve.infeasibility_proofs import InfeasibilityProof
from certikmeans.presolve.pipeline import presolve
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.problem import Problem
from certikmeans.problem.arrays import distinct
from certikmeans.stop import StopSignal

# Time for proving infeasibility, in seconds; not part of any method.
_EXPLANATION_SECONDS = 60.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class MustLinkGroups:
    """Transitive closure of the pairs: groups of points, and cannot-links between them."""

    of_point: NDArray[np.int64]  # (n_points,), numbered by smallest member
    n_groups: int
    cannot_links: NDArray[np.int64]  # (m, 2) distinct, first < second
    conflicting: NDArray[np.int64]  # groups with a cannot-link inside
    component: NDArray[np.int64]  # (n_groups,) component of the cannot-link graph

    @classmethod
    def of(cls, problem: Problem) -> MustLinkGroups:
        """Build the groups of ``problem``.

        >>> problem = Problem.from_data(
        ...     [[0.0], [1.0], [2.0]], 2, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 2)])
        >>> MustLinkGroups.of(problem).cannot_links
        array([[0, 1]])
        """
        of_point = must_link_groups(problem.n_points, problem.must_link)
        n_groups = int(of_point.max()) + 1
        ends = np.sort(of_point[problem.cannot_link], axis=1)
        inside = ends[:, 0] == ends[:, 1]
        keys = distinct(ends[~inside, 0] * np.int64(n_groups) + ends[~inside, 1])
        cannot_links = np.stack([keys // n_groups, keys % n_groups], axis=1)
        ones = np.ones(len(cannot_links), dtype=np.int8)
        graph = coo_array(
            (ones, (cannot_links[:, 0], cannot_links[:, 1])), shape=(n_groups, n_groups)
        )
        _, component = connected_components(graph, directed=False)
        return cls(of_point, n_groups, cannot_links, np.unique(ends[inside, 0]), component)

    def neighbors(self, *, loops: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Adjacency in compressed rows; contradicted groups are their own neighbours."""
        own = self.conflicting if loops else self.conflicting[:0]
        tails = np.concatenate([self.cannot_links[:, 0], self.cannot_links[:, 1], own])
        heads = np.concatenate([self.cannot_links[:, 1], self.cannot_links[:, 0], own])
        indptr = np.zeros(self.n_groups + 1, dtype=np.int64)
        np.cumsum(np.bincount(tails, minlength=self.n_groups), out=indptr[1:])
        return indptr, heads[np.lexsort((heads, tails))]

    def total(self, per_point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the rows of a table over the members of each group."""
        if self.n_groups == len(self.of_point):
            return per_point
        return np.stack(
            [np.bincount(self.of_point, column, self.n_groups) for column in per_point.T], axis=1
        )


def raise_if_infeasible(problem: Problem) -> None:
    """Raise `InfeasibleError` with a proof if the problem is shown to be infeasible."""
    proof = presolve(problem, StopSignal(_EXPLANATION_SECONDS))
    if isinstance(proof, InfeasibilityProof):
        raise_infeasible(proof)
