"""The checker's own proof that no cluster is worth more than claimed.

``V(y) <= cutoff`` is shown for all ``y`` of a region by dividing it into boxes until each is
closed by a look. The order does not matter for what is proven.
"""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import Floats, Ints, best_on_forest
from certikmeans.certificate.check_box_bounds import BoxBounds
from certikmeans.certificate.check_box_splits import split
from certikmeans.certificate.check_boxes import Boxes, Exceeded, Region, Worths
from certikmeans.certificate.format import Reason, Refusal

ENTRIES = 1 << 16  # looked at together
TABLE = 1 << 23  # places of the table that finds a group's entry in a box
DEEPEST = 600
PROBE_EVERY = 4


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """How much the checker is ready to do; beyond that nothing is accepted.

    Small files may ask for less than large ones: honest ones need a few boxes per number, and
    a file of two kilobytes must not keep anybody waiting.
    """

    boxes: int = 20_000_000
    boxes_to_begin_with: int = 300_000
    boxes_per_number: int = 2_000  # of points, and of numbers in the certificate
    matrix_work: float = 5e11  # cubes of the orders of the matrices, over all leaves
    pending_entries: int = 1 << 28
    threads: int = min(4, os.cpu_count() or 1)
    deadline: float = math.inf  # by `time.monotonic`

    def for_size(self, numbers: int) -> Limits:
        """Return the limits for a certificate and points of so many numbers in all."""
        return replace(
            self, boxes=min(self.boxes, self.boxes_to_begin_with + self.boxes_per_number * numbers)
        )


@final
class Pricing:
    """The worth of clusters under one vector of multipliers."""

    def __init__(
        self,
        points: Floats,
        weights: Floats,
        edges: Ints,
        multipliers: Floats,
        limits: Limits,
        looks: int = 0,
    ) -> None:
        self._worths = Worths(points, weights, edges, multipliers)
        self._limits = limits
        self.looks = looks

    def prove(
        self, region: Region, cutoff: float, allowed: NDArray[np.bool_] | None = None
    ) -> None:
        """Show that ``V(y) <= cutoff`` in the region, or raise `Refusal` or `Exceeded`."""

        def look(batch: Boxes) -> tuple[list[Boxes], Floats]:
            with np.errstate(all="ignore"):  # every thread has its own setting
                return _look(self._worths, batch, region, cutoff)

        stack = [self._worths.start(region, allowed)]
        rounds = 0
        with ThreadPoolExecutor(self._limits.threads) as threads:
            while stack:
                batches = [self._next_batch(stack)]
                while stack and len(batches) < self._limits.threads:
                    batches.append(self._next_batch(stack))
                self._count(batches, stack)
                several = len(batches) > 1 and len(batches[0].ids) > ENTRIES // 4
                looks = list((threads.map if several else map)(look, batches))
                for parts, _ in looks:
                    stack += parts
                rounds += 1
                if rounds % PROBE_EVERY == 0:
                    self._probe(region, cutoff, looks[-1][1], allowed)

    def _count(self, batches: list[Boxes], stack: list[Boxes]) -> None:
        self.looks += sum(len(batch.sizes) for batch in batches)
        if time.monotonic() > self._limits.deadline:
            raise Refusal(Reason.LIMIT, "not proven within the time allowed")
        if self.looks > self._limits.boxes:
            raise Refusal(Reason.LIMIT, f"not proven within {self._limits.boxes} boxes")
        if sum(boxes.entries for boxes in stack) > self._limits.pending_entries:
            raise Refusal(Reason.LIMIT, "not proven within the memory allowed")

    def _next_batch(self, stack: list[Boxes]) -> Boxes:
        """Take boxes from the top of the stack, about as many as are best looked at together."""
        most = max(1, TABLE // max(1, self._worths.n_linked))
        taken: list[Boxes] = []
        entries = count = 0
        while stack and entries < ENTRIES and count < most:
            top = stack.pop()
            room = np.cumsum(top.sizes) <= ENTRIES - entries
            room[0] = True
            room[most - count :] = False
            if not room.all():
                stack.append(top.take(~room))
                top = top.take(room)
            taken.append(top)
            entries += len(top.ids)
            count += len(top.sizes)
        if len(taken) == 1:
            return taken[0]
        fields = ("low", "high", "settled", "depth", "sizes", "ids")
        return Boxes(*(np.concatenate([getattr(one, name) for one in taken]) for name in fields))

    def _probe(
        self, region: Region, cutoff: float, start: Floats, allowed: NDArray[np.bool_] | None
    ) -> None:
        """End a proof that cannot succeed: there is a cluster worth more."""
        value = self.climb(region, start, allowed, steps=2)
        if value > cutoff * (1.0 + 1e-12) + float(
            self._worths.error(np.zeros(1, dtype=np.int64))[0]
        ):
            raise Exceeded(value)

    def climb(
        self,
        region: Region,
        start: Floats,
        allowed: NDArray[np.bool_] | None,
        steps: int = 20,
    ) -> float:
        """Worth of a good cluster near ``start``. Guides the proof; is no part of it."""
        w = self._worths
        place, best = np.clip(start, region.low, region.high), 0.0
        useful = w.lam > 0.0 if allowed is None else allowed & (w.lam > 0.0)
        linked = np.flatnonzero(w.slot >= 0)
        for _ in range(steps):
            away = np.sum((w.x - place[:, None]) ** 2, axis=0)
            worth = np.where(useful, w.lam - w.w * away, 0.0)
            chosen = worth > 0.0
            chosen[linked] = self._best_linked(worth[linked])
            value = float(worth[chosen].sum())
            if value <= best * (1.0 + 1e-9):
                break
            best = value
            place = np.clip(
                w.x[:, chosen] @ w.w[chosen] / w.w[chosen].sum(), region.low, region.high
            )
        return best

    def _best_linked(self, worth: Floats) -> NDArray[np.bool_]:
        """A good choice of groups with cannot-links: a best one where these are trees."""
        w = self._worths
        chosen, _ = best_on_forest(worth, w.parent, w.levels)
        clash = chosen[w.tail] & chosen[w.neighbours]
        worse = worth[w.tail] <= worth[w.neighbours]
        chosen[w.tail[clash & worse]] = False
        return chosen


def _look(
    worths: Worths, batch: Boxes, region: Region, cutoff: float
) -> tuple[list[Boxes], Floats]:
    """Return what is left to be shown of the boxes, and a place where a good cluster may be."""
    bounds = BoxBounds(worths, batch, region, cutoff)
    alive = ~(bounds.upper <= cutoff)  # written so that NaN proves nothing
    best = bounds.best[bounds.upper.argmax()]
    if not alive.any():
        return [], best
    if int(batch.depth.max()) >= DEEPEST:
        raise Exceeded(float(bounds.upper.max()))
    return split(bounds, alive), best
