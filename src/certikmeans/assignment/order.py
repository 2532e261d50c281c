"""Preparing a core: its elimination order, the tables that order needs, and a clique cover."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

Adjacency = Sequence[set[int]]

# Minimum fill gives smaller tables than minimum degree but takes cubic time.
_MIN_FILL_SIZE = 150


@final
@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """A core's vertices in the order they are eliminated, each with what its table depends on."""

    vertices: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]  # later positions, ascending


def largest_scope(n_labels: int, max_entries: int) -> int:
    """Return the largest scope whose table, with the vertex itself, has ``max_entries`` or fewer.

    >>> largest_scope(3, 100)
    3
    """
    return int(math.log(max_entries) / math.log(n_labels) + 1e-9) - 1


def elimination_order(adjacency: Adjacency, max_scope: int) -> EliminationOrder | None:
    """Eliminate vertices one by one, joining the neighbours of each; cheapest first.

    Parameters
    ----------
    adjacency : sequence of set
        Neighbours of vertices ``0 .. n - 1``. Not modified.
    max_scope : int
        Give up (None) as soon as every vertex left has more neighbours than this: the order is
        greedy, so None says that no small tables were found, not that there are none.

    Examples
    --------
    >>> cycle = [{1, 3}, {0, 2}, {1, 3}, {0, 2}]
    >>> elimination_order(cycle, max_scope=2)
    EliminationOrder(vertices=(0, 1, 2, 3), scopes=((1, 3), (2, 3), (3,), ()))
    >>> elimination_order(cycle, max_scope=1) is None
    True
    """
    left = {v: set(near) for v, near in enumerate(adjacency)}
    by_fill = len(left) <= _MIN_FILL_SIZE

    def priority(v: int) -> tuple[int, int, int]:
        near = left[v]
        fill = 0
        if by_fill and len(near) <= max_scope:
            fill = sum(len(near) - 1 - len(near & left[u]) for u in near) // 2
        return (int(len(near) > max_scope), fill, len(near))

    queue = [(priority(v), v) for v in left]
    heapq.heapify(queue)
    vertices: list[int] = []
    near_at: list[set[int]] = []
    while left:
        rank, v = heapq.heappop(queue)
        if v not in left:
            continue
        current = priority(v)
        if current != rank:  # an entry from before its neighbourhood changed
            if current > rank:
                heapq.heappush(queue, (current, v))
            continue
        if current[0]:
            return None
        near = left.pop(v)
        vertices.append(v)
        near_at.append(near)
        touched = set(near)
        for u in near:
            left[u].discard(v)
            left[u] |= near - {u}
            if by_fill:
                touched |= left[u]
        for u in sorted(touched):
            heapq.heappush(queue, (priority(u), u))
    position = {v: i for i, v in enumerate(vertices)}
    scopes = tuple(tuple(sorted(position[u] for u in near)) for near in near_at)
    return EliminationOrder(tuple(vertices), scopes)


def clique_cover(adjacency: Adjacency) -> list[list[int]]:
    """Cliques that together hold every edge, each grown greedily around an uncovered edge.

    >>> clique_cover([{1, 2}, {0, 2}, {0, 1, 3}, {2}])
    [[0, 1, 2], [2, 3]]
    """
    covered: set[tuple[int, int]] = set()
    cliques = []
    for v, near in enumerate(adjacency):
        for u in sorted(near):
            if u < v or (v, u) in covered:
                continue
            clique, common = [v, u], near & adjacency[u]
            while common:
                joined = max(common, key=lambda w: (len(common & adjacency[w]), -w))
                clique.append(joined)
                common = common & adjacency[joined]
            clique.sort()
            covered.update((a, b) for i, a in enumerate(clique) for b in clique[i + 1 :])
            cliques.append(clique)
    return cliques
