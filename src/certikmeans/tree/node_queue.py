"""Queue of open nodes, ordered by the selection rule."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, final

from certikmeans.tree.node import Node

# Mixed selection: every fourth node has the least bound, the others are the deepest.
MIXED_PERIOD = 4


@final
class NodeQueue:
    """Open nodes in the order of a selection rule; ties go to the older node.

    ``best``: least bound first, which needs the fewest nodes. ``depth``: deepest first, least bound
    among those, which needs the least memory. ``mixed``: three deep ones, then the best one.
    """

    def __init__(self, selection: str = "best") -> None:
        self._selection = selection
        self._by_bound: list[tuple[float, int]] = []
        self._by_depth: list[tuple[int, float, int]] = []
        self._nodes: dict[int, Node[Any]] = {}
        self._n_taken = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: Node[Any]) -> bool:
        return node.number in self._nodes

    def push(self, node: Node[Any]) -> None:
        """Add an open node."""
        self._nodes[node.number] = node
        heapq.heappush(self._by_bound, (node.bound, node.number))
        if self._selection != "best":
            heapq.heappush(self._by_depth, (-node.depth, node.bound, node.number))

    def first(self) -> Node[Any]:
        """Return the next node without removing it."""
        deep = self._selection == "depth" or (
            self._selection == "mixed" and (self._n_taken + 1) % MIXED_PERIOD != 0
        )
        heap: list[Any] = self._by_depth if deep else self._by_bound
        while heap[0][-1] not in self._nodes:
            heapq.heappop(heap)
        return self._nodes[heap[0][-1]]

    def pop(self) -> Node[Any]:
        """Remove and return the next node."""
        node = self.first()
        self._n_taken += 1
        return self._nodes.pop(node.number)

    def remove(self, node: Node[Any]) -> None:
        """Remove a node that is not the next one."""
        del self._nodes[node.number]

    def priority(self, node: Node[Any]) -> tuple[float, ...]:
        """Return the sort key of speculative evaluation, least first."""
        return (-node.depth, node.bound) if self._selection == "depth" else (node.bound,)

    @property
    def n_taken(self) -> int:
        """Number of nodes taken."""
        return self._n_taken

    def restore(self, nodes: Iterable[Node[Any]], n_taken: int) -> None:
        """Restore a saved queue."""
        for node in nodes:
            self.push(node)
        self._n_taken = n_taken

    def nodes(self) -> list[Node[Any]]:
        """Return all open nodes, oldest first."""
        return sorted(self._nodes.values(), key=lambda node: node.number)

    @property
    def lower_bound(self) -> float:
        """Least bound of an open node; infinite if there is none."""
        while self._by_bound and self._by_bound[0][1] not in self._nodes:
            heapq.heappop(self._by_bound)
        return self._by_bound[0][0] if self._by_bound else float("inf")
