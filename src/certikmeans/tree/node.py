"""Nodes of the tree, their queue, the record of how they were closed, and saved searches."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._types import Ints
from certikmeans.bounds.base import BoundResult
from certikmeans.problem import ReducedProblem
from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.stop import StopSignal

Split = CenterSplit | PairSplit
DomainT = TypeVar("DomainT")


class NodeOutcome(StrEnum):
    """Reason why a node was removed from the queue."""

    BRANCHED = "split"  # replaced by its two children
    PRUNED = "bound"  # its labellings improve the incumbent by at most the gap
    INFEASIBLE = "infeasible"  # its domain has no feasible labelling
    UNSPLITTABLE = "unsplittable"  # too small to split; its bound stays part of the lower bound


@final
@dataclass(slots=True, eq=False)
class Node(Generic[DomainT]):
    """A domain with the best lower bound known for it."""

    number: int
    parent: int
    depth: int
    domain: DomainT
    bound: float  # at most the original cost of every labelling in the domain
    leaf: LeafProof  # evidence of the bound, for this domain or one that contains it
    warm_start: Any = None
    split: Split | None = None  # chosen at its evaluation


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeTask(Generic[DomainT]):
    """Input of the evaluation of a node: plain data."""

    domain: DomainT
    depth: int
    warm_start: Any
    cutoff: float  # a bound of the original cost that prunes the node
    labels: NDArray[np.integer[Any]]  # `BranchingScheme.incumbent_payload` of the incumbent
    stop: StopSignal
    cost: float = np.inf  # original cost of the incumbent; labellings above it are useless
    max_work: float = np.inf  # units of work after which the bound ends with what it has


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeResult(Generic[DomainT]):
    """Result of the evaluation of a node; costs are those of the original problem."""

    bound: float  # infinite if the domain is empty
    leaf: LeafProof
    warm_start: Any
    split: Split | None
    labels: tuple[Ints, ...]  # of original points: candidates for the incumbent
    domain: DomainT  # possibly tightened
    work: float = 0.0  # units of work of the evaluation


def node_overhead(problem: ReducedProblem) -> float:
    """Return the units of work of a node besides its bound: distances, assignment, bookkeeping."""
    return 1e6 + 40.0 * problem.n_groups * problem.n_clusters * (problem.n_dims + 2)


class BranchingScheme(ABC, Generic[DomainT]):
    """Evaluates and splits domains. Schemes are plain data and can be pickled for workers."""

    name: str  # of the bound
    overhead: float  # units of work of a node besides its bound, see `node_overhead`

    @abstractmethod
    def root(self, found: BoundResult, stop: StopSignal) -> NodeResult[DomainT]:
        """Return the result of the root, given that of its bound."""

    @abstractmethod
    def compute(self, task: NodeTask[DomainT]) -> NodeResult[DomainT]:
        """Compute a bound, propose labellings, choose a split."""

    @abstractmethod
    def incumbent_payload(self, labels: Ints) -> NDArray[np.integer[Any]]:
        """Return what tasks need of the incumbent; small, since every task contains it."""

    @abstractmethod
    def children(self, domain: DomainT, split: Split) -> tuple[DomainT, DomainT]:
        """Split a domain; every labelling of it is in one of the two."""

    @abstractmethod
    def to_original(self, domain: DomainT) -> object:
        """Return the domain as published in events: without group indices."""

    @abstractmethod
    def restrict_proof(self, leaf: LeafProof, domain: DomainT, child: DomainT) -> LeafProof:
        """Return the evidence of a bound in terms of a child domain."""


def compute(scheme: BranchingScheme[DomainT], task: NodeTask[DomainT]) -> NodeResult[DomainT]:
    """Evaluate a node; the task function, with the scheme as shared data."""
    stop = task.stop.with_own_work(task.max_work)
    found = scheme.compute(replace(task, stop=stop))
    return replace(found, work=stop.work + scheme.overhead)


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


class CachedChild(NamedTuple):
    """Result of a child that was evaluated before its parent was branched.

    ``parent_index`` counts the open nodes from 0, then the children with results, in the order of
    the results: a child comes after its parent.
    """

    parent_index: int
    child_index: int  # 0 or 1
    result: NodeResult[Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeState:
    """State of a tree between two nodes."""

    open_nodes: tuple[Node[Any], ...]
    n_taken: int  # nodes taken out of the queue so far
    proof_tree: ProofTree
    nodes: int  # bounded so far
    work: float  # units of work of these nodes, without the root
    next_number: int
    max_depth: int
    cutoff: float
    labels: Ints | None  # (n_points,): the best labelling
    cached_children: tuple[CachedChild, ...]  # computed for this cutoff and these labels
