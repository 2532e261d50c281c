"""The cannot-link graph on reduced groups, laid out so that components are contiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from certikmeans._types import Ints


@final
@dataclass(frozen=True, slots=True, eq=False)
class CannotLinkGraph:
    """Cannot-links between groups, with a spanning forest.

    Vertices ``0 .. n_linked - 1`` have a cannot-link; component ``c`` is the range
    ``starts[c] .. starts[c + 1] - 1``, in breadth-first order, so a parent's number is smaller
    than its children's. Vertices from ``n_linked`` on are free.
    """

    n_vertices: int
    indptr: Ints  # (n_vertices + 1,)
    neighbors: Ints  # both directions, ascending within a vertex
    starts: Ints  # (n_components + 1,); starts[-1] == n_linked
    parents: Ints  # (n_linked,) breadth-first parent, -1 at a root
    n_extra_edges: Ints  # (n_components,) edges beyond the spanning tree; 0 for a tree

    @property
    def n_linked(self) -> int:
        """Number of vertices with at least one cannot-link."""
        return int(self.starts[-1])

    @property
    def n_components(self) -> int:
        """Number of components of two or more vertices."""
        return len(self.starts) - 1

    def edges(self) -> Ints:
        """Every edge once, as rows ``(u, v)`` with ``u < v``, sorted."""
        tails = np.repeat(np.arange(self.n_vertices), np.diff(self.indptr))
        forward = tails < self.neighbors
        return np.stack([tails[forward], self.neighbors[forward]], axis=1)

    def subset(self, rows: Ints) -> CannotLinkGraph:
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
