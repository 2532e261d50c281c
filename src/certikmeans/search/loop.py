"""Branch and bound: the page to read first.

Nodes are bounded when they are made. A round takes a few open nodes, splits each in two and
bounds the parts side by side; then the incumbent, the books and the store are brought up to date
in the order of the parts. The number of nodes in a round does not depend on the number of
workers, so neither does the answer.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.execution import Crew
from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.search.ledger import Ledger
from certikmeans.search.node import AbstractWorker, Answer, Door, Node, Task
from certikmeans.search.store import NodeStore
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound

ROUND = 4  # nodes split between two looks at the clock

Part = TypeVar("Part")


@final
@dataclass(frozen=True, slots=True)
class TreeState:
    """Where the search stands: for progress displays."""

    nodes: int
    open_nodes: int
    depth: int
    lower_bound: float


class AbstractHooks(ABC):
    """What the search asks of its surroundings."""

    @abstractmethod
    def offer(self, labels: NDArray[np.int64]) -> None:
        """Look at a labelling of the original points."""

    @abstractmethod
    def bound(self, value: float, source: str) -> None:
        """Note a proven bound of the whole, and what proved it."""

    @abstractmethod
    def closed(self, node: Node[Any], door: Door) -> None:
        """Note that a node has left."""

    @abstractmethod
    def progress(self, state: TreeState) -> None:
        """Note where the search stands."""


@final
class Search(Generic[Part]):
    """A tree over parts of the solution set; `run` works until it is proven or told to stop.

    Parameters
    ----------
    worker : AbstractWorker
        Bounds and splits.
    incumbent : callable
        Returns the cost and the labels of the best labelling known.
    gap : float
        Relative gap to prove.
    node_limit : int
        Nodes to bound at most.
    """

    def __init__(
        self,
        worker: AbstractWorker[Part],
        incumbent: Callable[[], tuple[float, NDArray[np.int64]]],
        hooks: AbstractHooks,
        *,
        gap: float,
        node_limit: int,
        selection: str,
        crew: Crew,
        keep_proof: bool = False,
    ) -> None:
        self._worker = worker
        self._incumbent = incumbent
        self._hooks = hooks
        self._gap = max(gap, LEAST_GAP)
        self._node_limit = node_limit
        self._crew = crew
        self._store = NodeStore(selection)
        self._ledger = Ledger(keep_proof=keep_proof)
        self._numbers = itertools.count(1)
        self._root = 0
        self._deepest = 0
        self._least_target = np.inf
        self.nodes = 1

    @property
    def lower_bound(self) -> float:
        """At most the cost of every labelling: the least bound over closed and open nodes."""
        return min(self._store.least, self._ledger.closed_bound)

    def ask(self, worker: AbstractWorker[Part], root: Part, stop: StopSignal) -> Answer[Part]:
        """Have the root bounded by a worker that may use the crew itself."""
        target, labels = self._target()
        found = Crew().map(worker.evaluate, [Task(root, 0, None, target, labels, stop)])[0]
        for candidate in found.labels:
            self._hooks.offer(candidate)
        return found

    def begin(self, found: Answer[Part], *, known: float) -> None:
        """Open the root. ``known`` is a bound of the whole that was there before.

        It is larger than the root's only where it is trivial, or rounded otherwise.
        """
        node = Node(
            number=self._root,
            parent=-1,
            depth=0,
            part=found.part,
            bound=max(known, found.bound),
            leaf=found.leaf if found.bound >= known else Leaf("trivial"),
            restart=found.restart,
            split=found.split,
        )
        self._ledger.open(node)
        self._settle(node, found)

    def run(self, stop: StopSignal) -> bool:
        """Split until the gap is proven, nothing is left, or ``stop``.

        Returns whether the node limit ended it.
        """
        while len(self._store):
            self._report()
            if self._done() or stop.cause() is not None:
                return False
            room = (self._node_limit - self.nodes) // 2  # a split makes two
            if room < 1:
                return True
            self._round(min(ROUND, room), stop)
        self._report()
        return False

    def proof_nodes(self) -> tuple[CenterSplit | PairSplit | Leaf, ...]:
        """The tree with the evidence of its leaves, in preorder."""
        return self._ledger.proof_nodes(self._root, self._store.nodes())

    def _done(self) -> bool:
        return gap_reached(self._incumbent()[0], self.lower_bound, self._gap)

    def _round(self, count: int, stop: StopSignal) -> None:
        """Split a few nodes; bound their parts; if a worker fails, the nodes stay as they were."""
        nodes = []
        for node in self._store.take(count):
            if self._prunable(node):
                self._close(node, Door.BOUND)
            elif node.split is None:
                self._close(node, Door.UNSPLITTABLE)
            else:
                nodes.append(node)
        target, labels = self._target()
        tasks = []
        for node in nodes:
            assert node.split is not None
            for part in self._worker.parts(node.part, node.split):
                tasks.append(Task(part, node.depth + 1, node.restart, target, labels, stop))
        try:
            answers = self._crew.map(self._worker.evaluate, tasks)
        except Exception:
            for node in nodes:
                self._store.push(node)
            raise
        for answer in answers:
            for candidate in answer.labels:
                self._hooks.offer(candidate)
        for node, pair in zip(nodes, zip(answers[::2], answers[1::2], strict=True), strict=True):
            self._replace(node, pair)

    def _replace(self, node: Node[Part], answers: tuple[Answer[Part], ...]) -> None:
        children = []
        for answer in answers:
            better = answer.bound > node.bound
            children.append(
                Node(
                    number=next(self._numbers),
                    parent=node.number,
                    depth=node.depth + 1,
                    part=answer.part,
                    bound=max(answer.bound, node.bound),
                    leaf=answer.leaf if better else self._inherited(node, answer.part),
                    restart=answer.restart,
                    split=answer.split,
                )
            )
        assert node.split is not None
        self._ledger.replace(node, node.split, children)
        self._hooks.closed(node, Door.SPLIT)
        self.nodes += len(children)
        self._deepest = max(self._deepest, node.depth + 1)
        for child, answer in zip(children, answers, strict=True):
            self._settle(child, answer)

    def _inherited(self, node: Node[Part], part: Part) -> Leaf:
        return self._worker.inherited(node.leaf, node.part, part)

    def _settle(self, node: Node[Part], answer: Answer[Part]) -> None:
        """Close a node that has just been bounded, or keep it open."""
        if answer.bound == np.inf:
            self._close(node, Door.INFEASIBLE)
        elif self._prunable(node):
            self._close(node, Door.BOUND)
        else:
            self._store.push(node)

    def _target(self) -> tuple[float, NDArray[np.int64]]:
        """Bound that closes a part, and the best labelling. Targets never rise."""
        cost, labels = self._incumbent()
        self._least_target = min(self._least_target, target_bound(cost, self._gap))
        return self._least_target, labels

    def _prunable(self, node: Node[Part]) -> bool:
        return gap_reached(self._incumbent()[0], node.bound, self._gap)

    def _close(self, node: Node[Part], door: Door) -> None:
        self._ledger.close(node, door)
        self._hooks.closed(node, door)

    def _report(self) -> None:
        self._hooks.bound(self.lower_bound, self._worker.name)
        self._hooks.progress(
            TreeState(self.nodes, len(self._store), self._deepest, self.lower_bound)
        )
