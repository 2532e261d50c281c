"""Speculative evaluation of child nodes.

The tree branches on one node after the other, in an order that does not depend on workers. Open
nodes have to be branched on sooner or later unless the incumbent improves, so free workers evaluate
the children of the most promising ones, and children of children, before their turn. A result
depends on domain, cutoff and incumbent only: it is the one that would be computed later. When
cutoff or incumbent change, speculative results are discarded.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.parallel import SharedData, TaskPool
from certikmeans.stop import StopSignal
from certikmeans.tree.node import BranchingScheme, CachedChild, Node, NodeResult, NodeTask, compute

DomainT = TypeVar("DomainT")

# Unused results take memory and may be discarded: at most this multiple of the tasks that keep all
# workers busy, plus a constant.
MAX_SPECULATIVE_FACTOR, MIN_SPECULATIVE = 8, 64
WAIT_SECONDS = 0.2  # between two checks of the stop signal


@final
@dataclass(slots=True, eq=False)
class ChildResults(Generic[DomainT]):
    """Results of the two children of a node, as far as they are known."""

    requested: bool = True  # the missing ones are being computed
    results: dict[int, NodeResult[DomainT]] = field(default_factory=dict)
    nodes: dict[int, Node[DomainT]] = field(default_factory=dict)  # not numbered yet


@final
class SpeculativeEvaluator(Generic[DomainT]):
    """Evaluates children of open nodes, on all workers, and keeps the results until needed.

    Parameters
    ----------
    scheme : BranchingScheme
        Evaluates and splits domains.
    task_pool : TaskPool
    stop : StopSignal
        Ends all waiting.
    save_point : callable
        Called after each new result.
    priority : callable
        Sort key of a node: the least goes first.
    max_work : float
        Units of work of one node; a constant, so that results do not depend on the order in which
        nodes are evaluated.
    """

    def __init__(
        self,
        scheme: BranchingScheme[DomainT],
        task_pool: TaskPool,
        stop: StopSignal,
        save_point: Callable[[], None],
        priority: Callable[[Node[DomainT]], tuple[float, ...]],
        max_work: float = np.inf,
    ) -> None:
        self._scheme = scheme
        self._pool = task_pool
        self._stop = stop
        self._save_point = save_point
        self._priority = priority
        self._max_work = max_work
        self._child_results: dict[Node[DomainT], ChildResults[DomainT]] = {}
        self._running: dict[Future[NodeResult[DomainT]], tuple[Node[DomainT], int]] = {}
        self._completed: SimpleQueue[Future[NodeResult[DomainT]]] = SimpleQueue()
        # Results that came after the stop: possibly cut short, so not for a run that is resumed.
        self._late: list[tuple[Node[DomainT], int, NodeResult[DomainT]]] = []
        self._frontier: list[tuple[tuple[float, ...], int, Node[DomainT]]] = []
        self._unrequested: set[Node[DomainT]] = set()  # of the frontier; others were taken already
        self._ties = count()
        self._cutoff = self._cost = np.inf
        self._labels: NDArray[np.integer[Any]] = np.empty(0, dtype=np.int64)
        self._shared = SharedData(scheme)  # sent once; what changes is part of the tasks

    def reset(
        self, cutoff: float, cost: float, labels: NDArray[np.int64], nodes: Iterable[Node[DomainT]]
    ) -> None:
        """Restart with a cutoff and an incumbent; discard the results for other ones."""
        self.close()
        self._child_results.clear()
        self._frontier.clear()
        self._unrequested.clear()
        self._cutoff, self._cost = cutoff, cost
        self._labels = self._scheme.incumbent_payload(labels)
        for node in nodes:
            self._add_to_frontier(node)

    def cached_children(self, open_nodes: Iterable[Node[DomainT]]) -> tuple[CachedChild, ...]:
        """Return all results for children of open nodes, and for children of these."""
        found: list[CachedChild] = []
        nodes = list(open_nodes)
        for number, node in enumerate(nodes):  # grows on the way
            known = self._child_results.get(node)
            if known is not None:
                for child_index, result in sorted(known.results.items()):
                    found.append(CachedChild(number, child_index, result))
                    nodes.append(known.nodes[child_index])
        return tuple(found)

    def restore(
        self, cached_children: Iterable[CachedChild], open_nodes: Iterable[Node[DomainT]]
    ) -> None:
        """Continue with results of `cached_children`."""
        nodes = list(open_nodes)
        for child in cached_children:
            node = nodes[child.parent_index]
            nodes.append(self._add_child(node, child.child_index, child.result))

    def wait_for(self, node: Node[DomainT]) -> bool:
        """Wait for the children of a node; returns whether they are known before the stop."""
        while len(self._request_children(node).results) < 2:
            if self._stop.reason() is not None:
                return False
            self._request_speculative()
            with suppress(Empty):
                self._receive(self._completed.get(timeout=WAIT_SECONDS))
                while True:
                    self._receive(self._completed.get_nowait())
        return True

    def pop(self, node: Node[DomainT]) -> ChildResults[DomainT]:
        """Remove and return the results for the children of a node."""
        return self._child_results.pop(node)

    def drain(self) -> dict[Node[DomainT], ChildResults[DomainT]]:
        """End all tasks and return the results for children, including those cut short."""
        self._pool.drain(self._running)
        for future, (node, child_index) in self._running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self._late.append((node, child_index, future.result()))
        found = {
            node: ChildResults(True, dict(known.results), dict(known.nodes))
            for node, known in self._child_results.items()
        }
        for node, child_index, result in self._late:
            found[node].results[child_index] = result
            found[node].nodes[child_index] = child_node(node, result)
        return found

    def close(self) -> None:
        """Cancel all tasks."""
        running = list(self._running)
        self._running.clear()
        for future in running:
            future.cancel()

    def _request_speculative(self) -> None:
        """Submit tasks for the children that are needed next, until all workers are busy."""
        capacity = self._pool.capacity
        most_results = MAX_SPECULATIVE_FACTOR * capacity + MIN_SPECULATIVE
        # Nodes whose turn came before a worker was free; there may be very many.
        if len(self._frontier) > 2 * len(self._unrequested) + MIN_SPECULATIVE:
            self._frontier = [entry for entry in self._frontier if entry[-1] in self._unrequested]
            heapq.heapify(self._frontier)
        while (
            self._unrequested
            and len(self._running) < capacity
            and 2 * len(self._child_results) <= most_results
        ):
            node = heapq.heappop(self._frontier)[-1]
            if node in self._unrequested:
                self._request_children(node)

    def _request_children(self, node: Node[DomainT]) -> ChildResults[DomainT]:
        """Submit tasks for the children of a node that have neither task nor result."""
        known = self._child_results.setdefault(node, ChildResults(requested=False))
        if not known.requested:
            known.requested = True
            self._unrequested.discard(node)
            assert node.split is not None
            for child_index, domain in enumerate(self._scheme.children(node.domain, node.split)):
                if child_index not in known.results:
                    future = self._pool.submit(
                        compute, self._task(node, domain), shared=self._shared
                    )
                    self._running[future] = node, child_index
                    future.add_done_callback(self._completed.put)
        return known

    def _task(self, node: Node[DomainT], domain: DomainT) -> NodeTask[DomainT]:
        return NodeTask(
            domain,
            node.depth + 1,
            node.warm_start,
            self._cutoff,
            self._labels,
            self._stop,
            self._cost,
            self._max_work,
        )

    def _receive(self, future: Future[NodeResult[DomainT]]) -> None:
        if future not in self._running:  # cancelled
            return
        node, child_index = self._running.pop(future)
        result = future.result()
        if self._stop.reason() is None:
            self._add_child(node, child_index, result)
            self._save_point()
        else:
            self._late.append((node, child_index, result))

    def _add_child(
        self, node: Node[DomainT], child_index: int, result: NodeResult[DomainT]
    ) -> Node[DomainT]:
        known = self._child_results.setdefault(node, ChildResults(requested=False))
        known.results[child_index] = result
        child = known.nodes[child_index] = child_node(node, result)
        self._add_to_frontier(child)
        return child

    def _add_to_frontier(self, node: Node[DomainT]) -> None:
        if node.bound < self._cutoff and node.split is not None:
            self._unrequested.add(node)
            heapq.heappush(self._frontier, (self._priority(node), next(self._ties), node))


def child_node(node: Node[Any], result: NodeResult[Any]) -> Node[Any]:
    """Return the child of a node with this result; it gets its number in its turn."""
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
