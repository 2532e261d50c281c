"""Branch and bound: the page to read first.

Nodes are bounded when they are made. A round takes a few open nodes, splits each in two and
bounds the parts side by side; then the incumbent, the books and the store are brought up to date
in the order of the parts. The number of nodes in a round does not depend on the number of
workers, so neither does the answer.
"""

from __future__ import annotations

import itertools
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.board import Board
from certikmeans.events import Emitter, NodeClosed, TreeProgress
from certikmeans.execution import Crew
from certikmeans.options import Options
from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.search.ledger import Ledger
from certikmeans.search.node import AbstractWorker, Answer, Door, Node, Task
from certikmeans.search.store import NodeStore
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound

ROUND = 4  # nodes split between two looks at the clock

Part = TypeVar("Part")


@final
class Search(Generic[Part]):
    """A tree over parts of the solution set; `run` works until it is proven or told to stop.

    Parameters
    ----------
    worker : AbstractWorker
        Bounds and splits.
    board : Board
        Where labellings and bounds are told, and where the best ones are read.
    options : Options
        The gap to prove, the nodes to bound at most, which is split next.
    """

    def __init__(
        self,
        worker: AbstractWorker[Part],
        board: Board,
        options: Options,
        emitter: Emitter,
        crew: Crew,
    ) -> None:
        self._worker = worker
        self._board = board
        self._emitter = emitter
        self._gap = max(options.gap, LEAST_GAP)
        self._node_limit = options.node_limit
        self._crew = crew
        self._store = NodeStore(options.selection)
        self._ledger = Ledger(keep_proof=options.keep_proof)
        self._numbers = itertools.count(1)
        self._root = 0
        self._deepest = 0
        self._least_target = np.inf
        self.nodes = 1

    @property
    def lower_bound(self) -> float:
        """At most the cost of every labelling: the least bound over closed and open nodes."""
        return min(self._store.least, self._ledger.closed_bound)

    def begin(self, found: Answer[Part], known: float, leaf: Leaf) -> None:
        """Open the root; ``known`` is a bound of the whole that was there before, and its leaf."""
        for candidate in found.labels:
            self._board.offer(candidate, "tree")
        better = found.bound > known
        node = Node(
            number=self._root,
            parent=-1,
            depth=0,
            part=found.part,
            bound=found.bound if better else known,
            leaf=found.leaf if better else leaf,
            restart=found.restart,
            split=found.split,
        )
        self._ledger.open(node)
        self._file(node, found)

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
        return gap_reached(self._board.cost, self.lower_bound, self._gap)

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
                self._board.offer(candidate, "tree")
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
        self._tell_closed(node, Door.SPLIT)
        self.nodes += len(children)
        self._deepest = max(self._deepest, node.depth + 1)
        for child, answer in zip(children, answers, strict=True):
            self._file(child, answer)

    def _inherited(self, node: Node[Part], part: Part) -> Leaf:
        return self._worker.inherited(node.leaf, node.part, part)

    def _file(self, node: Node[Part], answer: Answer[Part]) -> None:
        """Close a node that has just been bounded, or keep it open."""
        if answer.bound == np.inf:
            self._close(node, Door.INFEASIBLE)
        elif self._prunable(node):
            self._close(node, Door.BOUND)
        else:
            self._store.push(node)

    def _target(self) -> tuple[float, NDArray[np.int64]]:
        """Bound that closes a part, and the best labelling. Targets never rise."""
        labels = self._board.labels
        assert labels is not None  # there is one from the heuristics on
        self._least_target = min(self._least_target, target_bound(self._board.cost, self._gap))
        return self._least_target, labels

    def _prunable(self, node: Node[Part]) -> bool:
        return gap_reached(self._board.cost, node.bound, self._gap)

    def _close(self, node: Node[Part], door: Door) -> None:
        self._ledger.close(node, door)
        self._tell_closed(node, door)

    def _tell_closed(self, node: Node[Part], door: Door) -> None:
        books = (node.number, node.parent, node.depth, str(door), node.bound)
        self._emitter.emit(
            NodeClosed(self._emitter.seconds, *books, part=self._worker.stated(node.part))
        )

    def _report(self) -> None:
        self._board.prove(self.lower_bound, self._worker.name)
        self._emitter.emit(
            TreeProgress(
                self._emitter.seconds,
                self.nodes,
                len(self._store),
                self._deepest,
                self.lower_bound,
            )
        )
