"""One call of the search kernel: a box goes in, what stays open and what was found comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.pricing.instance import Instance
from certikmeans.kernels.pricing.search import Finds, OpenBoxes, Rules, Searched, search_boxes

STACK = 128
FINDS = 4


@final
@dataclass(order=True, slots=True)
class WaitingBox:
    """A box in the heap: the largest upper bound first, then the oldest."""

    minus_upper: float
    number: int
    low: NDArray[np.float64] = field(compare=False)
    high: NDArray[np.float64] = field(compare=False)
    settled: NDArray[np.float64] = field(compare=False)
    members: NDArray[np.int32] = field(compare=False)
    walls: NDArray[np.float64] = field(compare=False)  # of the region it is a part of,
    hole: NDArray[np.float64] = field(compare=False)  # what of it does not count, and
    region: int = field(compare=False)  # its number


def no_hole(n_axes: int) -> NDArray[np.float64]:
    """Where everything counts."""
    return np.stack([np.full(n_axes, np.inf), np.full(n_axes, -np.inf)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class SearchOutcome:
    """What is left of a box, and what was found in it."""

    open_boxes: list[WaitingBox]
    finds: list[tuple[float, NDArray[np.float64]]]
    cutoff: float
    stuck: float
    boxes: int


def search_box(box: WaitingBox, instance: Instance, rules: Rules, cutoff: float) -> SearchOutcome:
    """Search one box with a budget; what stays open shares the members it was left with."""
    stack = _stack_of(box)
    finds = Finds(centers=np.empty((FINDS, len(box.low))), values=np.empty(FINDS))
    rules = rules._replace(walls=box.walls, hole=box.hole)
    done: Searched = search_boxes(instance, stack, 1, rules, cutoff, finds)
    shared: dict[tuple[int, int], NDArray[np.int32]] = {}
    left = []
    for i in range(done.n_open):
        key = (int(stack.starts[i]), int(stack.sizes[i]))
        if key not in shared:
            shared[key] = stack.arena[key[0] : key[0] + key[1]].copy()
        left.append(
            WaitingBox(
                -float(stack.uppers[i]),
                0,
                stack.lows[i].copy(),
                stack.highs[i].copy(),
                stack.settled[i].copy(),
                shared[key],
                box.walls,
                box.hole,
                box.region,
            )
        )
    kept = range(min(done.n_found, FINDS))
    return SearchOutcome(
        open_boxes=left,
        finds=[(float(finds.values[i]), finds.centers[i].copy()) for i in kept],
        cutoff=float(done.cutoff),
        stuck=float(done.stuck),
        boxes=int(done.n_looks),
    )


def _stack_of(box: WaitingBox) -> OpenBoxes:
    """Return a stack with one box on it, and room for those that it is split into."""
    d, size = len(box.low), len(box.members)
    stack = OpenBoxes(
        lows=np.empty((STACK, d)),
        highs=np.empty((STACK, d)),
        settled=np.empty((STACK, d + 2)),
        uppers=np.empty(STACK),
        starts=np.empty(STACK, dtype=np.int64),
        sizes=np.empty(STACK, dtype=np.int64),
        arena=np.empty(8 * size + 1024, dtype=np.int32),
    )
    stack.arena[:size] = box.members
    stack.lows[0], stack.highs[0], stack.settled[0] = box.low, box.high, box.settled
    stack.uppers[0], stack.starts[0], stack.sizes[0] = -box.minus_upper, 0, size
    return stack
