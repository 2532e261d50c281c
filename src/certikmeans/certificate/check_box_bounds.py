"""One look at many boxes: an upper bound of ``V(y)`` over each.

Arrays hold one entry per (box, group still undecided there), box after box.
``docs/certificate-format.md`` derives every step and every rounding term.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import EPS, Floats, Ints, by_level, span
from certikmeans.certificate.check_boxes import Boxes, Entries, Region, Worths

OPEN, IN, OUT = 0, 1, 2


@final
class _Links:
    """Finds the entry of a (box, group), without clearing a table for it first.

    Whatever stands at an unused place of the table is no number of an entry with that key.
    """

    def __init__(self, keys: Ints, table: NDArray[np.int32]) -> None:
        self._keys, self._table = keys, table

    def find(self, keys: Ints) -> Ints:
        """Return the numbers of the entries; -1 where there is none."""
        found = np.clip(self._table[keys], 0, len(self._keys) - 1).astype(np.intp)
        return np.where(self._keys[found] == keys, found, -1)


@final
class BoxBounds:
    """Bounds ``V(y)`` over each of the boxes by ``upper``; keeps what dividing them needs."""

    def __init__(self, pricing: Worths, boxes: Boxes, region: Region, cutoff: float) -> None:
        self.pricing, self.boxes, self.region, self.cutoff = pricing, boxes, region, cutoff
        self.count = len(boxes.sizes)
        self._ranges()
        self._links()
        self._decide()
        self._bound()

    def _ranges(self) -> None:
        """Ranges of a_s over its box, rounded outward; groups never worth anything leave."""
        pricing, boxes = self.pricing, self.boxes
        ids = boxes.ids.astype(np.intp)
        middle = 0.5 * (boxes.low + boxes.high)
        half = np.maximum(boxes.high - middle, middle - boxes.low) * (1.0 + EPS)
        near, far = np.zeros(len(ids)), np.zeros(len(ids))
        for j in range(pricing.r):
            away = pricing.x[j].take(ids)
            away -= np.repeat(middle[:, j], boxes.sizes)
            np.abs(away, out=away)
            reach = np.repeat(half[:, j], boxes.sizes)
            farther = away + reach
            farther *= farther
            far += farther
            away -= reach
            np.maximum(away, 0.0, out=away)
            away *= away
            near += away
        lam, weight = pricing.lam.take(ids), pricing.w.take(ids)
        near *= weight
        far *= weight
        doubt = (pricing.r + 8) * EPS * (lam + far) + 1e-300
        highest = lam - near + doubt
        kept = np.flatnonzero(~(highest <= 0.0))  # written so that NaN proves nothing
        box = np.repeat(np.arange(self.count), boxes.sizes)
        self.ids, self.box, self.weight = ids[kept], box[kept], weight[kept]
        self.highest, self.lowest = highest[kept], (lam - far - doubt)[kept]
        self.middle = middle

    def entries(self, at: Ints) -> Entries:
        """Return some of the entries."""
        return Entries(self.box[at], self.ids[at], self.weight[at], self.count)

    def _links(self) -> None:
        """Find the entries with cannot-links, their parents in a forest, and their levels."""
        pricing = self.pricing
        slots = pricing.slot[self.ids]
        linked = np.flatnonzero(slots >= 0)
        self.linked = linked
        if len(linked) == 0:
            self.tangled = np.zeros(0, dtype=bool)
            return
        slot = slots[linked].astype(np.intp)
        row = self.box[linked] * pricing.n_linked
        table = np.empty(
            self.count * pricing.n_linked, dtype=np.int32
        )  # used places only: see `_Links`
        table[row + slot] = np.arange(len(linked))
        links = _Links(row + slot, table)
        above = pricing.parent[slot]
        parent = np.where(above >= 0, links.find(row + np.maximum(above, 0)), -1)
        level = pricing.level[slot]
        tangled = np.zeros(len(linked), dtype=bool)
        self.edges = np.zeros((0, 2), dtype=np.int64)
        cyclic = np.flatnonzero(pricing.cyclic[slot])
        if len(cyclic):
            # A cycle opens as soon as one of its groups is gone: span what is left anew.
            self.edges = edges = self._neighbours(cyclic, slot, row, links)
            place = np.empty(len(linked), dtype=np.intp)
            place[cyclic] = np.arange(len(cyclic))
            forest = span(len(cyclic), place[edges[edges[:, 0] < edges[:, 1]]])
            parent[cyclic] = np.where(forest.parent >= 0, cyclic[forest.parent], -1)
            level[cyclic] = forest.level
            tangled[cyclic] = forest.tangled
        self.parent, self.tangled = parent, tangled
        self.levels = by_level(level)

    def _neighbours(self, entries: Ints, slot: Ints, row: Ints, links: _Links) -> Ints:
        """Cannot-links between entries of one box, in both directions."""
        degree = self.pricing.degree[slot[entries]]
        tail = np.repeat(entries, degree)
        offset = np.arange(len(tail)) - np.repeat(np.cumsum(degree) - degree, degree)
        others = self.pricing.neighbours[self.pricing.begin[slot[tail]] + offset]
        head = links.find(row[tail] + others)
        return np.column_stack([tail, head])[head >= 0]

    def _decide(self) -> None:
        """What is in, what is out, and the share of each undecided group in the chords.

        On a tree ``delta_v = a_v - sum over children of max(delta_c, 0)``, and the best set is
        worth ``sum max(delta_v, 0)``. Shares and what is left for the children are rounded up.
        """
        state = np.where(self.lowest >= 0.0, IN, OPEN).astype(np.uint8)
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
        margin = (self.pricing.widest + 4) * EPS
        for level in reversed(self.levels):
            taken = least[level] * (1.0 - margin)
            highest[level] += 2.0 * EPS * (highest[level] + taken) - taken
            taken = most[level] * (1.0 + margin)
            lowest[level] -= taken + 2.0 * EPS * (np.abs(lowest[level]) + taken)
            child = level[parent[level] >= 0]
            np.add.at(most, parent[child], np.maximum(highest[child], 0.0))
            np.add.at(least, parent[child], np.maximum(lowest[child], 0.0))
        chords = _chords(highest, lowest)
        states, shares = np.full(len(linked), OPEN, dtype=np.uint8), np.zeros(len(linked))
        for level in self.levels:
            above = parent[level]
            root = above < 0
            free = root | (states[above] == OUT)
            shut = ~root & (states[above] == IN)
            left = np.where(root, 1.0, np.minimum(1.0, (1.0 - shares[above]) * (1.0 + 2.0 * EPS)))
            exact = ~self.tangled[level]
            out = shut | (exact & (highest[level] <= 0.0))
            within = ~out & exact & free & (lowest[level] >= 0.0)
            states[level] = np.where(out, OUT, np.where(within, IN, OPEN))
            shares[level] = np.where(
                out, 0.0, np.minimum(1.0, left * chords[level] * (1.0 + 2.0 * EPS))
            )
        state[linked], share[linked] = states, shares
        self.floor[linked] = np.minimum(lowest, 0.0)

    def _bound(self) -> None:
        """Maximum over each box of the concave quadratic that the chords add up to."""
        pricing, boxes = self.pricing, self.boxes
        undecided = self.undecided = np.flatnonzero(self.state == OPEN)
        inside, chords = self.entries(np.flatnonzero(self.state == IN)), self.entries(undecided)
        settled, chord = boxes.settled.copy(), np.empty((self.count, pricing.r + 2))
        share = self.share[undecided]
        part = share * chords.weight
        settled[:, 0] += inside.sum(pricing.base.take(inside.ids))
        settled[:, 1] += inside.sum(inside.weight)
        chord[:, 0] = chords.sum(share * (pricing.base.take(chords.ids) - self.floor[undecided]))
        chord[:, 1] = chords.sum(part)
        for j, x in enumerate(pricing.x):
            settled[:, 2 + j] += inside.sum(inside.weight * x.take(inside.ids))
            chord[:, 2 + j] = chords.sum(part * x.take(chords.ids))
        both = settled + chord
        self.settled, self.mass = settled, both[:, 1]
        # With next to no mass the quadratic is bounded by its linear part instead.
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
