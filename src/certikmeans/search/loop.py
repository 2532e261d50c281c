"""Branch and bound: the page to read first.

Nodes are bounded when they are made. One node after the other is split in two, the most promising
first; when its parts are bounded, the incumbent, the books and the store are brought up to date.
Workers that would be idle meanwhile work ahead (`ahead.py`): that makes answers come sooner, and
changes none of them. So the answer does not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.board import Board
from certikmeans.events import Emitter, NodeClosed, TreeProgress
from certikmeans.execution import Crew
from certikmeans.options import Options
from certikmeans.proof import CenterSplit, Leaf, PairSplit
from certikmeans.search.ahead import Ahead, Beyond
from certikmeans.search.ledger import Ledger
from certikmeans.search.node import AbstractWorker, Answer, Door, Node
from certikmeans.search.state import Known, SearchState
from certikmeans.search.store import NodeStore
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound

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
        self._labels: NDArray[np.int64] | None = None  # the best labelling, as far as the tree goes
        self._ahead: Ahead[Part] | None = None
        self._known: tuple[Known, ...] = ()  # by a search before this one
        self._frozen: SearchState | None = None
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
        ahead = Ahead(self._worker, self._crew, stop, self._mark, self._store.priority)
        before = self._labels
        now = self._set_out(ahead)
        if before is not None and np.array_equal(before, now):
            ahead.take_up(self._known, self._store.nodes())
        self._ahead, self._known = ahead, ()
        try:
            return self._run(ahead, stop)
        finally:
            self._freeze()
            ahead.close()
            self._ahead = None

    def _run(self, ahead: Ahead[Part], stop: StopSignal) -> bool:
        while len(self._store):
            if gap_reached(self._board.cost, self._report(), self._gap):
                return False
            if self.nodes + 2 > self._node_limit:  # a split makes two
                return True
            node = self._store.first()
            if self._prunable(node):
                self._close(self._store.take(), Door.BOUND)
            elif node.split is None:
                self._close(self._store.take(), Door.UNSPLITTABLE)
            elif stop.cause() is None and ahead.answers(node):
                self._replace(self._store.take(), ahead.take(node))
                if self._board.labels is not self._labels:
                    self._set_out(ahead)
            else:
                self._end_early(ahead)
                return False
        self._report()
        return False

    def state(self) -> SearchState:
        """What another search needs to go on from here; good until this one goes on."""
        if self._frozen is not None:
            return self._frozen
        nodes = self._store.nodes()
        return SearchState(
            tuple(nodes),
            self._store.taken,
            self._ledger,
            self.nodes,
            self._next_number,
            self._deepest,
            self._least_target,
            self._labels,
            self._known if self._ahead is None else self._ahead.known(nodes),
        )

    def go_on(self, before: SearchState) -> None:
        """Take up where a search before has left off, instead of `begin`."""
        self._store.restore(before.open_nodes, before.taken)
        self._ledger = before.ledger.copied()
        self.nodes, self._next_number = before.nodes, before.next_number
        self._deepest, self._least_target = before.deepest, before.least_target
        self._labels = before.labels
        self._known = before.known

    def proof_nodes(self) -> tuple[CenterSplit | PairSplit | Leaf, ...]:
        """The tree with the evidence of its leaves, in preorder."""
        return self._ledger.proof_nodes(self._root, self._store.nodes())

    def _set_out(self, ahead: Ahead[Part]) -> NDArray[np.int64]:
        """Work ahead with the incumbent as it is now, which is returned. Targets never rise."""
        board = self._board
        assert board.labels is not None  # there is one from the heuristics on
        self._labels = board.labels
        self._least_target = min(self._least_target, target_bound(board.cost, self._gap))
        ahead.set_out(self._least_target, board.cost, board.labels, self._store.nodes())
        return board.labels

    def _end_early(self, ahead: Ahead[Part]) -> None:
        """Make use of what was cut short; whoever goes on begins before that."""
        self._freeze()
        found = ahead.break_off()
        waiting = self._store.nodes()
        while waiting and self.nodes + 2 <= self._node_limit:
            node = waiting.pop()
            beyond = found.get(node)
            if beyond is not None and len(beyond.answers) == 2 and node in self._store:
                self._store.remove(node)
                waiting += self._replace(node, beyond)
        self._report()

    def _freeze(self) -> None:
        """Keep the state as it is now, for others."""
        if self._frozen is None:
            self._frozen = replace(self.state(), ledger=self._ledger.copied())

    def _replace(self, node: Node[Part], beyond: Beyond[Part]) -> list[Node[Part]]:
        """Put its two parts in the place of a node."""
        answers = [beyond.answers[which] for which in (0, 1)]
        children = [beyond.nodes[which] for which in (0, 1)]
        for answer in answers:
            for candidate in answer.labels:
                self._board.offer(candidate, "tree")
        for child, answer in zip(children, answers, strict=True):
            child.number, child.parent = self._number(), node.number
            if not answer.bound > node.bound:
                child.leaf = self._inherited(node, answer.part)
        assert node.split is not None
        self._ledger.replace(node, node.split, children)
        self._tell_closed(node, Door.SPLIT)
        self.nodes += len(children)
        self._deepest = max(self._deepest, node.depth + 1)
        for child, answer in zip(children, answers, strict=True):
            self._file(child, answer)
        return children

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

    def _report(self) -> float:
        """Tell how far the tree is, and what that proves; returns the bound of the whole."""
        least = self.lower_bound
        self._board.prove(least, self._worker.name)
        self._emitter.emit(
            TreeProgress(
                self._emitter.seconds,
                self.nodes,
                len(self._store),
                self._deepest,
                least,
            )
        )
        self._mark()
        return least
