"""Groups that the pairs themselves suggest: what is tied most is joined first.

Where most pairs are right, must-links between two groups outnumber the cannot-links if they belong
together. Joining the two with the largest surplus, over and over, is greedy additive edge
contraction (Keuper et al. 2015), for pairs of weight 1 and -1.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from certikmeans.problem.noise.graph import Ids, PairGraph


def joined(graph: PairGraph) -> Ids:
    """Return a group for every vertex; no two groups have more must- than cannot-links.

    >>> tied = PairGraph(3, np.array([[0, 1], [1, 2], [0, 2]]), 1)
    >>> joined(tied).tolist()
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
