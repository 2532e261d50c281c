"""The cannot-link graph on reduced groups, laid out so that components are contiguous."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinkGraph:
    """Cannot-links between groups, with a spanning forest.

    Vertices ``0 .. n_linked - 1`` have a cannot-link; component ``c`` is the range
    ``starts[c] .. starts[c + 1] - 1``, in breadth-first order, so a parent's number is smaller
    than its children's. Vertices from ``n_linked`` on are free.
    """

    n_vertices: int
    indptr: NDArray[np.int64]  # (n_vertices + 1,)
    neighbors: NDArray[np.int64]  # both directions, ascending within a vertex
    starts: NDArray[np.int64]  # (n_components + 1,); starts[-1] == n_linked
    parents: NDArray[np.int64]  # (n_linked,) breadth-first parent, -1 at a root
    n_extra_edges: NDArray[np.int64]  # (n_components,) edges beyond the spanning tree; 0 for a tree

    @property
    def n_linked(self) -> int:
        """Number of vertices with at least one cannot-link."""
        return int(self.starts[-1])

    @property
    def n_components(self) -> int:
        """Number of components of two or more vertices."""
        return len(self.starts) - 1

    def edges(self) -> NDArray[np.int64]:
        """Every edge once, as rows ``(u, v)`` with ``u < v``, sorted."""
        tails = np.repeat(np.arange(self.n_vertices), np.diff(self.indptr))
        forward = tails < self.neighbors
        return np.stack([tails[forward], self.neighbors[forward]], axis=1)

    def subset(self, rows: NDArray[np.int64]) -> CannotLinkGraph:
        """The graph on ``rows``, ascending: whole components and free vertices, renumbered."""
        position = np.full(self.n_vertices + 1, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        kept = position[self.starts[:-1]] >= 0
        degrees = np.diff(self.indptr)
        entries = np.repeat(position[:-1] >= 0, degrees)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[kept])]).astype(np.int64)
        parents = self.parents[rows[: starts[-1]]]
        return CannotLinkGraph(
            n_vertices=len(rows),
            indptr=np.concatenate([[0], np.cumsum(degrees[rows])]).astype(np.int64),
            neighbors=position[self.neighbors[entries]],
            starts=starts,
            parents=position[parents],  # a root's -1 reads the last entry, which is -1
            n_extra_edges=self.n_extra_edges[kept],
        )


# Feasibility of labellings: one type for every kind of constraint on the groups.
#
# Stages do not depend on the kind of a constraint. They need two operations:
#
# * *the cheapest feasible labels for a table of costs* (heuristics, upper bounds, the sample
#   bound): provided by `certikmeans.assignment.make_assigner`, one class per kind;
# * *the feasible set of groups of largest value* (pricing in the cluster bound): provided by the
#   pricer of the bound.
#
# Code that **constructs labellings** uses the first, or checks ``is_cannot_link_only``; code that
# does not support some constraints rejects them with `raise_unsupported`. Code that **bounds from
# below** may ignore constraints that it does not know, which is a relaxation: ``cannot_links`` are
# the cannot-links among all constraints. docs/decisions/0007 lists what a new kind would touch.


class LabelConstraints(ABC):
    """Constraints on labels of the groups. Must-links are not among them: they form the groups."""

    kind: ClassVar[str]  # in the plural, for messages

    @property
    @abstractmethod
    def cannot_links(self) -> CannotLinkGraph:
        """The cannot-links among the constraints, sufficient for a lower bound."""

    @property
    @abstractmethod
    def is_cannot_link_only(self) -> bool:
        """Whether there are no other constraints."""

    @abstractmethod
    def satisfied_by(self, labels: NDArray[np.int64]) -> bool:
        """Whether labels are feasible."""

    @abstractmethod
    def component_starts(self) -> NDArray[np.int64]:
        """First rows of the components, and the number of rows at the end.

        No constraint involves groups of two components.
        """

    @abstractmethod
    def subset(self, rows: NDArray[np.int64]) -> LabelConstraints:
        """Constraints of the groups ``rows``, ascending, which form whole components."""

    def neighbors_of(self, group: int) -> NDArray[np.int64]:
        """Groups with a cannot-link to this one."""
        graph = self.cannot_links
        return graph.neighbors[graph.indptr[group] : graph.indptr[group + 1]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinks(LabelConstraints):
    """Linked groups must not share a cluster."""

    kind: ClassVar[str] = "cannot-links"

    graph: CannotLinkGraph

    @property
    def cannot_links(self) -> CannotLinkGraph:
        """The cannot-links."""
        return self.graph

    @property
    def is_cannot_link_only(self) -> bool:
        """Always True."""
        return True

    def satisfied_by(self, labels: NDArray[np.int64]) -> bool:
        """Whether no link has both ends in one cluster."""
        tails, heads = self.graph.edges().T
        return bool((labels[tails] != labels[heads]).all())

    def component_starts(self) -> NDArray[np.int64]:
        """First rows of the components; a free group is one."""
        graph = self.graph
        free = np.arange(graph.n_linked, graph.n_vertices + 1)
        return np.concatenate([graph.starts[:-1], free]).astype(np.int64)

    def subset(self, rows: NDArray[np.int64]) -> CannotLinks:
        """The links of whole components."""
        return CannotLinks(self.graph.subset(rows))


def raise_unsupported(label_constraints: LabelConstraints, what: str) -> NoReturn:
    """Raise an error: ``what`` does not support these constraints."""
    raise InputError(
        f"{what} cannot take account of {label_constraints.kind}",
        hint="leave these constraints out, or choose another method",
    )
