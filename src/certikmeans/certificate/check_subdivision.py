"""Subdivision of boxes: batches, threads and limits, for both ways to bound clusters."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.certificate.check_arithmetic import Floats, Ints
from certikmeans.certificate.format import Reason, Rejection


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """Amount of work after which a certificate is rejected.

    Small files have lower limits than large ones: genuine certificates need a few boxes per
    number, and a small file must not cause a long check.
    """

    boxes: int = 20_000_000
    base_boxes: int = 300_000
    boxes_per_number: int = 2_000  # of points, and of numbers in the certificate
    matrix_work: float = 5e11  # cubes of the orders of the matrices, over all leaves
    pending_entries: int = 1 << 28
    threads: int = min(4, os.cpu_count() or 1)
    deadline: float = math.inf  # by `time.monotonic`
    domain_rows: int = 10_000_000_000  # points and pairs, over all domains with added pairs
    base_domain_rows: int = 1_000_000_000
    domain_rows_per_number: int = 2_000

    def for_size(self, numbers: int) -> Limits:
        """Return the limits for a certificate and points of so many numbers in all."""
        boxes = self.base_boxes + self.boxes_per_number * numbers
        rows = self.base_domain_rows + self.domain_rows_per_number * numbers
        return replace(self, boxes=min(self.boxes, boxes), domain_rows=min(self.domain_rows, rows))

    def check_deadline(self) -> None:
        """Reject if the time is over."""
        if time.monotonic() > self.deadline:
            raise Rejection(Reason.LIMIT, "not proven within the time allowed")


class _Boxes(Protocol):
    """Boxes of centers or means, each with its undecided members."""

    @property
    def count(self) -> int: ...

    @property
    def members(self) -> Ints: ...

    @property
    def entries(self) -> int: ...

    def take(self, chosen: NDArray[np.bool_], /) -> Self: ...

    @classmethod
    def concatenated(cls, parts: list[Self], /) -> Self: ...


B = TypeVar("B", bound=_Boxes)


@final
@dataclass(frozen=True, slots=True)
class BatchParams:
    """Batches of boxes; what is proven does not depend on them."""

    members: int = 1 << 16  # evaluated together
    max_table_size: int = 1 << 23  # boxes times columns of tables over all boxes
    probe_interval: int = 4  # rounds


class BoxProof:
    """Evaluates open boxes in batches until none is left, within the limits."""

    def __init__(self, limits: Limits, batches: BatchParams, evaluations: int) -> None:
        self._limits, self._batches = limits, batches
        self.evaluations = evaluations

    def _subdivide(
        self,
        boxes: B,
        bound_batch: Callable[[B], tuple[list[B], Floats]],
        table_columns: int,
        probe: Callable[[Floats], None],
    ) -> None:
        """Bound and split boxes.

        Parameters
        ----------
        boxes : BoxBatch or MeanBoxes
            To start from.
        bound_batch : callable
            Returns what remains open, and a center where a good cluster may be.
        table_columns : int
            Of tables over all boxes of a batch.
        probe : callable
            Raises `CutoffExceeded` for a center near which a cluster exceeds the cutoff.
        """

        def bound(batch: B) -> tuple[list[B], Floats]:
            with np.errstate(all="ignore"):  # every thread has its own setting
                return bound_batch(batch)

        most = max(1, self._batches.max_table_size // max(1, table_columns))
        stack, rounds = [boxes], 0
        with ThreadPoolExecutor(self._limits.threads) as threads:
            while stack:
                batches = [self._next_batch(stack, most)]
                while stack and len(batches) < self._limits.threads:
                    batches.append(self._next_batch(stack, most))
                self._count(batches, stack)
                large = int(batches[0].members.sum()) > self._batches.members // 4
                found = list((threads.map if large and len(batches) > 1 else map)(bound, batches))
                for parts, _ in found:
                    stack += parts
                rounds += 1
                if rounds % self._batches.probe_interval == 0:
                    probe(found[-1][1])

    def _count(self, batches: list[B], stack: list[B]) -> None:
        self.evaluations += sum(batch.count for batch in batches)
        self._limits.check_deadline()
        if self.evaluations > self._limits.boxes:
            raise Rejection(Reason.LIMIT, f"not proven within {self._limits.boxes} boxes")
        if sum(boxes.entries for boxes in stack) > self._limits.pending_entries:
            raise Rejection(Reason.LIMIT, "not proven within the memory allowed")

    def _next_batch(self, stack: list[B], most: int) -> B:
        """Take boxes from the top of the stack, up to the size of a batch."""
        taken: list[B] = []
        members = count = 0
        while stack and members < self._batches.members and count < most:
            top = stack.pop()
            fits = np.cumsum(top.members) <= self._batches.members - members
            fits[0] = True
            fits[most - count :] = False
            if not fits.all():
                stack.append(top.take(~fits))
                top = top.take(fits)
            taken.append(top)
            members += int(top.members.sum())
            count += top.count
        return taken[0].concatenated(taken)
