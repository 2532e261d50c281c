"""Proof tree: how every node was closed, with which bound and which proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, final

from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.tree.node import Node, NodeOutcome, Split


@final
class ProofTree:
    """Records how every node was closed, once, and the least bound of closed nodes.

    Parameters
    ----------
    keep_proof : bool
        Store the evidence of each leaf. Takes memory: multipliers for every leaf.
    """

    def __init__(self, *, keep_proof: bool = False) -> None:
        self.closed_bound = float("inf")
        self.outcomes: Counter[NodeOutcome] = Counter()
        self._keep_proof = keep_proof
        self._open_numbers: set[int] = set()
        self._splits: dict[int, tuple[Split, int, int]] = {}
        self._leaves: dict[int, LeafProof] = {}

    def copy(self) -> ProofTree:
        """Return an independent copy."""
        other = ProofTree(keep_proof=self._keep_proof)
        other.closed_bound = self.closed_bound
        other.outcomes = Counter(self.outcomes)
        other._open_numbers = set(self._open_numbers)
        other._splits = dict(self._splits)
        other._leaves = dict(self._leaves)
        return other

    def open(self, node: Node[Any]) -> None:
        """Record an open node."""
        if node.number in self._open_numbers:
            raise RuntimeError(f"node {node.number} was opened twice")
        self._open_numbers.add(node.number)

    def close(self, node: Node[Any], outcome: NodeOutcome) -> None:
        """Record that a node was closed."""
        self._remove(node, outcome)
        if outcome is not NodeOutcome.INFEASIBLE:
            self.closed_bound = min(self.closed_bound, node.bound)
        if self._keep_proof:
            self._leaves[node.number] = node.leaf

    def replace(self, node: Node[Any], split: Split, children: Sequence[Node[Any]]) -> None:
        """Record that a node was replaced by its two children."""
        self._remove(node, NodeOutcome.BRANCHED)
        first, second = children
        if self._keep_proof:
            self._splits[node.number] = (split, first.number, second.number)
        self.open(first)
        self.open(second)

    def proof_nodes(
        self, root: int, still_open: Sequence[Node[Any]]
    ) -> tuple[CenterSplit | PairSplit | LeafProof, ...]:
        """Return the tree in preorder; open nodes are leaves, too."""
        leaves = {**self._leaves, **{node.number: node.leaf for node in still_open}}
        nodes: list[CenterSplit | PairSplit | LeafProof] = []
        stack = [root]
        while stack:
            number = stack.pop()
            if number in self._splits:
                split, first, second = self._splits[number]
                nodes.append(split)
                stack += [second, first]
            else:
                nodes.append(leaves[number])
        return tuple(nodes)

    def _remove(self, node: Node[Any], outcome: NodeOutcome) -> None:
        if node.number not in self._open_numbers:
            raise RuntimeError(f"node {node.number} is closed, but it is not open")
        self._open_numbers.remove(node.number)
        self.outcomes[outcome] += 1
