"""What the subdivision works on: boxes of centres, and what groups are worth there.

For multipliers ``lam`` a group ``s`` is worth ``a_s(y) = lam_s - w_s |x_s - y|^2`` to a cluster
centred at ``y``; ``V(y)`` is the value of the best set of groups without a cannot-link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import (
    EPS,
    Floats,
    Ints,
    by_level,
    distinct,
    span,
    total,
)


class Exceeded(Exception):
    """A cluster was found that is worth more than was to be shown, up to rounding."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value


@final
@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Where a cluster's mean may be: a box, and which of its faces were cut by the tree."""

    low: Floats  # (r,)
    high: Floats
    cut_low: NDArray[np.bool_]  # (r,): beyond this face there may be better centres
    cut_high: NDArray[np.bool_]


@final
@dataclass(slots=True, eq=False)
class Boxes:
    """Boxes of ``y``, each with the groups that are in (as sums) and those undecided."""

    low: Floats  # (b, r)
    high: Floats
    settled: Floats  # (b, r + 2): constant, mass, weighted coordinates
    depth: Ints  # (b,): looks so far
    sizes: Ints  # (b,): undecided groups
    ids: NDArray[np.int32]  # their numbers, box after box

    @property
    def entries(self) -> int:
        """Numbers held, about."""
        return len(self.ids) + len(self.sizes) * (3 * int(self.low.shape[1]) + 5)

    def take(self, chosen: NDArray[np.bool_]) -> Boxes:
        """Return the chosen boxes."""
        kept = np.repeat(chosen, self.sizes)
        return Boxes(
            self.low[chosen], self.high[chosen], self.settled[chosen],
            self.depth[chosen], self.sizes[chosen], self.ids[kept],
        )  # fmt: skip


@final
class Worths:
    """Groups, multipliers and cannot-links, arranged for the subdivision."""

    def __init__(self, points: Floats, weights: Floats, edges: Ints, multipliers: Floats) -> None:
        n, self.r = points.shape
        self.n = n
        self.x = np.ascontiguousarray(points.T)
        self.w, self.lam = weights, multipliers
        self.base = multipliers - weights * np.einsum("ij,ij->i", points, points)
        self.size = np.abs(self.x).max(axis=1)
        farthest = math.sqrt(float(np.sum(self.size**2))) * (1.0 + 8.0 * EPS)
        norms = np.sqrt(np.einsum("ij,ij->i", points, points)) * (1.0 + (self.r + 4) * EPS)
        self.magnitude = 1.001 * (
            total(np.abs(multipliers)) + total(weights * (norms + farthest) ** 2)
        )
        self._index_links(n, edges)

    def _index_links(self, n: int, edges: Ints) -> None:
        """Number the groups with cannot-links, and list their neighbours."""
        linked = distinct(edges)
        self.n_linked = len(linked)
        self.slot = np.full(n, -1, dtype=np.int32)
        self.slot[linked] = np.arange(len(linked))
        ends = self.slot[edges].astype(np.int64)
        forest = span(len(linked), ends)
        self.parent, self.level, self.cyclic = forest.parent, forest.level, forest.tangled
        tail, head = np.concatenate([ends, ends[:, ::-1]]).T
        order = np.argsort(tail, kind="stable")
        self.tail, self.neighbours = tail[order], head[order]
        self.levels = by_level(self.level) if len(linked) else []
        self.degree = np.bincount(tail, minlength=len(linked))
        self.begin = np.cumsum(self.degree) - self.degree
        self.widest = int(self.degree.max(initial=0))

    def error(self, depth: Ints) -> Floats:
        """At least the rounding error of the bound of a box after so many looks."""
        error: Floats = 3.0 * EPS * self.magnitude * (self.n + depth + 4 * self.r + 64) + 1e-150
        return error

    def start(self, region: Region, allowed: NDArray[np.bool_] | None = None) -> Boxes:
        """Return the whole region as one box."""
        useful = self.lam > 0.0
        ids = np.flatnonzero(useful if allowed is None else useful & allowed).astype(np.int32)
        zero = np.zeros((1, self.r + 2))
        low, high = region.low[None].copy(), region.high[None].copy()
        return Boxes(low, high, zero, np.zeros(1, np.int64), np.array([len(ids)]), ids)


@final
class Entries:
    """Some of the entries of a look, box after box."""

    def __init__(self, box: Ints, ids: Ints, weight: Floats, count: int) -> None:
        self.box, self.ids, self.weight = box, ids, weight
        self.sizes = np.bincount(box, minlength=count)
        self._filled = self.sizes > 0
        self._starts = (np.cumsum(self.sizes) - self.sizes)[self._filled]

    def sum(self, values: Floats) -> Floats:
        """Sum box by box."""
        sums = np.zeros(len(self.sizes))
        if len(values):
            sums[self._filled] = np.add.reduceat(values, self._starts)
        return sums

    def spread(self, values: Floats) -> Floats:
        """Repeat a value of each box for its entries."""
        return np.repeat(values, self.sizes)
