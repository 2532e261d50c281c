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

from certikmeans.execution import Crew, Shared
from certikmeans.execution.line import PATIENCE_SECONDS
from certikmeans.search.node import AbstractWorker, Answer, Node, Task, evaluate
from certikmeans.search.state import Known
from certikmeans.stop import StopCause, StopSignal

Part = TypeVar("Part")

# Answers that wait for their turn take memory, and may be thrown away: at most so many times what
# keeps everybody busy, and at least a few.
MOST_AHEAD, FEW_AHEAD = 8, 64


@final
@dataclass(slots=True, eq=False)
class Beyond(Generic[Part]):
    """What is known about the two parts of a node."""

    asked: bool = True  # somebody works on what is not known
    answers: dict[int, Answer[Part]] = field(default_factory=dict)
    nodes: dict[int, Node[Part]] = field(default_factory=dict)  # these parts, not yet numbered


@final
class Ahead(Generic[Part]):
    """Answers about parts, worked out before they are asked for.

    Parameters
    ----------
    worker : AbstractWorker
        Bounds and splits.
    crew : Crew
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
        worker: AbstractWorker[Part],
        crew: Crew,
        stop: StopSignal,
        mark: Callable[[], None],
        priority: Callable[[Node[Part]], tuple[float, ...]],
    ) -> None:
        self._worker = worker
        self._stop = stop
        self._mark = mark
        self._priority = priority
        self._line = crew.line(evaluate, self._note)
        self._beyond: dict[Node[Part], Beyond[Part]] = {}
        self._asked: dict[int, tuple[Node[Part], int]] = {}  # by task: whose part, and which
        self._frontier: list[tuple[tuple[float, ...], int, Node[Part]]] = []
        self._untouched: set[Node[Part]] = set()  # of the frontier, those that nobody works on
        self._ties = count()
        self._target = self._cost = np.inf
        self._labels: NDArray[np.integer[Any]] = np.empty(0, dtype=np.int64)
        self._shared = Shared(worker)  # sent once; what changes travels with the tasks

    def set_out(
        self, target: float, cost: float, labels: NDArray[np.int64], nodes: Iterable[Node[Part]]
    ) -> None:
        """Begin anew with a target and a labelling; what is known of others is thrown away."""
        self._line.drop()
        self._asked.clear()
        self._beyond.clear()
        self._frontier.clear()
        self._untouched.clear()
        self._target, self._cost = target, cost
        self._labels = self._worker.needed(labels)
        for node in nodes:
            self._expect(node)

    def known(self, open_nodes: Iterable[Node[Part]]) -> tuple[Known, ...]:
        """Everything that is known about parts of open nodes, and of these parts."""
        found: list[Known] = []
        nodes = list(open_nodes)
        for number, node in enumerate(nodes):  # grows on the way
            beyond = self._beyond.get(node)
            for which, answer in () if beyond is None else sorted(beyond.answers.items()):
                assert beyond is not None
                found.append(Known(number, which, answer))
                nodes.append(beyond.nodes[which])
        return tuple(found)

    def take_up(self, known: Iterable[Known], open_nodes: Iterable[Node[Part]]) -> None:
        """Go on with what was known at an earlier time."""
        nodes = list(open_nodes)
        for one in known:
            node = nodes[one.of]
            beyond = self._beyond.setdefault(node, Beyond(asked=False))
            nodes.append(self._add(node, beyond, one.which, one.answer))

    def answers(self, node: Node[Part]) -> bool:
        """Wait for the answers about the parts of a node; whether they come before the stop."""
        while len(self._begun(node).answers) < 2:
            if self._stop.cause() is not None:
                return False
            self._work_ahead()
            self._line.advance()
        return True

    def take(self, node: Node[Part]) -> Beyond[Part]:
        """The answers about the parts of a node, whose turn it is."""
        return self._beyond.pop(node)

    def break_off(self) -> dict[Node[Part], Beyond[Part]]:
        """End, with what can still be known about the parts of nodes.

        Answers may have been cut short; they are kept apart from those that were not.
        """
        timely = self._stop.cause() is not StopCause.INTERRUPTED
        self._line.wind_up(PATIENCE_SECONDS if timely else 0.0)
        found = {
            node: Beyond(True, dict(beyond.answers), dict(beyond.nodes))
            for node, beyond in self._beyond.items()
        }
        for number, answer in self._line.answers.items():
            node, which = self._asked[number]
            found[node].answers[which] = answer
            found[node].nodes[which] = part_of(node, answer)
        return found

    def close(self) -> None:
        """Drop everything that is under way."""
        self._line.drop()

    def _work_ahead(self) -> None:
        """Keep everybody busy, with what will be asked for next."""
        self._line.expected = 2 * len(self._untouched)
        self._forget_touched()
        while self._untouched:
            room = self._line.room()
            under_way = len(self._asked)
            if room <= 0 or 2 * len(self._beyond) > MOST_AHEAD * (room + under_way) + FEW_AHEAD:
                break
            node = heapq.heappop(self._frontier)[-1]
            if node in self._untouched:
                self._begun(node)

    def _forget_touched(self) -> None:
        """Let go of nodes whose turn came before anybody was free: there may be very many."""
        if len(self._frontier) > 2 * len(self._untouched) + FEW_AHEAD:
            self._frontier = [one for one in self._frontier if one[-1] in self._untouched]
            heapq.heapify(self._frontier)

    def _worthwhile(self, node: Node[Part]) -> bool:
        return node.bound < self._target and node.split is not None

    def _begun(self, node: Node[Part]) -> Beyond[Part]:
        """Have the parts of a node bounded, as far as that has not been done."""
        beyond = self._beyond.setdefault(node, Beyond(asked=False))
        if not beyond.asked:
            beyond.asked = True
            self._untouched.discard(node)
            assert node.split is not None
            for which, part in enumerate(self._worker.parts(node.part, node.split)):
                if which not in beyond.answers:
                    number = self._line.put(self._task(node, part), self._shared)
                    self._asked[number] = node, which
        return beyond

    def _task(self, node: Node[Part], part: Part) -> Task[Part]:
        what = part, node.depth + 1, node.restart
        return Task(*what, self._target, self._labels, self._stop, self._cost)

    def _note(self, number: int, answer: Answer[Part]) -> None:
        if self._stop.cause() is not None:
            return  # what was cut short may be done better another time
        node, which = self._asked.pop(number)
        del self._line.answers[number]
        self._add(node, self._beyond[node], which, answer)
        self._mark()

    def _add(
        self, node: Node[Part], beyond: Beyond[Part], which: int, answer: Answer[Part]
    ) -> Node[Part]:
        beyond.answers[which] = answer
        child = beyond.nodes[which] = part_of(node, answer)
        self._expect(child)
        return child

    def _expect(self, node: Node[Part]) -> None:
        if self._worthwhile(node):
            self._untouched.add(node)
            heapq.heappush(self._frontier, (self._priority(node), next(self._ties), node))


def part_of(node: Node[Any], answer: Answer[Any]) -> Node[Any]:
    """The node that a part will be when its turn comes; then it gets its number."""
    return Node(
        number=-1,
        parent=node.number,
        depth=node.depth + 1,
        part=answer.part,
        bound=max(answer.bound, node.bound),
        leaf=answer.leaf,
        restart=answer.restart,
        split=answer.split,
    )
