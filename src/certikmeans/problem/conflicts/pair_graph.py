"""Must-links and cannot-links as one graph with two kinds of edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MAX_PEEL_ROUNDS = 200  # with fewer rounds than needed, components are larger than necessary


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairGraph:
    """Pairs among vertices ``0 .. n - 1``. Edge ``e`` is a must-link if ``e < n_must``."""

    n: int
    edges: IntArray  # (m, 2), the must-links first; distinct within each kind, no loops
    n_must: int

    @classmethod
    def of(cls, n: int, must: IntArray, cannot: IntArray) -> PairGraph:
        """Put both kinds into one array."""
        return cls(n, np.concatenate([must, cannot]).reshape(-1, 2), len(must))

    @property
    def must(self) -> IntArray:
        """The must-links."""
        return self.edges[: self.n_must]

    @property
    def cannot(self) -> IntArray:
        """The cannot-links."""
        return self.edges[self.n_must :]

    def cyclic_components(self) -> list[tuple[PairGraph, IntArray]]:
        """Split into connected components without pendant trees, each with its edge numbers.

        Components are independent, because labels can be permuted within each. Vertices with a
        single pair are peeled off repeatedly: with two or more clusters, they can be labelled last.
        """
        kept = self._two_core_edges()
        n_components, component = components(self.n, self.edges[kept])
        of_edge = component[self.edges[kept, 0]]
        order = np.argsort(of_edge, kind="stable")
        cuts = np.searchsorted(of_edge[order], np.arange(n_components + 1))
        found = []
        for k in np.flatnonzero(np.diff(cuts)):
            ids = kept[order[cuts[k] : cuts[k + 1]]]  # ascending, so must-links stay in front
            vertices, local = np.unique(self.edges[ids], return_inverse=True)
            n_must = int((ids < self.n_must).sum())
            found.append((PairGraph(len(vertices), local.reshape(-1, 2), n_must), ids))
        return found

    def _two_core_edges(self) -> IntArray:
        kept = np.arange(len(self.edges))
        for _ in range(_MAX_PEEL_ROUNDS):
            degree = np.bincount(self.edges[kept].ravel(), minlength=self.n)
            inner = (degree[self.edges[kept]] > 1).all(axis=1)
            if inner.all():
                break
            kept = kept[inner]
        return kept

    def groups(self, removed: BoolArray) -> IntArray:
        """Number the components of the must-links that are not removed."""
        return components(self.n, self.must[~removed[: self.n_must]])[1]

    def inside(self, groups: IntArray) -> BoolArray:
        """Return which edges join vertices of the same group."""
        return np.asarray(groups[self.edges[:, 0]] == groups[self.edges[:, 1]])

    def violated(self, labels: IntArray) -> IntArray:
        """Return the edges that a labelling violates."""
        wrong = self.inside(labels)
        wrong[: self.n_must] = ~wrong[: self.n_must]
        return np.flatnonzero(wrong)


@final
class MustLinkPaths:
    """Paths along the must-links that are not removed."""

    def __init__(self, graph: PairGraph, removed: BoolArray) -> None:
        kept = np.flatnonzero(~removed[: graph.n_must])
        self._matrix = adjacency(graph.n, graph.edges[kept], np.ones(len(kept)))
        self._edge = edge_numbers(graph.edges[kept], kept)
        self._root, self._predecessors = -1, np.empty(0, dtype=np.int32)

    def path(self, first: int, last: int, root: int | None = None) -> list[int]:
        """Return the vertices of a path in the breadth-first tree of ``root``.

        By default ``first`` is the root, and the path a shortest one. The tree of the last root
        is kept.
        """
        root = first if root is None else root
        if root != self._root:
            tree = breadth_first_order(self._matrix, root, directed=False)
            self._root, self._predecessors = root, tree[1]
        up, down = self._to_root(first), self._to_root(last)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        return up + down[-2::-1]

    def links(self, first: int, last: int) -> set[int]:
        """Return the edge numbers of a shortest path."""
        walk = self.path(first, last)
        return {self._edge[min(step), max(step)] for step in pairwise(walk)}

    def _to_root(self, vertex: int) -> list[int]:
        walk = [vertex]
        while self._predecessors[walk[-1]] >= 0:
            walk.append(int(self._predecessors[walk[-1]]))
        return walk


def edge_numbers(edges: IntArray, numbers: IntArray) -> dict[tuple[int, int], int]:
    """Map edges, the smaller end first, to their numbers."""
    ends = map(tuple, np.sort(edges, axis=1).tolist())
    return dict(zip(ends, numbers.tolist(), strict=True))


def components(n: int, edges: IntArray) -> tuple[int, IntArray]:
    """Count and number the connected components."""
    found, number = connected_components(adjacency(n, edges, np.ones(len(edges))), directed=False)
    return int(found), np.asarray(number, dtype=np.int64)


def adjacency(n: int, edges: IntArray, weights: FloatArray) -> csr_array:
    """Return a sparse matrix that has every edge once, in one direction."""
    return coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
