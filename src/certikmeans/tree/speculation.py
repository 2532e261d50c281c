"""Parts bounded before their turn, so that nobody is idle.

The tree is grown one node after the other, in an order that has nothing to do with workers. But
nodes that are open have to be split sooner or later, unless the incumbent becomes better. So while
the parts of the next node are being bounded, workers that are free bound the parts of others, the
most promising first, and parts of parts: as many as keep everybody busy. When their turn comes,
the answers are there. They are the same as if they had been asked for only then, since target and
labelling are the same; when these change, what was found ahead of its turn is thrown away.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.parallel import SharedData, TaskPool
from certikmeans.parallel.task_queue import DRAIN_SECONDS
from certikmeans.stop import StopCause, StopSignal
from certikmeans.tree.node import BranchingScheme, Node, NodeResult, NodeTask, compute
from certikmeans.tree.state import CachedChild

DomainT = TypeVar("DomainT")

# Answers that wait for their turn take memory, and may be thrown away: at most so many times what
# keeps everybody busy, and at least a few.
MAX_SPECULATIVE_FACTOR, MIN_SPECULATIVE = 8, 64


@final
@dataclass(slots=True, eq=False)
class ChildResults(Generic[DomainT]):
    """What is known about the two parts of a node."""

    requested: bool = True  # somebody works on what is not known
    results: dict[int, NodeResult[DomainT]] = field(default_factory=dict)
    nodes: dict[int, Node[DomainT]] = field(default_factory=dict)  # these parts, not yet numbered


@final
class SpeculativeEvaluator(Generic[DomainT]):
    """Answers about parts, worked out before they are asked for.

    Parameters
    ----------
    worker : BranchingScheme
        Bounds and splits.
    crew : TaskPool
        Who does the tasks.
    stop : StopSignal
        Ends all waiting.
    mark : callable
        Called when an answer has come.
    priority : callable
        Of a node: those with the least come first.
    """

    def __init__(
        self,
        scheme: BranchingScheme[DomainT],
        task_pool: TaskPool,
        stop: StopSignal,
        save_point: Callable[[], None],
        priority: Callable[[Node[DomainT]], tuple[float, ...]],
    ) -> None:
        self._scheme = scheme
        self._stop = stop
        self._save_point = save_point
        self._priority = priority
        self._task_queue = task_pool.task_queue(compute, self._on_result)
        self._child_results: dict[Node[DomainT], ChildResults[DomainT]] = {}
        self._requested: dict[int, tuple[Node[DomainT], int]] = {}  # by task: whose part, and which
        self._frontier: list[tuple[tuple[float, ...], int, Node[DomainT]]] = []
        self._unrequested: set[Node[DomainT]] = set()  # of the frontier, those that nobody works on
        self._ties = count()
        self._cutoff = self._cost = np.inf
        self._labels: NDArray[np.integer[Any]] = np.empty(0, dtype=np.int64)
        self._shared = SharedData(scheme)  # sent once; what changes travels with the tasks

    def reset(
        self, cutoff: float, cost: float, labels: NDArray[np.int64], nodes: Iterable[Node[DomainT]]
    ) -> None:
        """Begin anew with a target and a labelling; what is known of others is thrown away."""
        self._task_queue.cancel_all()
        self._requested.clear()
        self._child_results.clear()
        self._frontier.clear()
        self._unrequested.clear()
        self._cutoff, self._cost = cutoff, cost
        self._labels = self._scheme.incumbent_payload(labels)
        for node in nodes:
            self._add_to_frontier(node)

    def cached_children(self, open_nodes: Iterable[Node[DomainT]]) -> tuple[CachedChild, ...]:
        """Everything that is known about parts of open nodes, and of these parts."""
        found: list[CachedChild] = []
        nodes = list(open_nodes)
        for number, node in enumerate(nodes):  # grows on the way
            child_results = self._child_results.get(node)
            for child_index, result in (
                () if child_results is None else sorted(child_results.results.items())
            ):
                assert child_results is not None
                found.append(CachedChild(number, child_index, result))
                nodes.append(child_results.nodes[child_index])
        return tuple(found)

    def restore(
        self, cached_children: Iterable[CachedChild], open_nodes: Iterable[Node[DomainT]]
    ) -> None:
        """Go on with what was known at an earlier time."""
        nodes = list(open_nodes)
        for one in cached_children:
            node = nodes[one.parent_index]
            child_results = self._child_results.setdefault(node, ChildResults(requested=False))
            nodes.append(self._add_child(node, child_results, one.child_index, one.result))

    def results(self, node: Node[DomainT]) -> bool:
        """Wait for the answers about the parts of a node; whether they come before the stop."""
        while len(self._request_children(node).results) < 2:
            if self._stop.reason() is not None:
                return False
            self._fill_task_queue()
            self._task_queue.advance()
        return True

    def pop(self, node: Node[DomainT]) -> ChildResults[DomainT]:
        """The answers about the parts of a node, whose turn it is."""
        return self._child_results.pop(node)

    def drain(self) -> dict[Node[DomainT], ChildResults[DomainT]]:
        """End, with what can still be known about the parts of nodes.

        Answers may have been cut short; they are kept apart from those that were not.
        """
        may_wait = self._stop.reason() is not StopCause.INTERRUPTED
        self._task_queue.drain(DRAIN_SECONDS if may_wait else 0.0)
        found = {
            node: ChildResults(True, dict(child_results.results), dict(child_results.nodes))
            for node, child_results in self._child_results.items()
        }
        for number, result in self._task_queue.results.items():
            node, child_index = self._requested[number]
            found[node].results[child_index] = result
            found[node].nodes[child_index] = child_node(node, result)
        return found

    def close(self) -> None:
        """Drop everything that is under way."""
        self._task_queue.cancel_all()

    def _fill_task_queue(self) -> None:
        """Keep everybody busy, with what will be asked for next."""
        self._task_queue.expected = 2 * len(self._unrequested)
        self._compact_frontier()
        while self._unrequested:
            room = self._task_queue.room()
            n_running = len(self._requested)
            if (
                room <= 0
                or 2 * len(self._child_results)
                > MAX_SPECULATIVE_FACTOR * (room + n_running) + MIN_SPECULATIVE
            ):
                break
            node = heapq.heappop(self._frontier)[-1]
            if node in self._unrequested:
                self._request_children(node)

    def _compact_frontier(self) -> None:
        """Let go of nodes whose turn came before anybody was free: there may be very many."""
        if len(self._frontier) > 2 * len(self._unrequested) + MIN_SPECULATIVE:
            self._frontier = [one for one in self._frontier if one[-1] in self._unrequested]
            heapq.heapify(self._frontier)

    def _needs_branching(self, node: Node[DomainT]) -> bool:
        return node.bound < self._cutoff and node.split is not None

    def _request_children(self, node: Node[DomainT]) -> ChildResults[DomainT]:
        """Have the parts of a node bounded, as far as that has not been done."""
        child_results = self._child_results.setdefault(node, ChildResults(requested=False))
        if not child_results.requested:
            child_results.requested = True
            self._unrequested.discard(node)
            assert node.split is not None
            for child_index, domain in enumerate(self._scheme.children(node.domain, node.split)):
                if child_index not in child_results.results:
                    number = self._task_queue.put(self._task(node, domain), self._shared)
                    self._requested[number] = node, child_index
        return child_results

    def _task(self, node: Node[DomainT], domain: DomainT) -> NodeTask[DomainT]:
        what = domain, node.depth + 1, node.warm_start
        return NodeTask(*what, self._cutoff, self._labels, self._stop, self._cost)

    def _on_result(self, number: int, result: NodeResult[DomainT]) -> None:
        if self._stop.reason() is not None:
            return  # what was cut short may be done better another time
        node, child_index = self._requested.pop(number)
        del self._task_queue.results[number]
        self._add_child(node, self._child_results[node], child_index, result)
        self._save_point()

    def _add_child(
        self,
        node: Node[DomainT],
        child_results: ChildResults[DomainT],
        child_index: int,
        result: NodeResult[DomainT],
    ) -> Node[DomainT]:
        child_results.results[child_index] = result
        child = child_results.nodes[child_index] = child_node(node, result)
        self._add_to_frontier(child)
        return child

    def _add_to_frontier(self, node: Node[DomainT]) -> None:
        if self._needs_branching(node):
            self._unrequested.add(node)
            heapq.heappush(self._frontier, (self._priority(node), next(self._ties), node))


def child_node(node: Node[Any], result: NodeResult[Any]) -> Node[Any]:
    """The node that a part will be when its turn comes; then it gets its number."""
    return Node(
        number=-1,
        parent=node.number,
        depth=node.depth + 1,
        domain=result.domain,
        bound=max(result.bound, node.bound),
        leaf=result.leaf,
        warm_start=result.warm_start,
        split=result.split,
    )
