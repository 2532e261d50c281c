"""Cheapest labels for fixed costs under soft pairs, with cannot-links beside them.

A component of pairs without cycles is solved exactly by min-sum messages in O(K) per pair. One
that a few vertices turn into a forest is solved for every combination of their labels. In others,
random induced forests are solved exactly while the other labels stay, over and over; those labels
are not proven to be the cheapest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
from certikmeans.constraint_model.soft_pairs import SoftPairs
from certikmeans.kernels.soft_assignment import (
    Forest,
    PairGraph,
    SoftLayout,
    assign_soft_pairs,
    break_cycles,
    soft_objective,
    spanning_forest,
)


@final
@dataclass(frozen=True, slots=True)
class SoftAssignmentParams:
    """Which components are solved exactly, and the effort for the others."""

    # Vertices removed to break cycles: every combination of their labels is a forest to solve.
    max_removed: int = 8
    max_combination_work: int = 100_000  # combinations times vertices times labels
    max_sweeps: int = 4  # each vertex is in one induced forest of a sweep

    def __post_init__(self) -> None:
        if min(self.max_removed, self.max_combination_work) < 0 or self.max_sweeps < 1:
            raise ValueError("limits must not be negative, and max_sweeps must be positive")


DEFAULT_PARAMS = SoftAssignmentParams()


@final
class SoftAssignment:
    """Prepared assignment for any number of cost tables. Immutable.

    Parameters
    ----------
    n_groups, n_clusters : int
        Shape of the tables.
    soft : SoftPairs, optional
        The soft pairs.
    cannot_links : CannotLinkGraph, optional
        The hard pairs.
    params : SoftAssignmentParams
        Effort.
    """

    def __init__(
        self,
        n_groups: int,
        n_clusters: int,
        soft: SoftPairs | None,
        cannot_links: CannotLinkGraph | None = None,
        params: SoftAssignmentParams = DEFAULT_PARAMS,
    ) -> None:
        self._params, self._n_clusters = params, n_clusters
        self.graph = pair_graph(n_groups, soft, cannot_links)
        self._layout = _layout(self.graph, n_clusters, params)
        self.exact = len(self._layout.member_start) == 1  # for every table

    @property
    def step_work(self) -> float:
        """Estimated operations of one call."""
        layout, sweeps = self._layout, 2.0 * self._params.max_sweeps
        combinations = float(
            np.diff(layout.rest_start) @ self._n_clusters ** np.diff(layout.removed_start)
        )
        in_sweeps = sweeps * len(layout.spanning.order)
        return 8.0 * self._n_clusters * (len(layout.trees.order) + combinations + in_sweeps)

    def objective(self, costs: Floats, labels: Ints) -> float:
        """Cost of the labels and penalties of violated pairs; infinite with a broken cannot-link.

        A sum of nonnegative terms, in double precision.
        """
        return float(soft_objective(self.graph, costs, labels))

    def assign(self, costs: Floats, start_labels: Ints | None = None) -> tuple[Ints, bool]:
        """Cheapest labels found, never more expensive than ``start_labels``.

        Parameters
        ----------
        costs : ndarray of shape (n_groups, n_clusters)
            An infinite cost forbids a label.
        start_labels : ndarray of shape (n_groups,), optional
            Labels that respect the cannot-links. Needed if components with cycles have
            cannot-links: without them the result may violate some.

        Returns
        -------
        labels : ndarray of shape (n_groups,)
            A new array.
        exact : bool
            The labels are the cheapest, up to rounding.
        """
        costs = np.ascontiguousarray(costs, dtype=np.float64)
        if start_labels is None:
            labels = np.full(len(costs), -1)
            assign_soft_pairs(self._layout, costs, labels, self._params.max_sweeps)
            return labels, self.exact
        labels = np.array(start_labels, dtype=np.int64)
        assign_soft_pairs(self._layout, costs, labels, self._params.max_sweeps)
        if not self.objective(costs, labels) <= self.objective(costs, start_labels):
            return np.array(start_labels, dtype=np.int64), self.exact  # equal up to rounding
        return labels, self.exact


def assign_soft(
    costs: Floats,
    soft: SoftPairs,
    cannot_links: CannotLinkGraph | None = None,
    start_labels: Ints | None = None,
) -> tuple[Ints, bool]:
    """Cheapest labels found for one table; see `SoftAssignment.assign`.

    Examples
    --------
    >>> soft = SoftPairs(2, np.array([[0, 1]]), np.array([3.0]), 3.0, 0.0)
    >>> assign_soft(np.array([[0.0, 9.0], [2.0, 0.0]]), soft)
    (array([0, 0]), True)
    """
    n_groups, n_clusters = costs.shape
    return SoftAssignment(n_groups, n_clusters, soft, cannot_links).assign(costs, start_labels)


def pair_graph(
    n_groups: int, soft: SoftPairs | None, cannot_links: CannotLinkGraph | None
) -> PairGraph:
    """Soft pairs and cannot-links in compressed rows; a pair of both kinds is a cannot-link."""
    pairs, bonus = np.empty((0, 2), dtype=np.int64), np.empty(0)
    if cannot_links is not None:
        pairs = cannot_links.edges()
        bonus = np.full(len(pairs), -np.inf)
    if soft is not None:
        pairs = np.concatenate([pairs, soft.pairs])
        bonus = np.concatenate([bonus, soft.bonus])
    tails = np.concatenate([pairs[:, 0], pairs[:, 1]])
    heads = np.concatenate([pairs[:, 1], pairs[:, 0]])
    values = np.concatenate([bonus, bonus])
    order = np.lexsort((heads, tails))
    tails, heads, values = tails[order], heads[order], values[order]
    if len(tails):  # the cannot-link comes first: the sort is stable
        first = np.ones(len(tails), dtype=np.bool_)
        first[1:] = (np.diff(tails) != 0) | (np.diff(heads) != 0)
        tails, heads, values = tails[first], heads[first], values[first]
    indptr = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n_groups), out=indptr[1:])
    return PairGraph(indptr, heads, values)


def _layout(graph: PairGraph, n_clusters: int, params: SoftAssignmentParams) -> SoftLayout:
    degrees = np.diff(graph.indptr)
    tails = np.repeat(np.arange(len(degrees)), degrees)
    n_paired = int((degrees > 0).sum())
    spanning = _empty_forest(n_paired)
    by_size = np.argsort(-np.abs(graph.bonus), kind="stable")
    starts = spanning_forest(graph, by_size, tails, spanning)
    sizes = np.diff(starts)
    n_entries = np.add.reduceat(degrees[spanning.order], starts[:-1]) if len(sizes) else sizes
    is_tree = n_entries == 2 * (sizes - 1)
    trees = _rows(spanning, np.repeat(is_tree, sizes))

    removed: list[Ints] = []
    rests: list[Forest] = []
    is_other = ~is_tree
    for number in np.flatnonzero(~is_tree).tolist():
        members = spanning.order[starts[number] : starts[number + 1]]
        most = _max_removed(len(members), n_clusters, params)
        chosen, rest = np.empty(most, dtype=np.int64), _empty_forest(len(members))
        count = break_cycles(graph, members, most, chosen, rest) if most else -1
        if count >= 0:
            is_other[number] = False
            removed.append(chosen[:count])
            rests.append(_rows(rest, np.arange(len(members)) < len(members) - count))
    others = _rows(spanning, np.repeat(is_other, sizes))
    return SoftLayout(
        graph=graph,
        trees=trees,
        removed_start=_starts([len(one) for one in removed]),
        removed=np.concatenate([np.empty(0, dtype=np.int64), *removed]),
        rest_start=_starts([len(one.order) for one in rests]),
        rest=_concatenated(rests),
        member_start=_starts(sizes[is_other].tolist()),
        spanning=others,
    )


def _max_removed(n_members: int, n_clusters: int, params: SoftAssignmentParams) -> int:
    """Largest number of removed vertices within the limits."""
    work, most = n_members * n_clusters, 0
    while most < params.max_removed and work * n_clusters <= params.max_combination_work:
        work *= max(2, n_clusters)
        most += 1
    return most


def _empty_forest(size: int) -> Forest:
    return Forest(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size))


def _rows(forest: Forest, chosen: Mask) -> Forest:
    return Forest(forest.order[chosen], forest.parent[chosen], forest.bonus[chosen])


def _concatenated(forests: list[Forest]) -> Forest:
    every = [_empty_forest(0), *forests]
    return Forest(
        np.concatenate([one.order for one in every]),
        np.concatenate([one.parent for one in every]),
        np.concatenate([one.bonus for one in every]),
    )


def _starts(sizes: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
