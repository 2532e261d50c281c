"""The books of the tree: who left by which door, with which bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, final

from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.search.node import Door, Node, Split


@final
class Ledger:
    """Every node that was opened leaves once; the least bound of a closed one is remembered.

    Parameters
    ----------
    keep_proof : bool
        Keep what proves each leaf. Takes memory: multipliers for every leaf.
    """

    def __init__(self, *, keep_proof: bool = False) -> None:
        self.closed_bound = float("inf")
        self.doors: Counter[Door] = Counter()
        self._keep_proof = keep_proof
        self._inside: set[int] = set()
        self._splits: dict[int, tuple[Split, int, int]] = {}
        self._leaves: dict[int, Leaf] = {}

    def copied(self) -> Ledger:
        """The books as they are now."""
        other = Ledger(keep_proof=self._keep_proof)
        other.closed_bound = self.closed_bound
        other.doors = Counter(self.doors)
        other._inside = set(self._inside)
        other._splits = dict(self._splits)
        other._leaves = dict(self._leaves)
        return other

    def open(self, node: Node[Any]) -> None:
        """Note that a node has come in."""
        if node.number in self._inside:
            raise RuntimeError(f"node {node.number} came in twice")
        self._inside.add(node.number)

    def close(self, node: Node[Any], door: Door) -> None:
        """Note that a node has left for good."""
        self._leave(node, door)
        if door is not Door.INFEASIBLE:
            self.closed_bound = min(self.closed_bound, node.bound)
        if self._keep_proof:
            self._leaves[node.number] = node.leaf

    def replace(self, node: Node[Any], split: Split, parts: Sequence[Node[Any]]) -> None:
        """Note that a node has been replaced by its two parts."""
        self._leave(node, Door.SPLIT)
        first, second = parts
        if self._keep_proof:
            self._splits[node.number] = (split, first.number, second.number)
        self.open(first)
        self.open(second)

    def proof_nodes(
        self, root: int, still_open: Sequence[Node[Any]]
    ) -> tuple[CenterSplit | PairSplit | Leaf, ...]:
        """The tree in preorder; open nodes are leaves, too."""
        leaves = {**self._leaves, **{node.number: node.leaf for node in still_open}}
        nodes: list[CenterSplit | PairSplit | Leaf] = []
        ahead = [root]
        while ahead:
            number = ahead.pop()
            if number in self._splits:
                split, first, second = self._splits[number]
                nodes.append(split)
                ahead += [second, first]
            else:
                nodes.append(leaves[number])
        return tuple(nodes)

    def _leave(self, node: Node[Any], door: Door) -> None:
        if node.number not in self._inside:
            raise RuntimeError(f"node {node.number} leaves, but it is not inside")
        self._inside.remove(node.number)
        self.doors[door] += 1
