"""Short conflicts that share no pair: each of them has to lose one, so their number is a bound.

Found greedily, the shortest first, with a limited look around: cheap for any number of pairs.
"""

from __future__ import annotations

from certikmeans.problem.noise.conflicts import Row
from certikmeans.problem.noise.graph import PairGraph
from certikmeans.stop import StopSignal

_DEPTHS = (1, 2, 3, 4, 6)
_FARTHEST = 400  # states looked at from one cannot-link


def disjoint_conflicts(graph: PairGraph, n_clusters: int, stop: StopSignal) -> list[Row]:
    """Return conflicts that share no edge: closed walks with one cannot-link.

    With two clusters, any odd number of cannot-links will do.

    >>> import numpy as np
    >>> square = PairGraph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 2], [0, 3]]), 3)
    >>> disjoint_conflicts(square, 3, StopSignal())
    [frozenset({0, 1, 3})]
    """
    near: list[dict[int, tuple[int, int]]] = [{} for _ in range(graph.n)]
    last = len(graph.edges) if n_clusters == 2 else graph.n_must
    for e, (u, v) in enumerate(graph.edges[:last].tolist()):
        odd = int(e >= graph.n_must)
        near[u][e] = (v, odd)
        near[v][e] = (u, odd)
    rows: list[Row] = []
    left = list(range(graph.n_must, len(graph.edges)))
    for depth in _DEPTHS:
        still = []
        for at, closing in enumerate(left):
            if at % 100 == 0 and stop.cause() is not None:
                return rows
            u, v = graph.edges[closing].tolist()
            if n_clusters == 2 and closing not in near[u]:
                continue  # used by a walk in the meantime
            path = _short_walk(near, u, v, depth, closing)
            if path is None:
                still.append(closing)
                continue
            rows.append(frozenset([closing, *path]))
            for e in rows[-1]:
                for end in graph.edges[e].tolist():
                    near[end].pop(e, None)
        left = still
    return rows


def _short_walk(
    near: list[dict[int, tuple[int, int]]], first: int, last: int, depth: int, closing: int
) -> list[int] | None:
    """Edges of a walk with an even number of cannot-links, no edge twice; None if none is near."""
    before: dict[tuple[int, int], tuple[tuple[int, int], int]] = {(first, 0): ((first, 0), -1)}
    layer = [(first, 0)]
    for _ in range(depth):
        following = []
        for state in layer:
            for e, (other, odd) in near[state[0]].items():
                reached = (other, state[1] ^ odd)
                if e == closing or reached in before:
                    continue
                before[reached] = (state, e)
                if reached == (last, 0):
                    walk = []
                    while reached != (first, 0):
                        reached, e = before[reached]
                        walk.append(e)
                    return walk if len(set(walk)) == len(walk) else None
                following.append(reached)
        if len(before) > _FARTHEST:
            return None
        layer = following
    return None
