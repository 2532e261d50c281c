"""Branch and bound.

Nodes are bounded when they are created. One node after the other is split in two, in the order of
the node queue; when its children are bounded, incumbent, proof tree and queue are updated. Idle
workers evaluate children of later nodes speculatively (`speculation.py`), which changes the time of
results but not the results: they do not depend on the number of workers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.events import NodeClosed, TreeProgress
from certikmeans.proof import CenterSplit, LeafProof, PairSplit
from certikmeans.solver.context import SolveContext
from certikmeans.solver.state import SolveState
from certikmeans.stop import StopSignal
from certikmeans.tolerances import LEAST_GAP, gap_reached, target_bound
from certikmeans.tree.node import (
    BranchingScheme,
    CachedChild,
    Node,
    NodeOutcome,
    NodeQueue,
    NodeResult,
    ProofTree,
    TreeState,
)
from certikmeans.tree.speculation import ChildResults, SpeculativeEvaluator

DomainT = TypeVar("DomainT")


@final
class BranchAndBound(Generic[DomainT]):
    """Tree search over domains; `run` works until the gap is closed or the run is stopped.

    Parameters
    ----------
    scheme : BranchingScheme
        Bounds and splits domains.
    solve_state : SolveState
        Incumbent and lower bound; checkpoints are written from it.
    ctx : SolveContext
        Gap, node limit and node selection; task pool and events.
    """

    def __init__(
        self,
        scheme: BranchingScheme[DomainT],
        solve_state: SolveState,
        ctx: SolveContext,
    ) -> None:
        options = ctx.options
        self._scheme = scheme
        self._state = solve_state
        self._events = ctx.events
        self._gap = max(options.gap, LEAST_GAP)
        self._node_limit, self._work_limit = options.max_nodes, options.max_tree_work
        self._work = 0.0
        self._task_pool = ctx.pool
        self._node_queue = NodeQueue(options.selection)
        self._proof_tree = ProofTree(keep_proof=options.keep_proof)
        self._next_number = 1
        self._root = 0
        self._max_depth = 0
        self._cutoff = np.inf
        self._labels: NDArray[np.int64] | None = None  # incumbent at the last reset of speculation
        self._speculation: SpeculativeEvaluator[DomainT] | None = None
        self._cached_children: tuple[CachedChild, ...] = ()  # of a restored search
        self._final_state: TreeState | None = None
        self.nodes = 1

    @property
    def lower_bound(self) -> float:
        """At most the cost of every labelling: the least bound over closed and open nodes."""
        return min(self._node_queue.lower_bound, self._proof_tree.closed_bound)

    def add_root(self, found: NodeResult[DomainT], lower_bound: float, leaf: LeafProof) -> None:
        """Open the root; ``lower_bound`` of the whole problem is proven by ``leaf``."""
        for candidate in found.labels:
            self._state.update_incumbent(candidate, "tree")
        better = found.bound > lower_bound
        node = Node(
            number=self._root,
            parent=-1,
            depth=0,
            domain=found.domain,
            bound=found.bound if better else lower_bound,
            leaf=found.leaf if better else leaf,
            warm_start=found.warm_start,
            split=found.split,
        )
        self._proof_tree.open(node)
        self._enqueue_or_prune(node, found)

    def run(self, stop: StopSignal) -> bool:
        """Split nodes until the gap is closed, none is open, or ``stop``.

        Return whether the node limit, or the work limit that replaces it, was reached.
        """
        speculation = SpeculativeEvaluator(
            self._scheme,
            self._task_pool,
            stop,
            self._state.checkpoint,
            self._node_queue.priority,
            self._work_limit,
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
            if gap_reached(self._state.cost, self._report_progress(), self._gap):
                return False
            if self._limit_reached():
                return True
            node = self._node_queue.first()
            if self._prunable(node):
                self._close(self._node_queue.pop(), NodeOutcome.PRUNED)
            elif node.split is None:
                self._close(self._node_queue.pop(), NodeOutcome.UNSPLITTABLE)
            elif stop.reason() is None and speculation.wait_for(node):
                self._branch(self._node_queue.pop(), speculation.pop(node))
                if self._state.labels is not self._labels:
                    self._reset_speculation(speculation)
            else:
                self._stop_early(speculation)
                return False
        self._report_progress()
        return False

    def state(self) -> TreeState:
        """State from which another search continues; valid until this one continues."""
        if self._final_state is not None:
            return self._final_state
        nodes = self._node_queue.nodes()
        return TreeState(
            tuple(nodes),
            self._node_queue.n_taken,
            self._proof_tree,
            self.nodes,
            self._work,
            self._next_number,
            self._max_depth,
            self._cutoff,
            self._labels,
            self._cached_children
            if self._speculation is None
            else self._speculation.cached_children(nodes),
        )

    def restore(self, before: TreeState) -> None:
        """Continue from the state of an earlier search, instead of `add_root`."""
        self._node_queue.restore(before.open_nodes, before.n_taken)
        self._proof_tree = before.proof_tree.copy()
        self.nodes, self._work = before.nodes, before.work
        self._next_number = before.next_number
        self._max_depth, self._cutoff = before.max_depth, before.cutoff
        self._labels = before.labels
        self._cached_children = before.cached_children

    def proof_nodes(self) -> tuple[CenterSplit | PairSplit | LeafProof, ...]:
        """The tree with the evidence of its leaves, in preorder."""
        return self._proof_tree.proof_nodes(self._root, self._node_queue.nodes())

    def _reset_speculation(self, speculation: SpeculativeEvaluator[DomainT]) -> NDArray[np.int64]:
        """Restart speculation with the current incumbent, which is returned; cutoffs never rise."""
        cost, labels = self._state.cost, self._state.labels
        assert labels is not None  # there is one after the heuristics
        self._labels = labels
        self._cutoff = min(self._cutoff, target_bound(cost, self._gap))
        speculation.reset(self._cutoff, cost, labels, self._node_queue.nodes())
        return labels

    def _stop_early(self, speculation: SpeculativeEvaluator[DomainT]) -> None:
        """Use results of interrupted nodes; a resumed run starts from the state before them."""
        self._save_final_state()
        found = speculation.drain()
        waiting = self._node_queue.nodes()
        while waiting and not self._limit_reached():
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
        """Fix the state that a resumed run continues from."""
        if self._final_state is None:
            self._final_state = replace(self.state(), proof_tree=self._proof_tree.copy())

    def _branch(
        self, node: Node[DomainT], child_results: ChildResults[DomainT]
    ) -> list[Node[DomainT]]:
        """Replace a node by its two children."""
        results = [child_results.results[child_index] for child_index in (0, 1)]
        children = [child_results.nodes[child_index] for child_index in (0, 1)]
        for result in results:
            for candidate in result.labels:
                self._state.update_incumbent(candidate, "tree")
        for child, result in zip(children, results, strict=True):
            child.number, child.parent = self._new_number(), node.number
            if not result.bound > node.bound:
                child.leaf = self._restrict_proof(node, result.domain)
        assert node.split is not None
        self._proof_tree.replace(node, node.split, children)
        self._emit_closed(node, NodeOutcome.BRANCHED)
        self.nodes += len(children)
        self._work += sum(result.work for result in results)
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
        """Close a node that has just been bounded, or add it to the queue."""
        if result.bound == np.inf:
            self._close(node, NodeOutcome.INFEASIBLE)
        elif self._prunable(node):
            self._close(node, NodeOutcome.PRUNED)
        else:
            self._node_queue.push(node)

    def _limit_reached(self) -> bool:
        # A split makes two nodes.
        return self.nodes + 2 > self._node_limit or self._work >= self._work_limit

    def _prunable(self, node: Node[DomainT]) -> bool:
        return gap_reached(self._state.cost, node.bound, self._gap)

    def _close(self, node: Node[DomainT], outcome: NodeOutcome) -> None:
        self._proof_tree.close(node, outcome)
        self._emit_closed(node, outcome)

    def _emit_closed(self, node: Node[DomainT], outcome: NodeOutcome) -> None:
        fields = (node.number, node.parent, node.depth, str(outcome), node.bound)
        self._events.emit(
            NodeClosed(self._events.seconds, *fields, part=self._scheme.to_original(node.domain))
        )

    def _report_progress(self) -> float:
        """Report progress and the lower bound of the tree, which is returned."""
        lower_bound = self.lower_bound
        self._state.update_bound(lower_bound, self._scheme.name)
        self._events.emit(
            TreeProgress(
                self._events.seconds,
                self.nodes,
                len(self._node_queue),
                self._max_depth,
                lower_bound,
            )
        )
        self._state.checkpoint()
        return lower_bound
