"""Must-links and cannot-links as one graph with two kinds of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

IntArray = NDArray[np.int64]

_MAX_PEEL_ROUNDS = 200  # of peeling; where more would be needed, the pieces are larger than need be


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairGraph:
    """Pairs among vertices ``0 .. n - 1``. Edge ``e`` is a must-link if ``e < n_must``."""

    n: int
    edges: IntArray  # (m, 2), the must-links first
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

    def cyclic_components(self) -> list[tuple[PairGraph, IntArray, IntArray]]:
        """Cut into connected pieces: each with its vertices and its edges, by old numbers.

        What happens in one piece has no say in another: labels can be permuted in each. A
        vertex with a single pair is left out, again and again: with two or more clusters, it
        can be labelled last.
        """
        kept = self._two_core_edges()
        count, component = components(self.n, self.edges[kept])
        of_edge = component[self.edges[kept, 0]]
        order = np.argsort(of_edge, kind="stable")
        cuts = np.searchsorted(of_edge[order], np.arange(count + 1))
        found = []
        for k in np.flatnonzero(np.diff(cuts)):
            ids = kept[order[cuts[k] : cuts[k + 1]]]  # ascending, so must-links stay in front
            vertices, local = np.unique(self.edges[ids], return_inverse=True)
            n_must = int((ids < self.n_must).sum())
            found.append((PairGraph(len(vertices), local.reshape(-1, 2), n_must), vertices, ids))
        return found

    def _two_core_edges(self) -> IntArray:
        """Leave out edges at vertices of degree one, for a number of rounds."""
        kept = np.arange(len(self.edges))
        for _ in range(_MAX_PEEL_ROUNDS):
            degree = np.bincount(self.edges[kept].ravel(), minlength=self.n)
            inner = (degree[self.edges[kept]] > 1).all(axis=1)
            if inner.all():
                break
            kept = kept[inner]
        return kept

    def groups(self, removed: NDArray[np.bool_]) -> IntArray:
        """Number the components of the must-links that are not removed."""
        return components(self.n, self.must[~removed[: self.n_must]])[1]

    def violated(self, labels: IntArray) -> IntArray:
        """Return the edges that a labelling breaks."""
        same = labels[self.edges[:, 0]] == labels[self.edges[:, 1]]
        wrong = same.copy()
        wrong[: self.n_must] = ~same[: self.n_must]
        return np.flatnonzero(wrong)


def components(n: int, edges: IntArray) -> tuple[int, IntArray]:
    """Count and number the connected components."""
    count, number = connected_components(adjacency(n, edges, np.ones(len(edges))), directed=False)
    return int(count), np.asarray(number, dtype=np.int64)


def adjacency(n: int, edges: IntArray, weights: NDArray[np.float64]) -> csr_array:
    """Return a sparse matrix with every edge once; of parallel edges the lightest."""
    order = np.lexsort((weights, edges.max(axis=1), edges.min(axis=1)))
    low, high = edges.min(axis=1)[order], edges.max(axis=1)[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    chosen = order[first]
    return coo_array((weights[chosen], (low[first], high[first])), shape=(n, n)).tocsr()
