"""Heuristic labels that violate few pairs: greedy additive edge contraction and tabu search."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from certikmeans.problem.conflicts.graph import IntArray, PairGraph
from certikmeans.random_streams import generator


def gaec(graph: PairGraph) -> IntArray:
    """Return a group for every vertex; no two groups have more must- than cannot-links.

    >>> tied = PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 1)
    >>> gaec(tied).tolist()
    [0, 0, 1]
    """
    near: list[dict[int, int]] = [{} for _ in range(graph.n)]
    for e, (u, v) in enumerate(graph.edges.tolist()):
        if u != v:
            sign = 1 if e < graph.n_must else -1
            near[u][v] = near[u].get(v, 0) + sign
            near[v][u] = near[v].get(u, 0) + sign
    queue = [
        (-weight, u, v) for u, others in enumerate(near) for v, weight in others.items() if u < v
    ]
    heapify(queue)
    into = list(range(graph.n))
    while queue and queue[0][0] < 0:
        surplus, u, v = heappop(queue)
        if near[u].get(v) != -surplus:  # one of them is gone, or has changed since
            continue
        if len(near[u]) < len(near[v]):
            u, v = v, u
        into[v] = u
        for other, weight in near[v].items():
            del near[other][v]
            if other != u:
                near[u][other] = near[other][u] = near[u].get(other, 0) + weight
                heappush(queue, (-near[u][other], min(u, other), max(u, other)))
        near[v] = {}
    for v in range(graph.n):
        while into[v] != into[into[v]]:
            into[v] = into[into[v]]
    return np.unique(into, return_inverse=True)[1].astype(np.int64)


# A labelling that breaks few pairs: the pairs it breaks can be removed.
#
# It only has to be good; how good it is, is told by the lower bound of `removal`.

_MAX_PASSES = 30
_MAX_TABU_STEPS = 4000  # steps
_MAX_TABU_WORK = 2_000_000  # pairs looked at on the walk


def local_search_labels(
    graph: PairGraph, groups: IntArray, n_clusters: int, *, target: int = 0
) -> IntArray:
    """Label the vertices with at most ``n_clusters`` labels, starting from whole groups.

    Groups are labelled greedily, the most entangled first; then groups, and at last single
    vertices, move while that mends something. No labelling breaks fewer than ``target``.
    """
    n_groups = int(groups.max()) + 1
    group_costs = _LabelCosts(groups[graph.edges], graph.n_must, n_groups, n_clusters)
    labels = group_costs.greedy()
    group_costs.tabu_search(labels, generator(0, "noise.walk"), target)
    vertex_costs = _LabelCosts(graph.edges, graph.n_must, graph.n, n_clusters)
    found = np.array([labels[g] for g in groups.tolist()], dtype=np.int64)
    return vertex_costs.local_search(found)


def grow_labels(graph: PairGraph, n_clusters: int, seed: int) -> IntArray:
    """Label vertex by vertex, next the one about which the labelled ones say most.

    Where most pairs are right this finds the labelling behind them, however the wrong ones
    tie groups together.
    """
    vertex_costs = _LabelCosts(graph.edges, graph.n_must, graph.n, n_clusters)
    labels = vertex_costs.grow(int(generator(seed, "noise.start").integers(graph.n)))
    return vertex_costs.local_search(np.array(labels, dtype=np.int64))


class _LabelCosts:
    """What each label would cost each vertex: pairs broken."""

    def __init__(self, edges: IntArray, n_must: int, n: int, n_clusters: int) -> None:
        signs = np.ones(len(edges), dtype=np.int64)
        signs[:n_must] = -1
        self.neighbors: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for (u, v), sign in zip(edges.tolist(), signs.tolist(), strict=True):
            if u != v:
                self.neighbors[u].append((v, sign))
                self.neighbors[v].append((u, sign))
        self.n_clusters = n_clusters

    def costs(self, v: int, labels: list[int]) -> list[int]:
        """Cannot-links less must-links to each label."""
        costs = [0] * self.n_clusters
        for other, sign in self.neighbors[v]:
            if labels[other] >= 0:
                costs[labels[other]] += sign
        return costs

    def greedy(self) -> list[int]:
        """Label vertices in the order of how much the labelled ones say about them."""
        labels = [-1] * len(self.neighbors)
        order = sorted(range(len(self.neighbors)), key=lambda v: -len(self.neighbors[v]))
        for v in order:
            costs = self.costs(v, labels)
            labels[v] = costs.index(min(costs))
        return labels

    def grow(self, start: int) -> list[int]:
        """Label in the order of how clear it is which label breaks fewest pairs."""
        labels = [-1] * len(self.neighbors)
        votes = [[0] * self.n_clusters for _ in labels]
        queue = [(0, start), *((1, v) for v in range(len(labels)))]
        used = 0  # labels not used so far are all the same: one of them is considered
        while queue:
            _, v = heappop(queue)
            if labels[v] >= 0:
                continue
            offered = votes[v][: min(used + 1, self.n_clusters)]
            labels[v] = offered.index(min(offered))
            used = max(used, labels[v] + 1)
            for other, sign in self.neighbors[v]:
                if labels[other] < 0:
                    votes[other][labels[v]] += sign
                    low, next_low = _two_smallest(votes[other])
                    heappush(queue, (low - next_low, other))
        return labels

    def tabu_search(self, labels: list[int], rng: np.random.Generator, target: int) -> None:
        """Walk to better labellings with a short memory; keep the best."""
        n_violated = self._n_violated(labels)
        best, best_labels = n_violated, list(labels)
        tabu_until: dict[tuple[int, int], int] = {}
        size = sum(map(len, self.neighbors)) + 1
        steps = min(_MAX_TABU_STEPS, _MAX_TABU_WORK // size) if self.n_clusters > 1 else 0
        for step in range(steps):
            if best <= target:
                break
            violating = [v for v in range(len(labels)) if self._is_violating(v, labels)]
            move: tuple[int, int, int] | None = None
            for v in violating:
                costs = self.costs(v, labels)
                for label, cost in enumerate(costs):
                    gain = cost - costs[labels[v]]
                    free = tabu_until.get((v, label), -1) < step or n_violated + gain < best
                    if label != labels[v] and free and (move is None or gain < move[0]):
                        move = (gain, v, label)
            if move is None:
                break
            gain, v, label = move
            tabu_until[v, labels[v]] = step + 7 + int(rng.integers(10))
            labels[v] = label
            n_violated += gain
            if n_violated < best:
                best, best_labels = n_violated, list(labels)
        labels[:] = best_labels

    def _is_violating(self, v: int, labels: list[int]) -> bool:
        return any((labels[other] == labels[v]) == (sign > 0) for other, sign in self.neighbors[v])

    def _n_violated(self, labels: list[int]) -> int:
        wrong = sum(
            (labels[other] == labels[v]) == (sign > 0)
            for v, neighbors in enumerate(self.neighbors)
            for other, sign in neighbors
        )
        return wrong // 2

    def local_search(self, start: IntArray) -> IntArray:
        """Move single vertices while that mends something."""
        labels = start.tolist()
        for _ in range(_MAX_PASSES):
            moved = False
            for v in range(len(labels)):
                costs = self.costs(v, labels)
                best = min(costs)
                if best < costs[labels[v]]:
                    labels[v], moved = costs.index(best), True
            if not moved:
                break
        return np.array(labels, dtype=np.int64)


def _two_smallest(costs: list[int]) -> tuple[int, int]:
    low = min(costs)
    return low, min((cost for at, cost in enumerate(costs) if at != costs.index(low)), default=low)
