"""Open nodes, and which comes next."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, final

from certikmeans.search.node import Node

# Mixed: of this many rounds, all but one go deep.
CYCLE = 4


@final
class NodeStore:
    """Open nodes in the order of a selection rule; ties go to the older node.

    ``best``: least bound first, which needs the fewest nodes. ``depth``: deepest first, least bound
    among those, which needs the least memory. ``mixed``: three rounds deep, one best.
    """

    def __init__(self, selection: str = "best") -> None:
        self._selection = selection
        self._by_bound: list[tuple[float, int]] = []
        self._by_depth: list[tuple[int, float, int]] = []
        self._nodes: dict[int, Node[Any]] = {}
        self._rounds = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def push(self, node: Node[Any]) -> None:
        """Add an open node."""
        self._nodes[node.number] = node
        heapq.heappush(self._by_bound, (node.bound, node.number))
        if self._selection != "best":
            heapq.heappush(self._by_depth, (-node.depth, node.bound, node.number))

    def take(self, count: int) -> list[Node[Any]]:
        """Remove and return the next ``count`` nodes, or all there are."""
        self._rounds += 1
        deep = self._selection == "depth" or (
            self._selection == "mixed" and self._rounds % CYCLE != 0
        )
        heap: list[Any] = self._by_depth if deep else self._by_bound
        taken: list[Node[Any]] = []
        while self._nodes and len(taken) < count:
            number = heapq.heappop(heap)[-1]
            if number in self._nodes:
                taken.append(self._nodes.pop(number))
        return taken

    @property
    def rounds(self) -> int:
        """How often nodes were taken."""
        return self._rounds

    def restore(self, nodes: Iterable[Node[Any]], rounds: int) -> None:
        """Put nodes back as they were after so many rounds."""
        for node in nodes:
            self.push(node)
        self._rounds = rounds

    def nodes(self) -> list[Node[Any]]:
        """All open nodes, oldest first."""
        return sorted(self._nodes.values(), key=lambda node: node.number)

    @property
    def least(self) -> float:
        """Least bound of an open node; infinite if there is none."""
        while self._by_bound and self._by_bound[0][1] not in self._nodes:
            heapq.heappop(self._by_bound)
        return self._by_bound[0][0] if self._by_bound else float("inf")
