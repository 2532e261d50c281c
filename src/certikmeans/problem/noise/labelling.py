"""A labelling that breaks few pairs: the pairs it breaks can be removed.

It only has to be good; how good it is, is told by the lower bound of `removal`.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from certikmeans.problem.noise.graph import Ids, PairGraph
from certikmeans.streams import generator

_PASSES = 30
_LONGEST_WALK = 4000  # steps
_MOST_WORK = 2_000_000  # pairs looked at on the walk


def few_broken(graph: PairGraph, groups: Ids, n_clusters: int, *, goal: int = 0) -> Ids:
    """Label the vertices with at most ``n_clusters`` labels, starting from whole groups.

    Groups are labelled greedily, the most entangled first; then groups, and at last single
    vertices, move while that mends something. No labelling breaks fewer than ``goal``.
    """
    n_groups = int(groups.max()) + 1
    balance = _Balance(groups[graph.edges], graph.n_must, n_groups, n_clusters)
    labels = balance.greedy()
    balance.settle(labels, generator(0, "noise.walk"), goal)
    single = _Balance(graph.edges, graph.n_must, graph.n, n_clusters)
    found = np.array([labels[g] for g in groups.tolist()], dtype=np.int64)
    return single.descend(found)


def grown(graph: PairGraph, n_clusters: int, seed: int) -> Ids:
    """Label vertex by vertex, next the one about which the labelled ones say most.

    Where most pairs are right this finds the labelling behind them, however the wrong ones
    tie groups together.
    """
    single = _Balance(graph.edges, graph.n_must, graph.n, n_clusters)
    labels = single.grow(int(generator(seed, "noise.start").integers(graph.n)))
    return single.descend(np.array(labels, dtype=np.int64))


class _Balance:
    """What each label would cost each vertex: pairs broken."""

    def __init__(self, edges: Ids, n_must: int, n: int, n_clusters: int) -> None:
        signs = np.ones(len(edges), dtype=np.int64)
        signs[:n_must] = -1
        self.near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for (u, v), sign in zip(edges.tolist(), signs.tolist(), strict=True):
            if u != v:
                self.near[u].append((v, sign))
                self.near[v].append((u, sign))
        self.n_clusters = n_clusters

    def costs(self, v: int, labels: list[int]) -> list[int]:
        """Cannot-links less must-links to each label."""
        costs = [0] * self.n_clusters
        for other, sign in self.near[v]:
            if labels[other] >= 0:
                costs[labels[other]] += sign
        return costs

    def greedy(self) -> list[int]:
        """Label vertices in the order of how much the labelled ones say about them."""
        labels = [-1] * len(self.near)
        order = sorted(range(len(self.near)), key=lambda v: -len(self.near[v]))
        for v in order:
            costs = self.costs(v, labels)
            labels[v] = costs.index(min(costs))
        return labels

    def grow(self, start: int) -> list[int]:
        """Label in the order of how clear it is which label breaks fewest pairs."""
        labels = [-1] * len(self.near)
        said = [[0] * self.n_clusters for _ in labels]
        queue = [(0, start), *((1, v) for v in range(len(labels)))]
        used = 0  # labels not used so far are all the same: one of them is considered
        while queue:
            _, v = heappop(queue)
            if labels[v] >= 0:
                continue
            offered = said[v][: min(used + 1, self.n_clusters)]
            labels[v] = offered.index(min(offered))
            used = max(used, labels[v] + 1)
            for other, sign in self.near[v]:
                if labels[other] < 0:
                    said[other][labels[v]] += sign
                    low, next_low = _two_least(said[other])
                    heappush(queue, (low - next_low, other))
        return labels

    def settle(self, labels: list[int], rng: np.random.Generator, goal: int) -> None:
        """Walk to better labellings with a short memory; keep the best."""
        broken = self._broken(labels)
        best, kept = broken, list(labels)
        blocked: dict[tuple[int, int], int] = {}
        size = sum(map(len, self.near)) + 1
        steps = min(_LONGEST_WALK, _MOST_WORK // size) if self.n_clusters > 1 else 0
        for step in range(steps):
            if best <= goal:
                break
            unhappy = [v for v in range(len(labels)) if self._unhappy(v, labels)]
            move: tuple[int, int, int] | None = None
            for v in unhappy:
                costs = self.costs(v, labels)
                for label, cost in enumerate(costs):
                    gain = cost - costs[labels[v]]
                    free = blocked.get((v, label), -1) < step or broken + gain < best
                    if label != labels[v] and free and (move is None or gain < move[0]):
                        move = (gain, v, label)
            if move is None:
                break
            gain, v, label = move
            blocked[v, labels[v]] = step + 7 + int(rng.integers(10))
            labels[v] = label
            broken += gain
            if broken < best:
                best, kept = broken, list(labels)
        labels[:] = kept

    def _unhappy(self, v: int, labels: list[int]) -> bool:
        return any((labels[other] == labels[v]) == (sign > 0) for other, sign in self.near[v])

    def _broken(self, labels: list[int]) -> int:
        wrong = sum(
            (labels[other] == labels[v]) == (sign > 0)
            for v, near in enumerate(self.near)
            for other, sign in near
        )
        return wrong // 2

    def descend(self, start: Ids) -> Ids:
        """Move single vertices while that mends something."""
        labels = start.tolist()
        for _ in range(_PASSES):
            moved = False
            for v in range(len(labels)):
                costs = self.costs(v, labels)
                best = min(costs)
                if best < costs[labels[v]]:
                    labels[v], moved = costs.index(best), True
            if not moved:
                break
        return np.array(labels, dtype=np.int64)


def _two_least(costs: list[int]) -> tuple[int, int]:
    low = min(costs)
    return low, min((cost for at, cost in enumerate(costs) if at != costs.index(low)), default=low)
