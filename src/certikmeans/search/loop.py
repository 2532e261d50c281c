"""Branch and bound: the page to read first.

Nodes are bounded when they are made. A round takes a few open nodes, splits each in two and
bounds the parts side by side; then the incumbent, the books and the store are brought up to date
in the order of the parts. The number of nodes in a round does not depend on the number of
workers, so neither does the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.board import Board
from certikmeans.events import Emitter, NodeClosed, TreeProgress
from certikmeans.execution import Crew, Shared
from certikmeans.options import Options
from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.search.ledger import Ledger
from certikmeans.search.node import AbstractWorker, Answer, Door, Node, Task, evaluate
from certikmeans.search.state import SearchState
from certikmeans.search.store import NodeStore
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound

# Nodes split in a round: a few, and of a large tree this part of what is open, up to so many. Two
# parts each: that keeps many workers busy, and nodes that are open so long have to be split anyway.
ROUND, MOST_IN_A_ROUND, PART_OF_OPEN = 4, 64, 8
NONE = np.empty(0, dtype=np.int64)  # labels do not travel with every task

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
    mark : callable
        Called whenever `state` is one that another search could go on from.
    """

    def __init__(
        self,
        worker: AbstractWorker[Part],
        board: Board,
        options: Options,
        emitter: Emitter,
        crew: Crew,
        mark: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = worker
        self._board = board
        self._emitter = emitter
        self._gap = max(options.gap, LEAST_GAP)
        self._node_limit = options.node_limit
        self._crew = crew
        self._store = NodeStore(options.selection)
        self._ledger = Ledger(keep_proof=options.keep_proof)
        self._mark = mark
        self._next_number = 1
        self._root = 0
        self._deepest = 0
        self._least_target = np.inf
        self._split: list[Node[Part]] = []  # nodes whose parts are being bounded
        self._answers: dict[int, Answer[Part]] = {}  # about these parts
        self._frozen: SearchState | None = None
        self._shared: Shared | None = None
        self.nodes = 1

    @property
    def lower_bound(self) -> float:
        """At most the cost of every labelling: the least bound over closed and open nodes."""
        least = min((node.bound for node in self._split), default=np.inf)
        return min(self._store.least, self._ledger.closed_bound, least)

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
        if self._split:  # by a search before this one
            self._bound_parts(stop)
        while len(self._store):
            self._report()
            if self._done() or stop.cause() is not None:
                return False
            room = (self._node_limit - self.nodes) // 2  # a split makes two
            if room < 1:
                return True
            many = min(len(self._store) // PART_OF_OPEN, MOST_IN_A_ROUND)
            self._round(min(max(ROUND, many), room), stop)
        self._report()
        return False

    def state(self) -> SearchState:
        """What another search needs to go on from here; good until this one goes on."""
        if self._frozen is not None:
            return self._frozen
        return SearchState(
            tuple(self._store.nodes()),
            self._store.rounds,
            self._ledger,
            self.nodes,
            self._next_number,
            self._deepest,
            self._least_target,
            tuple(self._split),
            self._answers,
        )

    def go_on(self, before: SearchState) -> None:
        """Take up where a search before has left off, instead of `begin`."""
        self._store.restore(before.open_nodes, before.rounds)
        self._ledger = before.ledger.copied()
        self.nodes, self._next_number = before.nodes, before.next_number
        self._deepest, self._least_target = before.deepest, before.least_target
        self._split, self._answers = list(before.split), dict(before.answers)

    def proof_nodes(self) -> tuple[CenterSplit | PairSplit | Leaf, ...]:
        """The tree with the evidence of its leaves, in preorder."""
        return self._ledger.proof_nodes(self._root, self._store.nodes())

    def _done(self) -> bool:
        return gap_reached(self._board.cost, self.lower_bound, self._gap)

    def _round(self, count: int, stop: StopSignal) -> None:
        """Split a few nodes, and bound their parts."""
        for node in self._store.take(count):
            if self._prunable(node):
                self._close(node, Door.BOUND)
            elif node.split is None:
                self._close(node, Door.UNSPLITTABLE)
            else:
                self._split.append(node)
        self._bound_parts(stop)

    def _bound_parts(self, stop: StopSignal) -> None:
        """Bound the parts of the nodes at hand; if a worker fails, they stay as they were."""
        nodes, answers = self._split, self._answers
        target, labels = self._target()
        tasks = []
        for node in nodes:
            assert node.split is not None
            for part in self._worker.parts(node.part, node.split):
                tasks.append(Task(part, node.depth + 1, node.restart, target, NONE, stop))
        missing = [i for i in range(len(tasks)) if i not in answers]

        def note(place: int, answer: Answer[Part]) -> None:
            if stop.cause() is None:  # what was cut short may be done better another time
                answers[missing[place]] = answer
                self._mark()

        try:
            found = self._crew.map(
                evaluate, [tasks[i] for i in missing], note, self._shared_with(labels)
            )
        except Exception:
            self._split, self._answers = [], {}
            for node in nodes:
                self._store.push(node)
            raise
        if stop.cause() is not None and len(answers) < len(tasks):
            self._freeze()
        complete = {**answers, **dict(zip(missing, found, strict=True))}
        in_order = [complete[i] for i in range(len(tasks))]
        self._split, self._answers = [], {}
        for answer in in_order:
            for candidate in answer.labels:
                self._board.offer(candidate, "tree")
        pairs = zip(in_order[::2], in_order[1::2], strict=True)
        for node, pair in zip(nodes, pairs, strict=True):
            self._replace(node, pair)

    def _shared_with(self, labels: NDArray[np.int64]) -> Shared:
        """What all tasks need: the worker, and the best labelling while it is the same."""
        if self._shared is None or self._shared.value[1] is not labels:
            self._shared = Shared((self._worker, labels))
        return self._shared

    def _freeze(self) -> None:
        """Whoever goes on begins before the answers that were cut short."""
        self._frozen = replace(self.state(), ledger=self._ledger.copied())

    def _replace(self, node: Node[Part], answers: tuple[Answer[Part], ...]) -> None:
        children = []
        for answer in answers:
            better = answer.bound > node.bound
            children.append(
                Node(
                    number=self._number(),
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

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

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
        self._mark()
