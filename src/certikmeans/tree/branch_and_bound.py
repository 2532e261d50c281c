"""Branch and bound: the page to read first.

Nodes are bounded when they are made. One node after the other is split in two, the most promising
first; when its parts are bounded, the incumbent, the books and the store are brought up to date.
Workers that would be idle meanwhile work ahead (`speculation.py`): that makes answers come sooner, and
changes none of them. So the answer does not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.events import EventBus, NodeClosed, TreeProgress
from certikmeans.options import Options
from certikmeans.parallel import TaskPool
from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.solver.state import SolveState
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound
from certikmeans.tree.node import BranchingScheme, Node, NodeOutcome, NodeResult
from certikmeans.tree.node_queue import NodeQueue
from certikmeans.tree.proof_tree import ProofTree
from certikmeans.tree.speculation import ChildResults, SpeculativeEvaluator
from certikmeans.tree.state import CachedChild, TreeState

DomainT = TypeVar("DomainT")


@final
class BranchAndBound(Generic[DomainT]):
    """A tree over parts of the solution set; `run` works until it is proven or told to stop.

    Parameters
    ----------
    worker : BranchingScheme
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
        scheme: BranchingScheme[DomainT],
        board: SolveState,
        options: Options,
        emitter: EventBus,
        task_pool: TaskPool,
        save_point: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheme = scheme
        self._board = board
        self._emitter = emitter
        self._gap = max(options.gap, LEAST_GAP)
        self._node_limit = options.node_limit
        self._task_pool = task_pool
        self._node_queue = NodeQueue(options.selection)
        self._proof_tree = ProofTree(keep_proof=options.keep_proof)
        self._save_point = save_point
        self._next_number = 1
        self._root = 0
        self._max_depth = 0
        self._cutoff = np.inf
        self._labels: NDArray[np.int64] | None = None  # the best labelling, as far as the tree goes
        self._speculation: SpeculativeEvaluator[DomainT] | None = None
        self._cached_children: tuple[CachedChild, ...] = ()  # by a search before this one
        self._final_state: TreeState | None = None
        self.nodes = 1

    @property
    def lower_bound(self) -> float:
        """At most the cost of every labelling: the least bound over closed and open nodes."""
        return min(self._node_queue.lower_bound, self._proof_tree.closed_bound)

    def add_root(self, found: NodeResult[DomainT], cached_children: float, leaf: LeafProof) -> None:
        """Open the root; ``cached_children`` is a bound of the whole that was there before, and its leaf."""
        for candidate in found.labels:
            self._board.update_incumbent(candidate, "tree")
        better = found.bound > cached_children
        node = Node(
            number=self._root,
            parent=-1,
            depth=0,
            domain=found.domain,
            bound=found.bound if better else cached_children,
            leaf=found.leaf if better else leaf,
            warm_start=found.warm_start,
            split=found.split,
        )
        self._proof_tree.open(node)
        self._enqueue_or_prune(node, found)

    def run(self, stop: StopSignal) -> bool:
        """Split until the gap is proven, nothing is left, or ``stop``.

        Returns whether the node limit ended it.
        """
        speculation = SpeculativeEvaluator(
            self._scheme, self._task_pool, stop, self._save_point, self._node_queue.priority
        )
        before = self._labels
        now = self._reset_speculation(speculation)
        if before is not None and np.array_equal(before, now):
            speculation.restore(self._cached_children, self._node_queue.nodes())
        self._speculation, self._cached_children = speculation, ()
        try:
            return self._run(speculation, stop)
        finally:
            self._save_final_state()
            speculation.close()
            self._speculation = None

    def _run(self, speculation: SpeculativeEvaluator[DomainT], stop: StopSignal) -> bool:
        while len(self._node_queue):
            if gap_reached(self._board.cost, self._report_progress(), self._gap):
                return False
            if self.nodes + 2 > self._node_limit:  # a split makes two
                return True
            node = self._node_queue.first()
            if self._prunable(node):
                self._close(self._node_queue.pop(), NodeOutcome.PRUNED)
            elif node.split is None:
                self._close(self._node_queue.pop(), NodeOutcome.UNSPLITTABLE)
            elif stop.reason() is None and speculation.results(node):
                self._branch(self._node_queue.pop(), speculation.pop(node))
                if self._board.labels is not self._labels:
                    self._reset_speculation(speculation)
            else:
                self._stop_early(speculation)
                return False
        self._report_progress()
        return False

    def state(self) -> TreeState:
        """What another search needs to go on from here; good until this one goes on."""
        if self._final_state is not None:
            return self._final_state
        nodes = self._node_queue.nodes()
        return TreeState(
            tuple(nodes),
            self._node_queue.n_taken,
            self._proof_tree,
            self.nodes,
            self._next_number,
            self._max_depth,
            self._cutoff,
            self._labels,
            self._cached_children
            if self._speculation is None
            else self._speculation.cached_children(nodes),
        )

    def restore(self, before: TreeState) -> None:
        """Take up where a search before has left off, instead of `add_root`."""
        self._node_queue.restore(before.open_nodes, before.n_taken)
        self._proof_tree = before.proof_tree.copy()
        self.nodes, self._next_number = before.nodes, before.next_number
        self._max_depth, self._cutoff = before.max_depth, before.cutoff
        self._labels = before.labels
        self._cached_children = before.cached_children

    def proof_nodes(self) -> tuple[CenterSplit | PairSplit | LeafProof, ...]:
        """The tree with the evidence of its leaves, in preorder."""
        return self._proof_tree.proof_nodes(self._root, self._node_queue.nodes())

    def _reset_speculation(self, speculation: SpeculativeEvaluator[DomainT]) -> NDArray[np.int64]:
        """Work ahead with the incumbent as it is now, which is returned. Targets never rise."""
        board = self._board
        assert board.labels is not None  # there is one from the heuristics on
        self._labels = board.labels
        self._cutoff = min(self._cutoff, target_bound(board.cost, self._gap))
        speculation.reset(self._cutoff, board.cost, board.labels, self._node_queue.nodes())
        return board.labels

    def _stop_early(self, speculation: SpeculativeEvaluator[DomainT]) -> None:
        """Make use of what was cut short; whoever goes on begins before that."""
        self._save_final_state()
        found = speculation.drain()
        waiting = self._node_queue.nodes()
        while waiting and self.nodes + 2 <= self._node_limit:
            node = waiting.pop()
            child_results = found.get(node)
            if (
                child_results is not None
                and len(child_results.results) == 2
                and node in self._node_queue
            ):
                self._node_queue.remove(node)
                waiting += self._branch(node, child_results)
        self._report_progress()

    def _save_final_state(self) -> None:
        """Keep the state as it is now, for others."""
        if self._final_state is None:
            self._final_state = replace(self.state(), proof_tree=self._proof_tree.copy())

    def _branch(
        self, node: Node[DomainT], child_results: ChildResults[DomainT]
    ) -> list[Node[DomainT]]:
        """Put its two parts in the place of a node."""
        results = [child_results.results[child_index] for child_index in (0, 1)]
        children = [child_results.nodes[child_index] for child_index in (0, 1)]
        for result in results:
            for candidate in result.labels:
                self._board.update_incumbent(candidate, "tree")
        for child, result in zip(children, results, strict=True):
            child.number, child.parent = self._new_number(), node.number
            if not result.bound > node.bound:
                child.leaf = self._restrict_proof(node, result.domain)
        assert node.split is not None
        self._proof_tree.replace(node, node.split, children)
        self._emit_closed(node, NodeOutcome.BRANCHED)
        self.nodes += len(children)
        self._max_depth = max(self._max_depth, node.depth + 1)
        for child, result in zip(children, results, strict=True):
            self._enqueue_or_prune(child, result)
        return children

    def _new_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _restrict_proof(self, node: Node[DomainT], domain: DomainT) -> LeafProof:
        return self._scheme.restrict_proof(node.leaf, node.domain, domain)

    def _enqueue_or_prune(self, node: Node[DomainT], result: NodeResult[DomainT]) -> None:
        """Close a node that has just been bounded, or keep it open."""
        if result.bound == np.inf:
            self._close(node, NodeOutcome.INFEASIBLE)
        elif self._prunable(node):
            self._close(node, NodeOutcome.PRUNED)
        else:
            self._node_queue.push(node)

    def _prunable(self, node: Node[DomainT]) -> bool:
        return gap_reached(self._board.cost, node.bound, self._gap)

    def _close(self, node: Node[DomainT], outcome: NodeOutcome) -> None:
        self._proof_tree.close(node, outcome)
        self._emit_closed(node, outcome)

    def _emit_closed(self, node: Node[DomainT], outcome: NodeOutcome) -> None:
        fields = (node.number, node.parent, node.depth, str(outcome), node.bound)
        self._emitter.emit(
            NodeClosed(self._emitter.seconds, *fields, part=self._scheme.to_original(node.domain))
        )

    def _report_progress(self) -> float:
        """Tell how far the tree is, and what that proves; returns the bound of the whole."""
        lower_bound = self.lower_bound
        self._board.update_bound(lower_bound, self._scheme.name)
        self._emitter.emit(
            TreeProgress(
                self._emitter.seconds,
                self.nodes,
                len(self._node_queue),
                self._max_depth,
                lower_bound,
            )
        )
        self._save_point()
        return lower_bound
