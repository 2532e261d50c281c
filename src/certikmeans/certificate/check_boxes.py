"""Boxes of centers, and upper bounds on the value of a cluster over them.

For multipliers ``lam`` the value of a group ``s`` for a cluster centered at ``y`` is
``a_s(y) = lam_s - w_s |x_s - y|^2``; ``V(y)`` is the value of the best set of groups without a
cannot-link.
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
    distinct,
    nodes_by_level,
    spanning_forest,
    total,
)


class CutoffExceeded(Exception):
    """A cluster was found whose value exceeds the cutoff, up to rounding."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value


@final
@dataclass(frozen=True, slots=True, eq=False)
class CenterRegion:
    """Box of the mean of a cluster, and which of its faces were created by splits."""

    low: Floats  # (r,)
    high: Floats
    cut_low: NDArray[np.bool_]  # (r,): beyond this face there may be better centres
    cut_high: NDArray[np.bool_]


@final
@dataclass(slots=True, eq=False)
class BoxBatch:
    """Boxes of ``y``, each with the sums of its included groups and the undecided groups."""

    low: Floats  # (b, r)
    high: Floats
    fixed_sums: Floats  # (b, r + 2): constant, mass, weighted coordinates
    depth: Ints  # (b,): evaluations so far
    sizes: Ints  # (b,): undecided groups
    ids: NDArray[np.int32]  # their numbers, box after box

    @property
    def count(self) -> int:
        """Number of boxes."""
        return len(self.sizes)

    @property
    def members(self) -> Ints:
        """Undecided groups of every box."""
        return self.sizes

    @property
    def entries(self) -> int:
        """Approximate number of numbers held."""
        return len(self.ids) + self.count * (3 * int(self.low.shape[1]) + 5)

    def take(self, chosen: NDArray[np.bool_]) -> BoxBatch:
        """Return the chosen boxes."""
        kept = np.repeat(chosen, self.sizes)
        return BoxBatch(
            self.low[chosen], self.high[chosen], self.fixed_sums[chosen],
            self.depth[chosen], self.sizes[chosen], self.ids[kept],
        )  # fmt: skip

    @classmethod
    def concatenated(cls, parts: list[BoxBatch]) -> BoxBatch:
        """Return all boxes of the parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in cls.__slots__))


@final
class PricingData:
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
        """Number the groups with cannot-links, and list their neighbors."""
        linked = distinct(edges)
        self.n_linked = len(linked)
        self.linked_index = np.full(n, -1, dtype=np.int32)
        self.linked_index[linked] = np.arange(len(linked))
        ends = self.linked_index[edges].astype(np.int64)
        forest = spanning_forest(len(linked), ends)
        self.parent, self.level, self.cyclic = forest.parent, forest.level, forest.has_cycle
        tail, head = np.concatenate([ends, ends[:, ::-1]]).T
        order = np.argsort(tail, kind="stable")
        self.tail, self.neighbors = tail[order], head[order]
        self.levels = nodes_by_level(self.level) if len(linked) else []
        self.degree = np.bincount(tail, minlength=len(linked))
        self.first_neighbor = np.cumsum(self.degree) - self.degree
        self.max_degree = int(self.degree.max(initial=0))

    def error(self, depth: Ints) -> Floats:
        """Upper bound on the rounding error of the bound of a box after so many evaluations."""
        error: Floats = 3.0 * EPS * self.magnitude * (self.n + depth + 4 * self.r + 64) + 1e-150
        return error

    def start(self, region: CenterRegion, allowed: NDArray[np.bool_] | None = None) -> BoxBatch:
        """Return the whole region as one box."""
        useful = self.lam > 0.0
        ids = np.flatnonzero(useful if allowed is None else useful & allowed).astype(np.int32)
        zero = np.zeros((1, self.r + 2))
        low, high = region.low[None].copy(), region.high[None].copy()
        return BoxBatch(low, high, zero, np.zeros(1, np.int64), np.array([len(ids)]), ids)


@final
class EntrySubset:
    """Some of the entries of an evaluation, box after box."""

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


# Evaluation of many boxes: an upper bound of ``V(y)`` over each.
#
# Arrays hold one entry per (box, group still undecided there), box after box.
# ``docs/certificate-format.md`` derives every step and every rounding term.

UNDECIDED, INCLUDED, EXCLUDED = 0, 1, 2


@final
class _EntryIndex:
    """Finds the entry of a (box, group) in a table that is not cleared before use.

    A value left at an unused index of the table is not the index of an entry with that key.
    """

    def __init__(self, keys: Ints, table: NDArray[np.int32]) -> None:
        self._keys, self._table = keys, table

    def find(self, keys: Ints) -> Ints:
        """Return the indices of the entries; -1 where there is none."""
        found = np.clip(self._table[keys], 0, len(self._keys) - 1).astype(np.intp)
        return np.where(self._keys[found] == keys, found, -1)


@final
class BoxBounds:
    """Upper bounds ``upper`` of ``V(y)`` over each of the boxes, and data to split them."""

    def __init__(
        self, pricing: PricingData, boxes: BoxBatch, region: CenterRegion, cutoff: float
    ) -> None:
        self.pricing, self.boxes, self.region, self.cutoff = pricing, boxes, region, cutoff
        self.count = len(boxes.sizes)
        self._ranges()
        self._index_linked_entries()
        self._decide()
        self._bound()

    def _ranges(self) -> None:
        """Ranges of a_s over its box, rounded outward; groups without positive value leave."""
        pricing, boxes = self.pricing, self.boxes
        ids = boxes.ids.astype(np.intp)
        middle = 0.5 * (boxes.low + boxes.high)
        half = np.maximum(boxes.high - middle, middle - boxes.low) * (1.0 + EPS)
        near, far = np.zeros(len(ids)), np.zeros(len(ids))
        for j in range(pricing.r):
            deviation = pricing.x[j].take(ids)
            deviation -= np.repeat(middle[:, j], boxes.sizes)
            np.abs(deviation, out=deviation)
            reach = np.repeat(half[:, j], boxes.sizes)
            farther = deviation + reach
            farther *= farther
            far += farther
            deviation -= reach
            np.maximum(deviation, 0.0, out=deviation)
            deviation *= deviation
            near += deviation
        lam, weight = pricing.lam.take(ids), pricing.w.take(ids)
        near *= weight
        far *= weight
        rounding_error = (pricing.r + 8) * EPS * (lam + far) + 1e-300
        highest = lam - near + rounding_error
        kept = np.flatnonzero(~(highest <= 0.0))  # NaN proves nothing
        box = np.repeat(np.arange(self.count), boxes.sizes)
        self.ids, self.box, self.weight = ids[kept], box[kept], weight[kept]
        self.highest, self.lowest = highest[kept], (lam - far - rounding_error)[kept]
        self.middle = middle

    def entries(self, at: Ints) -> EntrySubset:
        """Return some of the entries."""
        return EntrySubset(self.box[at], self.ids[at], self.weight[at], self.count)

    def _index_linked_entries(self) -> None:
        """Find the entries with cannot-links, their parents in a forest, and their levels."""
        pricing = self.pricing
        linked_indices = pricing.linked_index[self.ids]
        linked = np.flatnonzero(linked_indices >= 0)
        self.linked = linked
        if len(linked) == 0:
            self.has_cycle = np.zeros(0, dtype=bool)
            return
        linked_index = linked_indices[linked].astype(np.intp)
        row = self.box[linked] * pricing.n_linked
        # Uninitialized: see `_EntryIndex`.
        table = np.empty(self.count * pricing.n_linked, dtype=np.int32)
        table[row + linked_index] = np.arange(len(linked))
        links = _EntryIndex(row + linked_index, table)
        above = pricing.parent[linked_index]
        parent = np.where(above >= 0, links.find(row + np.maximum(above, 0)), -1)
        level = pricing.level[linked_index]
        has_cycle = np.zeros(len(linked), dtype=bool)
        self.edges = np.zeros((0, 2), dtype=np.int64)
        cyclic = np.flatnonzero(pricing.cyclic[linked_index])
        if len(cyclic):
            # A cycle opens as soon as one of its groups is gone: span the rest again.
            self.edges = edges = self._neighbor_pairs(cyclic, linked_index, row, links)
            index = np.empty(len(linked), dtype=np.intp)
            index[cyclic] = np.arange(len(cyclic))
            forest = spanning_forest(len(cyclic), index[edges[edges[:, 0] < edges[:, 1]]])
            parent[cyclic] = np.where(forest.parent >= 0, cyclic[forest.parent], -1)
            level[cyclic] = forest.level
            has_cycle[cyclic] = forest.has_cycle
        self.parent, self.has_cycle = parent, has_cycle
        self.levels = nodes_by_level(level)

    def _neighbor_pairs(
        self, entries: Ints, linked_index: Ints, row: Ints, links: _EntryIndex
    ) -> Ints:
        """Cannot-links between entries of one box, in both directions."""
        degree = self.pricing.degree[linked_index[entries]]
        tail = np.repeat(entries, degree)
        offset = np.arange(len(tail)) - np.repeat(np.cumsum(degree) - degree, degree)
        others = self.pricing.neighbors[self.pricing.first_neighbor[linked_index[tail]] + offset]
        head = links.find(row[tail] + others)
        return np.column_stack([tail, head])[head >= 0]

    def _decide(self) -> None:
        """Included and excluded groups, and the share of each undecided group in the chords.

        On a tree ``delta_v = a_v - sum over children of max(delta_c, 0)``, and the best set has the
        value ``sum max(delta_v, 0)``. Shares and the rest for the children are rounded up.
        """
        state = np.where(self.lowest >= 0.0, INCLUDED, UNDECIDED).astype(np.uint8)
        gap = np.where(self.lowest < 0.0, self.highest - self.lowest, 1.0)
        share = np.minimum(1.0, self.highest / gap * (1.0 + 4.0 * EPS))
        self.floor = np.minimum(self.lowest, 0.0)
        if len(self.linked):
            self._decide_linked(state, share)
        self.state, self.share = state, share

    def _decide_linked(self, state: NDArray[np.uint8], share: Floats) -> None:
        linked, parent = self.linked, self.parent
        highest, lowest = self.highest[linked], self.lowest[linked]
        most, least = np.zeros(len(linked)), np.zeros(len(linked))
        margin = (self.pricing.max_degree + 4) * EPS
        for level in reversed(self.levels):
            taken = least[level] * (1.0 - margin)
            highest[level] += 2.0 * EPS * (highest[level] + taken) - taken
            taken = most[level] * (1.0 + margin)
            lowest[level] -= taken + 2.0 * EPS * (np.abs(lowest[level]) + taken)
            child = level[parent[level] >= 0]
            np.add.at(most, parent[child], np.maximum(highest[child], 0.0))
            np.add.at(least, parent[child], np.maximum(lowest[child], 0.0))
        chords = _chords(highest, lowest)
        states, shares = np.full(len(linked), UNDECIDED, dtype=np.uint8), np.zeros(len(linked))
        for level in self.levels:
            above = parent[level]
            root = above < 0
            free = root | (states[above] == EXCLUDED)
            blocked = ~root & (states[above] == INCLUDED)
            left = np.where(root, 1.0, np.minimum(1.0, (1.0 - shares[above]) * (1.0 + 2.0 * EPS)))
            exact = ~self.has_cycle[level]
            out = blocked | (exact & (highest[level] <= 0.0))
            within = ~out & exact & free & (lowest[level] >= 0.0)
            states[level] = np.where(out, EXCLUDED, np.where(within, INCLUDED, UNDECIDED))
            shares[level] = np.where(
                out, 0.0, np.minimum(1.0, left * chords[level] * (1.0 + 2.0 * EPS))
            )
        state[linked], share[linked] = states, shares
        self.floor[linked] = np.minimum(lowest, 0.0)

    def _bound(self) -> None:
        """Maximum over each box of the concave quadratic that the chords add up to."""
        pricing, boxes = self.pricing, self.boxes
        undecided = self.undecided = np.flatnonzero(self.state == UNDECIDED)
        inside, chords = (
            self.entries(np.flatnonzero(self.state == INCLUDED)),
            self.entries(undecided),
        )
        fixed_sums, chord = boxes.fixed_sums.copy(), np.empty((self.count, pricing.r + 2))
        share = self.share[undecided]
        chord_weight = share * chords.weight
        fixed_sums[:, 0] += inside.sum(pricing.base.take(inside.ids))
        fixed_sums[:, 1] += inside.sum(inside.weight)
        chord[:, 0] = chords.sum(share * (pricing.base.take(chords.ids) - self.floor[undecided]))
        chord[:, 1] = chords.sum(chord_weight)
        for j, x in enumerate(pricing.x):
            fixed_sums[:, 2 + j] += inside.sum(inside.weight * x.take(inside.ids))
            chord[:, 2 + j] = chords.sum(chord_weight * x.take(chords.ids))
        both = fixed_sums + chord
        self.fixed_sums, self.mass = fixed_sums, both[:, 1]
        # With almost no mass the quadratic is bounded by its linear part instead.
        self.heavy = self.mass > 1e-100
        divisor = np.where(self.heavy, self.mass, 1.0)[:, None]
        pull = both[:, 2:]
        self.peak = np.where(self.heavy[:, None], pull / divisor, self.middle)
        self.best = np.clip(self.peak, boxes.low, boxes.high)
        concave = np.sum(self.best * (2.0 * pull - self.mass[:, None] * self.best), axis=1)
        linear = 2.0 * np.sum(np.maximum(boxes.low * pull, boxes.high * pull), axis=1)
        self.error = pricing.error(boxes.depth)
        self.upper = both[:, 0] + np.where(self.heavy, concave, linear) + self.error


def _chords(highest: Floats, lowest: Floats) -> Floats:
    """Slopes of lines above max(t, 0) on [lowest, highest] that vanish at min(lowest, 0)."""
    gap = np.where(lowest < 0.0, highest - lowest, 1.0)
    slope = np.where(lowest < 0.0, highest / gap * (1.0 + 4.0 * EPS), 1.0)
    return np.where(highest <= 0.0, 0.0, np.minimum(1.0, slope))
